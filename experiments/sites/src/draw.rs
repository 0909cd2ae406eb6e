//! How sites are drawn: numbers and machines.

use suimon_model::Rng;
use suimon_model::real::{exp, ln};
use suimon_sim::{Efficiency, Machine};

/// Returns a machine with this many `cores` and any of the efficiency curves.
pub(crate) fn machine(cores: f64, rng: &mut Rng) -> Machine {
    let efficiency = match rng.below(5) {
        0 => Efficiency::Flat,
        1 | 2 => Efficiency::Knee {
            knee: cores * between(rng, 1.0, 6.0),
            slope: between(rng, 0.05, 0.5),
            floor: rng.between(0.1, 0.3),
        },
        3 => {
            let heap = cores * between(rng, 8.0, 60.0);
            let (resting, cost) = (heap * rng.between(0.05, 0.4), between(rng, 0.02, 0.2));
            Efficiency::Heap { heap, resting, cost, floor: 0.05 }
        }
        _ => {
            let contention = between(rng, 0.005, 0.1);
            let best = cores * between(rng, 2.0, 12.0);
            Efficiency::Scalability { contention, coherency: (1.0 - contention) / (best * best) }
        }
    };
    Machine { cores, efficiency, even: rng.chance(0.5), ..Machine::default() }
}

/// Returns a number between the two, equally likely in each doubling.
pub(crate) fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    exp(rng.between(ln(low), ln(high)))
}

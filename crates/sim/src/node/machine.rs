//! What a machine can do: cores, speed and the cost of concurrency, (2) to (6) of the node's model.

/// The highest concurrency at which the best of (5) and (6) is searched.
const AT_ONCE_MAX: u32 = 10_000;

/// A node's machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// Processor cores; above 0. (5) does not use them.
    pub cores: f64,
    /// Speed of each core; 1 is the speed for which costs are given.
    pub speed: f64,
    /// The cost of concurrency.
    pub efficiency: Efficiency,
    /// Whether the operating system shares the processor evenly.
    pub even: bool,
    /// Requests handled at once; the rest wait for a thread. `None`: unlimited.
    pub threads: Option<u32>,
    /// Connections to other systems: this many requests wait for them at once, the rest wait for a
    /// connection. `None`: unlimited.
    pub connections: Option<u32>,
    /// a0, seconds.
    pub accept: f64,
    /// κ, seconds.
    pub accept_crowded: f64,
}

/// The most points of a measured curve.
pub const POINTS_MAX: usize = 16;

/// A measured curve: memory units in service, ascending, and the efficiency there, above 0. Beyond
/// its ends, the first and the last efficiency hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// Returns the curve through `points`. `None` if there are none or more than [`POINTS_MAX`],
    /// memory does not rise from each to the next, or an efficiency is not above 0.
    pub fn through(points: &[(f64, f64)]) -> Option<Curve> {
        let rise = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let positive = points.iter().all(|(_, efficiency)| *efficiency > 0.0);
        if points.is_empty() || points.len() > POINTS_MAX || !rise || !positive {
            return None;
        }
        Some(Curve(points.to_vec()))
    }

    /// Between two points the cost of a second of work, 1/E, is linear, as in (3).
    pub(super) fn at(&self, memory: f64) -> f64 {
        let Curve(points) = self;
        let above = points.partition_point(|(at, _)| *at <= memory);
        match (above.checked_sub(1).map(|below| points[below]), points.get(above)) {
            (Some((from, low)), Some(&(to, high))) => {
                let share = (memory - from) / (to - from);
                1.0 / ((1.0 - share) / low + share / high)
            }
            (Some((_, only)), None) | (None, Some(&(_, only))) => only,
            (None, None) => 1.0,
        }
    }
}

/// What it costs to have many requests in service at once.
#[derive(Clone, PartialEq, Debug)]
pub enum Efficiency {
    /// Nothing.
    Flat,
    /// (3): a collector that costs nothing up to a knee.
    Knee {
        /// Memory units in service up to which it costs nothing.
        knee: f64,
        /// How fast efficiency falls above the knee, per unit.
        slope: f64,
        /// The least efficiency.
        floor: f64,
    },
    /// (4): a copying collector in a heap of a given size.
    Heap {
        /// Size of the heap, in the same unit as the memory of requests.
        heap: f64,
        /// Memory that the application holds at rest.
        resting: f64,
        /// Seconds of collection per second of work when half of the heap is live.
        cost: f64,
        /// The least efficiency.
        floor: f64,
    },
    /// (5).
    Scalability {
        /// Share of the work that must be serial.
        contention: f64,
        /// Cost of coordination between each pair.
        coherency: f64,
    },
    /// (6).
    Measured(Curve),
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            cores: 2.0,
            speed: 1.0,
            efficiency: Efficiency::Knee { knee: 4.0, slope: 0.25, floor: 0.15 },
            even: false,
            threads: None,
            connections: None,
            accept: 0.0,
            accept_crowded: 0.0,
        }
    }
}

impl Machine {
    /// Returns the most CPU seconds of work per second, at the best concurrency, by requests that
    /// hold `memory` each on average.
    pub fn work_per_second_max(&self, memory: f64) -> f64 {
        let most = match self.efficiency {
            Efficiency::Scalability { .. } | Efficiency::Measured(_) => AT_ONCE_MAX,
            // Once every core works, another request only adds its memory.
            Efficiency::Flat | Efficiency::Knee { .. } | Efficiency::Heap { .. } => self.cores.ceil() as u32,
        };
        (1..=most)
            .map(|jobs| self.work_per_second(jobs as usize, f64::from(jobs) * memory))
            .fold(0.0, f64::max)
    }

    /// Returns the CPU seconds of work per second of `jobs` that hold `memory`.
    pub fn work_per_second(&self, jobs: usize, memory: f64) -> f64 {
        let n = jobs as f64;
        let efficiency = match self.efficiency {
            Efficiency::Flat => 1.0,
            Efficiency::Knee { knee, slope, floor } => {
                (1.0 / (1.0 + slope * (memory - knee).max(0.0))).max(floor)
            }
            Efficiency::Heap { heap, resting, cost, floor } => {
                let live = resting + memory;
                if live < heap { (1.0 / (1.0 + cost * live / (heap - live))).max(floor) } else { floor }
            }
            Efficiency::Measured(ref curve) => curve.at(memory),
            Efficiency::Scalability { contention, coherency } => {
                return n * self.speed / (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0));
            }
        };
        n.min(self.cores) * self.speed * efficiency
    }
}

//! The promises about generated sites.

use super::*;
use suimon_sim::{Efficiency, Laws, run};
use suimon_workload::Think;

#[test]
fn the_same_number_gives_the_same_site_and_another_another() {
    let told = |number| format!("{:?}", world(number, Family::Plain, Regime::Around));
    assert_eq!(told(7), told(7));
    assert_ne!(told(7), told(8));
}

#[test]
fn every_site_is_named_by_what_makes_it_again() {
    let site = world(3, Family::LongPages, Regime::Above);
    let name = SiteName::parse(&site.name).unwrap();
    assert_eq!(format!("{site:?}"), format!("{:?}", name.scenario()));
    assert!(SiteName::parse("chat:beside:3").unwrap_err().contains("FAMILY:REGIME:NUMBER"));
}

#[test]
fn every_family_can_be_played_in_every_regime_and_the_checkers_find_nothing() {
    for family in Family::ALL {
        for (number, regime) in Regime::ALL.iter().enumerate() {
            let mut site = world(number as u64, *family, *regime);
            (site.warm_up, site.measure) = (Duration::from_secs(5), Duration::from_secs(15));
            let outcome = run(&site, 1, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"));
            assert!(outcome.events > 50, "{} is dead", site.name);
        }
    }
}

/// Returns what a site completes when very many visitors, who wait for ever, are always there, as a
/// share of its bound.
fn saturated(mut site: Scenario) -> f64 {
    // The test is about what limits the rate, not about the cost of concurrency.
    site.machine = Machine { efficiency: Efficiency::Flat, even: true, ..site.machine };
    site.changes.clear();
    for journey in &mut site.workload.kinds {
        let journey = Arc::make_mut(journey);
        (journey.patience, journey.leave) = (Patience::Endless, 0.0);
    }
    let bound = site.bound(Duration::ZERO);
    let users = (2.5 * bound * site.state(Duration::ZERO).session_seconds(&site)).clamp(50.0, 20_000.0);
    site.workload.arrivals = Arrivals::Closed {
        users: users as u32,
        start_over: Duration::from_secs(10),
        spacing: Spacing::Poisson,
        sessions_each: None,
        pause: Think::Constant(Duration::ZERO),
    };
    // All of them have been served several times before counting begins.
    let turn = users / bound;
    (site.warm_up, site.measure) = (seconds(4.0 * turn), seconds((4000.0 / bound).max(10.0 * turn)));
    let none = Laws::parse("none").expect("it has a name");
    run(&site, 3, &none).unwrap_or_else(|violation| panic!("{violation}")).summary.bound_share
}

#[test]
fn what_connections_locks_and_threads_let_through_is_the_bound() {
    for family in [Family::Pool, Family::Threads] {
        for number in 0..12 {
            let site = world(number, family, Regime::Above);
            let (name, share) = (site.name.clone(), saturated(site));
            assert!((0.95..1.05).contains(&share), "{name}: {share}");
        }
    }
}

#[test]
fn the_pools_of_a_pool_site_are_shorter_than_its_processor() {
    for number in 0..40 {
        let site = world(number, Family::Pool, Regime::Above);
        let free = Machine { connections: None, ..site.machine.clone() };
        let mut without = Scenario { machine: free, ..site.clone() };
        without.routes.iter_mut().for_each(|route| route.cost.own_pool = None);
        let (with, without) = (site.bound(Duration::ZERO), without.bound(Duration::ZERO));
        assert!(with < 0.9 * without, "{}: {with} of {without}", site.name);
    }
}

#[test]
fn no_page_takes_longer_than_its_visitors_wait() {
    for number in 0..20 {
        for family in Family::ALL.iter().filter(|family| **family != Family::Aborts) {
            for regime in Regime::ALL {
                let site = world(number, *family, *regime);
                let longest = longest_page_seconds(&site);
                for journey in &site.workload.kinds {
                    let waits = match &journey.patience {
                        Patience::Endless => unreachable!("nobody waits for ever"),
                        Patience::Constant(waits) => *waits,
                        Patience::Mixture(parts) => parts.iter().map(|(_, waits)| *waits).min().unwrap(),
                    };
                    assert!(
                        waits.as_secs_f64() >= 1.499 * longest,
                        "{}: {waits:?} for {longest} s",
                        site.name
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_asked_for_is_what_the_regime_says() {
    for number in 0..20 {
        for family in Family::ALL {
            for regime in Regime::ALL {
                let site = world(number, *family, *regime);
                let to = (site.warm_up + site.measure).as_secs();
                let rates = site.rates((site.warm_up.as_secs()..to).map(Duration::from_secs));
                let offered = (site.warm_up.as_secs()..to).map(|at| site.offered(Duration::from_secs(at)));
                let most = rates
                    .iter()
                    .zip(offered)
                    .map(|((bound, _), offered)| offered / bound)
                    .fold(0.0, f64::max);
                let (low, high) = match regime {
                    Regime::Below => (0.2, 0.9),
                    Regime::Around => (0.8, 1.2),
                    Regime::Above => (1.0, 40.0),
                };
                assert!((low..=high).contains(&most), "{}: {most}", site.name);
            }
        }
    }
}

/// Measured from the first minute on, so the cold start is included.
#[test]
fn at_seven_tenths_of_what_it_can_do_six_sites_in_seven_do_not_notice_the_gate() {
    let none = Laws::parse("none").expect("it has a name");
    let (mut noticed, mut judged) = (vec![], 0);
    for number in 0..SITES_BELOW {
        let family = Family::ALL[number as usize % Family::ALL.len()];
        let mut site = world(number, family, Regime::Below);
        let offered = site.offered(site.warm_up) / site.bound(site.warm_up);
        if family == Family::Big || offered > 0.7 {
            continue;
        }
        judged += 1;
        (site.warm_up, site.measure) = (site.warm_up.min(WARM_UP_BELOW), site.measure.min(MEASURE_BELOW));
        let played = |laws: &Laws| run(&site, number, laws).unwrap_or_else(|violation| panic!("{violation}"));
        let (outcome, without) = (played(&Laws::AS_SET), played(&none));
        let (share, reference) = (outcome.summary.goodput_share, without.summary.goodput_share);
        if outcome.summary.refusals > 0 || share < reference - 0.02 {
            noticed.push(format!(
                "{}: {} refused, {share:.3} of {reference:.3}",
                site.name, outcome.summary.refusals
            ));
        }
    }
    assert!(7 * noticed.len() <= judged, "{} of {judged}: {noticed:#?}", noticed.len());
}

const SITES_BELOW: u64 = 200;
const WARM_UP_BELOW: Duration = Duration::from_secs(60);
const MEASURE_BELOW: Duration = Duration::from_secs(120);

use super::bench::Bench;
use super::*;
use std::collections::BTreeSet;
use suimon_sim::Utilisation;

fn site() -> Site {
    Site { cores: 2, cpu: Utilisation::default(), sessions_per_second: 3.0, kinds: 1 }
}

/// A host that does less and less with more than about 8 at once, with noise and failures.
fn rough(rival: RouteRival, bounds: Bounds) -> Bench {
    let thrash = |n: u32| 0.05 * (1.0 + (f64::from(n) / 8.0).min(50.0) * (f64::from(n) / 8.0).min(50.0));
    Bench::of(rival.build_within(&site(), bounds), None, thrash).noisy(0.8, 0.05)
}

#[test]
fn names_are_unique_and_lead_back() {
    for rival in RouteRival::ALL {
        assert_eq!(RouteRival::parse(rival.name()), Some(rival));
        assert_eq!(SessionRival::parse(rival.name()), None);
    }
    for rival in SessionRival::ALL {
        assert_eq!(SessionRival::parse(rival.name()), Some(rival));
        assert_eq!(RouteRival::parse(rival.name()), None);
    }
    let lines = RouteRival::ALL.iter().map(|rival| rival.describe());
    let lines: BTreeSet<_> = lines.chain(SessionRival::ALL.iter().map(|rival| rival.describe())).collect();
    assert_eq!(lines.len(), RouteRival::ALL.len() + SessionRival::ALL.len());
}

#[test]
fn every_limit_stays_within_its_bounds_under_noise_and_failures() {
    for rival in RouteRival::ALL {
        let mut decisions = 0;
        for bounds in [rival.bounds(2), Bounds { initial: 5, least: 1, most: 12 }] {
            let mut bench = rough(rival, bounds);
            let mut limits = bench.asked(3, 60.0);
            limits.extend(bench.saturated(120.0));
            let allowed = bounds.least..=bounds.most;
            assert!(limits.iter().all(|m| allowed.contains(m)), "{} {bounds:?} {limits:?}", rival.name());
            decisions += bench.records.len();
        }
        assert!(decisions > 0, "{} never decided anything", rival.name());
    }
}

#[test]
fn the_same_run_gives_the_same_decisions() {
    for rival in RouteRival::ALL {
        let run = || {
            let mut bench = rough(rival, rival.bounds(2));
            bench.saturated(120.0);
            (bench.trace(), bench.ends, bench.limit())
        };
        assert_eq!(run(), run(), "{}", rival.name());
    }
}

#[test]
fn a_given_limit_is_held_by_every_law() {
    for rival in RouteRival::ALL {
        let mut bench = Bench::of(rival.build(&site()), Some(7), |_| 0.1);
        let limits = bench.saturated(60.0);
        assert!(limits.iter().all(|m| *m == 7) && bench.records.is_empty(), "{}", rival.name());
    }
}

#[test]
fn session_laws_are_told_of_the_site() {
    let site = site();
    let fixed = SessionRival::FixedRate.build(&site, KindId(0), Instant::ORIGIN);
    assert_eq!(fixed.rate(), Some(3.0));
    let visits = suimon_control::Visits::default();
    let inputs = suimon_control::AdmissionInputs {
        visits: &visits,
        routes: &[],
        kinds: &[],
        patience: 60.0,
        waiting: 0,
        active: 0,
        entry: suimon_control::LastRoute::START,
        shared: None,
    };
    let mut sbac = SessionRival::Sbac.build(&site, KindId(0), Instant::ORIGIN);
    site.cpu.set(1.0);
    for second in 1..=10 {
        let now = Instant::ORIGIN + suimon_model::seconds(f64::from(second));
        sbac.on_tick(now, &inputs, &mut vec![]);
    }
    assert_eq!(sbac.may_admit(Instant::ORIGIN, &inputs), suimon_control::AdmissionDecision::Refuse);
}

#[test]
fn whatever_may_be_compared_is_a_law_and_no_two_are_the_same() {
    let laws: Vec<Laws> = catalogue().iter().map(|(name, _)| parse(name).expect(name)).collect();
    for (number, law) in laws.iter().enumerate() {
        assert!(!laws[..number].contains(law), "{law}");
    }
    assert_eq!(laws.len(), ALIASES.len() + RouteRival::ALL.len() + SessionRival::ALL.len());
}

#[test]
fn every_name_is_read_back_as_it_is_shown() {
    for name in ["vegas@whole+sbac", "envoy-gradient+fixed-rate", "paired+told:90", "fixed:7+static:35"] {
        assert_eq!(parse(name).expect("a law").to_string(), name);
    }
}

#[test]
fn what_is_no_law_is_told_what_may_be_written() {
    for name in ["", "vega+open", "vegas", "paired+told:0", "paired+told:x"] {
        let fault = parse(name).expect_err(name);
        assert!(
            fault.contains("routes-only") && fault.contains("vegas") && fault.contains("sbac"),
            "{fault}"
        );
    }
}

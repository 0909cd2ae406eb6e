//! Which visitors come to a site, for how long it is measured, and whether that is feasible.

use super::families::{Crowd, Draft};
use super::{Family, Regime};
use crate::draw::between;
use suimon_model::{Duration, Rng, seconds};
use suimon_sim::{Scenario, SiteState};
use suimon_workload::{Arrivals, Phase, Spacing, Think};

/// Sites that can finish fewer or more sessions per second than this are drawn again: too few to
/// measure, or too slow to simulate.
const BOUND: (f64, f64) = (0.02, 400.0);
/// The same for big ones.
const BOUND_BIG: (f64, f64) = (40.0, 6000.0);
/// This many sessions should end in the measured time, ...
const SESSIONS_COUNTED: f64 = 200.0;
/// ... which has this minimum and maximum, seconds.
const MEASURE: (f64, f64) = (300.0, 7200.0);
/// Minimum of the warm-up, seconds, and its minimum in mean sessions.
const WARM_UP: f64 = 120.0;
const WARM_UP_SESSIONS: f64 = 3.0;
/// If measuring begins with the first second, it lasts for this many mean sessions more: no session
/// can end at once.
const COLD_SESSIONS: f64 = 20.0;
/// The most estimated events of a run, ...
const EVENTS_MAX: f64 = 1.2e6;
/// ... and for big sites.
const EVENTS_MAX_BIG: f64 = 2.5e6;
/// To stay within them, the measured time and then the warm-up are shortened to this at most,
/// seconds.
const SHORTEST: (f64, f64) = (120.0, 60.0);
const SHORTEST_BIG: (f64, f64) = (40.0, 20.0);
/// Events per request: it arrives, works, ends, and is given up.
const EVENTS_PER_REQUEST: f64 = 4.0;
/// Requests of a session that is not finished.
const REQUESTS_IN_VAIN: f64 = 4.0;
/// Events per second without any request.
const EVENTS_IDLE: f64 = 6.0;
/// The most visitors at once.
const USERS_MAX: f64 = 20_000.0;
/// The most sessions under way if all can be served.
const UNDER_WAY_MAX: f64 = 10_000.0;
/// With fewer users than this, their number cannot match the regime exactly, ...
const USERS_MIN: f64 = 20.0;
/// ... and if it need not, fewer than this are no crowd.
const USERS_MIN_ABOVE: f64 = 5.0;
/// The load before and after a rush, as a share of the bound.
const CALM: f64 = 0.6;
/// Phases in which a day is drawn.
const DAY_PIECES: usize = 16;

/// Returns the site with visitors, and with its changes in place; `None` if that is not feasible.
pub(super) fn with_visitors(
    mut site: Scenario,
    draft: &Draft,
    family: Family,
    regime: Regime,
    rng: &mut Rng,
) -> Option<Scenario> {
    let states = super::states(&site);
    let started = |state: &SiteState| state.bound(&site) / state.offered_share(&site).max(1e-9);
    let bounds: Vec<f64> = states.iter().map(started).collect();
    let (low, high) = if family == Family::Big { BOUND_BIG } else { BOUND };
    if bounds.iter().any(|bound| !(low..=high).contains(bound)) {
        return None;
    }
    let worst = bounds.iter().copied().fold(f64::INFINITY, f64::min);
    let session = states.iter().map(|state| state.session_seconds(&site)).fold(0.0, f64::max);
    let requests = states.iter().map(|state| state.visits(&site).iter().sum()).fold(0.0, f64::max);
    let is_cold = family == Family::ColdRush;
    let times = match regime {
        Regime::Below => rng.between(0.3, 0.85),
        Regime::Around => rng.between(0.9, 1.15),
        Regime::Above if is_cold => between(rng, 3.0, 10.0),
        Regime::Above => between(rng, 1.3, 6.0),
    };
    // A demand that must never be too much must fit the lowest bound.
    let bound = if regime == Regime::Above { bounds[0] } else { worst };
    let rate = times * bound;
    if regime != Regime::Above && rate * session > UNDER_WAY_MAX {
        return None;
    }
    let served = rate.min(bounds.iter().copied().fold(0.0, f64::max));
    let events = EVENTS_IDLE + EVENTS_PER_REQUEST * (served * requests + (rate - served) * REQUESTS_IN_VAIN);
    let finished =
        states.iter().map(|state| state.offered_share(&site)).fold(1.0, f64::min) * times.min(1.0) * worst;
    let (warm_up, measure) = duration(family, session, finished, events)?;
    (site.warm_up, site.measure) = (seconds(warm_up), seconds(measure));
    for change in &mut site.changes {
        let share = change.at.as_secs_f64() - super::CHANGES_FROM;
        change.at = seconds((warm_up + share * measure).max(1.0));
    }
    let is_closed = draft.crowd == Crowd::Any && (!is_cold || regime == Regime::Above) && rng.chance(0.5);
    let closed = if is_closed { closed(&site, &states, regime, times, session, is_cold, rng) } else { None };
    let all = warm_up + measure;
    site.workload.arrivals = closed.unwrap_or_else(|| Arrivals::Open {
        phases: phases(draft.crowd, regime, is_cold, rate, bound, (warm_up, measure), all, rng),
        spacing: Spacing::Poisson,
        users_max: USERS_MAX as u32,
    });
    Some(site)
}

/// Returns warm-up and measured time, seconds; `None` if a run would cost too much.
fn duration(family: Family, session: f64, finished: f64, events: f64) -> Option<(f64, f64)> {
    let is_big = family == Family::Big;
    let (events_max, (measure_min, warm_up_min)) =
        if is_big { (EVENTS_MAX_BIG, SHORTEST_BIG) } else { (EVENTS_MAX, SHORTEST) };
    let all = events_max / events;
    let enough = SESSIONS_COUNTED / finished;
    let (shortest, wanted) = match family {
        Family::ColdRush => (COLD_SESSIONS * session, COLD_SESSIONS * session),
        _ => (measure_min, MEASURE.0),
    };
    let (shortest, wanted) = (shortest.max(enough).max(measure_min), wanted.max(enough).max(MEASURE.0));
    if shortest > MEASURE.1 {
        return None;
    }
    let settled = WARM_UP_SESSIONS * session;
    let (warm_up_min, warm_up) = if family == Family::ColdRush {
        (0.0, 0.0)
    } else {
        (warm_up_min.max(settled), WARM_UP.max(settled))
    };
    if shortest + warm_up_min > all {
        return None;
    }
    let measure = wanted.min(MEASURE.1).min(all - warm_up_min).max(shortest);
    Some((warm_up.min(all - measure).max(warm_up_min), measure))
}

/// Returns a closed crowd, if this size is enough for one.
fn closed(
    site: &Scenario,
    states: &[SiteState],
    regime: Regime,
    times: f64,
    session: f64,
    is_cold: bool,
    rng: &mut Rng,
) -> Option<Arrivals> {
    let pause = Think::Exponential { mean: seconds(between(rng, 1.0, 30.0)) };
    let one = |users: u32, over: f64| Arrivals::Closed {
        users,
        start_over: seconds(over),
        spacing: Spacing::Poisson,
        sessions_each: None,
        pause,
    };
    let mut of_one = site.clone();
    of_one.workload.arrivals = one(1, 1.0);
    let can = |state: &SiteState| state.bound(site) / state.offered(&of_one, Duration::ZERO);
    let users = match regime {
        Regime::Above => can(&states[0]),
        Regime::Below | Regime::Around => states.iter().map(can).fold(f64::INFINITY, f64::min),
    };
    let users = (times * users).round();
    let (least, most, over) = match regime {
        Regime::Above if is_cold => (25.0, 400.0, 1.0),
        Regime::Above => (USERS_MIN_ABOVE, USERS_MAX, 5.0),
        // They are present when measuring begins, and did not come in a rush.
        Regime::Below | Regime::Around => {
            (USERS_MIN, UNDER_WAY_MAX, (session + pause.mean().as_secs_f64()).max(30.0))
        }
    };
    (least..=most).contains(&users).then(|| one(users as u32, over))
}

#[allow(clippy::too_many_arguments)] // what a crowd depends on
fn phases(
    crowd: Crowd,
    regime: Regime,
    is_cold: bool,
    rate: f64,
    bound: f64,
    (warm_up, measure): (f64, f64),
    all: f64,
    rng: &mut Rng,
) -> Vec<Phase> {
    let steady = |lasts: f64, rate: f64| Phase { lasts: seconds(lasts), from_per_s: rate, to_per_s: rate };
    let is_rush = match crowd {
        Crowd::Day => false,
        Crowd::Flash => regime != Regime::Below,
        Crowd::Any => regime == Regime::Above && !is_cold && rng.chance(0.3),
    };
    if is_rush {
        let calm = CALM * bound;
        let rate = if crowd == Crowd::Flash && regime == Regime::Above {
            between(rng, 3.0, 10.0) * bound
        } else {
            rate
        };
        let before = warm_up + rng.between(0.05, 0.4) * measure;
        return vec![steady(before, calm), steady(rng.between(20.0, 100.0), rate), steady(all, calm)];
    }
    let varies = crowd != Crowd::Any || (!is_cold && regime != Regime::Above && rng.chance(0.4));
    if !varies {
        return vec![steady(all + 1.0, rate)];
    }
    // From the minimum, where a day begins, to the maximum and back, as a cosine.
    let least = if crowd == Crowd::Any { rng.between(0.5, 0.9) } else { rng.between(0.1, 0.6) };
    let period = if crowd == Crowd::Any {
        between(rng, 200.0, 1200.0).min(measure)
    } else {
        measure * rng.between(0.4, 1.0)
    };
    let at = |piece: usize| {
        let turn = std::f64::consts::TAU * piece as f64 / DAY_PIECES as f64;
        rate * (least + (1.0 - least) * 0.5 * (1.0 - suimon_model::real::cos(turn)))
    };
    let piece = |piece: usize| Phase {
        lasts: seconds(period / DAY_PIECES as f64),
        from_per_s: at(piece),
        to_per_s: at(piece + 1),
    };
    let days = (all / period).ceil() as usize + 1;
    (0..days * DAY_PIECES).map(|number| piece(number % DAY_PIECES)).collect()
}

//! Workers of a pool.

use super::*;

const POOL: PoolId = PoolId(0);

fn arrive(gate: &mut Gate, now: Instant, route: RouteId) {
    gate.handle_arrival(now, Arrival { route, session: None });
}

fn end(gate: &mut Gate, now: Instant, start: Start) {
    gate.handle_end(now, start.permit, Outcome::Completed);
}

fn at(second: f64) -> Instant {
    Instant::ORIGIN + seconds(second)
}

#[test]
fn as_many_requests_start_as_there_are_workers_whatever_the_limits_allow() {
    let (mut gate, route, _) = fixed(8);
    gate.handle_workers(at(0.0), POOL, Some(2));
    (0..4).for_each(|_| arrive(&mut gate, at(0.0), route));
    let mut running = started(&mut gate);
    assert_eq!(running.len(), 2);
    gate.handle_workers(at(1.0), POOL, Some(3));
    running.extend(started(&mut gate));
    assert_eq!(running.len(), 3, "one more is ready");
    gate.handle_workers(at(2.0), POOL, Some(1));
    for start in running.drain(..2) {
        end(&mut gate, at(3.0), start);
    }
    assert!(started(&mut gate).is_empty(), "what is with a worker stays, and nothing else starts");
    end(&mut gate, at(4.0), running.remove(0));
    assert_eq!(started(&mut gate).len(), 1);
}

#[test]
fn a_free_worker_takes_the_request_that_came_first_at_any_route() {
    let (mut gate, first, _) = fixed(8);
    let second = gate.declare_route(at(0.0), RouteMode::Fixed(Limit::of(8)));
    gate.handle_workers(at(0.0), POOL, Some(1));
    arrive(&mut gate, at(0.0), first);
    let busy = started(&mut gate).remove(0);
    arrive(&mut gate, at(1.0), second);
    arrive(&mut gate, at(2.0), first);
    end(&mut gate, at(3.0), busy);
    let next = started(&mut gate).remove(0);
    assert_eq!(next.waited, seconds(2.0), "the one of the other route waited longest");
    end(&mut gate, at(4.0), next);
    assert_eq!(started(&mut gate).remove(0).waited, seconds(2.0));
}

#[test]
fn a_route_at_its_limit_leaves_the_free_worker_to_others() {
    let (mut gate, heavy, _) = fixed(1);
    let light = gate.declare_route(at(0.0), RouteMode::Fixed(Limit::of(8)));
    gate.handle_workers(at(0.0), POOL, Some(3));
    (0..3).for_each(|_| arrive(&mut gate, at(0.0), heavy));
    arrive(&mut gate, at(1.0), light);
    assert_eq!(started(&mut gate).len(), 2);
    assert_eq!((gate.load(heavy), gate.load(light)), ((2, 1), (0, 1)));
}

#[test]
fn requests_do_not_wait_for_workers_of_an_application_that_does_not_answer() {
    let (mut gate, route, _) = fixed(8);
    gate.handle_workers(at(0.0), POOL, Some(0));
    arrive(&mut gate, at(0.0), route);
    assert!(started(&mut gate).is_empty());
    gate.handle_application(at(1.0), false);
    assert_eq!(started(&mut gate).len(), 1, "it is told so on its way");
}

#[test]
fn a_shortage_is_told_as_one_of_workers_or_of_limits() {
    let (mut gate, route, _) = fixed(2);
    let pass = |gate: &mut Gate, from: f64| {
        (1..=4).for_each(|tick| gate.handle_timeout(at(from + 0.25 * f64::from(tick))));
    };
    gate.handle_workers(at(0.0), POOL, Some(4));
    (0..4).for_each(|_| arrive(&mut gate, at(0.0), route));
    pass(&mut gate, 0.0);
    let told = gate.take_worker_load(at(1.0), POOL);
    assert_eq!(
        told,
        WorkerLoad { held: 1.0, longest_wait: 1.0, ..WorkerLoad::default() },
        "the limit holds them"
    );
    gate.handle_workers(at(1.0), POOL, Some(2));
    pass(&mut gate, 1.0);
    let told = gate.take_worker_load(at(2.0), POOL);
    assert_eq!(told, WorkerLoad { short: 1.0, longest_wait: 2.0, ..WorkerLoad::default() });
    let again = gate.take_worker_load(at(2.0), POOL);
    assert_eq!((again.short, again.held), (0.0, 0.0), "each report begins anew");
}

#[test]
fn errors_do_not_count_as_what_workers_complete() {
    let (mut gate, route, _) = fixed(4);
    gate.handle_workers(at(0.0), POOL, Some(4));
    (0..4).for_each(|_| arrive(&mut gate, at(0.0), route));
    let outcomes =
        [Outcome::Completed, Outcome::Declined, Outcome::Failed(Failure::ServerError), Outcome::Abandoned];
    for ((start, outcome), second) in started(&mut gate).into_iter().zip(outcomes).zip([1.0, 3.0, 4.0, 5.0]) {
        gate.handle_end(at(second), start.permit, outcome);
    }
    let told = gate.take_worker_load(at(5.0), POOL);
    assert_eq!((told.completed, told.failed, told.took_s), (2, 1, Some(2.0)));
    assert_eq!(gate.take_worker_load(at(6.0), POOL).completed, 0, "each report begins anew");
}

#[test]
fn a_new_route_does_not_wait_at_its_first_limit_while_others_have_all_workers() {
    let (mut gate, busy, _) = fixed(9);
    gate.handle_workers(at(0.0), POOL, Some(4));
    (0..9).for_each(|_| arrive(&mut gate, at(0.0), busy));
    let mut running = started(&mut gate);
    gate.handle_timeout(at(0.25));
    let new = gate.declare_route(at(0.3), RouteMode::Enforce);
    assert!(gate.limit(new).is_some_and(|limit| limit < 4), "where a search begins");
    gate.handle_timeout(at(0.5));
    assert_eq!(gate.limit(new), Some(4));
    gate.handle_workers(at(0.6), POOL, Some(6));
    gate.handle_timeout(at(0.75));
    assert_eq!(gate.limit(new), Some(6), "it follows the workers");
    running.extend(started(&mut gate));
    running.into_iter().for_each(|start| end(&mut gate, at(1.0), start));
}

#[test]
fn where_a_law_finds_the_number_of_workers_a_route_begins_with_all_of_them() {
    let params = Params { session_law: SessionLawKind::Open, finds_workers: vec![POOL], ..Params::default() };
    let mut gate = Gate::new(params, Instant::ORIGIN);
    let first = gate.declare_route(at(0.0), RouteMode::Enforce);
    gate.declare_kind(at(0.0), KindParams::default());
    gate.handle_workers(at(0.0), POOL, Some(20));
    let later = gate.declare_route(at(1.0), RouteMode::Enforce);
    assert_eq!((gate.limit(first), gate.limit(later)), (Some(20), Some(20)));
    (0..30).for_each(|_| arrive(&mut gate, at(2.0), later));
    assert_eq!(started(&mut gate).len(), 20);
    gate.handle_workers(at(3.0), POOL, Some(26));
    assert_eq!((started(&mut gate).len(), gate.limit(first)), (6, Some(26)));
}

#[test]
fn each_pool_has_workers_and_requests_of_its_own() {
    let params =
        Params { session_law: SessionLawKind::Open, finds_workers: vec![PoolId(1)], ..Params::default() };
    let mut gate = Gate::new(params, Instant::ORIGIN);
    gate.declare_kind(at(0.0), KindParams::default());
    let pages = gate.declare_route(at(0.0), RouteMode::Fixed(Limit::of(8)));
    gate.handle_workers(at(0.0), POOL, Some(1));
    gate.handle_workers(at(0.0), PoolId(1), Some(6));
    let reports = gate.declare_route(at(0.0), RouteMode::Enforce);
    gate.give_to_pool(at(0.0), reports, PoolId(1));
    assert_eq!(gate.limit(reports), Some(6), "it begins with all workers of its own pool");
    (0..9).for_each(|_| arrive(&mut gate, at(0.0), pages));
    let busy = started(&mut gate);
    assert_eq!(busy.len(), 1);
    (0..9).for_each(|_| arrive(&mut gate, at(1.0), reports));
    assert_eq!(started(&mut gate).len(), 6, "those of the other pool are no business of theirs");
    gate.handle_timeout(at(1.25));
    let told = [POOL, PoolId(1)].map(|pool| seconds(gate.take_worker_load(at(2.0), pool).longest_wait));
    assert_eq!(told, [seconds(2.0), seconds(1.0)]);
    busy.into_iter().for_each(|start| end(&mut gate, at(3.0), start));
    assert_eq!((started(&mut gate).len(), gate.load(reports)), (1, (3, 6)), "its place is for its own pool");
    assert_eq!(gate.take_worker_load(at(3.0), PoolId(1)).completed, 0);
    assert_eq!(gate.take_worker_load(at(3.0), POOL).completed, 1);
}

#[test]
fn what_one_pool_lacks_holds_the_limits_of_no_other() {
    let (mut gate, pages, _) = fixed(8);
    let reports = gate.declare_route(at(0.0), RouteMode::Enforce);
    gate.give_to_pool(at(0.0), reports, PoolId(1));
    gate.handle_workers(at(0.0), POOL, Some(2));
    gate.handle_workers(at(0.0), PoolId(1), Some(9));
    let limit = gate.limit(reports);
    (0..6).for_each(|_| arrive(&mut gate, at(0.0), pages));
    let running = started(&mut gate);
    gate.handle_timeout(at(0.25));
    gate.handle_workers(at(0.3), POOL, Some(1));
    gate.handle_timeout(at(0.5));
    assert_eq!(gate.limit(reports), limit);
    let told = [POOL, PoolId(1)].map(|pool| gate.take_worker_load(at(1.0), pool).short > 0.9);
    assert_eq!(told, [true, false]);
    running.into_iter().for_each(|start| end(&mut gate, at(1.0), start));
}

#[test]
fn a_route_whose_requests_are_there_stays_at_its_pool() {
    let (mut gate, route, _) = fixed(8);
    gate.handle_workers(at(0.0), POOL, Some(1));
    arrive(&mut gate, at(0.0), route);
    let running = started(&mut gate);
    gate.give_to_pool(at(1.0), route, PoolId(1));
    arrive(&mut gate, at(1.0), route);
    assert!(started(&mut gate).is_empty());
    running.into_iter().for_each(|start| end(&mut gate, at(2.0), start));
    assert_eq!(started(&mut gate).len(), 1);
    gate.give_to_pool(at(3.0), route, PoolId(POOLS_MAX as u32));
    gate.handle_workers(at(3.0), PoolId(u32::MAX), Some(3));
    assert_eq!(gate.take_worker_load(at(3.0), PoolId(u32::MAX)), WorkerLoad::default());
}

#[test]
fn a_pool_that_has_workers_goes_on_while_the_application_is_away_otherwise() {
    let (mut gate, pages, kind) = fixed(8);
    let reports = gate.declare_route(at(0.0), RouteMode::Fixed(Limit::of(8)));
    gate.give_to_pool(at(0.0), reports, PoolId(1));
    gate.handle_workers(at(0.0), PoolId(1), Some(2));
    gate.handle_application(at(1.0), false);
    let member = Membership::Member { kind, session: SessionId(7), leased: true, ends: false };
    for route in [pages, reports, reports, reports] {
        gate.handle_arrival(at(1.0), Arrival { route, session: Some(member) });
    }
    let running = started(&mut gate);
    assert_eq!((running.len(), gate.load(reports)), (2, (1, 2)), "as many as it has workers");
    gate.handle_workers(at(2.0), PoolId(1), None);
    assert_eq!(started(&mut gate).len(), 1, "it is down, too: who waits is told so on the way");
    gate.handle_application(at(3.0), true);
    assert_eq!(started(&mut gate).len(), 1, "that of the application has waited for it");
}

#[test]
fn who_waits_for_the_application_goes_on_once_workers_of_the_own_pool_are_back() {
    let (mut gate, pages, kind) = fixed(8);
    let reports = gate.declare_route(at(0.0), RouteMode::Fixed(Limit::of(8)));
    gate.give_to_pool(at(0.0), reports, PoolId(1));
    gate.handle_workers(at(0.0), PoolId(1), Some(0));
    gate.handle_application(at(1.0), false);
    let member = Membership::Member { kind, session: SessionId(7), leased: true, ends: false };
    for route in [pages, reports] {
        gate.handle_arrival(at(1.0), Arrival { route, session: Some(member) });
    }
    assert_eq!(started(&mut gate).len(), 0);
    gate.handle_workers(at(1.2), PoolId(1), Some(1));
    assert_eq!((started(&mut gate).len(), gate.load(reports)), (1, (0, 1)), "one worker came back");
    gate.handle_application(at(2.0), true);
    assert_eq!((started(&mut gate).len(), gate.load(pages)), (1, (0, 1)));
}

#[test]
fn routes_of_one_service_take_turns_though_they_have_pools_of_their_own() {
    let (mut gate, pages, _) = fixed(8);
    let reports = gate.declare_route(at(0.0), RouteMode::Fixed(Limit::of(8)));
    gate.give_to_pool(at(0.0), reports, PoolId(1));
    for pool in [POOL, PoolId(1)] {
        gate.handle_workers(at(0.0), pool, Some(1));
    }
    arrive(&mut gate, at(0.0), pages);
    arrive(&mut gate, at(0.0), reports);
    let running = started(&mut gate);
    arrive(&mut gate, at(1.0), reports);
    arrive(&mut gate, at(2.0), pages);
    arrive(&mut gate, at(3.0), pages);
    // One loop serves both pools, in the order in which requests came.
    for start in running {
        end(&mut gate, at(4.0), start);
    }
    let waited: Vec<_> = started(&mut gate).into_iter().map(|start| start.waited).collect();
    assert_eq!(waited.len(), 2);
    assert!(waited.contains(&seconds(3.0)) && waited.contains(&seconds(2.0)), "{waited:?}");
}

//! To whom a lease is given, and when.

use super::lines::{Metered, at, pass};
use super::*;
use crate::api::LeaseDue;

#[test]
fn a_lease_is_due_only_under_pressure_and_until_it_is_carried() {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let calm = started(&mut gate).pop().unwrap();
    assert_eq!(calm.lease, LeaseDue::No, "under capacity no cookie is set");
    let (_, session) = calm.session.unwrap();
    (0..50).for_each(|_| _ = gate.handle_arrival(Instant::ORIGIN, newcomer));
    let member =
        |leased| Arrival { route, session: Some(Membership::Member { kind, session, leased, ends: false }) };
    gate.handle_end(Instant::ORIGIN, calm.permit, Outcome::Completed);
    let without = gate.handle_arrival(Instant::ORIGIN, member(false));
    let with = gate.handle_arrival(Instant::ORIGIN, member(true));
    let mut due = BTreeMap::new();
    let mut open = started(&mut gate);
    while let Some(start) = open.pop() {
        due.insert(start.request, start.lease);
        gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
        open.extend(started(&mut gate));
    }
    assert_eq!(
        (due[&without], due[&with]),
        (LeaseDue::Yes, LeaseDue::No),
        "a lease is given until a request carries it"
    );
}

#[test]
fn whoever_nothing_else_tells_apart_gets_a_lease_once_newcomers_come_at_half_the_pace() {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    let law = Metered::new(1000, 10.0);
    let kind = gate.declare_kind_with_law(Instant::ORIGIN, KindParams::default(), law);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    // So many come each half second for ten seconds; what is the last given?
    let mut lease_at = |per_half_second: u64, from: u64| {
        let mut lease = LeaseDue::No;
        for half in 0..20 {
            let now = at(from as f64 + half as f64 / 2.0);
            pass(&mut gate, now);
            for _ in 0..per_half_second {
                gate.handle_arrival(now, newcomer);
                let start = started(&mut gate).pop().expect("there is room for all");
                lease = start.lease;
                gate.handle_end(now, start.permit, Outcome::Completed);
            }
        }
        lease
    };
    assert_eq!(lease_at(2, 0), LeaseDue::No, "four of ten a second");
    assert_eq!(lease_at(4, 10), LeaseDue::IfUnknown, "eight of ten");
    assert_eq!(lease_at(2, 20), LeaseDue::IfUnknown, "for some minutes after");
}

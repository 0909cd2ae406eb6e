use super::*;
use proptest::prelude::*;

fn claim(member: u64, wants: u32, slots: u32) -> Claim {
    Claim { member: GatewayId(member), wants, slots, holds: slots.max(wants.min(slots)), starved_ms: 0 }
}

#[test]
fn what_is_enough_for_all_is_spread_and_nobody_gets_less_than_it_asks_for() {
    assert_eq!(slots(1, 10, &[claim(1, 4, 5), claim(2, 1, 5)]), [6, 4], "the odd one stays where it is");
    assert_eq!(slots(1, 3, &[claim(1, 0, 3), claim(2, 0, 0)]), [2, 1]);
}

#[test]
fn scarce_slots_go_by_demand_with_one_for_each() {
    assert_eq!(slots(1, 10, &[claim(1, 1, 0), claim(2, 28, 0), claim(3, 64, 0)]), [1, 3, 6]);
}

#[test]
fn one_that_has_waited_long_without_a_slot_goes_before_one_that_has_one() {
    let has = claim(1, 9, 1);
    assert_eq!(slots(1, 1, &[has, claim(2, 9, 0)]), [1, 0]);
    let starved = Claim { starved_ms: STARVED_MS, ..claim(2, 9, 0) };
    assert_eq!(slots(1, 1, &[has, starved]), [0, 1]);
}

#[test]
fn a_raise_waits_until_the_others_have_given() {
    let before = [claim(1, 9, 4), claim(2, 9, 0)];
    assert_eq!(granted(4, &before, &[2, 2], GatewayId(2)), 0, "the first has all of them");
    assert_eq!(granted(4, &before, &[2, 2], GatewayId(1)), 2);
    let still_busy = [Claim { holds: 3, ..claim(1, 9, 2) }, claim(2, 9, 0)];
    assert_eq!(granted(4, &still_busy, &[2, 2], GatewayId(2)), 1, "one of its requests is still there");
}

#[test]
fn a_portion_is_given_and_never_taken() {
    assert!((granted_portion(&[1.0, 0.0], &[0.5, 0.5], 1) - 0.0).abs() < 1e-12);
    assert!((granted_portion(&[0.5, 0.0], &[0.5, 0.5], 1) - 0.5).abs() < 1e-12);
    assert!((granted_portion(&[0.4, 0.0, 0.5], &[0.4, 0.4, 0.2], 1) - 0.1).abs() < 1e-12);
}

fn any_claims() -> impl Strategy<Value = Vec<Claim>> {
    prop::collection::vec((0u32..40, 0u32..20, 0u32..20, 0u64..3000), 1..9).prop_map(|claims| {
        let of = |(member, (wants, slots, busy, starved_ms))| Claim {
            member: GatewayId(member),
            wants,
            slots,
            holds: slots.max(busy),
            starved_ms,
        };
        (1..).zip(claims).map(of).collect()
    })
}

proptest! {
    #[test]
    fn the_whole_limit_is_split_and_no_more(limit in 0u32..60, claims in any_claims()) {
        let targets = slots(7, limit, &claims);
        prop_assert_eq!(targets.iter().sum::<u32>(), limit);
        let demanders = claims.iter().filter(|claim| claim.wants > 0).count() as u32;
        if limit >= demanders {
            prop_assert!(claims.iter().zip(&targets).all(|(claim, target)| claim.wants == 0 || *target > 0));
        }
    }

    #[test]
    fn more_demand_is_never_less_share(limit in 1u32..60, claims in any_claims()) {
        let targets = slots(7, limit, &claims);
        for (one, own) in claims.iter().zip(&targets) {
            for (other, theirs) in claims.iter().zip(&targets) {
                prop_assert!(one.wants < other.wants || own + 1 >= *theirs || one.starved_ms != other.starved_ms);
            }
        }
    }

    #[test]
    fn what_is_in_force_never_exceeds_the_limit_by_raising(limit in 0u32..60, claims in any_claims()) {
        let targets = slots(7, limit, &claims);
        let held: u32 = claims.iter().map(|claim| claim.holds).sum();
        let after: u32 = claims
            .iter()
            .map(|claim| granted(limit, &claims, &targets, claim.member).max(claim.holds))
            .sum();
        prop_assert!(after <= limit.max(held), "{after} of {limit}, {held} before");
    }

    #[test]
    fn portions_are_one_in_all(wants in prop::collection::vec(0.0f64..100.0, 1..9)) {
        let sum: f64 = portions(&wants).iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
        let held: Vec<f64> = portions(&wants.iter().rev().copied().collect::<Vec<_>>());
        let targets = portions(&wants);
        let after: f64 = (0..wants.len()).map(|me| granted_portion(&held, &targets, me)).sum();
        prop_assert!(after <= 1.0 + 1e-9);
    }
}

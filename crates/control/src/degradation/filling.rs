//! Water filling: how an amount of work is divided by floors, weights and ceilings.

/// One who gets a part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Claim {
    /// What it would take if it got everything it asks for; infinite where that is unknown.
    pub demand: f64,
    /// What it gets first, at most its demand.
    pub floor: f64,
    /// What it never gets more than.
    pub ceiling: f64,
    /// Its part of what is left, relative to the others'; above 0.
    pub weight: f64,
}

/// Divides `amount`: floors first, in the order given or, if not `in_order`, shrunk alike where
/// they cannot all be had; what is left so that those who could take more have the same ÷ weight.
/// What nobody can take stays.
pub(super) fn fill(amount: f64, claims: &[Claim], in_order: bool) -> Vec<f64> {
    let most = |claim: &Claim| claim.demand.min(claim.ceiling).max(0.0);
    let floor = |claim: &Claim| claim.floor.min(most(claim)).max(0.0);
    let floors: f64 = claims.iter().map(floor).sum();
    if floors >= amount {
        let mut left = amount.max(0.0);
        let kept = |claim: &Claim| {
            let part =
                if in_order { floor(claim).min(left) } else { floor(claim) * amount.max(0.0) / floors };
            left -= if in_order { part } else { 0.0 };
            if floors > 0.0 { part } else { 0.0 }
        };
        return claims.iter().map(kept).collect();
    }
    let at = |level: f64| -> Vec<f64> {
        claims.iter().map(|claim| (level * claim.weight).clamp(floor(claim), most(claim))).collect()
    };
    // The level at which one claim stops or begins to rise: between two of them all is linear.
    let turns = claims.iter().flat_map(|claim| [floor(claim) / claim.weight, most(claim) / claim.weight]);
    let mut levels: Vec<f64> = turns.filter(|level| level.is_finite()).chain([0.0]).collect();
    levels.sort_by(f64::total_cmp);
    let sum = |level: f64| at(level).iter().sum::<f64>();
    let low = levels.iter().copied().filter(|level| sum(*level) <= amount).fold(0.0, f64::max);
    let left = amount - sum(low);
    let level = match levels.iter().copied().find(|level| *level > low) {
        Some(high) => low + (high - low) * left / (sum(high) - sum(low)).max(f64::MIN_POSITIVE),
        // Above the last turn only those rise who take all there is.
        None => {
            let slope: f64 = claims.iter().filter(|it| most(it).is_infinite()).map(|it| it.weight).sum();
            if slope > 0.0 { low + left / slope } else { low }
        }
    };
    at(level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANY: Claim = Claim { demand: f64::INFINITY, floor: 0.0, ceiling: f64::INFINITY, weight: 1.0 };

    fn close(got: &[f64], expected: &[f64]) {
        let same = got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(same && got.len() == expected.len(), "{got:?}, not {expected:?}");
    }

    #[test]
    fn work_is_divided_by_weight_and_what_one_does_not_want_goes_to_the_others() {
        let heavy = Claim { weight: 3.0, ..ANY };
        close(&fill(8.0, &[ANY, heavy], false), &[2.0, 6.0]);
        close(&fill(8.0, &[ANY, Claim { demand: 3.0, ..heavy }], false), &[5.0, 3.0]);
        close(
            &fill(8.0, &[Claim { ceiling: 1.0, ..ANY }, Claim { demand: 3.0, ..heavy }], false),
            &[1.0, 3.0],
        );
        close(&fill(8.0, &[], true), &[]);
    }

    #[test]
    fn floors_come_first_and_in_order_where_they_cannot_all_be_had() {
        let floor = |floor| Claim { floor, ..ANY };
        close(&fill(10.0, &[floor(8.0), floor(0.0), floor(0.0)], false), &[8.0, 1.0, 1.0]);
        close(&fill(10.0, &[floor(8.0), floor(6.0)], true), &[8.0, 2.0]);
        close(&fill(10.0, &[floor(12.0), floor(8.0)], false), &[6.0, 4.0]);
        let modest = Claim { demand: 2.0, ..floor(8.0) };
        close(&fill(10.0, &[modest, floor(6.0)], true), &[2.0, 8.0]);
    }

    proptest! {
        #[test]
        fn nothing_is_given_twice_or_kept_back(
            amount in 0.0f64..20.0,
            in_order: bool,
            claims in prop::collection::vec(
                (prop_oneof![0.0f64..20.0, Just(f64::INFINITY)], 0.0f64..10.0, 0.1f64..20.0, 0.1f64..5.0)
                    .prop_map(|(demand, floor, ceiling, weight)| Claim { demand, floor, ceiling, weight }),
                1..6,
            ),
        ) {
            let parts = fill(amount, &claims, in_order);
            let most = |claim: &Claim| claim.demand.min(claim.ceiling);
            let wanted: f64 = claims.iter().map(most).sum();
            let given: f64 = parts.iter().sum();
            prop_assert!((given - amount.min(wanted)).abs() < 1e-6 * (1.0 + amount), "{given} of {amount}, {wanted} wanted");
            for (part, claim) in parts.iter().zip(&claims) {
                prop_assert!(*part >= 0.0 && *part <= most(claim) + 1e-9);
            }
            let floors: f64 = claims.iter().map(|claim| claim.floor.min(most(claim))).sum();
            if floors <= amount {
                // Who could take more than it has gets no less, by weight, than anybody above its floor.
                for (a, mine) in parts.iter().zip(&claims) {
                    prop_assert!(*a >= mine.floor.min(most(mine)) - 1e-9);
                    for (b, other) in parts.iter().zip(&claims) {
                        let could_take_more = *a < most(mine) - 1e-6;
                        let is_above_floor = *b > other.floor.min(most(other)) + 1e-6;
                        let is_less = a / mine.weight < b / other.weight - 1e-6;
                        prop_assert!(!(could_take_more && is_above_floor && is_less), "{parts:?} of {claims:?}");
                    }
                }
            }
        }
    }
}

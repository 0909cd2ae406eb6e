//! The split: who may have how much of a limit.
//!
//! *Law*. Demand dᵢ is what gateway i has in the application and waiting. Where all demands fit
//! into the limit, each has its demand and the rest evenly. Where they do not, each with demand has
//! one slot as long as there are any, those first who have gone longest without, and what is left
//! goes by demand:
//!
//! ```text
//! tᵢ = 1 + (L − n) · (dᵢ − 1) / Σ (dⱼ − 1)        rounded so that Σ tᵢ = L                       (1)
//! ```
//!
//! *Given, never taken*: a gateway lowers its slots at once and raises them only into what no
//! published record holds:
//!
//! ```text
//! raise of all ≤ L − Σ max(slotsⱼ, in the applicationⱼ)                                           (2)
//! ```
//!
//! A raise is published before it is used, and given up where another was published first: as the
//! engine takes one record after the other, (2) holds of what is used at every moment.
//!
//! *Units*: slots. *Limits*: whoever computes it from the same records gets the same split.
//! *Source*: the fair share of leased capacity as in Doorman, with its floor.

use crate::GatewayId;
use crate::hash::weight;

/// A gateway without a slot goes before others once its requests have waited this long,
/// milliseconds.
pub const STARVED_MS: u64 = 3000;
/// The portion of what begins that is divided evenly, whatever the demand: a gateway whose first
/// newcomers come has something for them.
pub const FLOOR: f64 = 0.1;

/// What one gateway has and wants of a route's limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    /// Who.
    pub member: GatewayId,
    /// The slots it could use.
    pub wants: u32,
    /// The slots in force there.
    pub slots: u32,
    /// The slots that nobody else may have: in force, or taken.
    pub holds: u32,
    /// Milliseconds for which its requests have waited without any slot.
    pub starved_ms: u64,
}

/// Returns the slots that each of `claims` is to have of `limit`, in their order; their sum is
/// `limit`, unless there are no claims. `key`: of the route; where nothing else decides, it does.
pub fn slots(key: u64, limit: u32, claims: &[Claim]) -> Vec<u32> {
    let mut given = vec![0; claims.len()];
    if claims.is_empty() {
        return given;
    }
    let wanted: u64 = claims.iter().map(|claim| u64::from(claim.wants)).sum();
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|index| {
        let claim = &claims[*index];
        let starved = claim.starved_ms >= STARVED_MS;
        (
            claim.wants == 0,
            std::cmp::Reverse(if starved { claim.starved_ms } else { 0 }),
            claim.slots == 0,
            weight(key, claim.member),
        )
    });
    if wanted <= u64::from(limit) {
        claims.iter().zip(&mut given).for_each(|(claim, given)| *given = claim.wants);
        let rest = limit - wanted as u32;
        let each = rest / claims.len() as u32;
        given.iter_mut().for_each(|given| *given += each);
        let mut left = rest % claims.len() as u32;
        // What is not divisible stays with those who have it.
        let mut holders: Vec<usize> = (0..claims.len()).collect();
        holders.sort_by_key(|index| {
            let over = claims[*index].slots.saturating_sub(given[*index]);
            (std::cmp::Reverse(over), weight(key, claims[*index].member))
        });
        for index in holders {
            let one = u32::from(left > 0);
            given[index] += one;
            left -= one;
        }
        return given;
    }
    let mut left = limit;
    for index in &order {
        if claims[*index].wants > 0 && left > 0 {
            given[*index] = 1;
            left -= 1;
        }
    }
    if left == 0 {
        return given;
    }
    let more = |claim: &Claim| u64::from(claim.wants.saturating_sub(1));
    let all: u64 = claims.iter().map(more).sum();
    let (pool, mut parts) = (u64::from(left), vec![]);
    for (index, claim) in claims.iter().enumerate() {
        let exact = pool * more(claim);
        given[index] += (exact / all) as u32;
        left -= (exact / all) as u32;
        parts.push((exact % all, index));
    }
    // The largest remainders first; of equal ones, those who have the slot already.
    parts.sort_by_key(|(rest, index)| {
        let has = claims[*index].slots > given[*index];
        (std::cmp::Reverse(*rest), !has, weight(key, claims[*index].member))
    });
    for (_, index) in parts.into_iter().take(left as usize) {
        given[index] += 1;
    }
    given
}

/// Returns the slots that `me` may claim now, of `claims` that are to have `targets`: by (2).
/// None if it is not among them.
pub fn granted(limit: u32, claims: &[Claim], targets: &[u32], me: GatewayId) -> u32 {
    let held: u64 = claims.iter().map(|claim| u64::from(claim.holds)).sum();
    let mut free = u64::from(limit).saturating_sub(held);
    for (claim, target) in claims.iter().zip(targets) {
        let raise = u64::from(target.saturating_sub(claim.slots));
        // What it holds beyond its slots, it has already.
        let over = u64::from(claim.holds - claim.slots.min(claim.holds));
        let taken = raise.saturating_sub(over).min(free);
        if claim.member == me {
            return if raise == 0 { *target } else { claim.slots + raise.min(over + taken) as u32 };
        }
        free -= taken;
    }
    0
}

/// Returns what the others leave of `limit` to `me`.
pub fn left(limit: u32, claims: &[Claim], me: GatewayId) -> u32 {
    let others = claims.iter().filter(|claim| claim.member != me);
    others.fold(limit, |left, claim| left.saturating_sub(claim.holds))
}

/// Returns whether a gateway may start one request beyond its slots: as long as the records show a
/// slot that nobody uses. `used`: in the application, of all gateways together. Under capacity
/// nobody waits then for a slot that another gateway does not need.
pub fn lent(limit: u32, used: u64) -> bool {
    used < u64::from(limit)
}

/// Returns the portions of what begins, by demand, in the order of `wants`: a [`FLOOR`] of it
/// evenly. Their sum is 1, unless there are none.
pub fn portions(wants: &[f64]) -> Vec<f64> {
    let count = wants.len() as f64;
    let all: f64 = wants.iter().sum();
    if all <= 0.0 {
        return vec![1.0 / count; wants.len()];
    }
    wants.iter().map(|want| FLOOR / count + (1.0 - FLOOR) * want / all).collect()
}

/// Returns the portion that `me`-th may put in force now, where `held` are in force and `targets`
/// are to be: what is less at once, what is more only of what nobody holds.
pub fn granted_portion(held: &[f64], targets: &[f64], me: usize) -> f64 {
    let target = targets[me];
    if target <= held[me] {
        return target;
    }
    let free = (1.0 - held.iter().sum::<f64>()).max(0.0);
    let raises: f64 = held.iter().zip(targets).map(|(held, target)| (target - held).max(0.0)).sum();
    held[me] + (target - held[me]) * (free / raises).min(1.0)
}

#[cfg(test)]
mod tests;

//! The claims, and whether they hold.

use super::Data;
use super::plan::Method;
use crate::claims::Claim;

/// Suimon completes at least this share of the bound.
const SHARE_MIN: f64 = 0.85;
/// At these sizes.
const SIZES: [u32; 3] = [100, 200, 400];
/// The size that no other method sustains. Without control the shop collapses at it: it completes
/// at most this share of the bound.
const LARGEST: u32 = 400;
const COLLAPSED_MAX: f64 = 0.3;

/// Returns all claims; a claim whose cells were not measured does not hold.
pub(super) fn claims(data: &Data) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut claim = |sentence: String, holds| claims.push(Claim::new(sentence, holds));
    for users in SIZES {
        let (share, failures) = figures(data, Method::Suimon, users);
        claim(
            format!(
                "suimon completes at least {SHARE_MIN} B at {users} users with no failure inside a session: {}",
                told(share, failures)
            ),
            sustains(share, failures),
        );
    }
    let (share, failures) = figures(data, Method::None, LARGEST);
    claim(
        format!(
            "without control, {LARGEST} users bring the shop down (at most {COLLAPSED_MAX} B): {}",
            told(share, failures)
        ),
        share.is_some_and(|share| share <= COLLAPSED_MAX),
    );
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Suimon) {
        let (share, failures) = figures(data, method, LARGEST);
        claim(
            format!("{} does not sustain {LARGEST} users: {}", method.name(), told(share, failures)),
            share.is_some() && !sustains(share, failures),
        );
    }
    claims
}

/// Sustained: the share claimed for Suimon, and no mid-session failure.
fn sustains(share: Option<f64>, failures: Option<u64>) -> bool {
    share.is_some_and(|share| share >= SHARE_MIN) && failures == Some(0)
}

fn figures(data: &Data, method: Method, users: u32) -> (Option<f64>, Option<u64>) {
    let Some(cell) = data.cell(method, users) else { return (None, None) };
    (data.share(cell), cell.seen.as_ref().map(|seen| seen.crowd.mid_session_failures))
}

fn told(share: Option<f64>, failures: Option<u64>) -> String {
    match share.zip(failures) {
        Some((share, failures)) => format!("{share:.2} B, {failures} failures"),
        None => "not measured".to_string(),
    }
}

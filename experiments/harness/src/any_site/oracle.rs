//! What is reachable on a site: the best of several gates that know what no real gate can know, and
//! of no gate.
//!
//! The bound is arithmetic, and on some sites no gate reaches it: visitors who wait for 1.5 times
//! the longest page leave while it is made, and a machine that is slower under load gets such load
//! by chance now and then. So a site is played again with the true bound, or a share of it, entered
//! as a fixed rate, and with limits found by trials or with none.

use super::Played;

/// The name of its row.
pub(super) const NAME: &str = "oracle";
/// The laws of which it takes the best.
pub(super) const TOLD: [&str; 7] = [
    "none",
    "off+told:100",
    "off+told:95",
    "off+told:90",
    "off+told:80",
    "paired+told:100",
    "paired+told:90",
];

/// Returns the rows of the laws `asked` for, and one row of the oracle per site: its best goodput,
/// and the lowest failures among those within a hundredth of it.
pub(super) fn asked(played: &[Played], asked: &[&str]) -> Vec<Played> {
    const AS_GOOD: f64 = 0.01;
    let mut rows: Vec<Played> =
        played.iter().filter(|row| asked.contains(&row.law.as_str())).cloned().collect();
    let site = |row: &Played| (row.family.clone(), row.regime.clone(), row.number);
    for first in played.iter().filter(|row| row.law == TOLD[0]) {
        let told =
            || played.iter().filter(|row| site(row) == site(first) && TOLD.contains(&row.law.as_str()));
        let best = told().map(|row| row.share).fold(0.0, f64::max);
        let as_good = told().filter(|row| row.share >= best - AS_GOOD);
        if let Some(row) = as_good.min_by(|a, b| a.failures.total_cmp(&b.failures)) {
            rows.push(Played { law: NAME.to_owned(), ..row.clone() });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tell::tests::played;
    use super::*;

    #[test]
    fn it_is_the_best_of_what_was_told_and_of_nothing_and_fails_as_little_as_can_be() {
        let lossy = Played { failures: 0.2, ..played(0, "off+told:100", 0.96) };
        let rows = [
            played(0, "suimon", 0.99),
            played(0, "none", 0.2),
            lossy,
            played(0, "paired+told:90", 0.955),
            played(16, "none", 0.9),
            played(16, "off+told:100", 0.5),
        ];
        let told = asked(&rows, &["suimon"]);
        let shares: Vec<(u64, &str, f64, f64)> =
            told.iter().map(|row| (row.number, row.law.as_str(), row.share, row.failures)).collect();
        assert_eq!(shares, [(0, "suimon", 0.99, 0.0), (0, NAME, 0.955, 0.0), (16, NAME, 0.9, 0.0)]);
    }
}

//! The tables: laws by regime, by family, and the worst sites with the commands that reproduce
//! them.

use suimon_sites::{Family, Regime};
use suimon_statistics::quantile;

use super::{Played, oracle};

/// The law that does nothing: what a site completes without a gate.
const NONE: &str = "none";
/// Worse than that law, as a share of what is reachable: visibly, and clearly.
const WORSE: [f64; 2] = [0.02, 0.05];
/// Shares of sessions with mid-session failures above which a site is counted.
const FAILING: [f64; 2] = [0.001, 0.01];
/// The number of worst sites listed for each law and regime.
const WORST: usize = 20;

/// Returns all tables.
pub(super) fn text(played: &[Played], laws: &[&str]) -> String {
    let mut out = String::new();
    for regime in Regime::ALL {
        let of: Vec<&Played> = played.iter().filter(|played| played.regime == regime.name()).collect();
        if of.is_empty() {
            continue;
        }
        out += &format!("\n## {}\n\n{}\n{}", regime.name(), by_law(&of, laws), by_family(&of, laws));
        for law in laws.iter().filter(|law| **law != NONE) {
            out += &format!("\nThe worst under {law}:\n\n{}", worst(&of, law));
        }
    }
    out + &cost(played)
}

fn by_law(of: &[&Played], laws: &[&str]) -> String {
    let mut out = format!(
        "| law | sites | median | worst tenth | worst hundredth | worst | worse than {NONE} by {} | by {} | any refused | failing inside > {} % | > {} % | failing > {NONE}'s + {} % | newcomers held > 1 s, mean | most | delay inside, mean ms | violations |\n|---|{}\n",
        WORSE[0],
        WORSE[1],
        FAILING[0] * 100.0,
        FAILING[1] * 100.0,
        FAILING[0] * 100.0,
        "--:|".repeat(15),
    );
    for law in laws {
        let own = of_law(of, law);
        let shares: Vec<f64> = own.iter().map(|played| played.share).collect();
        let count = |is: &dyn Fn(&Played) -> bool| own.iter().filter(|played| is(played)).count();
        let worse = |by: f64| match has_none(of) {
            true => count(&|played| lost(of, played).is_some_and(|lost| lost > by)).to_string(),
            false => "–".to_owned(),
        };
        let mean = |value: fn(&Played) -> f64| {
            own.iter().map(|played| value(played)).sum::<f64>() / own.len().max(1) as f64
        };
        out += &format!(
            "| {law} | {} | {:.3} | {:.3} | {:.3} | {:.3} | {} | {} | {} | {} | {} | {} | {:.2} % | {:.1} % | {:.1} | {} |\n",
            own.len(),
            quantile(&shares, 0.5),
            quantile(&shares, 0.1),
            quantile(&shares, 0.01),
            quantile(&shares, 0.0),
            worse(WORSE[0]),
            worse(WORSE[1]),
            count(&|played| played.refusals > 0),
            count(&|played| played.failures > FAILING[0]),
            count(&|played| played.failures > FAILING[1]),
            count(&|played| same(of, NONE, played)
                .is_some_and(|none| played.failures > none.failures + FAILING[0])),
            mean(|played| played.held_long) * 100.0,
            own.iter().map(|played| played.held_long).fold(0.0, f64::max) * 100.0,
            mean(|played| played.delay_s) * 1000.0,
            count(&|played| played.violation.is_some()),
        );
    }
    out + &of_reachable(of, laws)
}

/// Returns goodput as a share of what the oracle reached, if it was asked.
fn of_reachable(of: &[&Played], laws: &[&str]) -> String {
    if !laws.contains(&oracle::NAME) {
        return String::new();
    }
    let mut out = "\n| goodput ÷ what the oracle reached | median | worst tenth | worst hundredth | worst | failing inside > oracle's + 1 % |\n|---|--:|--:|--:|--:|--:|\n".to_owned();
    for law in laws.iter().filter(|law| **law != oracle::NAME) {
        let pairs: Vec<(&Played, &Played)> = of_law(of, law)
            .into_iter()
            .filter_map(|played| Some((played, same(of, oracle::NAME, played)?)))
            .collect();
        let of_told = |(own, told): &(&Played, &Played)| match told.share > 0.0 {
            true => own.share / told.share,
            // There was nothing to lose.
            false => 1.0,
        };
        let shares: Vec<f64> = pairs.iter().map(of_told).collect();
        let failing = pairs.iter().filter(|(own, told)| own.failures > told.failures + FAILING[1]).count();
        out += &format!(
            "| {law} | {:.3} | {:.3} | {:.3} | {:.3} | {failing} |\n",
            quantile(&shares, 0.5),
            quantile(&shares, 0.1),
            quantile(&shares, 0.01),
            quantile(&shares, 0.0),
        );
    }
    out
}

fn of_law<'a>(of: &[&'a Played], law: &str) -> Vec<&'a Played> {
    of.iter().copied().filter(|played| played.law == law).collect()
}

fn by_family(of: &[&Played], laws: &[&str]) -> String {
    let cells = |law: &&str| format!(" {law}: median | worst | worse by {} | refused |", WORSE[0]);
    let heads: String = laws.iter().map(cells).collect();
    let mut out =
        format!("| family (* held out) | sites |{heads}\n|---|--:|{}\n", "--:|".repeat(4 * laws.len()));
    for family in Family::ALL {
        let own: Vec<&Played> = of.iter().copied().filter(|played| played.family == family.name()).collect();
        if own.is_empty() {
            continue;
        }
        let mark = if family.is_held_out() { " *" } else { "" };
        out += &format!("| {}{mark} | {} |", family.name(), own.len() / laws.len());
        for law in laws {
            let under = of_law(&own, law);
            let shares: Vec<f64> = under.iter().map(|played| played.share).collect();
            let worse =
                under.iter().filter(|played| lost(of, played).is_some_and(|lost| lost > WORSE[0])).count();
            let refused = under.iter().filter(|played| played.refusals > 0).count();
            out += &format!(
                " {:.3} | {:.3} | {worse} | {refused} |",
                quantile(&shares, 0.5),
                quantile(&shares, 0.0)
            );
        }
        out += "\n";
    }
    out
}

/// Returns the worst sites of a law: first violations, then by what is lost, compared with the law
/// that does nothing or with what is reachable, whichever is more the law's fault.
fn worst(of: &[&Played], law: &str) -> String {
    let mut own: Vec<(&Played, f64)> =
        of.iter().filter(|played| played.law == law).map(|played| (*played, blame(of, played))).collect();
    own.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let mut out = format!(
        "| goodput | {NONE} | failing inside | {NONE} | refused | held > 1 s | delay inside, ms | bound per s | again |\n|{}---|\n",
        "--:|".repeat(8)
    );
    for (played, _) in own.iter().take(WORST) {
        let none = same(of, NONE, played);
        let number = |value: fn(&Played) -> String| none.map_or("–".to_owned(), value);
        let again = format!(
            "./experiments/run sim --site {}:{}:{} --vs {NONE}",
            played.family, played.regime, played.number
        );
        out += &format!(
            "| {:.3} | {} | {} | {} | {} | {:.1} % | {:.1} | {:.3} | `{again}`{} |\n",
            played.share,
            number(|none| format!("{:.3}", none.share)),
            percent(played.failures),
            number(|none| percent(none.failures)),
            played.refusals,
            played.held_long * 100.0,
            played.delay_s * 1000.0,
            played.bound,
            played.violation.as_deref().map_or(String::new(), |what| format!(" {what}")),
        );
    }
    out
}

/// Returns how bad a site is for the law: its loss compared with what is reachable or, below
/// capacity, with what the site completes without a gate if that is less; and its additional
/// mid-session failures.
fn blame(of: &[&Played], played: &Played) -> f64 {
    if played.violation.is_some() {
        return f64::INFINITY;
    }
    let none = same(of, NONE, played);
    let is_below = played.regime == Regime::Below.name();
    let goal = match none {
        Some(none) if is_below => none.share.min(1.0),
        Some(_) | None => 1.0,
    };
    let own_failures = none.filter(|_| is_below).map_or(0.0, |none| none.failures);
    (goal - played.share) + (played.failures - own_failures).clamp(0.0, 1.0)
}

/// Returns the same site under `law`, if that was played.
fn same<'a>(of: &[&'a Played], law: &str, played: &Played) -> Option<&'a Played> {
    of.iter()
        .copied()
        .find(|other| other.law == law && (&other.family, other.number) == (&played.family, played.number))
}

fn has_none(of: &[&Played]) -> bool {
    of.iter().any(|played| played.law == NONE)
}

/// Returns what is lost against the law that does nothing.
fn lost(of: &[&Played], played: &Played) -> Option<f64> {
    same(of, NONE, played).map(|none| none.share - played.share)
}

/// Returns a share of sessions; several failures of one session count as one.
fn percent(share: f64) -> String {
    if share < 1.0 { format!("{:.2} %", share * 100.0) } else { "≥ 100 %".to_owned() }
}

fn cost(played: &[Played]) -> String {
    let wall: f64 = played.iter().map(|played| played.wall_s).sum();
    let events: u64 = played.iter().map(|played| played.events).sum();
    let most = played.iter().max_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
    let most = most.map_or(String::new(), |most| {
        format!(
            "; longest {}:{}:{} under {}, {:.1} s, {} events",
            most.family, most.regime, most.number, most.law, most.wall_s, most.events
        )
    });
    format!(
        "\n{} runs, {:.1} million events, {wall:.0} s of one core{most}.\n",
        played.len(),
        events as f64 / 1e6
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn played(number: u64, law: &str, share: f64) -> Played {
        Played {
            family: "plain".to_owned(),
            regime: "below".to_owned(),
            number,
            law: law.to_owned(),
            share,
            completed: 100,
            failures: 0.0,
            refusals: 0,
            held_long: 0.0,
            delay_s: 0.0,
            bound: 1.0,
            seconds: 420.0,
            events: 1000,
            wall_s: 0.1,
            violation: None,
        }
    }

    #[test]
    fn what_a_site_does_of_itself_is_not_blamed_on_the_law() {
        let rows = [
            played(0, NONE, 0.5),
            played(0, "suimon", 0.5),
            played(16, NONE, 1.0),
            played(16, "suimon", 0.9),
        ];
        let of: Vec<&Played> = rows.iter().collect();
        assert!(blame(&of, &rows[1]).abs() < 1e-9);
        assert!((blame(&of, &rows[3]) - 0.1).abs() < 1e-9);
        let text = text(&rows, &["suimon", NONE]);
        let (first, second) = (text.find("plain:below:16").unwrap(), text.find("plain:below:0 ").unwrap());
        assert!(
            first < second && text.contains("| suimon | 2 | 0.700 | 0.540 | 0.504 | 0.500 | 1 | 1 |"),
            "{text}"
        );
    }

    #[test]
    fn goodput_is_told_as_a_share_of_what_the_oracle_reached_and_nothing_is_lost_where_that_is_nothing() {
        let rows = [
            played(0, "suimon", 0.4),
            played(0, oracle::NAME, 0.5),
            played(16, "suimon", 0.0),
            played(16, oracle::NAME, 0.0),
        ];
        let text = text(&rows, &["suimon", oracle::NAME]);
        assert!(text.contains("| suimon | 0.900 | 0.820 | 0.802 | 0.800 | 0 |"), "{text}");
    }

    #[test]
    fn what_a_checker_found_is_the_worst_of_all() {
        let broken = Played { violation: Some("two in one slot".to_owned()), ..played(0, "suimon", 0.0) };
        let rows = [played(16, "suimon", 0.1), broken, played(0, NONE, 1.0), played(16, NONE, 1.0)];
        let text = text(&rows, &["suimon", NONE]);
        let (first, second) = (text.find("two in one slot").unwrap(), text.find("plain:below:16").unwrap());
        assert!(first < second, "{text}");
    }
}

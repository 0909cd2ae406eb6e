//! `suimon override`: shows, sets and releases what an operator overrides in a running gateway.

use crate::args::{Override, OverrideCommand, OverrideFor, OverrideOf};
use crate::exit::Exit;
use crate::fetch::{self, of_site};
use crate::numbers::rough_time;
use crate::table::Table;
use crate::terminal;
use std::time::SystemTime;
use suimon_admin::{OVERRIDE_PATH, OverrideAnswer, OverrideRequest, OverrideState};
use suimon_statistics::table::Align;

/// Runs the subcommand.
pub(crate) async fn run(args: &Override) -> Exit {
    let (of, request) = match &args.what {
        OverrideCommand::List(of) => (of, None),
        OverrideCommand::Pin { route, limit, of } => {
            let request = OverrideRequest {
                route: Some(route.clone()),
                limit: Some(*limit),
                ..OverrideRequest::default()
            };
            (&of.of, Some(said(request, of)))
        }
        OverrideCommand::Observe { route, of } => (&of.of, Some(said(mode(route, "observe"), of))),
        OverrideCommand::Enforce { route, of } => (&of.of, Some(said(mode(route, "enforce"), of))),
        OverrideCommand::Open(of) => {
            let request = OverrideRequest { gate: Some("open".to_owned()), ..OverrideRequest::default() };
            (&of.of, Some(said(request, of)))
        }
        OverrideCommand::DrainNode { node, of } => {
            let request =
                OverrideRequest { node: Some(node.clone()), drain: Some(true), ..OverrideRequest::default() };
            (&of.of, Some(said(request, of)))
        }
        OverrideCommand::Release { id, who, of } => {
            let who = who.clone().or_else(user);
            (of, Some(OverrideRequest { release: Some(*id), who, ..OverrideRequest::default() }))
        }
    };
    ask(of, request).await
}

async fn ask(of: &OverrideOf, request: Option<OverrideRequest>) -> Exit {
    let body = match request {
        None => fetch::get(&of.at, OVERRIDE_PATH).await,
        Some(request) => {
            let text = serde_json::to_string(&request).expect("it is made of texts and numbers");
            fetch::post(&of.at, OVERRIDE_PATH, text).await
        }
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return error.explain("--admin", &of.at.admin),
    };
    if of.json {
        println!("{}", String::from_utf8_lossy(&body));
        return Exit::Done;
    }
    match serde_json::from_slice::<OverrideAnswer>(&body) {
        Ok(answer) => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            print!(
                "{}{}",
                of_site(answer.site.as_deref()),
                table(&answer.overrides, now.as_secs_f64(), terminal::columns())
            );
            Exit::Done
        }
        Err(error) => {
            eprintln!("{} answers, but not as this version of suimon expects ({error})", of.at.admin);
            Exit::Failed
        }
    }
}

fn mode(route: &str, mode: &str) -> OverrideRequest {
    OverrideRequest {
        route: Some(route.to_owned()),
        mode: Some(mode.to_owned()),
        ..OverrideRequest::default()
    }
}

/// Returns the request with for how long, who and why.
fn said(request: OverrideRequest, of: &OverrideFor) -> OverrideRequest {
    let (who, why) = (of.who.clone().or_else(user), of.why.clone());
    OverrideRequest { for_s: Some(of.life.as_secs()), who, why, ..request }
}

/// Returns who is at this machine.
fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.is_empty() && name.chars().count() <= 64)
}

/// Returns the overrides as a table in lines of at most `columns` columns if possible.
fn table(overrides: &[OverrideState], now: f64, columns: usize) -> String {
    if overrides.is_empty() {
        return "Nothing is overridden.\n".to_owned();
    }
    let mut rows = vec![["id", "what", "ends in", "who", "why"].map(str::to_owned).to_vec()];
    rows.extend(overrides.iter().map(|it| {
        let (ends_in, why) = (rough_time(it.until - now), it.why.clone().unwrap_or_default());
        vec![it.id.to_string(), sentence(it), ends_in, it.who.clone(), why]
    }));
    let aligns = [Align::Right, Align::Left, Align::Right, Align::Left, Align::Left];
    terminal::paragraphs(&Table::of_sentences(&aligns, rows).text(columns), columns)
}

/// Returns what is overridden, in words.
pub(crate) fn sentence(it: &OverrideState) -> String {
    match (it.set.as_str(), &it.name, &it.value) {
        ("limit", name, limit) => format!("{name}: limit {limit}"),
        ("mode", name, mode) => format!("{name}: {mode}"),
        ("open", name, _) => format!("{name}: open, nobody is held"),
        ("drain", name, _) => format!("{name}: drained, gets nothing new"),
        (set, name, value) => format!("{name}: {set} {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_until_when_by_whom_and_why() {
        let pinned = OverrideState {
            id: 3,
            subject: "route".into(),
            name: "GET /search".into(),
            set: "limit".into(),
            value: "5".into(),
            who: "anna".into(),
            why: Some("incident 12".into()),
            since: 0.0,
            until: 1800.0,
        };
        let text = table(std::slice::from_ref(&pinned), 0.0, usize::MAX);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["id", "what", "ends", "in", "who", "why"]);
        let row = ["3", "GET", "/search:", "limit", "5", "30", "min", "anna", "incident", "12"];
        assert_eq!(lines[1], row);
        let narrow = table(&[pinned], 0.0, 40);
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert_eq!(table(&[], 0.0, 40), "Nothing is overridden.\n");
    }
}

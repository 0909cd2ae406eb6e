//! `suimon waiting-room`: shows and controls the lines of a running gateway, and previews the
//! waiting page.

mod preview;

use crate::args::{LineOf, Waiting, WaitingRoom};
use crate::exit::Exit;
use crate::fetch::{self, of_site};
use crate::terminal;
use std::time::SystemTime;
use suimon_admin::{LineAnswer, LineOrder, LineRequest, LineState, WAITING_ROOM_PATH};
use suimon_statistics::table::{Align, folded};

/// Runs the subcommand.
pub(crate) async fn run(args: &WaitingRoom) -> Exit {
    let (at, order) = match &args.what {
        Waiting::Preview(args) => return preview::run(args),
        Waiting::Status(at) => (at, None),
        Waiting::Pause(LineOf { at, kind }) => (at, Some((kind, LineOrder::Pause))),
        Waiting::Resume(LineOf { at, kind }) => (at, Some((kind, LineOrder::Resume))),
        Waiting::Close(LineOf { at, kind }) => (at, Some((kind, LineOrder::Close))),
        Waiting::Open { of, at, by_lot } => {
            let at = at.0.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            (&of.at, Some((&of.kind, LineOrder::Open { at, by_lot: *by_lot })))
        }
        Waiting::Say { of, message } => {
            (&of.at, Some((&of.kind, LineOrder::Say { message: message.clone() })))
        }
        Waiting::Invite { of, count, life, url: _ } => {
            (&of.at, Some((&of.kind, LineOrder::Invite { count: *count, life_s: life.as_secs() })))
        }
    };
    let body = match order {
        None => fetch::get(&at.at, WAITING_ROOM_PATH).await,
        Some((kind, order)) => {
            let request = LineRequest { kind: kind.clone(), order };
            let text = serde_json::to_string(&request).expect("it is made of texts and numbers");
            fetch::post(&at.at, WAITING_ROOM_PATH, text).await
        }
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return error.explain("--admin", &at.at.admin),
    };
    if at.json {
        println!("{}", String::from_utf8_lossy(&body));
        return Exit::Done;
    }
    let answer: LineAnswer = match serde_json::from_slice(&body) {
        Ok(answer) => answer,
        Err(error) => {
            eprintln!("{} answers, but not as this version of suimon expects ({error})", at.at.admin);
            return Exit::Failed;
        }
    };
    if let Waiting::Invite { url, .. } = &args.what {
        answer.invitations.iter().for_each(|invitation| println!("{}", link(url.as_deref(), invitation)));
    } else {
        let columns = terminal::columns();
        print!(
            "{}{}",
            of_site(answer.site.as_deref()),
            terminal::paragraphs(&picture(&answer.lines, columns), columns)
        );
    }
    Exit::Done
}

/// Returns the link of an invitation; without a URL, the query to append to a link.
fn link(url: Option<&str>, invitation: &str) -> String {
    match url {
        None => format!("?{invitation}"),
        Some(url) => format!("{url}{}{invitation}", if url.contains('?') { '&' } else { '?' }),
    }
}

fn picture(lines: &[LineState], columns: usize) -> String {
    if lines.is_empty() {
        return "No kind of session has a line; see session.waiting_room in the settings.\n".to_owned();
    }
    let headings = [
        "line",
        "state",
        "present",
        "issued",
        "called",
        "admitted",
        "shown up",
        "admitted/min",
        "abandonment/min",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(lines.iter().map(row));
    let mut aligns = [Align::Right; 9];
    aligns[..2].fill(Align::Left);
    let mut out = folded(&aligns, &rows, columns);
    for line in lines.iter().filter(|line| !line.message.is_empty()) {
        out.push_str(&format!("{}: \"{}\"\n", line.kind, line.message));
    }
    for (line, hash) in lines.iter().filter_map(|line| Some((line, line.seed_sha256.as_ref()?))) {
        out.push_str(&format!("{}: lots by the seed whose SHA-256 is {hash}\n", line.kind));
    }
    out
}

fn row(line: &LineState) -> Vec<String> {
    let state = match line.opens_at {
        Some(at) => {
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs_f64(at.max(0.0));
            format!("opens {}", humantime::format_rfc3339_seconds(at))
        }
        None => line.state.clone(),
    };
    vec![
        line.kind.clone(),
        state,
        line.present.to_string(),
        line.issued.to_string(),
        line.called.to_string(),
        line.admitted.to_string(),
        format!("{:.0} %", 100.0 * line.shown_up),
        format!("{:.1}", 60.0 * line.admitted_per_second),
        format!("{:.1} %", 6000.0 * line.abandonment_per_second),
    ]
}

//! The number of nodes, and the gateways that share, as lines for people.

use crate::numbers::{fine_time, rough_time as time};
use crate::terminal::{Colour, Line};
use suimon_admin::{ScalingState, SharingState};

/// Returns how the number of nodes stands.
pub(super) fn scaling(state: &ScalingState) -> Vec<Line> {
    let busy = state.busy.map_or("unknown".to_owned(), |busy| format!("{busy:.1}"));
    let beside = [(state.starting, "starting"), (state.parked, "parked"), (state.draining, "draining")];
    let beside: String = beside
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    let text = format!(
        "  {} of {} wanted nodes serve{beside}; {busy} busy; {} to {} by {}",
        state.serving, state.wanted, state.min, state.max, state.provider
    );
    let mut lines = vec![Line::default().plain(&text)];
    if let Some(last) = &state.last {
        let text = format!("  {} since {}: {}", last.wanted, time(last.ago_seconds), last.explanation);
        lines.push(Line::default().faint(&text));
    }
    if let Some(trouble) = &state.trouble {
        let first = trouble.lines().next().unwrap_or_default();
        lines.push(Line::default().plain("  ").marked(Colour::Red, first));
    }
    lines
}

/// Returns how this gateway shares with others.
pub(super) fn sharing(state: &SharingState) -> Vec<Line> {
    let rest = "until the engine answers again";
    let (words, colour) = match (state.phase.as_str(), state.gateways) {
        ("joining", _) => ("the engine has not answered yet".to_owned(), None),
        ("shared", 1) => ("this one alone takes part".to_owned(), Some(Colour::Green)),
        ("shared", several) => {
            let learns = if state.learns { "; this one learns the limits of all" } else { "" };
            (format!("{several} share limits and lines{learns}"), Some(Colour::Green))
        }
        ("last_share", _) => (format!("this one keeps its last share {rest}"), Some(Colour::Yellow)),
        _ => (format!("this one takes 1/{} of each limit {rest}", state.gateways_max), Some(Colour::Red)),
    };
    let line = Line::default().plain("  ");
    let line = match colour {
        Some(colour) => line.marked(colour, &words),
        None => line.plain(&words),
    };
    let counts = format!(
        "; {} exchanges, {} failed, the last took {}",
        state.exchanges + state.failures,
        state.failures,
        fine_time(state.exchange_seconds)
    );
    let mut lines = vec![line.plain(&counts)];
    if state.unreadable > 0 {
        let text = format!("{} of another version, which are not heard", state.unreadable);
        lines.push(Line::default().plain("  ").marked(Colour::Red, &text).plain(": replace them soon"));
    }
    if let Some(error) = state.error.as_ref().filter(|_| state.phase != "shared") {
        lines.push(Line::default().faint(&format!("  {error}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(state: &SharingState) -> Vec<String> {
        sharing(state).iter().map(|line| line.written(200, false)).collect()
    }

    #[test]
    fn it_is_said_what_a_gateway_takes_and_why() {
        let shared = SharingState {
            phase: "shared".to_owned(),
            gateways: 3,
            gateways_max: 4,
            gateway: 7,
            learns: true,
            exchanges: 120,
            failures: 2,
            exchange_seconds: 0.0021,
            unreadable: 0,
            error: None,
        };
        let lines = written(&shared);
        let words = "  3 share limits and lines; this one learns the limits of all; 122 exchanges, 2 failed, the last took 2.10 ms";
        assert_eq!(lines, [words]);

        let error = Some("no answer within 20 ms".to_owned());
        let lost = SharingState { phase: "safe_share".to_owned(), unreadable: 1, error, ..shared };
        let lines = written(&lost);
        assert!(lines[0].contains("takes 1/4 of each limit until the engine answers again"), "{lines:?}");
        assert!(lines[1].contains("1 of another version"), "{lines:?}");
        assert_eq!(lines[2..], ["  no answer within 20 ms"]);
    }
}

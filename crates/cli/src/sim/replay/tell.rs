//! The result of a replay, for people and as JSON.

use crate::recording::Files;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};
use suimon_model::{Record, Subject};
use suimon_record::Damage;
use suimon_sim::replay::{Figures, Replay, WhatIf};
use suimon_statistics::table::{Align, columns};

/// Everything there is to report.
pub(super) struct ReplayFindings<'a> {
    pub(super) files: &'a Files,
    pub(super) with: &'a [String],
    pub(super) recorded: &'a Replay,
    pub(super) what_if: Option<&'a WhatIf<'a>>,
    /// Where the recording was cut, if `--partial` allows that.
    pub(super) cut: Option<Damage>,
}

impl ReplayFindings<'_> {
    pub(super) fn as_text(&self) -> String {
        let recorded = self.recorded;
        let span = recorded.span.as_secs_f64();
        let parts = self.files.paths().len();
        let mut text = format!(
            "recorded {}, {span:.1} s, {} events in {parts} {}\n",
            httpdate::fmt_http_date(UNIX_EPOCH + recorded.began),
            recorded.events,
            if parts == 1 { "file" } else { "files" },
        );
        if self.files.earlier > 0 {
            text +=
                &format!("{} files beside it are of earlier runs; name one to play it\n", self.files.earlier);
        }
        if let Some(damage) = self.cut {
            text += &format!("played up to where it is whole: {damage}\n");
        }
        if let Some(program) = &recorded.other_program {
            text +=
                &format!("recorded by suimon {program}, whose laws may decide otherwise than this one's\n");
        }
        match &recorded.divergence {
            None => {
                text += &format!(
                    "identical: {} decisions, {} let in, {} refused, as recorded (hash {:016x}, compared {} times)\n",
                    recorded.decided,
                    recorded.figures().admitted,
                    recorded.figures().refused,
                    recorded.trace,
                    recorded.marks
                );
            }
            Some(divergence) => {
                text += &format!(
                    "different: {} is not what was recorded; alike until {:.3} s after the gateway's start, not any more at {:.3} s (segment {})\n",
                    divergence.what,
                    divergence.after.as_secs_f64(),
                    divergence.until.as_secs_f64(),
                    divergence.segment
                );
            }
        }
        if let Some(what_if) = self.what_if.filter(|_| recorded.divergence.is_none()) {
            text.push('\n');
            text += &self.side_by_side(&what_if.figures(), what_if.decided);
        }
        text
    }

    fn side_by_side(&self, otherwise: &Figures, decided: u64) -> String {
        let recorded = self.recorded.figures();
        let row = |name: &str, a: String, b: String| vec![name.to_string(), a, b];
        let count = |name: &str, a: u64, b: u64| row(name, a.to_string(), b.to_string());
        let time = |name: &str, a: Duration, b: Duration| row(name, seconds(a), seconds(b));
        let mut rows = vec![
            row("", "as recorded".to_string(), "with".to_string()),
            count("requests that came", recorded.offered, otherwise.offered),
            count("let in", recorded.admitted, otherwise.admitted),
            count("refused", recorded.refused, otherwise.refused),
            count("waiting pages", recorded.waiting_pages, otherwise.waiting_pages),
            count("abandoned while waiting", recorded.abandoned, otherwise.abandoned),
            count("did not come", recorded.not_come, otherwise.not_come),
            time("mean wait of those let in", recorded.wait_mean, otherwise.wait_mean),
            time("95 % waited less than", recorded.wait_p95, otherwise.wait_p95),
            count("decisions", self.recorded.decided, decided),
        ];
        for (a, b) in recorded.routes.iter().zip(&otherwise.routes) {
            rows.push(row(&format!("mean limit of {}", a.name), limit(a.limit_mean), limit(b.limit_mean)));
        }
        format!(
            "with {}:\n{}{}",
            self.with.join(", "),
            columns(&[Align::Left, Align::Right, Align::Right], &rows),
            "Requests came when they came and took as long as they took; what other limits would have changed about that is not known.\n"
        )
    }

    pub(super) fn write_json(&self, mut file: File) -> io::Result<()> {
        let recorded = self.recorded;
        let divergence = recorded.divergence.as_ref().map(|divergence| {
            json!({
                "segment": divergence.segment,
                "same_until_s": divergence.after.as_secs_f64(),
                "different_at_s": divergence.until.as_secs_f64(),
                "what": divergence.what,
            })
        });
        let report = json!({
            "files": self.files.paths().iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "began_unix_s": recorded.began.as_secs_f64(),
            "span_s": recorded.span.as_secs_f64(),
            "events": recorded.events,
            "marks": recorded.marks,
            "identical": divergence.is_none(),
            "divergence": divergence,
            "cut_at_byte": self.cut.map(|damage| damage.at),
            "recorded": side(&recorded.figures(), recorded.decided, recorded.trace, &recorded.decisions),
            "with": self.with,
            "what_if": self.what_if.filter(|_| recorded.divergence.is_none()).map(|what_if| {
                side(&what_if.figures(), what_if.decided, what_if.trace, &what_if.decisions)
            }),
        });
        serde_json::to_writer_pretty(&mut file, &report)?;
        writeln!(file)?;
        file.sync_all()
    }
}

fn side(figures: &Figures, decided: u64, trace: u64, decisions: &[Record]) -> Value {
    let routes: Vec<Value> = figures
        .routes
        .iter()
        .map(|route| json!({ "route": route.name, "limit_mean": route.limit_mean }))
        .collect();
    json!({
        "offered": figures.offered,
        "admitted": figures.admitted,
        "refused": figures.refused,
        "waiting_pages": figures.waiting_pages,
        "abandoned": figures.abandoned,
        "not_come": figures.not_come,
        "wait_mean_s": figures.wait_mean.as_secs_f64(),
        "wait_p95_s": figures.wait_p95.as_secs_f64(),
        "routes": routes,
        "decided": decided,
        "trace": format!("{trace:016x}"),
        "decisions": decisions.iter().map(|record| decision(record, figures)).collect::<Vec<_>>(),
    })
}

fn decision(record: &Record, figures: &Figures) -> Value {
    let subject = match record.subject {
        Subject::Route(route) => figures
            .routes
            .get(route.index())
            .map_or_else(|| format!("route {}", route.0), |known| known.name.clone()),
        Subject::Kind(kind) => format!("kind {}", kind.0),
        Subject::Service(service) => format!("service {}", service.0),
    };
    let signals: serde_json::Map<String, Value> =
        record.signals.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    json!({
        "at_s": record.at.as_secs_f64(),
        "of": subject,
        "quantity": record.quantity.name(),
        "old": record.old,
        "new": record.new,
        "reason": record.reason.code(),
        "signals": signals,
    })
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

fn limit(mean: Option<f64>) -> String {
    mean.map_or_else(|| "none".to_string(), |mean| format!("{mean:.1}"))
}

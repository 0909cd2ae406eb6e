//! The waiting room's lines as JSON, and the commands of an operator to them.

use crate::request::whole;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use suimon_proxy::{LineCommand, LineReport};

/// The most invitations made at once.
pub const INVITES_MAX: usize = 10_000;

/// A line opens within this time from now, ten years, ...
const OPENS_WITHIN: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
/// ... or at a time that was still to come when the command was given, and is over by no more than
/// this.
const OPENS_LATE: Duration = Duration::from_secs(60);

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineState {
    /// The kind of session.
    pub kind: String,
    /// `moving`, `opening`, `paused` or `closed`, as its operator has said; or `application_down`:
    /// it moves again by itself once the application answers.
    pub state: String,
    /// When it opens, seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<f64>,
    /// SHA-256 of the seed by which lots are drawn at its opening, or were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_sha256: Option<String>,
    /// The message to all waiting visitors.
    pub message: String,
    /// Tickets issued since the line began, ...
    pub issued: u64,
    /// ... those called, ...
    pub called: u64,
    /// ... and those whose holders were admitted.
    pub admitted: u64,
    /// People present now.
    pub present: u64,
    /// Tickets whose holders stopped polling before they were admitted.
    #[serde(default)]
    pub abandoned: u64,
    /// Tickets issued recently whose holders have not polled yet.
    pub provisional: u64,
    /// People called who are expected to come.
    pub expected: u64,
    /// Of those recently called and expected, the share that came.
    pub shown_up: f64,
    /// Visitors admitted from the line per second.
    pub admitted_per_second: f64,
    /// Abandonment rate: share of the waiting visitors that gives up per second.
    pub abandonment_per_second: f64,
}

impl LineState {
    pub(crate) fn of(line: LineReport) -> LineState {
        let LineReport { kind, view, opens_at, seed_hash, message } = line;
        LineState {
            kind,
            state: state_name(&view).to_owned(),
            opens_at,
            seed_sha256: seed_hash,
            message,
            issued: view.issued,
            called: view.called,
            admitted: view.admitted,
            present: view.present,
            abandoned: view.issued.saturating_sub(view.admitted + view.present + view.provisional),
            provisional: view.provisional,
            expected: view.expected,
            shown_up: view.shown_up,
            admitted_per_second: view.admitted_per_second,
            abandonment_per_second: view.abandonment_per_second,
        }
    }
}

fn state_name(view: &suimon_line::View) -> &'static str {
    use suimon_line::LineStatus;
    match view.state {
        LineStatus::Moving if view.away => "application_down",
        LineStatus::Moving => "moving",
        LineStatus::Opening(_) => "opening",
        LineStatus::Paused => "paused",
        LineStatus::Closed => "closed",
    }
}

/// A command of an operator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineRequest {
    /// The kind of session; absent: every line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The command.
    #[serde(flatten)]
    pub order: LineOrder,
}

/// A command to a line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum LineOrder {
    /// Stand still.
    Pause,
    /// Move.
    Resume,
    /// Tell all visitors that there is nothing to wait for any more.
    Close,
    /// Take numbers and admit nobody before `at`, seconds since 1970; with `by_lot`, the order is
    /// then drawn by lot.
    Open {
        /// When it opens.
        at: f64,
        /// Whether lots decide.
        #[serde(default)]
        by_lot: bool,
    },
    /// Show this message to all waiting visitors.
    Say {
        /// The words.
        message: String,
    },
    /// Make this many invitations, valid for this many seconds.
    Invite {
        /// How many.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000)))]
        #[serde(deserialize_with = "whole")]
        count: usize,
        /// Seconds.
        #[cfg_attr(feature = "schema", schemars(range(max = 9_007_199_254_740_991u64)))]
        #[serde(deserialize_with = "whole")]
        life_s: u64,
    },
}

impl LineOrder {
    /// Returns the command to the line, `now`; `None`: it is not for the line.
    ///
    /// # Errors
    /// A sentence, if it opens in the past, or at an impossible time.
    pub(crate) fn command(&self, now: SystemTime) -> Result<Option<LineCommand>, String> {
        Ok(Some(match self {
            LineOrder::Pause => LineCommand::Pause,
            LineOrder::Resume => LineCommand::Resume,
            LineOrder::Close => LineCommand::Close,
            LineOrder::Open { at, by_lot } => LineCommand::Open { at: opening(*at, now)?, by_lot: *by_lot },
            LineOrder::Say { message } => LineCommand::Say(message.clone()),
            LineOrder::Invite { .. } => return Ok(None),
        }))
    }
}

/// Returns the time `at` seconds after 1970, if a line may open then.
fn opening(at: f64, now: SystemTime) -> Result<SystemTime, String> {
    let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let earliest = since_1970(now).saturating_sub(OPENS_LATE);
    let latest = since_1970(now) + OPENS_WITHIN;
    // After these comparisons it is a number that a time can be made of.
    if at >= earliest.as_secs_f64() && at <= latest.as_secs_f64() {
        return Ok(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(at));
    }
    let why = if at < earliest.as_secs_f64() { "is in the past" } else { "is more than ten years from now" };
    Err(format!(
        "at = {at}: {why}; it must be seconds since 1970, from {} (now) to {}; to let the line move at once, resume it",
        since_1970(now).as_secs(),
        latest.as_secs()
    ))
}

/// The result.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineAnswer {
    /// The site whose lines they are; absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The lines, as they stand now.
    pub lines: Vec<LineState>,
    /// Invitations that were made, each as it stands in the query of a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invitations: Vec<String>,
}

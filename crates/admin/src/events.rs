//! The live stream of the dashboard: `text/event-stream`, one event each second.
//!
//! An event is made once and given to all who listen. Who connects, again or for the first time, gets
//! one at once, with the decisions since the one that it saw last (`Last-Event-ID`).

use crate::history::Sample;
use crate::sites::SiteState;
use crate::state::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;

/// The name of an event.
const EVENT: &str = "state";

/// What an event says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveState {
    /// The state, with the decisions since the last event.
    pub state: State,
    /// What the charts grow by; absent in the first second.
    pub sample: Option<Sample>,
    /// All sites in one line each; absent where there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteState>,
}

/// An event as it is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// The number of the newest decision.
    id: u64,
    text: Arc<str>,
    /// Nothing more comes: another process answers here, to which the browser turns by itself.
    is_end: bool,
}

/// Gives each event to all who listen.
#[derive(Clone, Debug)]
pub(crate) struct Stage(watch::Sender<Told>);

impl Default for Stage {
    fn default() -> Self {
        Stage(watch::Sender::new(Told::default()))
    }
}

impl Stage {
    /// Returns whether anybody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Tells `live`, whose decisions are those since the one with number `since`.
    pub(crate) fn tell(&self, live: &LiveState, since: u64) {
        self.0.send_replace(Told::of(live, since));
    }
}

impl Stage {
    /// Ends all streams.
    pub(crate) fn end(&self) {
        self.0.send_replace(Told { is_end: true, ..Told::default() });
    }

    /// Returns what `live` makes of the decisions since the one with number `seen`, and then each
    /// event that is told from now on.
    pub(crate) fn stream(&self, seen: u64, live: impl FnOnce(u64) -> LiveState) -> Response {
        // Before the first is made: none is missed between.
        let later = WatchStream::from_changes(self.0.subscribe());
        let first = tokio_stream::once(Told::of(&live(seen), seen));
        let told = first.chain(later).take_while(|told| !told.is_end);
        Sse::new(told.map(|told| Ok::<_, Infallible>(told.event()))).into_response()
    }
}

impl Told {
    fn of(live: &LiveState, since: u64) -> Told {
        let id = live.state.decisions.iter().map(|decision| decision.id).max().unwrap_or(since);
        // It is made of numbers and texts, which JSON can write.
        let text = serde_json::to_string(live).unwrap_or_default();
        Told { id, text: text.into(), is_end: false }
    }

    fn event(&self) -> Event {
        let event = Event::default().event(EVENT).data(&self.text);
        if self.id > 0 { event.id(self.id.to_string()) } else { event }
    }
}

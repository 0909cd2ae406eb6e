//! What every answer is made from: the gateway, and what the watch remembers of it.

use crate::Source;
use crate::access::Access;
use crate::events::{LiveState, Stage};
use crate::history::Samples;
use crate::state::{self, State};
use crate::verdict::SituationClock;
use crate::windows::{EVERY_S, Windows};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What every answer is made from.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) version: Arc<str>,
    pub(crate) access: Arc<Access>,
    memory: Arc<Mutex<Memory>>,
    pub(crate) stage: Stage,
}

/// Earlier values.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) windows: Windows,
    pub(crate) verdicts: SituationClock,
    pub(crate) samples: Samples,
}

impl Shown {
    pub(crate) fn new(source: Arc<dyn Source>, version: Arc<str>, access: Arc<Access>) -> Self {
        Shown { source, version, access, memory: Arc::default(), stage: Stage::default() }
    }

    /// Takes note of the state, each second.
    pub(crate) async fn watch(self) {
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(EVERY_S));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let view = self.source.view();
            let now = state::now_unix();
            let seen = {
                let mut memory = self.memory();
                let seen = memory.samples.newest_decision();
                memory.windows.note(&view);
                memory.samples.note(&view, now);
                let verdict = state::verdict_of(&*self.source, &view, &memory.windows);
                memory.verdicts.note(verdict, now);
                seen
            };
            if self.stage.is_heard() {
                self.stage.tell(&self.live(seen), seen);
            }
        }
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns everything now, with the decisions since the one with number `since`.
    pub(crate) fn state(&self, since: u64) -> State {
        let mut memory = self.memory();
        let Memory { windows, verdicts, .. } = &mut *memory;
        State::of(&*self.source, &self.version, windows, verdicts, since)
    }

    /// Returns what an event says to who has seen the decisions up to `since`.
    pub(crate) fn live(&self, since: u64) -> LiveState {
        // A page that may read this is one of ours, which may command, too.
        let state = State { takes_commands: true, ..self.state(since) };
        LiveState { state, sample: self.memory().samples.newest().cloned() }
    }
}

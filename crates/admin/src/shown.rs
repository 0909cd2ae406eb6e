//! What every answer about a site is made from: the site, and what the watch remembers of it.

use crate::Source;
use crate::events::{LiveState, Stage};
use crate::history::Samples;
use crate::sites::SiteState;
use crate::state::{self, Glance, State};
use crate::verdict::SituationClock;
use crate::windows::Windows;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What every answer about a site is made from.
#[derive(Clone)]
pub(crate) struct Shown {
    /// Its name, where there are several.
    name: Option<Arc<str>>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) version: Arc<str>,
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
    pub(crate) fn new(name: Option<Arc<str>>, source: Arc<dyn Source>, version: Arc<str>) -> Self {
        Shown { name, source, version, memory: Arc::default(), stage: Stage::default() }
    }

    /// Takes note of the site, to be called each second. Returns the number of the newest decision that
    /// was known before, and how the site stands.
    pub(crate) fn note(&self) -> (u64, Glance) {
        let view = self.source.view();
        let now = state::now_unix();
        let mut memory = self.memory();
        let seen = memory.samples.newest_decision();
        memory.windows.note(&view);
        memory.samples.note(&view, now);
        let mut glance = Glance::of(&*self.source, &view, &memory.windows);
        glance.verdict = memory.verdicts.note(glance.verdict, now);
        (seen, glance)
    }

    /// Returns how the site stands now.
    pub(crate) fn glance(&self) -> Glance {
        let view = self.source.view();
        let mut memory = self.memory();
        let mut glance = Glance::of(&*self.source, &view, &memory.windows);
        glance.verdict = memory.verdicts.note(glance.verdict, state::now_unix());
        glance
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its name, where there are several.
    pub(crate) fn site(&self) -> Option<String> {
        self.name.as_deref().map(str::to_owned)
    }

    /// Returns everything now, with the decisions since the one with number `since`.
    pub(crate) fn state(&self, since: u64) -> State {
        let mut memory = self.memory();
        let Memory { windows, verdicts, .. } = &mut *memory;
        let state = State::of(&*self.source, &self.version, windows, verdicts, since);
        State { site: self.site(), ..state }
    }

    /// Returns what an event says to who has seen the decisions up to `since`, with `sites` beside it.
    pub(crate) fn live(&self, since: u64, sites: Vec<SiteState>) -> LiveState {
        // A page that may read this is one of ours, which may command, too.
        let state = State { takes_commands: true, ..self.state(since) };
        LiveState { state, sample: self.memory().samples.newest().cloned(), sites }
    }
}

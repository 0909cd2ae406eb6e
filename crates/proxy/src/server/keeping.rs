//! Keeps the files of state of a site while it runs.

use super::kept::LineStore;
use super::learned::LearnedStore;
use tokio::task::JoinSet;

/// See the module.
#[derive(Debug)]
pub(super) struct Keeping {
    pub(super) lines: Option<LineStore>,
    pub(super) learned: Option<LearnedStore>,
    tasks: JoinSet<()>,
}

impl Keeping {
    /// Begins to keep what there is to keep.
    pub(super) fn begin(lines: Option<LineStore>, learned: Option<LearnedStore>) -> Self {
        let mut keeping = Keeping { lines, learned, tasks: JoinSet::new() };
        keeping.go_on();
        keeping
    }

    /// Keeps on, after [`Keeping::finish`], too.
    pub(super) fn go_on(&mut self) {
        if let Some(mut lines) = self.lines.clone() {
            self.tasks.spawn(async move { lines.keep().await });
        }
        if let Some(mut learned) = self.learned.clone() {
            self.tasks.spawn(async move { learned.keep().await });
        }
    }

    /// Stops, and writes for the last time. To be called when no number is drawn any more.
    pub(super) async fn finish(&mut self) {
        self.tasks.shutdown().await;
        if let Some(lines) = &mut self.lines {
            lines.write_exactly().await;
        }
        if let Some(learned) = &mut self.learned {
            learned.write().await;
        }
    }
}

//! Overrides that outlive the process: in a file that is written whole at each change.
//!
//! A gateway that takes over reads the file, and writes it for itself once it is the gateway. The one
//! that hands over takes no overrides meanwhile and does not write, unless it goes on after all.
//! Whoever finds another content than its own does not write any more.

use crate::overrides::{OverrideError, Overrides};
use std::fs::File;
use std::io::Read as _;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};
use suimon_store::whole_file;

/// The most bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct KeptOverrides {
    overrides: Overrides,
    /// `None`: there is no file, or it is another process' by now.
    file: Option<PathBuf>,
    /// What is in the file, as far as this process knows; `None`: there is none.
    content: Option<String>,
    /// Whether another process takes over, or has: the file is not ours to write.
    is_handed_over: bool,
}

impl KeptOverrides {
    /// Returns those that a process before has left in the file, if there is one.
    pub(crate) fn open(file: Option<PathBuf>) -> Self {
        let Some(path) = file else { return KeptOverrides::default() };
        let content = read(&path);
        let kept =
            content.as_ref().and_then(|text| Overrides::of_json(text, Instant::now(), SystemTime::now()));
        if content.is_some() && kept.is_none() {
            tracing::warn!("{}: holds no overrides that can be read; it is begun anew", path.display());
        }
        let overrides = kept.unwrap_or_default();
        KeptOverrides { overrides, file: Some(path), content, is_handed_over: false }
    }

    /// Makes the file that of this process, if there is one.
    pub(crate) fn own(&mut self) {
        if self.content.is_some() {
            self.keep();
        }
    }

    /// Leaves the file to another process.
    pub(crate) fn hand_over(&mut self) {
        self.is_handed_over = true;
    }

    /// Writes again: there is no other process.
    pub(crate) fn take_back(&mut self) {
        self.is_handed_over = false;
        self.own();
    }

    /// Returns an error if it is another process that keeps overrides.
    pub(crate) fn are_ours(&self) -> Result<(), OverrideError> {
        if self.is_handed_over { Err(OverrideError::HandedOver) } else { Ok(()) }
    }

    /// Writes what there is now.
    pub(crate) fn keep(&mut self) {
        let Some(path) = self.file.clone().filter(|_| !self.is_handed_over) else { return };
        if read(&path) != self.content {
            tracing::info!("{} is written by another process now", path.display());
            self.file = None;
            return;
        }
        let text = self.overrides.to_json(std::process::id());
        match whole_file::write(&path, text.as_bytes()) {
            Ok(()) => self.content = Some(text),
            Err(error) => tracing::error!(
                "{}: cannot be written ({error}): after a restart, overrides are those of before",
                path.display()
            ),
        }
    }
}

impl Deref for KeptOverrides {
    type Target = Overrides;

    fn deref(&self) -> &Overrides {
        &self.overrides
    }
}

impl DerefMut for KeptOverrides {
    fn deref_mut(&mut self) -> &mut Overrides {
        &mut self.overrides
    }
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overrides::{Overridden, OverrideOrder};
    use std::time::Duration;

    #[test]
    fn a_takeover_that_is_given_up_leaves_the_file_to_who_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("overrides.json");
        let (what, life) = (Overridden::Gate, Duration::from_secs(60));
        let order = OverrideOrder { what, life, who: "anna".into(), why: None };
        let mut first = KeptOverrides::open(Some(path.clone()));
        first.set(Instant::now(), SystemTime::now(), order).unwrap();
        first.keep();
        let before = read(&path);
        first.hand_over();
        assert_eq!(first.are_ours(), Err(OverrideError::HandedOver));
        let on_trial = KeptOverrides::open(Some(path.clone()));
        assert_eq!(on_trial.all().len(), 1);
        first.release(1).unwrap();
        first.keep();
        assert_eq!(read(&path), before, "nobody writes meanwhile");
        first.take_back();
        assert_eq!(first.are_ours(), Ok(()));
        assert!(KeptOverrides::open(Some(path.clone())).all().is_empty(), "it was written after all");
        assert!(first.file.is_some());
        first.hand_over();
        let mut second = KeptOverrides::open(Some(path.clone()));
        second.own();
        let of_second = read(&path);
        first.keep();
        assert_eq!(read(&path), of_second);
    }

    #[test]
    fn who_takes_over_has_them_and_who_drains_writes_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("overrides.json");
        let order = || OverrideOrder {
            what: Overridden::Gate,
            life: Duration::from_secs(60),
            who: "anna".into(),
            why: None,
        };
        let mut first = KeptOverrides::open(Some(path.clone()));
        assert!(!path.exists(), "there is nothing to keep");
        first.set(Instant::now(), SystemTime::now(), order()).unwrap();
        first.keep();
        // Another process: its number stands in the file.
        let of_another = first.to_json(std::process::id() + 1);
        let mut second = KeptOverrides::open(Some(path.clone()));
        assert!(second.opens_gate());
        second.release(1).unwrap();
        second.keep();
        std::fs::write(&path, &of_another).unwrap();
        first.release(1).unwrap();
        first.keep();
        assert_eq!(read(&path).as_ref(), Some(&of_another), "it is another's by now");
        std::fs::write(&path, "half a fi").unwrap();
        let mut anew = KeptOverrides::open(Some(path.clone()));
        assert!(anew.all().is_empty());
        anew.own();
        assert_eq!(read(&path), Some(anew.to_json(std::process::id())), "it was begun anew");
    }
}

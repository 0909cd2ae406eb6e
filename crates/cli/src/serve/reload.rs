//! Other settings while running, adopted whole or not at all: from the file, at SIGHUP or when it has
//! changed, or posted to the admin listener. One mutex is around all of it.

use super::admin::Credentials;
use super::notify::Notifier;
use super::telemetry::Told;
use super::{LOG_VARIABLE, logging, settings};
use crate::args::Serve;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use suimon_admin::{Config, ConfigAnswer, ConfigChange, ConfigFault, ConfigState};
use suimon_proxy::Observer;
use suimon_settings::{
    Change, Fault, Faults, Settings, changes, text_of, with_lines, without_password, without_secrets,
};
use tokio::signal::unix::Signal;

/// How often a watched file is read. What is in it counts once it was the same twice in a row: it may
/// be half written.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// What a posted file is called in faults.
const POSTED: &str = "posted";

/// The settings in force, and all that is needed to replace them. Clones are of the same.
#[derive(Clone)]
pub(super) struct Adopter(Arc<Shared>);

struct Shared {
    in_force: Mutex<InForce>,
    /// What is shown of it, also while something is being adopted.
    shown: Mutex<ConfigState>,
}

struct InForce {
    args: Serve,
    /// The text that is in force, ...
    text: String,
    /// ... and what the file said when it was last read and was right.
    of_file: String,
    adopted_at: SystemTime,
    /// Why the last attempt failed.
    failure: Option<String>,
    observer: Observer,
    log: logging::Handle,
    credentials: Credentials,
    told: Arc<Told>,
    notifier: Notifier,
}

/// Why the settings stay as they are.
enum NotAdopted {
    Faults(Faults),
    /// Some of the changes take a restart.
    TakesRestart(Vec<Change>),
}

impl Adopter {
    /// Returns the settings that a process has started with, the file's `text`.
    pub(super) fn new(
        args: Serve,
        text: String,
        observer: Observer,
        log: logging::Handle,
        credentials: Credentials,
        told: Arc<Told>,
        notifier: Notifier,
    ) -> Adopter {
        let of_file = text.clone();
        let adopted_at = SystemTime::now();
        let in_force = InForce {
            args,
            text,
            of_file,
            adopted_at,
            failure: None,
            observer,
            log,
            credentials,
            told,
            notifier,
        };
        let shown = Mutex::new(in_force.state());
        Adopter(Arc::new(Shared { in_force: Mutex::new(in_force), shown }))
    }

    /// Returns what says, for as long as it is polled, how many warnings were held back.
    pub(super) fn tell_repeats(&self) -> impl Future<Output = ()> + Send + use<> {
        self.lock().log.tell_repeats()
    }

    /// Waits for SIGHUP. Never returns while the process runs.
    pub(super) async fn hear(self, mut hangup: Signal) {
        while hangup.recv().await.is_some() {
            let path = {
                let in_force = self.lock();
                in_force.told.reopen();
                in_force.args.config.clone()
            };
            let Some(path) = path else {
                tracing::warn!(
                    "SIGHUP ignored: no file of settings was named with --config; certificates are reloaded automatically"
                );
                continue;
            };
            let notifier = self.lock().notifier.clone();
            notifier.reloading();
            tokio::task::block_in_place(|| self.reload(&path));
            notifier.ready();
        }
    }

    /// Adopts the file each time that it has changed. Never returns.
    pub(super) async fn watch(self) {
        let Some(path) = self.lock().args.config.clone() else { return };
        let mut ticks = tokio::time::interval(WATCH_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut tried = self.lock().of_file.clone();
        let mut last = tried.clone();
        loop {
            ticks.tick().await;
            tokio::task::block_in_place(|| {
                // While it is replaced it may not be there.
                let Ok(text) = read(&path) else { return };
                if text == last && text != tried {
                    tried.clone_from(&text);
                    if self.lock().of_file != text {
                        tracing::info!("{} has changed", path.display());
                        self.reload(&path);
                    }
                }
                last = text;
            });
        }
    }

    /// Returns the settings in force.
    pub(super) fn config(&self) -> Config {
        let in_force = self.lock();
        Config { state: in_force.state(), text: without_secrets(&in_force.text) }
    }

    /// Returns where the settings in force are from.
    pub(super) fn state(&self) -> ConfigState {
        self.0.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reload(&self, path: &Path) {
        let mut in_force = self.lock();
        in_force.reload(path);
        self.show(&in_force);
    }

    fn show(&self, in_force: &InForce) {
        *self.0.shown.lock().unwrap_or_else(PoisonError::into_inner) = in_force.state();
    }

    /// Puts posted settings in force, or only says what would change.
    pub(super) fn post(&self, text: &str, dry_run: bool) -> ConfigAnswer {
        let mut in_force = self.lock();
        let adopted = in_force.adopt(POSTED, text, dry_run);
        match &adopted {
            Ok(_) if dry_run => {}
            Ok(changes) => {
                in_force.failure = None;
                tracing::info!("settings posted to the admin listener adopted: {}", listed(changes));
            }
            Err(why) if !dry_run => {
                in_force.failure = Some(why.to_string());
                tracing::error!("posted settings not adopted, nothing has changed: {why}");
            }
            Err(_) => {}
        }
        self.show(&in_force);
        answer(&adopted, dry_run)
    }

    fn lock(&self) -> MutexGuard<'_, InForce> {
        self.0.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InForce {
    fn state(&self) -> ConfigState {
        let differs_from_file = self.text != self.of_file;
        let source = match &self.args.config {
            _ if differs_from_file => "posted",
            Some(_) => "file",
            None => "none",
        };
        ConfigState {
            source: source.to_owned(),
            file: self.args.config.as_ref().map(|path| path.display().to_string()),
            differs_from_file,
            adopted_at: self.adopted_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            last_failure: self.failure.clone(),
        }
    }

    /// Reads the file again and adopts what it says, or logs why not.
    fn reload(&mut self, path: &Path) {
        let name = path.display().to_string();
        let adopted = read(path).map_err(NotAdopted::Faults).and_then(|text| {
            let changes = self.adopt(&name, &text, false)?;
            self.of_file = text;
            Ok(changes)
        });
        self.failure = adopted.as_ref().err().map(ToString::to_string);
        match adopted {
            Ok(changes) if changes.is_empty() => {
                tracing::info!(
                    "settings reloaded from {name}: no setting is different; the waiting page's template, where one is named, was read again"
                );
            }
            Ok(changes) => tracing::info!("settings reloaded from {name}: {}", listed(&changes)),
            Err(why) => tracing::error!("settings not reloaded, nothing has changed: {why}"),
        }
    }

    /// Puts the settings in `text` in force, all or none, and returns what changes by that; or only
    /// says what would.
    fn adopt(&mut self, name: &str, text: &str, dry_run: bool) -> Result<Vec<Change>, NotAdopted> {
        let fault = |sentence: String| NotAdopted::Faults(with_lines(name, text, &Faults::one(sentence)));
        let wanted: Settings = settings(&self.args, Some((name, text)))?;
        let changes = changes(&self.text, text)?;
        let changes: Vec<_> = changes.into_iter().filter(|change| !self.is_overridden(&change.key)).collect();
        // What does not count need not be right: the gateway has started with it, too.
        let counts = !self.is_overridden("log.filter");
        let filter = counts.then(|| logging::filter("log.filter", &wanted.log_filter)).transpose();
        let filter = filter.map_err(fault)?;
        let credentials = self.credentials.read().map_err(fault)?;
        if changes.iter().any(|change| change.takes_restart) {
            return if dry_run { Ok(changes) } else { Err(NotAdopted::TakesRestart(changes)) };
        }
        if dry_run {
            self.observer.may_adopt(&wanted.proxy).map_err(|error| fault(error.to_string()))?;
            return Ok(changes);
        }
        self.observer.adopt(wanted.proxy).map_err(|error| fault(error.to_string()))?;
        if let Some(filter) = filter {
            self.log.adopt(filter);
        }
        self.credentials.adopt(credentials);
        text.clone_into(&mut self.text);
        self.adopted_at = SystemTime::now();
        Ok(changes)
    }

    /// Returns whether the command line or the environment overrides this key of the file.
    fn is_overridden(&self, key: &str) -> bool {
        let args = &self.args;
        match key {
            "upstream.nodes" => !args.to.is_empty(),
            "listen.http" => args.listen.is_some(),
            "admin.listen" => args.admin.is_some(),
            "lease.keys" => args.lease_keys.is_some(),
            "learned.state" => args.learned.is_some(),
            "record.file" => args.record.is_some(),
            "record.bytes_max" => args.record_bytes_max.is_some(),
            "log.filter" => args.log.is_some() || std::env::var_os(LOG_VARIABLE).is_some(),
            _ => false,
        }
    }
}

/// Returns what a file says that can be read again.
fn read(path: &Path) -> Result<String, Faults> {
    if path.as_os_str() == "-" {
        return Err(Faults::one("they came from standard input, which cannot be read twice"));
    }
    // Reading a pipe would block, or return an empty file at its end.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(Faults::one(format!("{} is no regular file, which can be read again", path.display())));
    }
    text_of(path)
}

/// Returns what is said of an attempt to adopt what was posted.
fn answer(adopted: &Result<Vec<Change>, NotAdopted>, dry_run: bool) -> ConfigAnswer {
    let of = |change: &Change| ConfigChange {
        key: change.key.clone(),
        from: without_password(&change.before),
        to: without_password(&change.now),
        takes_restart: change.takes_restart,
    };
    let (mut changes, mut faults, message) = (
        Vec::new(),
        Vec::new(),
        match adopted {
            Ok(changes) if changes.iter().any(|change| change.takes_restart) => {
                "some of this takes a restart, so that it would not be adopted".to_owned()
            }
            Ok(_) if dry_run => "this would be adopted".to_owned(),
            Ok(_) => "adopted; it holds until the next reload or restart".to_owned(),
            Err(why) => format!("not adopted, nothing has changed: {}", without_password(&why.to_string())),
        },
    );
    match adopted {
        Ok(all) | Err(NotAdopted::TakesRestart(all)) => changes = all.iter().map(of).collect(),
        Err(NotAdopted::Faults(all)) => faults = all.iter().map(fault).collect(),
    }
    ConfigAnswer { adopted: adopted.is_ok() && !dry_run, dry_run, message, changes, faults }
}

fn fault(fault: &Fault) -> ConfigFault {
    let own = ConfigFault { message: without_password(&fault.to_string()), ..ConfigFault::default() };
    match fault {
        Fault::At { place, fault } => {
            ConfigFault { at: Some(place.clone()), message: own.message, ..self::fault(fault) }
        }
        Fault::Value { key, seen, allowed } => ConfigFault {
            key: Some(key.clone()),
            seen: Some(without_password(seen)),
            allowed: Some(allowed.clone()),
            ..own
        },
        Fault::Missing { key, wanted } => {
            ConfigFault { key: Some(key.clone()), allowed: Some(wanted.clone()), ..own }
        }
        Fault::Other(_) => own,
    }
}

fn listed(changes: &[Change]) -> String {
    without_password(&changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

impl From<Faults> for NotAdopted {
    fn from(faults: Faults) -> Self {
        NotAdopted::Faults(faults)
    }
}

impl std::fmt::Display for NotAdopted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotAdopted::Faults(faults) => f.write_str(&without_password(&faults.to_string())),
            NotAdopted::TakesRestart(changes) => {
                let restart: Vec<_> = changes.iter().filter(|change| change.takes_restart).cloned().collect();
                write!(
                    f,
                    "these take a restart: {}; set them back, or restart the gateway (that keeps the line and what was learned, unless addresses, nodes, \
                     kinds of session or files of state are what changes)",
                    listed(&restart)
                )
            }
        }
    }
}

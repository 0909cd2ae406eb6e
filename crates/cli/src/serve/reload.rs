//! SIGHUP: reads the settings file again, and adopts all of it or nothing.

use super::{LOG_VARIABLE, logging, settings};
use crate::args::Serve;
use std::path::Path;
use suimon_proxy::Observer;
use suimon_settings::{Change, changes, text_of};
use tokio::signal::unix::Signal;

/// Reads the settings file again on each SIGHUP.
pub(super) struct Reloader {
    pub(super) args: Serve,
    /// The file's text when it was last adopted.
    pub(super) text: String,
    pub(super) observer: Observer,
    pub(super) log: logging::Handle,
}

/// Why the settings stay as they are.
type NotAdopted = String;

impl Reloader {
    /// Waits for SIGHUP. Never returns while the process runs.
    pub(super) async fn run(mut self, mut hangup: Signal) {
        while hangup.recv().await.is_some() {
            let Some(path) = self.args.config.clone() else {
                tracing::warn!(
                    "SIGHUP ignored: no file of settings was named with --config; certificates are reloaded automatically"
                );
                continue;
            };
            match tokio::task::block_in_place(|| self.reload(&path)) {
                Ok(changes) if changes.is_empty() => {
                    tracing::info!(
                        "settings reloaded from {}: no setting is different; the waiting page's template, where one is named, was read again",
                        path.display()
                    );
                }
                Ok(changes) => {
                    tracing::info!("settings reloaded from {}: {}", path.display(), listed(&changes));
                }
                Err(why) => tracing::error!("settings not reloaded, nothing has changed: {why}"),
            }
        }
    }

    fn reload(&mut self, path: &Path) -> Result<Vec<Change>, NotAdopted> {
        if path.as_os_str() == "-" {
            return Err("they came from standard input, which cannot be read twice".to_owned());
        }
        // Reading a pipe would block, or return an empty file at its end.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(format!("{} is no regular file, which can be read again", path.display()));
        }
        let text = text_of(path).map_err(|faults| faults.to_string())?;
        let settings = settings(&self.args, Some(&text)).map_err(|faults| faults.to_string())?;
        let changes = changes(&self.text, &text).map_err(|faults| faults.to_string())?;
        let changes = changes.into_iter().filter(|change| !self.is_overridden(&change.key));
        let (restart, live): (Vec<_>, Vec<_>) = changes.partition(|change| change.takes_restart);
        if !restart.is_empty() {
            return Err(format!(
                "these take a restart: {}; set them back, or restart the gateway (that keeps the line and what was learned, unless addresses, nodes, \
                 kinds of session or files of state are what changes)",
                listed(&restart)
            ));
        }
        // What does not count need not be right: the gateway has started with it, too.
        let counts = !self.is_overridden("log.filter");
        let filter = counts.then(|| logging::filter("log.filter", &settings.log_filter)).transpose()?;
        self.observer.adopt(settings.proxy).map_err(|error| error.to_string())?;
        if let Some(filter) = filter {
            self.log.adopt(filter);
        }
        self.text = text;
        Ok(live)
    }
}

impl Reloader {
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

fn listed(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

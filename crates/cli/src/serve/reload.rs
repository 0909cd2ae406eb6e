//! SIGHUP: the file of settings is read again, and adopted whole or not at all.

use super::{LOG_VARIABLE, logging, settings};
use crate::args::Serve;
use std::path::Path;
use suimon_proxy::Observer;
use suimon_settings::{Change, changes, text_of};
use tokio::signal::unix::Signal;

/// Reads the file again whenever it is told to.
pub(super) struct Reloader {
    pub(super) args: Serve,
    /// What the file said when it was last adopted.
    pub(super) text: String,
    pub(super) observer: Observer,
    pub(super) log: logging::Handle,
}

/// Why the settings stay as they are.
type NotAdopted = String;

impl Reloader {
    /// Waits for hangups. Never returns but with the process.
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
                    tracing::info!("settings reloaded from {}: nothing is different", path.display());
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
        let text = text_of(path).map_err(|faults| faults.to_string())?;
        let settings = settings(&self.args, Some(&text)).map_err(|faults| faults.to_string())?;
        let changes = changes(&self.text, &text).map_err(|faults| faults.to_string())?;
        let (restart, live): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.takes_restart);
        if !restart.is_empty() {
            return Err(format!(
                "these take a restart: {}; set them back, or restart the gateway, which keeps the line and what was learned",
                listed(&restart)
            ));
        }
        let filter = logging::filter("log.filter", &settings.log_filter)?;
        self.observer.adopt(settings.proxy).map_err(|error| error.to_string())?;
        if self.args.log.is_none() && std::env::var_os(LOG_VARIABLE).is_none() {
            self.log.adopt(filter);
        }
        self.text = text;
        Ok(live)
    }
}

fn listed(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

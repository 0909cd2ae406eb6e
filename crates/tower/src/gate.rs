//! The gate of one process.

use crate::service::GateLayer;
use std::fmt;
use suimon_params::Params;
use suimon_proxy::{Embedded, Observer, StartError};
use suimon_settings::{Faults, Settings};

/// A gate that nobody has come to yet. [`Gate::run`] has to go on for as long as requests come: limits are
/// found and the line moves there.
#[derive(Debug)]
pub struct Gate {
    embedded: Embedded,
}

/// Why there is no gate.
#[derive(Debug)]
pub enum OpenError {
    /// The settings are not understood; all their faults.
    Settings(Faults),
    /// Something that they name cannot be used.
    Start(StartError),
}

impl Gate {
    /// Returns the gate that these settings describe: the text of a `suimon.toml`, which may be empty. What it
    /// says of listeners and of an application's nodes is of no account. To be called inside the runtime.
    ///
    /// # Errors
    /// See [`OpenError`]; each names the setting and what is allowed.
    pub fn open(settings: &str) -> Result<Gate, OpenError> {
        let settings = Settings::parse("suimon.toml", settings).map_err(OpenError::Settings)?;
        Gate::with(settings.proxy)
    }

    /// Returns the gate with these parameters.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn with(params: Params) -> Result<Gate, OpenError> {
        Ok(Gate { embedded: Embedded::open(params).map_err(OpenError::Start)? })
    }

    /// Returns what puts the gate before a service.
    pub fn layer(&self) -> GateLayer {
        GateLayer::new(self.embedded.door())
    }

    /// Returns a look at the gate, which stays good while it runs and after.
    pub fn observer(&self) -> Observer {
        self.embedded.observer()
    }

    /// Runs until `shutdown` is ready, then refuses what comes, and returns once what is under way has ended,
    /// or after `timeouts.drain`.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        self.embedded.run(shutdown).await;
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Settings(faults) => faults.fmt(f),
            OpenError::Start(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

//! The settings in force, as an operator reads and replaces them.

use serde::{Deserialize, Serialize};

/// The most bytes of a file of settings that is posted.
pub const CONFIG_BYTES_MAX: usize = 1 << 20;
/// The type of a file of settings.
pub(crate) const CONFIG_TYPE: &str = "application/toml";

/// Where the settings in force are from.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigState {
    /// `file`, `posted` (to this listener) or `none`: all is as it is by default, and as the command
    /// line says.
    pub source: String,
    /// The file that a reload reads; absent: none was named.
    pub file: Option<String>,
    /// Whether they differ from what the file said when it was last read: they were posted, and hold
    /// until the next reload or restart.
    pub differs_from_file: bool,
    /// When they were adopted, seconds since 1970.
    pub adopted_at: f64,
    /// Why the last attempt to adopt others failed; absent: it did not.
    pub last_failure: Option<String>,
}

/// The settings in force.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// Where they are from.
    pub state: ConfigState,
    /// The text of the file, without secrets.
    pub text: String,
}

/// What became of settings that were posted.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigAnswer {
    /// Whether they are in force now.
    pub adopted: bool,
    /// Whether it was only asked what would change.
    pub dry_run: bool,
    /// In one sentence.
    pub message: String,
    /// What differs from the settings in force.
    pub changes: Vec<ConfigChange>,
    /// All that is wrong with them.
    pub faults: Vec<ConfigFault>,
}

/// A setting that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigChange {
    /// Its full name, such as `limits.head_bytes`.
    pub key: String,
    /// The value in force.
    pub from: String,
    /// The value that was posted.
    pub to: String,
    /// Whether it takes a restart.
    pub takes_restart: bool,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigFault {
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where it stands: name and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// What is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
}

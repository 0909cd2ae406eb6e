//! TOML settings: raw, checked, each crate's parameters; and the documents generated from them.
//!
//! Nothing here opens a port. All that is wrong with a file is told together, with key, value and
//! what is allowed.
//!
//! - [`Settings`]: what `suimon serve` is told. Every setting's name, form, range, default and
//!   meaning stand together below `schema.rs`; [`example_file`] and [`settings_document`] are
//!   written from there.
//! - [`changes`]: what a file says otherwise than before, and what of it takes a restart.
//! - [`journey`]: what a crowd is told.
//! - [`scenario`]: what a simulator is told.
//! - [`Faults`]: everything that is wrong with what was read.

mod admin;
mod changes;
mod discovery;
mod documents;
pub mod duration;
pub mod faults;
mod https;
pub mod journey;
mod known;
mod kubernetes;
mod lines;
mod load_reports;
mod nodes;
mod pool;
mod program;
mod read;
mod route;
pub mod scenario;
mod schema;
mod secrets;
mod services;
mod settings;
mod shape;
mod sharing;
mod sites;
mod state_path;
mod telemetry;

pub use admin::{AdminAccess, AdminTls};
pub use changes::{Change, changes};
pub use documents::{example_file, settings_document};
pub use faults::{Fault, Faults};
pub use read::{FILE_BYTES_MAX, text_of};
pub use secrets::{without_password, without_secrets};
pub use settings::{Settings, with_lines};
pub use shape::{parse_size, socket_of};
pub use sites::{MAIN_SITE, SiteState};
pub use state_path::{StatePath, state_folder};

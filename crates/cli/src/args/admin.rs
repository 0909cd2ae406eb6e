//! Where a gateway's operator is answered, on the command line.

use clap::Args;
use std::path::PathBuf;

/// Where the gateway is, and what proves who asks.
#[derive(Args, Clone, Debug)]
pub(crate) struct AdminAt {
    /// The gateway's admin listener: http://host:port, host:port or unix:/path.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8001")]
    pub(crate) admin: String,
    /// File with the token of admin.token_file, where the gateway asks for one.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

impl AdminAt {
    /// Returns the listener at this URL, which asks for nothing.
    pub(crate) fn of(url: &str) -> AdminAt {
        AdminAt { admin: url.to_owned(), token_file: None }
    }
}

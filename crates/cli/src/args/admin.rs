//! Where a gateway's operator is answered, on the command line.

use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use suimon_settings::socket_of;

/// Where the gateway is, and what proves who asks.
#[derive(Args, Clone, Debug)]
pub(crate) struct AdminAt {
    /// The gateway's admin listener: http://host:port, host:port or unix:/path.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8001")]
    pub(crate) admin: String,
    /// File with the token of admin.token_file, where the gateway asks for one.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The site that is meant, where the gateway serves several: `suimon status` names them.
    /// [default: the main one]
    #[arg(long, value_name = "NAME")]
    pub(crate) site: Option<String>,
}

impl AdminAt {
    /// Returns the listener at this URL, which asks for nothing, and the main site.
    pub(crate) fn of(url: &str) -> AdminAt {
        AdminAt { admin: url.to_owned(), token_file: None, site: None }
    }
}

/// Where the admin listener is: an address, a Unix socket, or nowhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AdminListen {
    Address(SocketAddr),
    Socket(PathBuf),
    Off,
}

impl AdminListen {
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        if let AdminListen::Address(address) = self { Some(*address) } else { None }
    }

    pub(crate) fn socket(&self) -> Option<&Path> {
        if let AdminListen::Socket(path) = self { Some(path) } else { None }
    }
}

impl std::str::FromStr for AdminListen {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(AdminListen::Off);
        }
        if let Some(path) = socket_of(text) {
            return Ok(AdminListen::Socket(path.to_owned()));
        }
        text.parse().map(AdminListen::Address).map_err(|_| {
            "must be an IP address and a port, such as 127.0.0.1:8001, unix:/path, or off".to_string()
        })
    }
}

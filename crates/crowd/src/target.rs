//! Where requests go: a base URL, and the addresses behind it.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};

use http::{HeaderValue, Uri};
use tokio::net::TcpStream;

/// A parsed base URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BaseUrl {
    /// The host name or address, without brackets.
    pub(crate) host: String,
    port: u16,
    /// The value of the `Host` header.
    pub(crate) host_header: HeaderValue,
    /// The prefix of every path; empty, or begins with `/` and does not end with it.
    pub(crate) prefix: String,
}

impl BaseUrl {
    /// Returns the parsed URL.
    ///
    /// # Errors
    /// Fails with a sentence about what is wrong and what to write instead.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let example = "write a URL such as http://127.0.0.1:8080";
        let uri: Uri = url.parse().map_err(|error| format!("{url:?} is no URL ({error}): {example}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(format!(
                    "{url}: this client does not speak TLS yet: name the plain http:// listener"
                ));
            }
            _ => return Err(format!("{url:?} does not begin with http://: {example}")),
        }
        let authority = uri.authority().ok_or_else(|| format!("{url:?} names no host: {example}"))?;
        if authority.as_str().contains('@') {
            return Err(format!("{url:?} has a user in it, which no browser sends: leave it out"));
        }
        if uri.query().is_some() {
            return Err(format!("{url:?} has a query in it: queries belong into the paths"));
        }
        let host_header = HeaderValue::from_str(authority.as_str())
            .map_err(|_| format!("{url:?} has a host that cannot be sent: {example}"))?;
        Ok(BaseUrl {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(80),
            host_header,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns whether it is this machine: browsers accept `Secure` cookies from it even without
    /// TLS.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Resolves the name to addresses, once.
    pub(crate) async fn resolve(&self) -> io::Result<Addresses> {
        let found: Vec<SocketAddr> =
            tokio::net::lookup_host((self.host.as_str(), self.port)).await?.take(Addresses::MAX).collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(Addresses { found, good: Cell::new(0) })
    }
}

/// The addresses behind a name; the one that worked last is tried first.
#[derive(Debug)]
pub(crate) struct Addresses {
    found: Vec<SocketAddr>,
    good: Cell<usize>,
}

impl Addresses {
    const MAX: usize = 8;

    /// Returns whether all of them are of this very machine.
    pub(crate) fn are_loopback(&self) -> bool {
        self.found.iter().all(|address| address.ip().is_loopback())
    }

    /// Connects to the first address that takes the connection.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let count = self.found.len();
        let mut failed = None;
        for i in (0..count).map(|i| (self.good.get() + i) % count) {
            match TcpStream::connect(self.found[i]).await {
                Ok(stream) => {
                    self.good.set(i);
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.expect("there is at least one address"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_taken_apart() {
        let base = BaseUrl::parse("http://shop.example:8080/app/").unwrap();
        assert_eq!((base.host.as_str(), base.port, base.prefix.as_str()), ("shop.example", 8080, "/app"));
        assert_eq!(base.host_header, "shop.example:8080");
        assert!(!base.is_loopback());
        let bare = BaseUrl::parse("http://[::1]").unwrap();
        assert_eq!((bare.host.as_str(), bare.port, bare.prefix.as_str()), ("::1", 80, ""));
        assert!(bare.is_loopback() && BaseUrl::parse("http://localhost:1").unwrap().is_loopback());
    }

    #[test]
    fn what_is_no_base_url_says_what_to_write() {
        for (url, wanted) in [
            ("https://127.0.0.1", "does not speak TLS yet"),
            ("127.0.0.1:8080", "does not begin with http://"),
            ("ftp://x", "does not begin with http://"),
            ("/x", "does not begin with http://"),
            ("http://a b", "is no URL"),
            ("http://u:p@host", "has a user in it"),
            ("http://host/?a=b", "has a query in it"),
        ] {
            let message = BaseUrl::parse(url).unwrap_err();
            assert!(message.contains(wanted), "{url}: {message}");
        }
    }
}

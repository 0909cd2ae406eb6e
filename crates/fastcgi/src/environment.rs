//! What a program is told of a request.
//!
//! *Source*: RFC 3875, section 4.1, and the variables beyond it that PHP, Perl and Python programs
//! expect because other servers set them.

use crate::request::Environment;
use crate::script::{Mapping, Script};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName, TRANSFER_ENCODING};
use http::request::Parts;
use std::net::{IpAddr, Ipv4Addr};

/// What is known of a request beside its head.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// How paths lead to programs.
    pub mapping: &'a Mapping,
    /// The program that answers.
    pub script: &'a Script<'a>,
    /// The client's address; `None`: the gateway asks by itself, and is told as 127.0.0.1.
    pub client: Option<IpAddr>,
    /// Whether the client's connection is encrypted.
    pub is_secure: bool,
    /// Bytes of the body; `None`: the request has none.
    pub body: Option<u64>,
    /// The `Host` for a request that names none.
    pub host: &'a [u8],
}

/// The version of the gateway, as programs are told it.
const SOFTWARE: &str = concat!("suimon/", env!("CARGO_PKG_VERSION"));

/// Headers with a variable of their own, or none: the gateway frames bodies itself. `Proxy` would
/// become `HTTP_PROXY`, which many libraries take for the proxy of their own requests.
fn is_left_out(name: &HeaderName) -> bool {
    [CONTENT_TYPE, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) || name == "proxy" || name == "te"
}

/// Adds the variables for a request with this `head` and, after its own headers, with those of
/// `more`.
///
/// A header whose name has other characters than letters, digits and `-` is left out: `A_B` and
/// `A-B` would become the same variable, so that a client could set what a proxy before it removes.
pub fn add<'a>(
    environment: &mut Environment,
    head: &'a Parts,
    about: &About<'_>,
    more: impl Iterator<Item = (HeaderName, &'a [u8])>,
) {
    let About { mapping, script, client, is_secure, body, host } = *about;
    let mut set = |name: &str, value: &[&[u8]]| environment.add(&[name.as_bytes()], value);
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let slash = if target.starts_with('?') { "/" } else { "" };
    let query = head.uri.query().unwrap_or_default();
    let [folder, file] = mapping.file(script);
    let host = head.headers.get(HOST).map_or(host, |host| host.as_bytes());
    let (name, port) = split_host(host);
    // Programs take port 443 for an encrypted connection, and a client writes its `Host` itself.
    let port = port.filter(|port| is_secure || *port != b"443");
    let port = port.unwrap_or(if is_secure { b"443" } else { b"80" });
    let (name_of_script, path_info) = (&script.name[..], &script.path_info[..]);

    set("GATEWAY_INTERFACE", &[b"CGI/1.1"]);
    set("SERVER_SOFTWARE", &[SOFTWARE.as_bytes()]);
    set("SERVER_PROTOCOL", &[b"HTTP/1.1"]);
    set("SERVER_NAME", &[name]);
    set("SERVER_PORT", &[port]);
    set("REQUEST_SCHEME", &[if is_secure { b"https" } else { b"http" }]);
    if is_secure {
        set("HTTPS", &[b"on"]);
    }
    set("REQUEST_METHOD", &[head.method.as_str().as_bytes()]);
    set("REQUEST_URI", &[slash.as_bytes(), target.as_bytes()]);
    set("QUERY_STRING", &[query.as_bytes()]);
    set("DOCUMENT_ROOT", &[mapping.root().as_bytes()]);
    set("SCRIPT_NAME", &[name_of_script]);
    set("SCRIPT_FILENAME", &[folder, file]);
    set("DOCUMENT_URI", &[name_of_script, path_info]);
    // Without PATH_TRANSLATED: with cgi.fix_pathinfo=0 PHP takes that for the program to run, and it
    // is the client's to choose.
    set("PATH_INFO", &[path_info]);
    // PHP built with force-cgi-redirect answers nothing without it.
    set("REDIRECT_STATUS", &[b"200"]);
    let client = client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    set("REMOTE_ADDR", &[client.to_string().as_bytes()]);
    if let Some(kind) = head.headers.get(CONTENT_TYPE) {
        set("CONTENT_TYPE", &[kind.as_bytes()]);
    }
    if let Some(length) = body {
        set("CONTENT_LENGTH", &[length.to_string().as_bytes()]);
    }

    let mut upper = Vec::new();
    for name in head.headers.keys().filter(|name| !is_left_out(name)) {
        if !write_variable(&mut upper, name) {
            continue;
        }
        let between: &[u8] = if *name == COOKIE { b"; " } else { b", " };
        let mut values: Vec<&[u8]> = vec![];
        for value in head.headers.get_all(name) {
            if !values.is_empty() {
                values.push(between);
            }
            values.push(value.as_bytes());
        }
        environment.add(&[&upper], &values);
    }
    if !head.headers.contains_key(HOST) {
        environment.add(&[b"HTTP_HOST"], &[host]);
    }
    for (name, value) in more {
        if write_variable(&mut upper, &name) {
            environment.add(&[&upper], &[value]);
        }
    }
}

/// Writes the variable of a header into `upper`; `false`: it has none.
fn write_variable(upper: &mut Vec<u8>, name: &HeaderName) -> bool {
    upper.clear();
    upper.extend_from_slice(b"HTTP_");
    for byte in name.as_str().bytes() {
        match byte {
            b'-' => upper.push(b'_'),
            byte if byte.is_ascii_alphanumeric() => upper.push(byte.to_ascii_uppercase()),
            _ => return false,
        }
    }
    true
}

/// Splits `host:port`; an IPv6 address keeps its brackets.
fn split_host(host: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(colon) = host.iter().rposition(|byte| *byte == b':') else { return (host, None) };
    let port = &host[colon + 1..];
    if port.is_empty() || !port.iter().all(u8::is_ascii_digit) {
        return (host, None);
    }
    (&host[..colon], Some(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::read;
    use http::Request;
    use std::collections::BTreeMap;

    fn told(request: Request<()>, is_secure: bool, body: Option<u64>) -> BTreeMap<String, String> {
        let mapping = Mapping::Folder {
            root: "/srv".into(),
            suffix: ".php".into(),
            index: "index.php".into(),
            fallback: None,
        };
        let (head, ()) = request.into_parts();
        let script = mapping.script(head.uri.path(), |file| file == b"/a.php").unwrap();
        let client = Some("192.0.2.7".parse().unwrap());
        let about = About { mapping: &mapping, script: &script, client, is_secure, body, host: b"localhost" };
        let mut environment = Environment::default();
        let more = [(HeaderName::from_static("x-forwarded-for"), &b"192.0.2.7"[..])];
        add(&mut environment, &head, &about, more.into_iter());
        let mut bytes = vec![];
        environment.write(&mut bytes);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        read(&bytes).into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn a_program_learns_all_of_a_request() {
        let request = Request::post("/a.php/chairs/7?colour=red%20wine")
            .header("host", "shop.example:8443")
            .header("content-type", "text/plain")
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .header("accept", "text/html")
            .header("accept", "*/*")
            .body(())
            .unwrap();
        let told = told(request, true, Some(12));
        for (name, value) in [
            ("SCRIPT_FILENAME", "/srv/a.php"),
            ("SCRIPT_NAME", "/a.php"),
            ("PATH_INFO", "/chairs/7"),
            ("DOCUMENT_ROOT", "/srv"),
            ("DOCUMENT_URI", "/a.php/chairs/7"),
            ("REQUEST_URI", "/a.php/chairs/7?colour=red%20wine"),
            ("QUERY_STRING", "colour=red%20wine"),
            ("REQUEST_METHOD", "POST"),
            ("SERVER_NAME", "shop.example"),
            ("SERVER_PORT", "8443"),
            ("HTTPS", "on"),
            ("REMOTE_ADDR", "192.0.2.7"),
            ("CONTENT_TYPE", "text/plain"),
            ("CONTENT_LENGTH", "12"),
            ("HTTP_HOST", "shop.example:8443"),
            ("HTTP_COOKIE", "a=1; b=2"),
            ("HTTP_ACCEPT", "text/html, */*"),
            ("HTTP_X_FORWARDED_FOR", "192.0.2.7"),
        ] {
            assert_eq!(told.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!told.contains_key("PATH_TRANSLATED"), "PHP would run it");
    }

    #[test]
    fn a_plain_connection_never_looks_encrypted() {
        let request = Request::get("/a.php").header("host", "shop.example:443").body(()).unwrap();
        let told = told(request, false, None);
        assert_eq!((&told["SERVER_PORT"][..], told.get("HTTPS")), ("80", None));
    }

    #[test]
    fn a_client_sets_no_variable_that_is_not_its_own() {
        let request = Request::get("/a.php")
            .header("proxy", "http://evil.example")
            .header("x_forwarded_for", "1.2.3.4")
            .header("content-length", "99")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let told = told(request, false, None);
        for name in ["HTTP_PROXY", "CONTENT_LENGTH", "HTTP_CONTENT_LENGTH", "HTTP_TE", "HTTPS"] {
            assert!(!told.contains_key(name), "{name}");
        }
        assert_eq!(told["HTTP_X_FORWARDED_FOR"], "192.0.2.7");
        assert_eq!((&told["HTTP_HOST"][..], &told["SERVER_PORT"][..]), ("localhost", "80"));
    }

    #[test]
    fn a_host_is_split_at_its_port() {
        for (host, name, port) in [
            ("shop", "shop", None),
            ("shop:80", "shop", Some("80")),
            ("[::1]", "[::1]", None),
            ("[::1]:8080", "[::1]", Some("8080")),
            ("shop:", "shop:", None),
        ] {
            assert_eq!(split_host(host.as_bytes()), (name.as_bytes(), port.map(str::as_bytes)), "{host}");
        }
    }
}

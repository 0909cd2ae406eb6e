//! What a value may look like: its form, its range, and the sentence that says so.

use crate::duration;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use suimon_model::Choice;
use suimon_params::upstream::{NodeParams, SOCKET_PATH_MAX};
use suimon_params::{QueryPattern, ResponseHeader};
use toml::Value;

/// The form and the range of a setting's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second, both included.
    Count(u64, u64),
    /// A number from the first to the second, both included.
    Number(f64, f64),
    /// A length of time such as `"250ms"`, from the first to the second number of milliseconds,
    /// both included.
    Time(u64, u64),
    /// A number of bytes, alone or as `"64KiB"`, from the first to the second, both included.
    Size(u64, u64),
    /// IP address and port to listen on, or `"off"`.
    AddressOrOff,
    /// IP address and port to listen on, the path of a Unix socket such as `"unix:/run/a.sock"`, or
    /// `"off"`.
    AddressSocketOrOff,
    /// An IP address, or a network such as `"10.0.0.0/8"`.
    Network,
    /// Where a node of the application listens: `http://HOST[:PORT]`, `https://HOST[:PORT]` or
    /// `unix:/PATH`.
    Node,
    /// A path on this machine.
    Path,
    /// A path of a URL, from `/`.
    UrlPath,
    /// What paths of URLs begin with: a path without a `/` at its end, or nothing.
    BasePath,
    /// Method and path template, such as `"GET /items/{id}"`.
    Route,
    /// The same, and what the query must have if need be, such as `"GET /?s"`.
    RouteAndQuery,
    /// A name: letters, digits, `_`, `-` and `.`, up to 64.
    Name,
    /// A host name or IP address, without a port.
    Host,
    /// The same, or `*.` and a name.
    Hosts,
    /// A colour: `#` and three or six hexadecimal digits.
    Colour,
    /// A variable of an environment, `NAME=value`.
    Variable,
    /// A header that all answers may carry, `Name: value`.
    Header,
    /// Free text of one line.
    Text,
    /// One of these words.
    Word(&'static [Choice]),
    /// One of these words, or a whole number from the second to the third.
    WordOrCount(&'static [Choice], u64, u64),
    /// Completions per second, such as `"40/s"`, or a share of the host, such as `"30 %"`.
    Amount,
    /// A list of the first, of at most the second number of entries.
    List(&'static Shape, usize),
}

/// A value that has the form and lies in the range its shape asks for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Checked {
    Flag(bool),
    Count(u64),
    Number(f64),
    Time(Duration),
    Address(Option<SocketAddr>),
    Node(NodeParams),
    Path(PathBuf),
    Text(String),
    Network(IpAddr, u8),
    List(Vec<Checked>),
}

/// The longest text taken for any value.
const TEXT_BYTES_MAX: usize = 2048;

impl Shape {
    /// Returns the value as its shape has it, or what would have been allowed.
    pub(crate) fn check(self, value: &Value) -> Result<Checked, String> {
        self.read(value).ok_or_else(|| self.allowed_instead_of(value))
    }

    /// Returns what is allowed, or of what has parts which part of it is not.
    fn allowed_instead_of(self, value: &Value) -> String {
        if matches!(self, Shape::Header)
            && let Some(Err(allowed)) = text(value).map(ResponseHeader::parse)
        {
            return allowed;
        }
        let query = match self {
            Shape::RouteAndQuery => text(value).and_then(|text| text.split_once('?')),
            _ => None,
        };
        let fault = query.filter(|(path, _)| is_route(path)).map(|(_, query)| QueryPattern::parse(query));
        fault.and_then(Result::err).unwrap_or_else(|| self.allowed())
    }

    /// Returns the entries of a list that are at fault, each with what would be allowed; `None`
    /// where the list itself is, or there is none.
    pub(crate) fn faulty_entries(self, value: &Value) -> Option<Vec<(usize, &Value, String)>> {
        let Shape::List(of, max) = self else { return None };
        let entries = value.as_array().filter(|entries| entries.len() <= max)?;
        let fault = |(index, entry)| of.check(entry).err().map(|allowed| (index, entry, allowed));
        Some(entries.iter().enumerate().filter_map(fault).collect())
    }

    /// Returns what is allowed; reads on from "must be".
    pub(crate) fn allowed(self) -> String {
        match self {
            Shape::Flag => "true or false".to_string(),
            Shape::Count(min, max) => format!("a whole number from {min} to {max}"),
            Shape::Number(min, max) => format!("a number from {min} to {max}"),
            Shape::Time(min, max) => {
                format!("a time from \"{}\" to \"{}\", such as \"250ms\", \"30s\" or \"5m\"", time(min), time(max))
            }
            Shape::Size(min, max) => {
                format!("a size from \"{}\" to \"{}\", such as 65536 or \"64KiB\"", size(min), size(max))
            }
            Shape::AddressOrOff => {
                "an IP address and a port, such as \"127.0.0.1:8000\" or \"[::]:8000\", or \"off\"".to_string()
            }
            Shape::AddressSocketOrOff => {
                "an IP address and a port, such as \"127.0.0.1:8001\", unix: and the path of a socket, such as \"unix:/run/suimon/admin.sock\", or \"off\"".to_string()
            }
            Shape::Network => "an IP address or a network, such as \"10.0.0.0/8\"".to_string(),
            Shape::Node => {
                "http:// or https://, a host and, if need be, a port, and no path, such as \"http://127.0.0.1:8080\"; or unix: or fastcgi: and the path of a socket, such as \"unix:/run/app.sock\"".to_string()
            }
            Shape::Path => "a path on this machine".to_string(),
            Shape::UrlPath => "a path that begins with /, such as \"/health\"".to_string(),
            Shape::BasePath => {
                "\"\", or a path as it stands in a URL that begins with / and does not end with it, such as \"/shop\"; without //, ?, # and dots as segments".to_string()
            }
            Shape::Route => {
                "a method (or *) and a path without a query, such as \"GET /items/{id}\"; {name} stands for one segment, a last * for the rest".to_string()
            }
            Shape::RouteAndQuery => {
                "a method (or *), a path and, if need be, parameters of a query, such as \"GET /items/{id}\", \"GET /?s\" or \"GET /index.php?page=search\"; {name} stands for one segment, a last * for the rest of the path".to_string()
            }
            Shape::Name => "a name of letters, digits, _, - and ., at most 64 long".to_string(),
            Shape::Host => "a host name or an IP address, without a port".to_string(),
            Shape::Hosts => {
                "a host name or an IP address, without a port, or * for all names below one: *.example.org"
                    .to_string()
            }
            Shape::Colour => "a colour such as \"#1f6884\"".to_string(),
            Shape::Variable => "NAME=value, such as \"LANG=C.UTF-8\"".to_string(),
            Shape::Header => "a header, such as \"X-Content-Type-Options: nosniff\"".to_string(),
            Shape::Text => "text of one line".to_string(),
            Shape::Word(words) => either(words),
            Shape::WordOrCount(words, min, max) => {
                format!("{}, or a whole number from {min} to {max}", either(words))
            }
            Shape::Amount => "a rate such as \"40/s\", or a share of the host above 0 and up to 100 %, such as \"30 %\"".to_string(),
            Shape::List(of, max) => format!("a list of at most {max}, each of them {}", of.allowed()),
        }
    }

    /// Returns the form and range for the table of settings.
    pub(crate) fn summary(self) -> String {
        match self {
            Shape::Flag => "`true` or `false`".to_string(),
            Shape::Count(min, max) => format!("whole number, {min} to {max}"),
            Shape::Number(min, max) => format!("number, {min} to {max}"),
            Shape::Time(min, max) => format!("time, {} to {}", time(min), time(max)),
            Shape::Size(min, max) => format!("size, {} to {}", size(min), size(max)),
            Shape::AddressOrOff => "IP address and port, or `\"off\"`".to_string(),
            Shape::AddressSocketOrOff => "IP address and port, `\"unix:/PATH\"` or `\"off\"`".to_string(),
            Shape::Network => "IP address or network".to_string(),
            Shape::Node => "`http://HOST[:PORT]`, `https://HOST[:PORT]`, `unix:/PATH`, `fastcgi://HOST:PORT` or `fastcgi:/PATH`".to_string(),
            Shape::Path => "path on this machine".to_string(),
            Shape::UrlPath => "path of a URL".to_string(),
            Shape::BasePath => "path of a URL, without / at its end".to_string(),
            Shape::Route => "`METHOD /path/{name}`".to_string(),
            Shape::RouteAndQuery => "`METHOD /path/{name}` or `METHOD /path?parameter=value`".to_string(),
            Shape::Name => "name, up to 64 letters".to_string(),
            Shape::Host => "host name or IP address".to_string(),
            Shape::Hosts => "host name, `*.NAME` or IP address".to_string(),
            Shape::Colour => "colour, `#rrggbb`".to_string(),
            Shape::Variable => "`NAME=value`".to_string(),
            Shape::Header => "`Name: value`".to_string(),
            Shape::Text => "text".to_string(),
            Shape::Word(words) => {
                words.iter().map(|choice| format!("`\"{}\"`", choice.word)).collect::<Vec<_>>().join(", ")
            }
            Shape::WordOrCount(words, min, max) => {
                let words: Vec<_> = words.iter().map(|choice| format!("`\"{}\"`", choice.word)).collect();
                format!("{}, or a whole number, {min} to {max}", words.join(", "))
            }
            Shape::Amount => "`\"40/s\"` or `\"30 %\"`".to_string(),
            Shape::List(of, max) => format!("list, up to {max}, of: {}", of.summary()),
        }
    }

    fn read(self, value: &Value) -> Option<Checked> {
        match self {
            Shape::Flag => value.as_bool().map(Checked::Flag),
            Shape::Count(min, max) => whole(value).filter(|n| (min..=max).contains(n)).map(Checked::Count),
            Shape::Number(min, max) => number(value).filter(|n| (min..=max).contains(n)).map(Checked::Number),
            Shape::Time(min, max) => {
                let time = duration::parse(value.as_str()?)?;
                let range = Duration::from_millis(min)..=Duration::from_millis(max);
                range.contains(&time).then_some(Checked::Time(time))
            }
            Shape::Size(min, max) => {
                let bytes = whole(value).or_else(|| parse_size(value.as_str()?))?;
                (min..=max).contains(&bytes).then_some(Checked::Count(bytes))
            }
            Shape::AddressOrOff => match value.as_str()? {
                "off" => Some(Checked::Address(None)),
                address => address.parse().ok().map(|address| Checked::Address(Some(address))),
            },
            Shape::AddressSocketOrOff => {
                let text = text(value)?;
                let is_right =
                    text == "off" || socket_of(text).is_some() || text.parse::<SocketAddr>().is_ok();
                is_right.then(|| owned(text))
            }
            Shape::Network => parse_network(value.as_str()?),
            Shape::Path => text(value).map(|path| Checked::Path(PathBuf::from(path))),
            Shape::Word(words) => text(value).filter(|word| has(words, word)).map(owned),
            Shape::WordOrCount(words, min, max) => match value.as_str() {
                Some(word) => has(words, word).then(|| owned(word)),
                None => Shape::Count(min, max).read(value),
            },
            Shape::Node => NodeParams::parse(text(value)?).ok().map(Checked::Node),
            Shape::UrlPath => text(value).filter(|path| is_url_path(path)).map(owned),
            Shape::BasePath => match value.as_str()? {
                "" => Some(owned("")),
                _ => text(value).filter(|path| is_base_path(path)).map(owned),
            },
            Shape::Route => text(value).filter(|route| is_route(route)).map(owned),
            Shape::RouteAndQuery => text(value).filter(|route| is_route_and_query(route)).map(owned),
            Shape::Name => text(value).filter(|name| is_name(name)).map(owned),
            Shape::Host => text(value).filter(|host| is_host(host)).map(owned),
            Shape::Hosts => {
                text(value).filter(|host| is_host(host.strip_prefix("*.").unwrap_or(host))).map(owned)
            }
            Shape::Colour => text(value).filter(|colour| is_colour(colour)).map(owned),
            Shape::Variable => text(value).filter(|text| text.find('=').is_some_and(|at| at > 0)).map(owned),
            Shape::Header => text(value).filter(|text| ResponseHeader::parse(text).is_ok()).map(owned),
            Shape::Text => text(value).map(owned),
            Shape::Amount => text(value).filter(|text| amount(text).is_some()).map(owned),
            Shape::List(of, max) => {
                let entries = value.as_array().filter(|entries| entries.len() <= max)?;
                entries.iter().map(|entry| of.read(entry)).collect::<Option<_>>().map(Checked::List)
            }
        }
    }
}

/// Returns the path of a Unix socket in `text`, if it names one that can be.
pub fn socket_of(text: &str) -> Option<&Path> {
    let path = Path::new(text.strip_prefix("unix:")?);
    // It has a longer name until it listens.
    let is_right =
        path.is_absolute() && !text.ends_with('/') && path.as_os_str().len() <= SOCKET_PATH_MAX - 4;
    is_right.then_some(path)
}

fn owned(text: &str) -> Checked {
    Checked::Text(text.to_string())
}

/// Returns text of one line that is not empty.
fn text(value: &Value) -> Option<&str> {
    let fits =
        |text: &&str| !text.is_empty() && text.len() <= TEXT_BYTES_MAX && !text.contains(char::is_control);
    value.as_str().filter(fits)
}

fn whole(value: &Value) -> Option<u64> {
    value.as_integer().and_then(|n| u64::try_from(n).ok())
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).filter(|n| n.is_finite())
}

/// Returns the bytes that `text` names: a whole number and `B`, `KiB`, `MiB`, `GiB` (or `KB`, `MB`,
/// `GB`: thousands). Returns the bytes that `text` says, such as `64KiB`, or `None` if it is no
/// size.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim_start() {
        "" | "B" => 1,
        "KB" => 1000,
        "MB" => 1000 * 1000,
        "GB" => 1000 * 1000 * 1000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Returns the number that `text` says, such as `40/s` or `30 %`, and whether it is per cent; `None`
/// if it is neither, or out of range.
pub(crate) fn amount(text: &str) -> Option<(f64, bool)> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
    match (text.strip_suffix('%'), text.strip_suffix("/s")) {
        (Some(share), _) => number(share).filter(|share| *share <= 100.0).map(|share| (share, true)),
        (_, Some(rate)) => number(rate).filter(|rate| *rate <= 1e9).map(|rate| (rate, false)),
        _ => None,
    }
}

fn parse_network(text: &str) -> Option<Checked> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address.parse::<IpAddr>().ok()?, Some(prefix.parse::<u8>().ok()?)),
        None => (text.parse::<IpAddr>().ok()?, None),
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.unwrap_or(bits);
    (prefix <= bits).then_some(Checked::Network(address, prefix))
}

fn is_host(host: &str) -> bool {
    if host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    host.len() <= 253 && host.split('.').all(label)
}

fn is_colour(colour: &str) -> bool {
    colour.strip_prefix('#').is_some_and(|digits| {
        matches!(digits.len(), 3 | 6) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

fn is_url_path(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#')
}

fn is_base_path(path: &str) -> bool {
    let is_segment = |segment: &str| {
        !matches!(segment, "" | "." | "..")
            && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&b))
    };
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_segment))
}

fn is_route(route: &str) -> bool {
    let Some((method, path)) = route.split_once(' ') else { return false };
    let method_fits =
        method == "*" || (!method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-'));
    let segment_fits = |segment: &str| match segment.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').is_some_and(is_name),
        None => !segment.contains(['{', '}']),
    };
    let rest = path.strip_suffix("/*").unwrap_or(path);
    method_fits
        && path.starts_with('/')
        && path.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'#' | b'?'))
        && !rest.contains('*')
        && rest.split('/').all(segment_fits)
}

fn is_route_and_query(route: &str) -> bool {
    match route.split_once('?') {
        Some((path, query)) => is_route(path) && QueryPattern::parse(query).is_ok(),
        None => is_route(route),
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn has(choices: &[Choice], word: &str) -> bool {
    choices.iter().any(|choice| choice.word == word)
}

fn either(choices: &[Choice]) -> String {
    let words: Vec<&str> = choices.iter().map(|choice| choice.word).collect();
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Returns milliseconds as they would be written.
fn time(ms: u64) -> String {
    duration::show(Duration::from_millis(ms))
}

/// Returns bytes in the largest unit that leaves a whole number.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: Shape, literal: &str) -> Result<Checked, String> {
        let table: toml::Table = format!("x = {literal}").parse().unwrap();
        shape.check(&table["x"])
    }

    #[test]
    fn times_are_read_with_their_unit() {
        let shape = Shape::Time(1, 3_600_000);
        assert_eq!(check(shape, "\"250ms\""), Ok(Checked::Time(Duration::from_millis(250))));
        assert_eq!(check(shape, "\"1.5s\""), Ok(Checked::Time(Duration::from_millis(1500))));
        assert_eq!(check(shape, "\"5m\""), Ok(Checked::Time(Duration::from_secs(300))));
        for wrong in [
            "5",
            "\"5\"",
            "\"-1s\"",
            "\"1 week\"",
            "\"2h\"",
            "\"0s\"",
            "\"1.2.3s\"",
            "\"s\"",
            "\"99999999999999999999h\"",
        ] {
            assert!(check(shape, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        let shape = Shape::Size(1, 1 << 30);
        assert_eq!(check(shape, "65536"), Ok(Checked::Count(65536)));
        assert_eq!(check(shape, "\"64KiB\""), Ok(Checked::Count(65536)));
        assert_eq!(check(shape, "\"64KB\""), Ok(Checked::Count(64000)));
        for wrong in ["\"64kilo\"", "-1", "\"2GiB\"", "0", "1.5"] {
            assert!(check(shape, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_ends_of_a_range_belong_to_it() {
        let shape = Shape::Count(1, 512);
        assert!(check(shape, "1").is_ok() && check(shape, "512").is_ok());
        assert!(check(shape, "0").is_err() && check(shape, "513").is_err() && check(shape, "-1").is_err());
        let shape = Shape::Number(0.0, 1.0);
        assert!(check(shape, "0").is_ok() && check(shape, "1.0").is_ok());
        assert!(check(shape, "1.1").is_err() && check(shape, "nan").is_err() && check(shape, "inf").is_err());
    }

    #[test]
    fn routes_are_a_method_and_a_template() {
        for right in ["GET /", "POST /login", "GET /items/{id}", "* /api/*", "GET /a/{b}/c"] {
            assert!(check(Shape::Route, &format!("\"{right}\"")).is_ok(), "{right}");
        }
        for wrong in [
            "/login",
            "get /",
            "GET login",
            "GET /{",
            "GET /a{b}",
            "GET /{}",
            "GET /*/x",
            "GET /a?b=c",
            "GET  /",
            "",
        ] {
            assert!(check(Shape::Route, &format!("\"{wrong}\"")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn routes_may_name_parameters_of_the_query_where_that_is_allowed() {
        for right in
            ["GET /", "GET /?s", "* /index.php?page=search&lang", "GET /{shop}/?a=%2A", "GET /a/*?b="]
        {
            assert!(check(Shape::RouteAndQuery, &format!("\"{right}\"")).is_ok(), "{right}");
        }
        for (wrong, wanted) in [
            ("GET /?", "a route whose query names parameters"),
            ("GET /?s&s=x", "a route that names each parameter of its query once (s is there twice)"),
            ("GET /?page=*", "a route without *, { or } in its query"),
            ("GET /?s=%4", "a route with two hexadecimal digits behind each %"),
            ("GET /?s=a b", "a route with a query as it stands in a URL"),
            ("GET ?s", "a method (or *), a path and, if need be, parameters of a query"),
            ("get /?s", "a method (or *), a path and, if need be, parameters of a query"),
            ("/?s", "a method (or *), a path and, if need be, parameters of a query"),
        ] {
            let allowed = check(Shape::RouteAndQuery, &format!("\"{wrong}\"")).unwrap_err();
            assert!(allowed.starts_with(wanted), "{wrong}: {allowed}");
        }
        let allowed = check(Shape::List(&Shape::Route, 3), "[\"GET /?s\"]").unwrap_err();
        assert!(allowed.contains("each of them a method (or *) and a path without a query"), "{allowed}");
    }

    #[test]
    fn networks_have_a_prefix_that_fits_their_family() {
        assert!(check(Shape::Network, "\"10.0.0.0/8\"").is_ok());
        assert!(check(Shape::Network, "\"::1\"").is_ok());
        for wrong in ["\"10.0.0.0/33\"", "\"10.0.0/8\"", "\"::1/129\"", "\"localhost\""] {
            assert!(check(Shape::Network, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn base_paths_are_nothing_or_begin_with_a_slash_and_do_not_end_with_one() {
        for right in ["", "/shop", "/shop/de", "/my%20shop", "/~a/b.c"] {
            assert!(check(Shape::BasePath, &format!("\"{right}\"")).is_ok(), "{right}");
        }
        for wrong in [
            "shop",
            "/",
            "/shop/",
            "//shop",
            "/a//b",
            "/./a",
            "/a/..",
            "/a?b",
            "/a#b",
            "/a b",
            "/a\\\\b",
            "/caf\u{e9}",
            "/<a>",
            "http://shop",
        ] {
            let allowed = check(Shape::BasePath, &format!("\"{wrong}\"")).unwrap_err();
            assert!(allowed.starts_with("\"\", or a path as it stands in a URL"), "{wrong}: {allowed}");
        }
    }

    const WORDS: &[Choice] =
        &[Choice { word: "a", means: "" }, Choice { word: "b", means: "" }, Choice { word: "c", means: "" }];

    #[test]
    fn what_is_allowed_is_said_in_the_units_it_is_written_in() {
        assert_eq!(Shape::Count(1, 512).allowed(), "a whole number from 1 to 512");
        assert!(Shape::Time(10, 300_000).allowed().starts_with("a time from \"10ms\" to \"5m\""));
        assert!(Shape::Size(1024, 1 << 20).allowed().starts_with("a size from \"1KiB\" to \"1MiB\""));
        assert_eq!(Shape::Word(WORDS).allowed(), "\"a\", \"b\" or \"c\"");
    }
}

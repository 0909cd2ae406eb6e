//! The PROXY protocol, versions 1 and 2: the client whose connection a balancer passes on.
//!
//! Source: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>. Pure: bytes in, what they
//! say out. Nothing is repaired: a header that is not exactly as it should be is refused, since its
//! sender is misconfigured, or is no balancer.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest header that is read, bytes. Addresses take 52 at most; the rest is for what
/// balancers add, which is skipped.
pub const HEADER_MAX: usize = 2048;

/// The longest line of version 1, its end included.
const LINE_MAX: usize = 107;
const LINE_START: &[u8] = b"PROXY ";
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of version 2 before the addresses, and of the addresses.
const FIXED: usize = 16;
const ADDRESSES_V4: usize = 12;
const ADDRESSES_V6: usize = 36;

/// What the first bytes of a connection say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// Nothing yet: more are needed.
    More,
    /// A whole header.
    Header {
        /// Its bytes; what follows is the client's.
        length: usize,
        /// Where the client is; `None`: the balancer speaks for itself, as for a health check, or
        /// does not know.
        client: Option<IpAddr>,
    },
}

/// Why bytes are no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyHeaderFault {
    /// They begin neither as version 1 nor as version 2.
    NoHeader,
    /// The line of version 1 has no end where it must.
    EndlessLine,
    /// The line of version 1 is not two addresses and two ports of one family.
    BadLine,
    /// The number of the version is not 2.
    Version(u8),
    /// A command other than LOCAL and PROXY.
    Command(u8),
    /// A family or transport that does not come over TCP.
    Family(u8),
    /// The header is shorter than the addresses in it.
    NoAddresses,
    /// The header is longer than [`HEADER_MAX`].
    TooLong(usize),
}

/// Returns what the first bytes of a connection say.
///
/// # Errors
/// If no header can begin so.
pub fn read(bytes: &[u8]) -> Result<Read, ProxyHeaderFault> {
    let begins = |start: &[u8]| {
        let length = bytes.len().min(start.len());
        bytes[..length] == start[..length]
    };
    if begins(LINE_START) {
        read_line(bytes)
    } else if begins(SIGNATURE) {
        read_binary(bytes)
    } else {
        Err(ProxyHeaderFault::NoHeader)
    }
}

fn read_line(bytes: &[u8]) -> Result<Read, ProxyHeaderFault> {
    let start = &bytes[..bytes.len().min(LINE_MAX)];
    let Some(end) = memchr::memchr(b'\n', start) else {
        return if start.len() < LINE_MAX { Ok(Read::More) } else { Err(ProxyHeaderFault::EndlessLine) };
    };
    let line = bytes[..end].strip_suffix(b"\r").and_then(|line| line.strip_prefix(LINE_START));
    let line = line.and_then(|line| str::from_utf8(line).ok()).ok_or(ProxyHeaderFault::BadLine)?;
    let client = if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
        None
    } else {
        Some(addresses(line).ok_or(ProxyHeaderFault::BadLine)?)
    };
    Ok(Read::Header { length: end + 1, client })
}

/// Returns the first address of `TCP4 from to port port`, or of TCP6.
fn addresses(line: &str) -> Option<IpAddr> {
    let mut words = line.split(' ');
    let (family, from, to) = (words.next()?, words.next()?, words.next()?);
    let (from, to): (IpAddr, IpAddr) = match family {
        "TCP4" => (from.parse::<Ipv4Addr>().ok()?.into(), to.parse::<Ipv4Addr>().ok()?.into()),
        "TCP6" => (from.parse::<Ipv6Addr>().ok()?.into(), to.parse::<Ipv6Addr>().ok()?.into()),
        _ => return None,
    };
    let _ = to;
    let is_port = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit()) && word.parse::<u16>().is_ok();
    let are_ports = is_port(words.next()?) && is_port(words.next()?);
    (are_ports && words.next().is_none()).then_some(from)
}

fn read_binary(bytes: &[u8]) -> Result<Read, ProxyHeaderFault> {
    let Some(fixed) = bytes.first_chunk::<FIXED>() else { return Ok(Read::More) };
    let (version, command, family) = (fixed[12] >> 4, fixed[12] & 15, fixed[13]);
    if version != 2 {
        return Err(ProxyHeaderFault::Version(version));
    }
    if command > 1 {
        return Err(ProxyHeaderFault::Command(command));
    }
    let length = FIXED + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > HEADER_MAX {
        return Err(ProxyHeaderFault::TooLong(length));
    }
    let needed = match family {
        // Not said, or a socket of the balancer's own machine.
        0x00 | 0x31 => 0,
        0x11 => ADDRESSES_V4,
        0x21 => ADDRESSES_V6,
        _ if command == 0 => 0,
        _ => return Err(ProxyHeaderFault::Family(family)),
    };
    if command == 1 && length < FIXED + needed {
        return Err(ProxyHeaderFault::NoAddresses);
    }
    let Some(addresses) = bytes.get(FIXED..length) else { return Ok(Read::More) };
    let client = match (command, family) {
        (1, 0x11) => addresses.first_chunk::<4>().map(|own| Ipv4Addr::from(*own).into()),
        (1, 0x21) => addresses.first_chunk::<16>().map(|own| Ipv6Addr::from(*own).into()),
        _ => None,
    };
    Ok(Read::Header { length, client })
}

impl fmt::Display for ProxyHeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyHeaderFault::NoHeader => {
                f.write_str("it does not begin with a PROXY header, of version 1 or 2")
            }
            ProxyHeaderFault::EndlessLine => write!(f, "its PROXY line does not end within {LINE_MAX} bytes"),
            ProxyHeaderFault::BadLine => f.write_str(
                "its PROXY line is not TCP4 or TCP6 with two addresses and two ports, nor UNKNOWN",
            ),
            ProxyHeaderFault::Version(version) => {
                write!(f, "its PROXY header is of version {version}, and 2 is known")
            }
            ProxyHeaderFault::Command(command) => {
                write!(f, "its PROXY header has command {command}, and 0 (LOCAL) and 1 (PROXY) are known")
            }
            ProxyHeaderFault::Family(family) => {
                write!(
                    f,
                    "its PROXY header has family and transport {family:#04x}, which does not come over TCP"
                )
            }
            ProxyHeaderFault::NoAddresses => {
                f.write_str("its PROXY header is too short for the addresses in it")
            }
            ProxyHeaderFault::TooLong(length) => {
                write!(f, "its PROXY header has {length} bytes, and {HEADER_MAX} are read at most")
            }
        }
    }
}

impl std::error::Error for ProxyHeaderFault {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn binary(version_command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[version_command, family], &length, payload].concat()
    }

    fn client(bytes: &[u8]) -> Result<Option<IpAddr>, ProxyHeaderFault> {
        match read(&[bytes, b"GET / HTTP/1.1\r\n"].concat())? {
            Read::Header { length, client } => {
                assert_eq!(length, bytes.len());
                Ok(client)
            }
            Read::More => panic!("it is complete"),
        }
    }

    const V4: [u8; 12] = [203, 0, 113, 7, 10, 0, 0, 1, 0x1f, 0x90, 0, 80];

    #[test]
    fn both_versions_say_where_the_client_is() {
        let v4: Option<IpAddr> = Some("203.0.113.7".parse().unwrap());
        let v6: Option<IpAddr> = Some("2001:db8::7".parse().unwrap());
        assert_eq!(client(b"PROXY TCP4 203.0.113.7 10.0.0.1 8080 80\r\n"), Ok(v4));
        assert_eq!(client(b"PROXY TCP6 2001:db8::7 2001:db8::1 8080 80\r\n"), Ok(v6));
        assert_eq!(client(&binary(0x21, 0x11, &V4)), Ok(v4));
        let mut addresses = [0; 36];
        addresses[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(client(&binary(0x21, 0x21, &addresses)), Ok(v6));
        let more = [&V4[..], &[4, 0, 3, 1, 2, 3]].concat();
        assert_eq!(client(&binary(0x21, 0x11, &more)), Ok(v4), "what is added is skipped");
    }

    #[test]
    fn a_balancer_may_speak_for_itself() {
        for bytes in [
            b"PROXY UNKNOWN\r\n".to_vec(),
            b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n".to_vec(),
            binary(0x20, 0x00, b""),
            binary(0x20, 0x11, &V4),
            binary(0x20, 0x77, b"whatever"),
            binary(0x21, 0x00, b""),
            binary(0x21, 0x31, &[0; 216]),
        ] {
            assert_eq!(client(&bytes), Ok(None), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused_with_its_reason() {
        for (bytes, fault) in [
            (b"GET / HTTP/1.1\r\n".to_vec(), ProxyHeaderFault::NoHeader),
            (b"PROXYTCP4".to_vec(), ProxyHeaderFault::NoHeader),
            (b"\r\n\r\nGET".to_vec(), ProxyHeaderFault::NoHeader),
            ([&b"PROXY TCP4 "[..], &[b'1'; 100]].concat(), ProxyHeaderFault::EndlessLine),
            (b"PROXY TCP4 203.0.113.7 10.0.0.1 8080 80\n".to_vec(), ProxyHeaderFault::BadLine),
            (b"PROXY TCP4 203.0.113.7 10.0.0.1 8080\r\n".to_vec(), ProxyHeaderFault::BadLine),
            (b"PROXY TCP4 203.0.113.7 10.0.0.1 8080 80 1\r\n".to_vec(), ProxyHeaderFault::BadLine),
            (b"PROXY TCP4 2001:db8::7 10.0.0.1 8080 80\r\n".to_vec(), ProxyHeaderFault::BadLine),
            (b"PROXY TCP4 203.0.113.7 10.0.0.1 +80 65536\r\n".to_vec(), ProxyHeaderFault::BadLine),
            (b"PROXY UDP4 203.0.113.7 10.0.0.1 8080 80\r\n".to_vec(), ProxyHeaderFault::BadLine),
            (binary(0x11, 0x11, &V4), ProxyHeaderFault::Version(1)),
            (binary(0x22, 0x11, &V4), ProxyHeaderFault::Command(2)),
            (binary(0x21, 0x12, &V4), ProxyHeaderFault::Family(0x12)),
            (binary(0x21, 0x11, &V4[..11]), ProxyHeaderFault::NoAddresses),
            (binary(0x21, 0x00, &[0; HEADER_MAX]), ProxyHeaderFault::TooLong(HEADER_MAX + FIXED)),
        ] {
            assert_eq!(read(&bytes), Err(fault), "{bytes:?}");
        }
    }

    fn beginning() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![
            Just(" ".to_owned()),
            Just("TCP4".to_owned()),
            Just("TCP6".to_owned()),
            Just("UNKNOWN".to_owned()),
            Just("203.0.113.7".to_owned()),
            Just("::1".to_owned()),
            Just("80".to_owned()),
            Just("\r\n".to_owned()),
        ];
        let line =
            proptest::collection::vec(word, 0..12).prop_map(|words| format!("PROXY {}", words.concat()));
        let payload = proptest::collection::vec(any::<u8>(), 0..60);
        prop_oneof![
            line.prop_map(String::into_bytes),
            (any::<u8>(), any::<u8>(), payload).prop_map(|(one, two, rest)| binary(one, two, &rest)),
            (prop_oneof![Just(0x20u8), Just(0x21)], prop_oneof![Just(0x11u8), Just(0x21)], 0usize..60)
                .prop_map(|(one, two, rest)| binary(one, two, &vec![7; rest])),
            proptest::collection::vec(any::<u8>(), 0..40),
        ]
    }

    proptest! {
        #[test]
        fn a_header_reads_the_same_however_its_bytes_come(bytes in beginning(), behind in any::<u8>()) {
            let whole = read(&bytes);
            for end in 0..bytes.len() {
                match read(&bytes[..end]) {
                    // Once it is said, nothing that follows changes it.
                    Ok(Read::More) => {}
                    said => prop_assert_eq!(said, whole),
                }
            }
            if let Ok(Read::Header { length, .. }) = whole {
                prop_assert!(length <= bytes.len() && length <= HEADER_MAX);
            }
            if whole != Ok(Read::More) {
                prop_assert_eq!(read(&[&bytes[..], &[behind]].concat()), whole);
            }
        }
    }
}

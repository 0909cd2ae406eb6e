//! Whether it is a process that we have started that listens at its port. Between the moment in which the
//! port was found free and the start of the process, any other may have taken it: visitors' requests would
//! go there.

use crate::group;
use std::collections::BTreeSet;
use std::fs;
use std::io;

/// The state of a socket that listens, as /proc/net/tcp has it.
const LISTENS: &str = "0A";
/// Addresses that take connections to 127.0.0.1, as they are written there: that one and any, each
/// of both versions.
const ADDRESSES: [&str; 4] =
    ["0100007F", "00000000", "00000000000000000000000000000000", "0000000000000000FFFF00000100007F"];

/// Returns whether all sockets that take connections to this port of 127.0.0.1 are of processes in
/// this process group, and there is one.
///
/// # Errors
/// The kernel does not tell.
pub fn is_of_group(port: u16, group: u32) -> io::Result<bool> {
    let mut table = fs::read_to_string("/proc/net/tcp")?;
    // There may be no version 6.
    table.push_str(&fs::read_to_string("/proc/net/tcp6").unwrap_or_default());
    let sockets: BTreeSet<&str> = table.lines().filter_map(|line| socket_at(line, port)).collect();
    if sockets.is_empty() {
        return Ok(false);
    }
    let mut own = BTreeSet::new();
    for pid in group::members(group)? {
        // Whatever has ended meanwhile has no sockets.
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        own.extend(
            links.filter_map(|link| {
                Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
            }),
        );
    }
    Ok(sockets.iter().all(|socket| own.contains(*socket)))
}

/// Returns the number of the socket in this line, if it listens at the port.
fn socket_at(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, at) = fields.get(1)?.split_once(':')?;
    let is_it = *fields.get(3)? == LISTENS
        && ADDRESSES.contains(&address)
        && u16::from_str_radix(at, 16).ok()? == port;
    fields.get(9).copied().filter(|_| is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn our_own_listener_is_of_our_group_and_of_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let group = rustix::process::getpgrp().as_raw_pid().cast_unsigned();
        assert!(is_of_group(port, group).unwrap());
        assert!(!is_of_group(port, group + 1).unwrap());
        drop(listener);
        assert!(!is_of_group(port, group).unwrap(), "nobody listens");
    }
}

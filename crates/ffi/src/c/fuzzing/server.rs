//! Calls of servers.

use super::{CALLS, Script, told, with_room};
use crate::c::*;
use serde_json::Value;
use std::ptr;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// At some paths one request at a time, and few sessions.
const SETTINGS: &str = "lease.keys = \"none\"\nlearned.state = \"none\"\nadmin.listen = \"off\"\nlog.filter = \"off\"\n\
                        [[route]]\nmatch = \"GET /hold\"\nmode = 1\n[[session]]\nkind = \"visit\"\n\
                        [gate]\nsession_law = \"static\"\nstatic_sessions = 4\n";
/// Room for every answer and for the state.
const ROOM: usize = 1 << 17;
/// How long what has left may hold something: it is let go on another thread.
const LET_GO_WITHIN: Duration = Duration::from_secs(5);

/// One that is open and one that is closed, for all inputs.
struct Servers([*mut ServerHandle; 2]);

// SAFETY: the library says that any thread may use a server.
unsafe impl Send for Servers {}
// SAFETY: the same.
unsafe impl Sync for Servers {}

static SERVERS: LazyLock<Servers> = LazyLock::new(|| {
    let servers =
        [(); 2].map(|()| unsafe { suimon_server_open(SETTINGS.as_ptr(), SETTINGS.len(), ptr::null_mut()) });
    assert!(servers.iter().all(|server| !server.is_null()), "the settings are right");
    unsafe { suimon_server_close(servers[1]) };
    Servers(servers)
});

// SAFETY, in all of this file: servers that this library has given or NULL, bytes with their length, and places of
// the function's own.

pub(super) fn play(mut script: Script<'_>) {
    let [open, closed] = SERVERS.0;
    let mut requests = Vec::new();
    for _ in 0..CALLS {
        let Some(function) = script.next_of(17) else { break };
        let server = match script.byte() {
            255 => ptr::null_mut(),
            254 => closed,
            _ => open,
        };
        call(function, server, &mut requests, &mut script);
    }
    end(open, &requests);
}

fn call(function: u8, server: *mut ServerHandle, requests: &mut Vec<u64>, script: &mut Script<'_>) {
    match function {
        0..=2 => {
            let head = head(script);
            let address: &[u8] = match script.byte() {
                255 => script.text(),
                192.. => b"2001:db8::1",
                _ => b"192.0.2.7",
            };
            let mut request = 0;
            script.with_room(|out| unsafe {
                suimon_server_enter(
                    server,
                    head.as_ptr(),
                    head.len(),
                    address.as_ptr(),
                    address.len(),
                    u32::from(function),
                    &raw mut request,
                    out,
                )
            });
            requests.push(request);
        }
        3 => {
            let mut request = 0;
            script.with_room(|out| unsafe { suimon_server_next(server, 0, &raw mut request, out) });
        }
        4 | 5 => {
            let request = script.one_of(requests);
            let is_bare = function == 4;
            let (status, lines): (u32, &[u8]) = if is_bare {
                (200, b"content-type: text/html\r\n")
            } else {
                (script.number() as u32, script.text())
            };
            script.with_room(|out| unsafe {
                suimon_server_answer(server, request, status, lines.as_ptr(), lines.len(), out)
            });
        }
        6 => {
            let request = script.one_of(requests);
            script.with_room(|out| unsafe { suimon_server_result(server, request, out) });
        }
        7 | 8 => _ = told(unsafe { suimon_server_leave(server, script.one_of(requests)) }),
        9 => _ = told(unsafe { suimon_server_streams(server, script.one_of(requests)) }),
        10..=13 => {
            let request = script.one_of(requests);
            let ended = told(unsafe {
                match function {
                    10 => suimon_server_fail(server, request),
                    11 => suimon_server_end_without(server, request, script.number()),
                    _ => suimon_server_end(server, request),
                }
            });
            let again = told(unsafe { suimon_server_end(server, request) });
            assert!(ended != SUIMON_OK || again == SUIMON_UNKNOWN, "{request} is ended twice");
        }
        14 => {
            let request = script.one_of(requests);
            let mut next = 0;
            script
                .with_room(|out| unsafe { suimon_server_end_and_next(server, request, &raw mut next, out) });
        }
        15 => _ = script.with_room(|out| unsafe { suimon_server_state(server, out) }),
        _ => _ = script.with_room(|out| unsafe { suimon_server_admin(server, out) }),
    }
}

/// Returns the head of a request: any bytes, or one with a path and a line of its own.
fn head(script: &mut Script<'_>) -> Vec<u8> {
    let given = script.text();
    match script.byte() {
        255 => given.to_vec(),
        number => {
            let path: &[u8] =
                [b"/".as_slice(), b"/hold", b"/style.css", b"/items/7"][usize::from(number % 4)];
            [b"GET ", path, b" HTTP/1.1\r\nhost: shop\r\n", given, b"\r\n\r\n"].concat()
        }
    }
}

/// Ends all requests of this input, after which nothing is in flight.
fn end(server: *mut ServerHandle, requests: &[u64]) {
    for request in requests {
        told(unsafe { suimon_server_leave(server, *request) });
        told(unsafe { suimon_server_end(server, *request) });
    }
    let until = Instant::now() + LET_GO_WITHIN;
    loop {
        let mut request = 0;
        let (next, _) =
            with_room(ROOM, |out| unsafe { suimon_server_next(server, 0, &raw mut request, out) });
        assert_eq!(next, SUIMON_NOTHING, "{request} is told after its end");
        let (told, state) = with_room(ROOM, |out| unsafe { suimon_server_state(server, out) });
        assert_eq!(told, SUIMON_OK);
        let state: Value = serde_json::from_slice(&state).expect("it is JSON");
        let routes = state["routes"].as_array().expect("there are routes");
        let is_there =
            |route: &Value| ["in_flight", "queued", "suspended"].iter().any(|what| route[what] != 0);
        if !routes.iter().any(is_there) {
            return;
        }
        assert!(Instant::now() < until, "a slot is kept: {state:#}");
        std::thread::yield_now();
    }
}

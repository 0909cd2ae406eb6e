//! A server, opened and asked as C does it, with a buffer that is large enough unless it is said otherwise.

use std::time::{Duration, Instant};
use suimon::c::*;

/// Room for any answer.
const ROOM: usize = 128 << 10;

/// An open server; closed when it goes.
pub(crate) struct Server(pub(crate) *mut ServerHandle);

/// What a call has returned, the number that it has written, and what is in the buffer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) request: u64,
    pub(crate) text: String,
    /// What was or would have been written, bytes.
    pub(crate) length: usize,
}

// Any thread may use it.
// SAFETY: the library says so of servers.
unsafe impl Sync for Server {}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns what `call` does with room for so many bytes.
pub(crate) fn with_room(room: usize, call: impl FnOnce(*mut Buffer) -> i32) -> (i32, String, usize) {
    let mut bytes = vec![0_u8; room];
    let mut buffer = Buffer { data: bytes.as_mut_ptr(), capacity: room, length: 77 };
    let code = call(&raw mut buffer);
    bytes.truncate(buffer.length);
    (code, String::from_utf8_lossy(&bytes).into_owned(), buffer.length)
}

pub(crate) fn open(settings: &str) -> Result<Server, String> {
    // SAFETY: text with its length, and a buffer.
    opened(|out| unsafe { suimon_server_open(settings.as_ptr(), settings.len(), out) })
}

/// Opens a server of a process whose requests are for paths below another.
pub(crate) fn open_at(settings: &str, mount: &str) -> Result<Server, String> {
    opened(|out| {
        // SAFETY: texts with their lengths, and a buffer.
        unsafe { suimon_server_open_at(settings.as_ptr(), settings.len(), mount.as_ptr(), mount.len(), out) }
    })
}

fn opened(open: impl FnOnce(*mut Buffer) -> *mut ServerHandle) -> Result<Server, String> {
    let mut server = std::ptr::null_mut();
    let (_, why, _) = with_room(ROOM, |out| {
        server = open(out);
        0
    });
    if server.is_null() { Err(why) } else { Ok(Server(server)) }
}

/// Returns settings of a server that keeps nothing and has no admin listener.
pub(crate) fn quiet(settings: &str) -> String {
    format!(
        "lease.keys = \"none\"\nlearned.state = \"none\"\nadmin.listen = \"off\"\nlog.filter = \"warn\"\ntimeouts.drain = \"5s\"\n{settings}"
    )
}

impl Server {
    pub(crate) fn enter_head(&self, head: &str, address: &str, room: usize) -> Told {
        let mut request = 0;
        let (code, text, length) = with_room(room, |out| {
            // SAFETY: a server, texts with their lengths, a number and a buffer.
            unsafe {
                suimon_server_enter(
                    self.0,
                    head.as_ptr(),
                    head.len(),
                    address.as_ptr(),
                    address.len(),
                    0,
                    &raw mut request,
                    out,
                )
            }
        });
        Told { code, request, text, length }
    }

    /// Asks for a path, with more header lines.
    pub(crate) fn enter(&self, path: &str, lines: &str) -> Told {
        self.enter_head(&format!("GET {path} HTTP/1.1\r\nhost: shop\r\n{lines}\r\n"), "192.0.2.7", ROOM)
    }

    pub(crate) fn next(&self, timeout: Duration) -> Told {
        self.next_in(timeout, ROOM)
    }

    pub(crate) fn next_in(&self, timeout: Duration, room: usize) -> Told {
        let mut request = 0;
        let (code, text, length) = with_room(room, |out| {
            // SAFETY: a server, a number and a buffer.
            unsafe { suimon_server_next(self.0, timeout.as_millis() as u32, &raw mut request, out) }
        });
        Told { code, request, text, length }
    }

    pub(crate) fn result(&self, request: u64) -> Told {
        // SAFETY: a server and a buffer.
        let (code, text, length) =
            with_room(ROOM, |out| unsafe { suimon_server_result(self.0, request, out) });
        Told { code, request, text, length }
    }

    pub(crate) fn answer(&self, request: u64, status: u32, lines: &str) -> Told {
        self.answer_in(request, status, lines, ROOM)
    }

    pub(crate) fn answer_in(&self, request: u64, status: u32, lines: &str, room: usize) -> Told {
        let (code, text, length) = with_room(room, |out| {
            // SAFETY: a server, text with its length and a buffer.
            unsafe { suimon_server_answer(self.0, request, status, lines.as_ptr(), lines.len(), out) }
        });
        Told { code, request, text, length }
    }

    pub(crate) fn leave(&self, request: u64) -> i32 {
        // SAFETY: a server.
        unsafe { suimon_server_leave(self.0, request) }
    }

    pub(crate) fn end(&self, request: u64) -> i32 {
        // SAFETY: a server.
        unsafe { suimon_server_end(self.0, request) }
    }

    pub(crate) fn end_and_next(&self, request: u64) -> Told {
        let mut next = 0;
        // SAFETY: as in `enter`.
        let (code, text, length) = with_room(1 << 16, |out| unsafe {
            suimon_server_end_and_next(self.0, request, &raw mut next, out)
        });
        Told { code, request: next, text, length }
    }

    pub(crate) fn streams(&self, request: u64) -> i32 {
        // SAFETY: a server.
        unsafe { suimon_server_streams(self.0, request) }
    }

    pub(crate) fn end_without(&self, request: u64, client_time: Duration) -> i32 {
        // SAFETY: a server.
        unsafe { suimon_server_end_without(self.0, request, client_time.as_nanos() as u64) }
    }

    pub(crate) fn fail(&self, request: u64) -> i32 {
        // SAFETY: a server.
        unsafe { suimon_server_fail(self.0, request) }
    }

    /// Works on a request that was let in, and answers it.
    pub(crate) fn serve(&self, request: u64) {
        assert_eq!(self.answer(request, 200, "content-type: text/html\r\n").code, SUIMON_OK);
        assert_eq!(self.end(request), SUIMON_OK);
    }

    pub(crate) fn close(&self) {
        // SAFETY: a server, which is closed as often as one likes.
        unsafe { suimon_server_close(self.0) };
    }

    pub(crate) fn state(&self) -> serde_json::Value {
        // SAFETY: a server and a buffer.
        let (code, text, _) = with_room(1 << 20, |out| unsafe { suimon_server_state(self.0, out) });
        assert_eq!(code, SUIMON_OK);
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn admin(&self) -> Option<String> {
        // SAFETY: a server and a buffer.
        let (code, text, _) = with_room(100, |out| unsafe { suimon_server_admin(self.0, out) });
        (code == SUIMON_OK).then_some(text)
    }

    /// Returns what is counted of all routes.
    pub(crate) fn count(&self, what: &str) -> u64 {
        let state = self.state();
        let routes = state["routes"].as_array().unwrap();
        routes.iter().map(|route| route[what].as_u64().unwrap_or_else(|| panic!("{what}: {route}"))).sum()
    }
}

/// Waits until it is so.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::yield_now();
    }
}

//! The gateway in the caller's process.

use super::{Buffer, bytes, call, given, room, write};
use crate::code::{Code, Fault};
use crate::out::Out;
use crate::server::Server;
use arc_swap::ArcSwapOption;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Servers that a process may open, one after the other: each leaves a few bytes, so that a call that comes
/// late finds it closed.
const OPENED_MAX: usize = 65_536;

/// All that were opened, so that their bytes are not lost.
static OPENED: Mutex<Vec<&'static ServerHandle>> = Mutex::new(Vec::new());

/// A gateway in this process. Any thread may use it, several at a time.
#[derive(Debug)]
pub struct ServerHandle(ArcSwapOption<Server>);

/// Opens a gateway. `settings`: suimon.toml as text, with the same names as of `suimon serve`; what it says of
/// listen, upstream, nodes and pools, of log.access and traces, is of no account. [admin] listens as usual unless
/// `listen = "off"`. The log goes to standard error as `log.filter` says; the first server of a process decides.
///
/// Returns NULL on failure, with all that is wrong as text in `error`, which may be NULL. Starts one background
/// thread (two with the admin listener), and others for moments in which files are written.
///
/// A process that forks has no gateway in the child.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_open(
    settings: *const u8,
    length: usize,
    error: *mut Buffer,
) -> *mut ServerHandle {
    // SAFETY: the caller promises the same; nothing is read of a text without bytes.
    unsafe { suimon_server_open_at(settings, length, ptr::null(), 0, error) }
}

/// Opens a gateway as suimon_server_open does, of a process all of whose requests are for paths below
/// `mount_path`, such as "/shop": it stands for waiting_room.base_path where the settings do not give that.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_open_at(
    settings: *const u8,
    length: usize,
    mount_path: *const u8,
    mount_path_length: usize,
    error: *mut Buffer,
) -> *mut ServerHandle {
    // SAFETY: the caller promises a buffer, or NULL.
    let error = unsafe { room(error) };
    let mut opened = ptr::null_mut();
    call(error, |_| {
        // SAFETY: the caller promises so many bytes of each.
        let (settings, mount_path) = unsafe {
            (bytes(settings, length, "settings")?, bytes(mount_path, mount_path_length, "mount_path")?)
        };
        opened =
            ptr::from_ref(open(text(settings, "settings")?, text(mount_path, "mount_path")?)?).cast_mut();
        Ok(Code::Ok)
    });
    opened
}

fn text<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, Fault> {
    str::from_utf8(bytes).map_err(|error| Fault::invalid(format!("{name}: {error}")))
}

fn open(settings: &str, mount_path: &str) -> Result<&'static ServerHandle, Fault> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if opened.len() >= OPENED_MAX {
        return Err(Fault::invalid(format!(
            "a process opens at most {OPENED_MAX} servers, one after the other"
        )));
    }
    let server = Server::open(settings, mount_path).map_err(Fault::invalid)?;
    let handle: &'static ServerHandle =
        Box::leak(Box::new(ServerHandle(ArcSwapOption::from_pointee(server))));
    opened.push(handle);
    Ok(handle)
}

/// Does something with an open server.
///
/// # Safety
/// `server` is NULL, or was returned by `suimon_server_open` or `suimon_server_open_at`.
unsafe fn with(
    server: *const ServerHandle,
    out: Option<Out<'_>>,
    work: impl FnOnce(&Server, &mut Option<Out<'_>>) -> Result<Code, Fault>,
) -> i32 {
    call(out, |out| {
        // SAFETY: it is NULL, or one of those that are never freed.
        let handle = unsafe { server.as_ref() }.ok_or(Fault::invalid("server: NULL"))?;
        let server = handle.0.load();
        work(server.as_ref().ok_or(Fault::Closed)?, out)
    })
}

/// Takes in a request, before it is worked on.
///
/// `head`: its head as HTTP/1.1 has it, "GET /a?b=1 HTTP/1.1\r\nhost: shop\r\n...\r\n\r\n", up to 64 KiB and 256
/// lines, whichever protocol it came by. `address`: the client's, "192.0.2.7" or "2001:db8::1", in brackets and with
/// a port where proxies write it so; what is none of these is an unknown client, and all unknown ones are taken for
/// one network. `is_tls`: not 0 if it came by TLS. `request` gets a number for the calls below.
///
/// SUIMON_OK: it is let in now; the buffer has lines "name: value\r\n" for the application (x-request-id, and
/// where somebody waits, it waited itself, or it is to pause inside, suimon-waiting, suimon-held and suimon-pause).
/// To be ended by suimon_server_end.
/// SUIMON_WAITS: the result comes by suimon_server_next, perhaps to another thread before this one has returned: hold
/// a lock until the number is put away, or keep what is told of numbers that are not known yet.
/// SUIMON_ANSWERED: the buffer has the whole answer, "HTTP/1.1 503 ...\r\n...\r\n\r\nbody". The request is over.
/// SUIMON_TOO_SMALL: the result is kept; suimon_server_result tells it.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_enter(
    server: *const ServerHandle,
    head: *const u8,
    head_length: usize,
    address: *const u8,
    address_length: usize,
    is_tls: u32,
    request: *mut u64,
    out: *mut Buffer,
) -> i32 {
    // SAFETY: the caller promises a server, bytes, a place for a number and a buffer.
    unsafe {
        with(server, room(out), |server, out| {
            if request.is_null() {
                return Err(Fault::invalid("request: NULL"));
            }
            let (head, address) =
                (bytes(head, head_length, "head")?, bytes(address, address_length, "address")?);
            let mut number = 0;
            let code = server.enter(head, address, is_tls != 0, &mut number, given(out)?);
            write(request, number);
            code
        })
    }
}

/// Waits up to `timeout_ms` milliseconds for a request that waited to be let in (SUIMON_OK) or answered
/// (SUIMON_ANSWERED), and says which; the buffer is as after suimon_server_enter. Any thread may call it, usually
/// one does in a loop, until SUIMON_CLOSED. SUIMON_NOTHING: nothing within the time.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_next(
    server: *const ServerHandle,
    timeout_ms: u32,
    request: *mut u64,
    out: *mut Buffer,
) -> i32 {
    // SAFETY: the caller promises a server, a place for a number and a buffer.
    unsafe {
        with(server, room(out), |server, out| {
            if request.is_null() {
                return Err(Fault::invalid("request: NULL"));
            }
            let mut number = 0;
            let code = server.next(Duration::from_millis(timeout_ms.into()), &mut number, given(out)?);
            write(request, number);
            code
        })
    }
}

/// Tells what suimon_server_enter, suimon_server_next, suimon_server_end_and_next or suimon_server_answer could not
/// write because the buffer was too small, with the result that they would have had. SUIMON_WAITS: it is not decided yet. SUIMON_NOTHING:
/// all was told.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_result(
    server: *const ServerHandle,
    request: u64,
    out: *mut Buffer,
) -> i32 {
    // SAFETY: the caller promises a server and a buffer.
    unsafe { with(server, room(out), |server, out| server.result(request, given(out)?)) }
}

/// Says that the client of a request has left. One that waits is over, and so is one whose result was not told
/// yet: suimon_server_next will not name it. One that was let in keeps its slot until suimon_server_end.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_leave(server: *const ServerHandle, request: u64) -> i32 {
    // SAFETY: the caller promises a server.
    unsafe { with(server, None, |server, _| server.leave(request)) }
}

/// Says that the head of the application's answer is about to go out: its status, and those of its header lines,
/// "name: value\r\n", that are named set-cookie, cache-control, cdn-cache-control, surrogate-control,
/// content-type, x-accel-buffering or suimon-*; with `[response]` headers in the settings, also those of their names.
///
/// The buffer gets what to change, a line each: "+name: value\r\n" add, "=name: value\r\n" set (all others of the
/// name go), "-name\r\n" take out. Once for each request: what is said later changes nothing.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_answer(
    server: *const ServerHandle,
    request: u64,
    status: u32,
    lines: *const u8,
    length: usize,
    out: *mut Buffer,
) -> i32 {
    // SAFETY: the caller promises a server, bytes and a buffer.
    unsafe {
        with(server, room(out), |server, out| {
            server.answer(request, status, bytes(lines, length, "lines")?, given(out)?)
        })
    }
}

/// Asks whether the answer that suimon_server_answer told of is a stream, or opens one: event streams, gRPC, what
/// is not to be buffered (x-accel-buffering: no), and upgrades (101). SUIMON_OK: it is, and needs a slot until its
/// head alone, so call suimon_server_end now and go on with the answer. SUIMON_NOTHING: it is not, or has no head yet.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_streams(server: *const ServerHandle, request: u64) -> i32 {
    // SAFETY: the caller promises a server.
    unsafe { with(server, None, |server, _| server.streams(request)) }
}

/// Says that the work on a request is over: its slot is given back. Without suimon_server_answer before, the
/// process has failed to answer. Each request that was let in is ended exactly once, by this function,
/// suimon_server_end_without or suimon_server_fail; later calls get SUIMON_UNKNOWN. A request whose result did not fit
/// into the buffer can be given up with it, too.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_end(server: *const ServerHandle, request: u64) -> i32 {
    // SAFETY: the caller promises a server.
    unsafe { with(server, None, |server, _| server.end(request)) }
}

/// As suimon_server_end, and then as suimon_server_next without waiting: `next` is a request that waited, mostly the
/// one that gets the slot, and what is returned is its result. No other thread is woken for it. SUIMON_NOTHING:
/// nobody is to be told of. The request is over, unless it is SUIMON_UNKNOWN or a place is NULL (SUIMON_INVALID).
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_end_and_next(
    server: *const ServerHandle,
    request: u64,
    next: *mut u64,
    out: *mut Buffer,
) -> i32 {
    // SAFETY: the caller promises a server, a place for a number and a buffer.
    unsafe {
        with(server, room(out), |server, out| {
            if next.is_null() {
                return Err(Fault::invalid("next: NULL"));
            }
            let mut number = 0;
            let code = server.end_and_next(request, &mut number, given(out)?);
            write(next, number);
            code
        })
    }
}

/// As suimon_server_end, where the client was waited for `client_time` nanoseconds of the work: that is no time of the
/// application's. To be called once a client takes its answer slowly: the slot goes to another request, and the
/// rest of the answer needs none.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_end_without(
    server: *const ServerHandle,
    request: u64,
    client_time: u64,
) -> i32 {
    // SAFETY: the caller promises a server.
    unsafe { with(server, None, |server, _| server.end_without(request, Duration::from_nanos(client_time))) }
}

/// As suimon_server_end, where the work has failed, whatever suimon_server_answer has said: perhaps in the middle of
/// its answer.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_fail(server: *const ServerHandle, request: u64) -> i32 {
    // SAFETY: the caller promises a server.
    unsafe { with(server, None, |server, _| server.fail(request)) }
}

/// Tells what `GET /api/state` of the admin listener answers, as JSON.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_state(server: *const ServerHandle, json: *mut Buffer) -> i32 {
    // SAFETY: the caller promises a server and a buffer.
    unsafe { with(server, room(json), |server, out| server.state(given(out)?)) }
}

/// Tells where the admin listener really is, as text: "127.0.0.1:8001" or "unix:/path". SUIMON_NOTHING: it is off.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_admin(server: *const ServerHandle, address: *mut Buffer) -> i32 {
    // SAFETY: the caller promises a server and a buffer.
    unsafe { with(server, room(address), |server, out| server.admin(given(out)?)) }
}

/// Refuses what comes, waits for what is under way up to `timeouts.drain`, writes what outlives the process, and
/// ends all threads. Meanwhile other threads go on with all other calls, so that what is under way can end; what
/// is not ended then is abandoned. A second call waits for the first. Every later one gets SUIMON_CLOSED. NULL is
/// nothing to close.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_server_close(server: *mut ServerHandle) {
    // SAFETY: it is NULL, or one of those that are never freed.
    let Some(handle) = (unsafe { server.as_ref() }) else { return };
    let closed = catch_unwind(AssertUnwindSafe(|| {
        let server: Option<Arc<Server>> = handle.0.load_full();
        if let Some(server) = server {
            server.close();
        }
        handle.0.store(None);
    }));
    if closed.is_err() {
        tracing::error!("the gateway has failed while it was closed");
    }
}

//! A gateway inside this process, with its threads and the requests that the process has with it.

use crate::code::{Code, Fault};
use crate::head;
use crate::operator::Operator;
use crate::out::Out;
use crate::requests::Requests;
use crate::waiting::Waiting;
use http::{Method, StatusCode};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use suimon_admin::Watch;
use suimon_identity::keys::Keys;
use suimon_proxy::{Admitted, Door, Embedded};
use suimon_settings::{Settings, StatePath, state_folder};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;

/// Threads that wait for the disk, beside the one that serves.
const DISK_THREADS_MAX: usize = 2;
/// How long such a thread stays when there is nothing to write.
const DISK_THREAD_STAYS: Duration = Duration::from_secs(1);
/// How long the runtime may take to end once all is over.
const END_WITHIN: Duration = Duration::from_secs(2);
/// The file of keys in the state folder.
const KEYS: &str = "lease.keys";

/// See the module.
#[derive(Debug)]
pub(crate) struct Server {
    runtime: Handle,
    door: Door,
    requests: Arc<Requests>,
    /// Of the next request.
    number: AtomicU64,
    shown: Shown,
    draining: Arc<AtomicBool>,
    running: Mutex<Option<Running>>,
}

/// What is shown of the gateway.
struct Shown {
    watch: Watch,
    admin: Option<String>,
}

/// What must be ended.
#[derive(Debug)]
struct Running {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    gateway: JoinHandle<()>,
}

impl Server {
    /// Opens the gateway that `settings` describe, of a process whose requests are for paths below `mount_path`.
    ///
    /// # Errors
    /// A text with everything that is wrong.
    pub(crate) fn open(settings: &str, mount_path: &str) -> Result<Server, String> {
        let settings =
            Settings::of_file("settings", settings).and_then(|settings| settings.mounted_at(mount_path));
        let mut settings = settings.map_err(|faults| faults.to_string())?;
        log(&settings.log_filter)?;
        settings.proxy.lease.keys_file = keys(&settings.lease_keys);
        let has_admin = settings.admin_listen.is_some() || settings.admin_access.socket.is_some();
        let runtime = Builder::new_multi_thread()
            .worker_threads(if has_admin { 2 } else { 1 })
            .max_blocking_threads(DISK_THREADS_MAX)
            .thread_keep_alive(DISK_THREAD_STAYS)
            .thread_name("suimon")
            .enable_all()
            .build()
            .map_err(|error| format!("no thread can be started: {error}"))?;
        let inside = runtime.enter();
        let requests_max = settings.proxy.limits.connections;
        let embedded = Embedded::open(settings.proxy.clone()).map_err(|error| error.to_string())?;
        let draining = Arc::new(AtomicBool::new(false));
        let operator = runtime.block_on(Operator::bind(&settings, &embedded.observer(), &draining))?;
        let Operator { watch, listener, address } = operator;
        let door = embedded.door();
        let (stop, stopped) = oneshot::channel();
        let gateway = runtime.spawn(embedded.run(async { _ = stopped.await }));
        let watched = watch.clone();
        runtime.spawn(async move {
            let Some(listener) = listener else { return watched.run().await };
            // It answers to the very end, so that a drain can be watched; then its runtime ends.
            if let Err(error) = watched.serve(listener, std::future::pending()).await {
                tracing::error!(%error, "the admin listener has failed; the gateway continues without it");
            }
        });
        drop(inside);
        Ok(Server {
            runtime: runtime.handle().clone(),
            door,
            requests: Arc::new(Requests::new(requests_max)),
            number: AtomicU64::new(1),
            shown: Shown { watch, admin: address },
            draining,
            running: Mutex::new(Some(Running { runtime, stop, gateway })),
        })
    }

    /// Takes in a request, and tells what became of it if that is known at once.
    pub(crate) fn enter(
        &self,
        head: &[u8],
        address: &[u8],
        is_tls: bool,
        number: &mut u64,
        out: &mut Out<'_>,
    ) -> Result<Code, Fault> {
        let (head, address) = (head::request(head)?, head::address(address));
        let to_head = head.method == Method::HEAD;
        *number = self.number.fetch_add(1, Relaxed);
        if self.requests.is_full(*number) {
            return self.requests.at_once(*number, self.door.refuse(&head), to_head, out);
        }
        // Timers are those of the runtime.
        let _inside = self.runtime.enter();
        let door = self.door.clone();
        let entering = async move { door.enter(address, is_tls, head).await };
        let mut waiting = Waiting::new(entering, *number, to_head, self.requests.queue());
        match waiting.ask() {
            Poll::Ready(entered) => self.requests.at_once(*number, entered, to_head, out),
            Poll::Pending => {
                self.requests.waits(*number, waiting);
                Ok(Code::Waits)
            }
        }
    }

    /// Waits for a result of a request that waited, and tells it.
    pub(crate) fn next(&self, timeout: Duration, number: &mut u64, out: &mut Out<'_>) -> Result<Code, Fault> {
        let _inside = self.runtime.enter();
        self.requests.next(timeout, number, out)
    }

    /// Tells what is still to be told of a request.
    pub(crate) fn result(&self, number: u64, out: &mut Out<'_>) -> Result<Code, Fault> {
        let _inside = self.runtime.enter();
        self.requests.result(number, out)
    }

    /// Takes note that the client of a request has left.
    pub(crate) fn leave(&self, number: u64) -> Result<Code, Fault> {
        let _bell = self.requests.queue().hold_bell();
        self.requests.leave(number).map(|()| Code::Ok)
    }

    /// Takes note of the head of an answer, and tells what to change in it.
    pub(crate) fn answer(
        &self,
        number: u64,
        status: u32,
        lines: &[u8],
        out: &mut Out<'_>,
    ) -> Result<Code, Fault> {
        let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.ok_or(Fault::invalid("status: must be from 100 to 999"))?;
        self.requests.answer(number, status, head::lines(lines)?, out)
    }

    /// Tells whether the answer to a request is a stream.
    pub(crate) fn streams(&self, number: u64) -> Result<Code, Fault> {
        self.requests.streams(number).map(|is_stream| if is_stream { Code::Ok } else { Code::Nothing })
    }

    /// Ends a request.
    pub(crate) fn end(&self, number: u64) -> Result<Code, Fault> {
        self.end_without(number, Duration::ZERO)
    }

    /// Ends a request whose client was waited for.
    pub(crate) fn end_without(&self, number: u64, client_time: Duration) -> Result<Code, Fault> {
        let _bell = self.requests.queue().hold_bell();
        self.requests.end(number, |admitted| admitted.end_without(client_time)).map(|()| Code::Ok)
    }

    /// Ends a request, and tells the result of one that waited, if there is one.
    pub(crate) fn end_and_next(
        &self,
        ended: u64,
        number: &mut u64,
        out: &mut Out<'_>,
    ) -> Result<Code, Fault> {
        let _inside = self.runtime.enter();
        let bell = self.requests.queue().hold_bell();
        self.requests.end(ended, Admitted::end)?;
        let told = self.requests.next(Duration::ZERO, number, out)?;
        if told != Code::Nothing {
            bell.spare_one();
        }
        Ok(told)
    }

    /// Ends a request on which the work has failed.
    pub(crate) fn fail(&self, number: u64) -> Result<Code, Fault> {
        let _bell = self.requests.queue().hold_bell();
        self.requests.end(number, Admitted::fail).map(|()| Code::Ok)
    }

    /// Tells what `GET /api/state` answers.
    pub(crate) fn state(&self, out: &mut Out<'_>) -> Result<Code, Fault> {
        let _inside = self.runtime.enter();
        let state = serde_json::to_vec(&self.shown.watch.state()).expect("a state has no keys but texts");
        Ok(if out.put(&state) { Code::Ok } else { Code::TooSmall })
    }

    /// Tells where the admin listener is.
    pub(crate) fn admin(&self, out: &mut Out<'_>) -> Result<Code, Fault> {
        let Some(address) = &self.shown.admin else { return Ok(Code::Nothing) };
        Ok(if out.put(address.as_bytes()) { Code::Ok } else { Code::TooSmall })
    }

    /// Drains and ends all threads. Only the first call does something; others wait for it.
    pub(crate) fn close(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Running { runtime, stop, gateway }) = running.take() else { return };
        self.draining.store(true, Relaxed);
        // If it has ended already, nobody hears it.
        let _ = stop.send(());
        let inside = runtime.enter();
        self.requests.ask_until(|| gateway.is_finished());
        drop(inside);
        if let Err(error) = runtime.block_on(gateway) {
            tracing::error!(%error, "the gateway has failed while it ended");
        }
        self.requests.close();
        runtime.shutdown_timeout(END_WITHIN);
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").field("admin", &self.admin).finish_non_exhaustive()
    }
}

/// Begins to log to standard error. Only the first server of a process decides what.
fn log(filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("log.filter = {filter:?}: {error}"))?;
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    // It is begun already where another server was opened before.
    let _ = lines.with_env_filter(filter).try_init();
    Ok(())
}

/// Returns the file of keys that sign leases. Where the state folder cannot be used, there is none.
fn keys(kept: &StatePath) -> Option<PathBuf> {
    match kept {
        StatePath::Nowhere => return None,
        StatePath::File(path) => return Some(path.clone()),
        StatePath::StateFolder => {}
    }
    let folder = state_folder()?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    let path = folder.join(KEYS);
    let opened = match made {
        Ok(()) => Keys::open(&path).map_err(|error| error.to_string()),
        Err(error) => Err(format!("{}: {error}", folder.display())),
    };
    match opened {
        Ok(_) => Some(path),
        Err(error) => {
            tracing::warn!("{error}, so leases end with this process; name a file with lease.keys");
            None
        }
    }
}

//! SIGINT and SIGTERM: the first signal starts an orderly shutdown, the second ends the process at
//! once.

use std::io;
use std::sync::LazyLock;
use std::thread;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Turns true at the first signal. Its first use starts listening for signals.
static ASKED: LazyLock<watch::Sender<bool>> = LazyLock::new(|| {
    let asked = watch::Sender::new(false);
    if let Err(error) = listen_on_a_thread(asked.clone()) {
        eprintln!("signals cannot be listened for ({error}): one ends the process at once");
    }
    asked
});

/// Begins to listen: from now on one signal alone does not end the process. Call this before
/// announcing that the process runs, so that an immediate signal is not missed.
pub(crate) fn listen() {
    LazyLock::force(&ASKED);
}

/// Returns whether the first signal has arrived.
pub(crate) fn asked() -> bool {
    *ASKED.borrow()
}

/// Waits for the first signal.
pub(crate) async fn first() {
    let mut asked = ASKED.subscribe();
    asked.wait_for(|asked| *asked).await.expect("the sender is a static");
}

/// Listens on a thread of its own, so that the second signal works even if all other threads are
/// busy.
fn listen_on_a_thread(asked: watch::Sender<bool>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _inside = runtime.enter();
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
    };
    thread::Builder::new().name("signals".to_string()).spawn(move || heed(&runtime, signals, &asked))?;
    Ok(())
}

fn heed(runtime: &Runtime, [mut interrupt, mut terminate]: [Signal; 2], asked: &watch::Sender<bool>) {
    runtime.block_on(async {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if asked.send_replace(true) {
                eprintln!("told twice: ending at once");
                std::process::exit(1);
            }
        }
    });
}

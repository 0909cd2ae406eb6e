//! SIGINT and SIGTERM: the first asks to end in good order, the second ends the process at once.

use std::io;
use std::sync::LazyLock;
use std::thread;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Turns true at the first signal. Signals are listened for from when it is first looked at.
static ASKED: LazyLock<watch::Sender<bool>> = LazyLock::new(|| {
    let asked = watch::Sender::new(false);
    if let Err(error) = listen_on_a_thread(asked.clone()) {
        eprintln!("signals cannot be listened for ({error}): one ends the process at once");
    }
    asked
});

/// Begins to listen: from here on a signal does not end the process by itself. To be called before
/// anybody is told that the process runs, so that a signal that follows at once finds it listening.
pub(crate) fn listen() {
    LazyLock::force(&ASKED);
}

/// Returns whether the first signal has come.
pub(crate) fn asked() -> bool {
    *ASKED.borrow()
}

/// Waits for the first signal.
pub(crate) async fn first() {
    let mut asked = ASKED.subscribe();
    asked.wait_for(|asked| *asked).await.expect("the sender is a static");
}

/// Listens on a thread of its own, so that the second signal is heard however busy the rest is.
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

//! SIGINT, SIGTERM and SIGHUP: the first asks to end in good order, the second ends the process at once.

use std::sync::LazyLock;
use tokio::sync::watch;

/// Turns true at the first signal. The handler is set when it is first looked at.
static ASKED: LazyLock<watch::Sender<bool>> = LazyLock::new(|| {
    let asked = watch::Sender::new(false);
    let told = asked.clone();
    let outcome = ctrlc::set_handler(move || {
        if told.send_replace(true) {
            eprintln!("told twice: ending at once");
            std::process::exit(1);
        }
    });
    if let Err(error) = outcome {
        eprintln!("signals cannot be caught ({error}): one ends the process at once, without draining");
    }
    asked
});

/// Begins to listen: from here on a signal does not end the process by itself. To be called before anybody is told that
/// the process runs, so that a signal that follows at once finds it listening.
pub(crate) fn listen() {
    LazyLock::force(&ASKED);
}

/// Waits for the first signal.
pub(crate) async fn first() {
    let mut asked = ASKED.subscribe();
    asked.wait_for(|asked| *asked).await.expect("the sender is a static");
}

//! A picture on a screen of its own, which leaves the terminal as it was.

use super::{CLEAR_BELOW, Line, Size, TOGETHER, colours_are_wanted, put};
use rustix::process::{Pid, getpgrp, getpid, getsid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, channel};

/// Switches to the alternate screen, without a cursor, and without wrapping: a line that is too long after
/// all must not move the others.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Goes to the first line, to draw a picture over the previous one. Nothing flickers, because
/// nothing is wiped before.
const HOME: &str = "\x1b[H";
/// Keys that were pressed and not yet read.
const KEYS_MAX: usize = 16;

/// What to restore at the end: set while a screen is shown. A static, as the hook of panics needs it.
static SHOWN: Mutex<Option<Before>> = Mutex::new(None);

/// How the terminal was.
struct Before {
    keyboard: Option<Termios>,
}

/// What happened to the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The picture is to be drawn again: the size is another, or the process was stopped.
    Changed,
    /// Ctrl-C, `q`, or the terminal is gone.
    End,
}

/// The alternate screen on standard output. Dropping this restores the previous content.
#[derive(Debug)]
pub(crate) struct Screen {
    resized: Signal,
    stopped: Signal,
    continued: Signal,
    ended: [Signal; 3],
    keys: Receiver<u8>,
    is_stopped: bool,
}

impl Screen {
    /// Switches to the alternate screen, which is left in case of a panic, too.
    pub(crate) fn enter() -> io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let told = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                told(panic);
            }));
        });
        let screen = Screen {
            resized: signal(SignalKind::window_change())?,
            stopped: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            ended: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
            keys: keys(),
            is_stopped: false,
        };
        enter()?;
        Ok(screen)
    }

    /// Draws these lines, or the first ones if not all fit.
    pub(crate) fn draw(&self, lines: &[Line], size: Size) -> io::Result<()> {
        if self.is_stopped {
            return Ok(());
        }
        put(io::stdout(), &frame(lines, size, colours_are_wanted()))
    }

    /// Returns what happens next to the terminal. Dropping the future loses nothing.
    pub(crate) async fn event(&mut self) -> io::Result<Event> {
        let [interrupt, terminate, hangup] = &mut self.ended;
        loop {
            tokio::select! {
                _ = self.resized.recv() => return Ok(Event::Changed),
                _ = self.continued.recv() => {
                    self.is_stopped = false;
                    enter()?;
                    return Ok(Event::Changed);
                }
                _ = self.stopped.recv() => self.is_stopped = stop(),
                _ = interrupt.recv() => return Ok(Event::End),
                _ = terminate.recv() => return Ok(Event::End),
                _ = hangup.recv() => return Ok(Event::End),
                Some(key) = self.keys.recv() => if matches!(key, b'q' | b'Q') { return Ok(Event::End) },
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Returns what draws the lines over the last picture.
fn frame(lines: &[Line], size: Size, colours: bool) -> String {
    let drawn = lines.iter().take(size.lines).map(|line| line.drawn(size.columns, colours));
    // No line end after the last line: it would scroll a full screen.
    let picture = drawn.collect::<Vec<_>>().join("\r\n");
    format!("{}{HOME}{picture}{CLEAR_BELOW}{}", TOGETHER[0], TOGETHER[1])
}

fn enter() -> io::Result<()> {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let keyboard = silence();
    // After a stop that nobody hears of (SIGSTOP) the keyboard is still silenced: what it was before counts.
    shown.get_or_insert(Before { keyboard });
    put(io::stdout(), ENTER)
}

fn leave() {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = shown.take() {
        // A closed terminal needs no restoring.
        let _ = put(io::stdout(), LEAVE);
        if let Some(keyboard) = before.keyboard {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &keyboard);
        }
    }
}

/// Lets keys arrive at once and leave no trace in the picture, and returns how it was before. Ctrl-C and
/// Ctrl-Z remain what they are.
fn silence() -> Option<Termios> {
    let before = tcgetattr(io::stdin()).ok()?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    silent.special_codes[SpecialCodeIndex::VMIN] = 1;
    silent.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(io::stdin(), OptionalActions::Now, &silent).ok()?;
    Some(before)
}

/// Returns the keys that are pressed; none if standard input is no terminal.
fn keys() -> Receiver<u8> {
    let (sender, receiver) = channel(KEYS_MAX);
    if io::stdin().is_terminal() {
        let read = move || {
            let mut key = [0];
            loop {
                match rustix::io::read(io::stdin(), &mut key) {
                    Ok(1) if sender.blocking_send(key[0]).is_ok() => {}
                    Err(rustix::io::Errno::INTR) => {}
                    _ => return,
                }
            }
        };
        // Without it there are no keys, but there is Ctrl-C.
        let _ = thread::Builder::new().name("keys".to_owned()).spawn(read);
    }
    receiver
}

/// Leaves the screen and stops, as somebody has asked with Ctrl-Z. Returns whether that was done: without
/// a shell that could continue the process it goes on.
fn stop() -> bool {
    if getsid(None).is_ok_and(|session: Pid| session == getpgrp()) {
        return false;
    }
    leave();
    kill_process(getpid(), rustix::process::Signal::STOP).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_goes_home_and_wipes_only_what_is_left_of_the_last() {
        let lines: Vec<Line> = ["one", "two", "three"].map(|text| Line::default().plain(text)).into();
        let frame = frame(&lines, Size { columns: 10, lines: 2 }, false);
        assert_eq!(frame, "\x1b[?2026h\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\x1b[?2026l");
    }
}

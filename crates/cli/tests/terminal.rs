//! `suimon status --watch` on a real pseudo-terminal.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Backend, Gateway, LONG, suimon};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const BEGIN: &str = "\x1b[?2026h\x1b[H";
const END: &str = "\x1b[J\x1b[?2026l";

/// A command on a terminal of its own.
struct Terminal {
    keyboard: File,
    /// The side of the command, kept open to see how the command leaves it.
    side: OwnedFd,
    screen: Receiver<Vec<u8>>,
    shown: String,
    process: Child,
}

impl Terminal {
    fn start(args: &[&str], columns: u16, lines: u16) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap();
        let side = open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&ours, Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = suimon(args);
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.stdin(side.try_clone().unwrap()).stdout(side.try_clone().unwrap());
        let process = command.spawn().unwrap();
        let (sender, screen) = channel();
        let mut reader = File::from(ours.try_clone().unwrap());
        thread::spawn(move || {
            let mut read = vec![0; 1 << 16];
            // It ends with the test's other side.
            while let Ok(length @ 1..) = reader.read(&mut read) {
                if sender.send(read[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { keyboard: File::from(ours), side, screen, shown: String::new(), process }
    }

    /// Reads on until this is true of all that was written so far.
    fn wait_for(&mut self, what: &str, is_true: impl Fn(&str) -> bool) {
        let until = Instant::now() + LONG;
        let mut bytes = std::mem::take(&mut self.shown).into_bytes();
        loop {
            // What is half a letter now is whole with the next bytes.
            if let Ok(shown) = std::str::from_utf8(&bytes)
                && is_true(shown)
            {
                self.shown = shown.to_owned();
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(read) => bytes.extend(read),
                Err(_) => panic!("{what} did not come: {:?}", String::from_utf8_lossy(&bytes)),
            }
        }
    }

    fn press(&mut self, key: &[u8]) {
        self.keyboard.write_all(key).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        self.process.kill().unwrap();
        panic!("it did not end");
    }
}

fn echoes(side: &OwnedFd) -> bool {
    tcgetattr(side).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
}

#[test]
fn a_picture_is_drawn_over_without_wiping_and_the_terminal_is_left_as_it_was() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    let admin = gateway.admin.to_string();
    let mut terminal = Terminal::start(&["status", "--watch", "--admin", &admin], 80, 30);
    terminal.wait_for("two pictures of the gateway", |shown| {
        shown.split(END).filter(|frame| frame.contains("no gated request so far")).count() > 1
    });
    assert!(!echoes(&terminal.side), "a key must not leave a trace in the picture");
    terminal.press(b"\n");
    let size = Winsize { ws_col: 40, ws_row: 10, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal.keyboard, size).unwrap();
    let before = terminal.shown.len();
    terminal.wait_for("a picture of the new size", |shown| {
        shown[before..]
            .split(END)
            .any(|frame| frame.contains("suimon ") && frame.lines().count() <= 10 && frame.starts_with(BEGIN))
    });

    terminal.press(b"q");
    assert!(terminal.end().success());
    terminal.wait_for("the screen that was there before", |shown| shown.ends_with("\x1b[?1049l"));
    assert!(echoes(&terminal.side), "the keyboard is as it was");

    let shown = std::mem::take(&mut terminal.shown);
    let frames = shown.strip_prefix("\x1b[?1049h\x1b[?25l\x1b[?7l").unwrap();
    let (frames, left) = frames.rsplit_once(END).unwrap();
    assert_eq!(left, "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l");
    for frame in frames.split(END) {
        let picture = frame.strip_prefix(BEGIN).unwrap_or_else(|| panic!("begins elsewhere: {frame:?}"));
        for wipes in ["\x1b[2J", "\x1b[J", "\x1b[2K", "\x1b[1J", "\x1bc"] {
            assert!(!picture.contains(wipes), "wiped before it is drawn: {picture:?}");
        }
        assert!(picture.lines().all(|line| line.trim_end_matches('\r').ends_with("\x1b[K")), "{picture:?}");
    }
}

#[test]
fn a_gateway_that_goes_is_told_above_what_it_last_said_and_sigterm_leaves_the_screen() {
    let backend = Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    let admin = gateway.admin.to_string();
    let mut terminal = Terminal::start(&["status", "--watch", "--admin", &admin], 80, 30);
    terminal.wait_for("a picture of the gateway", |shown| shown.contains("no gated request so far"));
    gateway.process.finish();
    terminal.wait_for("that nobody answers", |shown| {
        shown.split(END).any(|frame| frame.contains("NO ANSWER") && frame.contains("no gated request so far"))
    });
    let pid = rustix::process::Pid::from_child(&terminal.process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(terminal.end().success());
    terminal.wait_for("the screen that was there before", |shown| shown.ends_with("\x1b[?1049l"));
    assert!(echoes(&terminal.side));
}

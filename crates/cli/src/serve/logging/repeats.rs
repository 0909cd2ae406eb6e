//! The same warning many times over: a few of them are written, and then how many more there were.
//!
//! The same are warnings and errors from the same place in the code that give the same `reason`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// So many are written ...
const WRITTEN_MAX: u32 = 5;
/// ... in this time.
const WINDOW: Duration = Duration::from_secs(10);
/// Warnings that are told apart; what is beyond is always written.
const KEYS_MAX: usize = 256;
/// What is kept of a warning, to say which one was repeated, bytes.
const MESSAGE_BYTES_MAX: usize = 200;

/// Holds back what was written often enough. Clones share what they count.
#[derive(Clone, Default)]
pub(super) struct Repeats(Arc<Mutex<HashMap<Key, Repeated>>>);

type Key = (Identifier, String);

struct Repeated {
    since: Instant,
    written: u32,
    held_back: u64,
    message: String,
}

/// How many more there were of a warning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct More {
    pub(super) count: u64,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Repeats {
    /// Returns whether an event is to be written.
    fn passes(&self, now: Instant, key: Key, message: impl FnOnce() -> String) -> bool {
        let mut all = self.lock();
        if !all.contains_key(&key) {
            if all.len() >= KEYS_MAX {
                all.retain(|_, it| it.held_back > 0 || now.duration_since(it.since) < WINDOW);
            }
            if all.len() >= KEYS_MAX {
                return true;
            }
        }
        let it = all.entry(key).or_insert(Repeated {
            since: now,
            written: 0,
            held_back: 0,
            message: String::new(),
        });
        // What was held back is told before another window begins.
        if it.held_back == 0 && now.duration_since(it.since) >= WINDOW {
            (it.since, it.written) = (now, 0);
        }
        if it.written < WRITTEN_MAX {
            it.written += 1;
            return true;
        }
        if it.held_back == 0 {
            it.message = message();
        }
        it.held_back += 1;
        false
    }

    /// Returns what was held back in windows that are over; it is told once.
    pub(super) fn take(&self, now: Instant) -> Vec<More> {
        let mut all = self.lock();
        let over =
            all.iter_mut().filter(|(_, it)| it.held_back > 0 && now.duration_since(it.since) >= WINDOW);
        let more = over.map(|((_, reason), it)| {
            let count = std::mem::take(&mut it.held_back);
            (it.since, it.written) = (now, 0);
            More { count, reason: reason.clone(), message: std::mem::take(&mut it.message) }
        });
        more.collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Repeated>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Filter<S> for Repeats {
    fn enabled(&self, _metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        true
    }

    fn callsite_enabled(&self, _metadata: &'static Metadata<'static>) -> Interest {
        // Not always: then no event would be shown to the next function.
        Interest::sometimes()
    }

    fn event_enabled(&self, event: &Event<'_>, _context: &Context<'_, S>) -> bool {
        if *event.metadata().level() > Level::WARN {
            return true;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let key = (event.metadata().callsite(), said.reason);
        said.is_more || self.passes(Instant::now(), key, || said.message)
    }
}

/// What tells a warning from others.
#[derive(Default)]
struct Said {
    reason: String,
    message: String,
    /// Whether it is about others that were held back.
    is_more: bool,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = shortened(format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "reason" {
            self.reason = shortened(value.to_owned());
        }
    }

    fn record_u64(&mut self, field: &Field, _value: u64) {
        self.is_more |= field.name() == "more";
    }
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(reason: &str) -> Key {
        struct Here;
        impl tracing::callsite::Callsite for Here {
            fn set_interest(&self, _: Interest) {}
            fn metadata(&self) -> &Metadata<'_> {
                unreachable!("nobody asks")
            }
        }
        static HERE: Here = Here;
        (tracing::callsite::Identifier(&HERE), reason.to_owned())
    }

    #[test]
    fn a_few_are_written_and_the_rest_is_counted_once() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        let came = |at: u64, reason: &str| {
            repeats.passes(start + Duration::from_millis(at), key(reason), || format!("no answer, {at}"))
        };
        let written = (0..100).filter(|at| came(*at, "connect")).count();
        assert_eq!(written, 5);
        assert!(came(100, "timeout"), "another reason is another warning");
        assert_eq!(repeats.take(start + Duration::from_secs(9)), []);
        let more = repeats.take(start + Duration::from_secs(10));
        let told = More { count: 95, reason: "connect".to_owned(), message: "no answer, 5".to_owned() };
        assert_eq!(more, [told]);
        assert_eq!(repeats.take(start + Duration::from_secs(30)), []);
        assert!(came(31_000, "connect"), "after that it is written again");
    }

    #[test]
    fn what_is_told_apart_is_bounded() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        for number in 0..2 * KEYS_MAX {
            assert!(repeats.passes(start, key(&number.to_string()), String::new));
        }
        assert_eq!(repeats.lock().len(), KEYS_MAX);
        repeats.passes(start + WINDOW, key("another"), String::new);
        assert_eq!(repeats.lock().len(), 1, "those that are over make room");
    }
}

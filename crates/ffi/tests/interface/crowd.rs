//! Many threads at once: whatever they do, no slot is lost, and what came is what ended.

use crate::support::{Server, Told, open, quiet, until};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use suimon::c::*;

/// Threads of the process that work on requests.
const WORKERS: u64 = 8;
const REQUESTS: u64 = 100_000;
/// Requests that wait at once: more would only be refused.
const WAITING_MAX: usize = 300;

/// Numbers in their order, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Works on a request that was let in: answers it or not, its client leaves or not, and ends it, sometimes twice.
fn work(server: &Server, request: u64, session: u64, dice: &mut Dice) {
    if dice.roll(10) == 0 {
        assert_eq!(server.leave(request), SUIMON_OK);
    }
    if dice.roll(10) > 0 {
        let status = [200, 200, 200, 302, 404, 500][dice.roll(6) as usize];
        let cookie = format!("set-cookie: JSESSIONID={session:020}\r\n");
        assert_eq!(server.answer(request, status, &cookie).code, SUIMON_OK);
    }
    if dice.roll(4) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(server.end(request), SUIMON_OK);
    if dice.roll(10) == 0 {
        assert_eq!(server.end(request), SUIMON_UNKNOWN);
    }
}

#[test]
fn a_hundred_thousand_requests_of_eight_threads_leave_nothing_behind() {
    // Some wait for a slot, some for their session, some are refused, some are shown their place.
    let settings = "[[route]]\nmatch = \"GET /hold/{n}\"\nmode = 2\n[[session]]\nkind = \"shopping\"\n\
        [gate]\nsession_law = \"static\"\nstatic_sessions = 950\n";
    let server = open(&quiet(settings)).unwrap();
    let (entered, answered, left) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    // Those that wait, of whom some leave.
    let waiting = Mutex::new(BTreeMap::new());
    let is_over = AtomicBool::new(false);
    let handle = |told: &Told, session: u64, dice: &mut Dice| match told.code {
        SUIMON_OK => work(&server, told.request, session, dice),
        SUIMON_ANSWERED => _ = answered.fetch_add(1, Relaxed),
        SUIMON_TOO_SMALL => match server.result(told.request) {
            Told { code: SUIMON_OK, request, .. } => work(&server, request, session, dice),
            Told { code: SUIMON_ANSWERED, .. } => _ = answered.fetch_add(1, Relaxed),
            // It has left before it was told anything.
            Told { code: SUIMON_UNKNOWN, .. } => {}
            other => panic!("{other:?}"),
        },
        _ => panic!("{told:?}"),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = Dice(99);
            while !is_over.load(Relaxed) {
                let told =
                    server.next_in(Duration::from_millis(20), if dice.roll(10) == 0 { 8 } else { 1 << 16 });
                if told.code != SUIMON_NOTHING {
                    // It may not be noted yet.
                    let session = waiting.lock().unwrap().remove(&told.request).unwrap_or(0);
                    handle(&told, session, &mut dice);
                }
            }
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (server, handle, entered, waiting, left) = (&server, &handle, &entered, &waiting, &left);
                scope.spawn(move || {
                    let mut dice = Dice(worker);
                    for _ in 0..REQUESTS / WORKERS {
                        let path = ["/", "/items/7", "/hold/1", "/style.css"][dice.roll(4) as usize];
                        let session = dice.roll(1000);
                        let head = format!(
                            "GET {path} HTTP/1.1\r\nhost: shop\r\ncookie: JSESSIONID={session:020}\r\n\r\n"
                        );
                        let address = format!("192.0.2.{}", dice.roll(250));
                        let room = if dice.roll(20) == 0 { 8 } else { 1 << 16 };
                        let told = server.enter_head(&head, &address, room);
                        entered.fetch_add(1, Relaxed);
                        if told.code != SUIMON_WAITS {
                            handle(&told, session, &mut dice);
                            continue;
                        }
                        let mut waiting = waiting.lock().unwrap();
                        waiting.insert(told.request, session);
                        if waiting.len() > WAITING_MAX || dice.roll(3) == 0 {
                            let (one, _) = waiting.pop_first().unwrap();
                            drop(waiting);
                            // It may be over, or let in, by now.
                            if server.leave(one) == SUIMON_OK {
                                left.fetch_add(1, Relaxed);
                            }
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        until("nobody waits", || server.count("queued") + server.count("in_flight") == 0);
        until("nobody is held", || {
            server.state()["kinds"].as_array().unwrap().iter().all(|kind| kind["held"] == 0)
        });
        is_over.store(true, Relaxed);
    });
    assert_eq!(entered.load(Relaxed), REQUESTS);
    let [offered, completed, failed, abandoned, refused, pages] =
        ["offered", "completed", "failed", "abandoned", "refused", "waiting_pages"]
            .map(|what| server.count(what));
    assert_eq!(offered, completed + failed + abandoned + refused + pages);
    let (left, answered) = (left.load(Relaxed), answered.load(Relaxed));
    println!(
        "{offered} offered: {completed} completed, {failed} failed, {abandoned} abandoned, {refused} refused, {pages} pages; {left} left, {answered} answered"
    );
    assert!(completed > 1000 && failed > 100 && abandoned > 100 && left > 100 && answered > 100);
    assert_eq!(server.next(Duration::ZERO).code, SUIMON_NOTHING);
}

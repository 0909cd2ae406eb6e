//! `suimon pool` before real PHP.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;

use common::{Gateway, LONG, Ran, Running, file, run, try_get};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use suimon_admin::{PoolAnswer, PoolDetails};
use suimon_process::Signal;

/// Says which process answers, after some milliseconds.
const PAGE: &str = "<?php usleep(5000); echo getmypid();";

/// A gateway that runs PHP as a pool called `shop`, from a folder of programs.
struct Site {
    gateway: Gateway,
    folder: tempfile::TempDir,
}

fn site() -> Site {
    site_with("size_law = \"fixed\"\nworkers = 3\n")
}

/// As [`site`], with these settings about the number of workers.
fn site_with(size: &str) -> Site {
    let folder = tempfile::tempdir().unwrap();
    // Workers of another user read it.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    file(&folder, "index.php", PAGE);
    file(&folder, "worker", "exec php-cgi");
    let is_root = rustix::process::geteuid().is_root();
    let path = folder.path().display();
    let settings = format!(
        "[[pool]]\nname = \"shop\"\nkind = \"fastcgi\"\ncommand = [\"/bin/sh\", \"worker\"]\ndirectory = \"{path}\"\n\
         sockets = \"{path}/sockets\"\nmax = 8\n{size}{}",
        if is_root { "user = \"nobody\"\n" } else { "" }
    );
    let settings = file(&folder, "suimon.toml", &settings);
    let gateway = Gateway::start(&["--config", &settings, "--learned", "none"]);
    Site { gateway, folder }
}

impl Site {
    fn pool(&self, args: &[&str]) -> Ran {
        run(&[&["pool"], args, &["--admin", &self.gateway.admin_url()]].concat())
    }

    fn look(&self) -> PoolDetails {
        let told = self.pool(&["status", "--json"]);
        assert_eq!(told.code, Some(0), "{told:?}");
        let mut answer: PoolAnswer = serde_json::from_str(&told.out).unwrap();
        answer.pools.remove(0)
    }

    /// Waits until the pool is so.
    fn wait_for(&self, what: impl Fn(&PoolDetails) -> bool) -> PoolDetails {
        let began = Instant::now();
        loop {
            let pool = self.look();
            if what(&pool) {
                return pool;
            }
            assert!(began.elapsed() < LONG, "{pool:?}");
        }
    }

    /// Waits until so many workers are ready, and no others are there.
    fn wait_for_workers(&self, count: usize) -> PoolDetails {
        self.wait_for(|pool| pool.pool.ready == count && pool.workers.len() == count)
    }
}

fn pids(pool: &PoolDetails) -> BTreeSet<u32> {
    pool.workers.iter().filter_map(|worker| worker.pid).collect()
}

/// Visitors who ask one after the other, until told to stop.
struct Visitors {
    ended: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Visitors {
    fn begin(site: &Site) -> Visitors {
        let (ended, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let clients = site.gateway.clients;
        let threads = (0..4).map(|_| {
            let (ended, done) = (Arc::clone(&ended), Arc::clone(&done));
            thread::spawn(move || {
                while !ended.load(Relaxed) {
                    let answer = try_get(clients, "/");
                    assert!(matches!(answer, Ok((200, _))), "{answer:?}");
                    done.fetch_add(1, Relaxed);
                }
            })
        });
        let visitors = Visitors { threads: threads.collect(), ended, done };
        visitors.wait_for_more(20);
        visitors
    }

    /// Waits until so many more requests are answered.
    fn wait_for_more(&self, count: u64) {
        let (began, before) = (Instant::now(), self.done.load(Relaxed));
        while self.done.load(Relaxed) < before + count {
            assert!(began.elapsed() < LONG && !self.threads.iter().any(thread::JoinHandle::is_finished));
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Checks that no request has failed.
    fn end(self) {
        self.ended.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_reload_and_a_resize_under_load_replace_all_and_fail_no_request() {
    let site = site();
    let first = pids(&site.wait_for_workers(3));
    let visitors = Visitors::begin(&site);

    let told = site.pool(&["reload", "--wait"]);
    assert_eq!((told.code, &*told.err), (Some(0), ""), "{told:?}");
    assert!(told.out.contains("shop: 3 workers are replaced, one after the other"), "{told:?}");
    let after = site.wait_for_workers(3);
    assert!(pids(&after).is_disjoint(&first), "{after:?}");
    assert_eq!((after.pool.generation, after.pool.totals.ended.get("reload")), (1, Some(&3)));

    let told = site.pool(&["resize", "6"]);
    assert!(told.out.contains("shop: 6 workers from now on"), "{told:?}");
    let more = site.wait_for_workers(6);
    assert!(pids(&more).is_superset(&pids(&after)));
    visitors.wait_for_more(20);
    assert_eq!(site.pool(&["resize", "2", "shop"]).code, Some(0));
    let fewer = site.wait_for_workers(2);
    assert_eq!((fewer.pool.fixed, fewer.pool.wanted), (Some(2), 2));
    assert_eq!(fewer.pool.totals.kills, 0, "an idle one hears that it is to end: {fewer:?}");
    let moved = fewer.pool.last_move.unwrap();
    assert_eq!(
        (moved.old, moved.new, moved.reason.as_deref()),
        (Some(6), Some(2), Some("an operator has fixed the number"))
    );

    assert_eq!(site.pool(&["resize", "auto"]).code, Some(0));
    let back = site.wait_for_workers(3);
    assert_eq!(back.pool.fixed, None, "its own law has it again");
    visitors.wait_for_more(20);
    visitors.end();

    let told = site.pool(&["trace"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for wanted in [
        "reload",
        "replaced          its program is started anew",
        "wanted 3 to 6     an operator has fixed the number",
        "wanted 6 to 2     an operator has fixed the number",
        "ends              fewer workers are wanted",
        "wanted 2 to 3     an operator has given the number back to its law",
    ] {
        assert!(told.out.contains(wanted), "{wanted}\n{}", told.out);
    }
    assert_eq!(back.pool.totals.failed_starts + back.pool.totals.deaths, 0, "{back:?}");
    site.gateway.process.finish();
}

#[test]
fn status_shows_every_worker_and_metrics_and_state_the_same_pool() {
    let site = site();
    let pool = site.wait_for_workers(3);
    let told = site.pool(&["status"]);
    for wanted in [
        "shop: 3 wanted (law: fixed), 3 ready, 3 idle, 0 starting",
        "0 requests running, no route has a limit yet; 0 queued",
        "a start takes ",
        "at most 8 (pool.max)",
        "0 requests done, 3 starts, 0 failed, 0 deaths",
        "worker",
    ] {
        assert!(told.out.contains(wanted), "{wanted}\n{}", told.out);
    }
    for pid in pids(&pool) {
        assert!(told.out.lines().any(|line| line.contains(&format!(" {pid}  idle "))), "{}", told.out);
    }
    let told = run(&["status", "--admin", &site.gateway.admin_url()]);
    assert!(told.out.contains("\nWorkers\n") && told.out.contains("last move, "), "{told:?}");
    let (_, metrics) = try_get(site.gateway.admin, "/metrics").unwrap();
    for line in [
        "suimon_pool_workers{pool=\"shop\",state=\"idle\"} 3",
        "suimon_pool_wanted{pool=\"shop\"} 3",
        "suimon_pool_starts_total{pool=\"shop\"} 3",
        "suimon_pool_ended_total{pool=\"shop\",reason=\"reload\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    site.gateway.process.finish();
}

#[test]
fn a_new_program_that_does_not_start_is_told_and_the_old_workers_go_on() {
    let site = site();
    let before = pids(&site.wait_for_workers(3));
    file(&site.folder, "worker", "echo no coffee left >&2; exit 3");
    let told = site.pool(&["reload", "--wait"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    let why =
        "shop: the new program does not start (exit code 3; the last that it wrote: \"no coffee left\")";
    assert!(told.err.contains(why), "{told:?}");
    assert_eq!(try_get(site.gateway.clients, "/").unwrap().0, 200);
    assert!(pids(&site.look()).is_superset(&before));

    file(&site.folder, "worker", "exec php-cgi");
    assert_eq!(site.pool(&["reload", "--wait"]).code, Some(0));
    assert!(pids(&site.wait_for_workers(3)).is_disjoint(&before));
    site.gateway.process.finish();
}

#[test]
fn a_law_that_searches_goes_on_from_the_number_that_was_fixed() {
    let site = site_with("");
    site.wait_for(|pool| pool.pool.ready == pool.pool.wanted && pool.pool.wanted > 0);
    for workers in ["2", "7"] {
        assert_eq!(site.pool(&["resize", workers]).code, Some(0));
        site.wait_for_workers(workers.parse().unwrap());
    }
    let told = site.pool(&["resize", "auto"]);
    assert!(
        told.out.contains("shop: pool.size_law = \"measured\" says how many workers, from 7 on"),
        "{told:?}"
    );
    // The law has looked since, more than once.
    let later = |pool: &PoolDetails| pool.workers.iter().all(|worker| worker.age_seconds > 3.0);
    let pool = site.wait_for(later);
    assert_eq!((pool.pool.fixed, pool.pool.wanted, pool.workers.len()), (None, 7, 7));
    site.gateway.process.finish();
}

#[test]
fn a_trace_that_is_followed_shows_what_happens_from_then_on_until_ctrl_c() {
    let site = site();
    site.wait_for_workers(3);
    let admin = site.gateway.admin_url();
    let follower = Running::start(&["pool", "trace", "--follow", "--admin", &admin]);
    follower.wait_out("wanted 0 to 3");
    assert_eq!(site.pool(&["resize", "4"]).code, Some(0));
    follower.wait_out("wanted 3 to 4     an operator has fixed the number");
    follower.wait_out("ready");
    follower.signal(Signal::INT);
    assert_eq!(follower.end().code(), Some(0));
    site.gateway.process.finish();
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let site = site();
    for (args, code, why) in [
        (&["status", "other"][..], 1, "there is no pool of that name; there are: shop"),
        (&["reload", "other"], 1, "there is no pool of that name; there are: shop"),
        (&["resize", "9"], 1, "a pool has from 1 to 8 workers (pool.max)"),
        (&["resize", "0"], 2, "must be a number of workers from 1, or auto"),
        (&["resize", "many"], 2, "must be a number of workers from 1, or auto"),
    ] {
        let told = site.pool(args);
        assert_eq!(told.code, Some(code), "{told:?}");
        assert!(told.err.contains(why), "{told:?}");
    }
    let admin = site.gateway.admin_url();
    site.gateway.process.finish();
    let told = run(&["pool", "status", "--admin", &admin]);
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("nobody answers at"), "{told:?}");
}

#[test]
fn a_gateway_without_a_pool_says_so() {
    let backend = common::Backend::start();
    let gateway = Gateway::start(&["--to", &backend.url()]);
    for args in [&["status"][..], &["trace"], &["reload"]] {
        let told = run(&[&["pool"], args, &["--admin", &gateway.admin_url()]].concat());
        assert_eq!(told.code, Some(1), "{told:?}");
        assert!(told.err.contains("this gateway has no pool of workers; see [[pool]]"), "{told:?}");
    }
    gateway.process.finish();
}

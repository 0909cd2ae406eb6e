//! The usual life of workers: used, replaced, ended.

use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use suimon_fleet::workers::{EndReason, WorkerEvent};

#[tokio::test]
async fn workers_are_taken_used_most_recently_first_and_end_with_the_pool() {
    let running = run(READY);
    running.pool.set_wanted(3, "a test");
    assert_eq!(running.until(|count| count.idle == 3).await.starting, 0);
    let pids = running.pids();
    assert!(pids.len() == 3 && pids.iter().all(|pid| is_there(*pid)));
    let first = running.pool.take(false).unwrap();
    let (used, other) = (first.worker(), running.pool.take(false).unwrap());
    assert_ne!(used, other.worker());
    assert_eq!(running.pool.count(), WorkersCount { idle: 1, busy: 2, ..WorkersCount::default() });
    first.done();
    let again = running.pool.take(false).unwrap();
    assert_eq!(again.worker(), used);
    let (pool, sockets) = (running.pool.clone(), running.folder.path().join("sockets"));
    assert_eq!(fs::read_dir(&sockets).unwrap().count(), 2, "a folder and its lock");
    let Running { end, supervisor, folder, .. } = running;
    end.send(()).unwrap();
    supervisor.await.unwrap();
    assert_eq!(pool.count(), WorkersCount::default());
    assert!(!pids.iter().any(|pid| is_there(*pid)));
    assert_eq!(fs::read_dir(&sockets).unwrap().count(), 0);
    pool.set_wanted(3, "too late");
    again.done();
    drop(other);
    assert_eq!(pool.status().wanted, 0);
    assert_eq!(pool.count(), WorkersCount::default(), "nothing starts any more");
    drop(folder);
}

#[tokio::test]
async fn a_supervisor_that_is_dropped_leaves_no_worker() {
    let running = run(READY);
    running.pool.set_wanted(2, "a test");
    running.until(|count| count.idle == 2).await;
    let pids = running.pids();
    running.supervisor.abort();
    until_gone(&pids).await;
    until(String::new, || running.pool.count() == WorkersCount::default()).await;
    assert!(running.pool.take(false).is_none());
}

#[tokio::test]
async fn one_whose_request_was_cancelled_is_used_again_once_it_says_that_it_is_idle() {
    let running = run(READY);
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let lease = running.pool.take(false).unwrap();
    let (worker, ready) = (lease.worker(), ready_file(&socket(&lease)));
    fs::remove_file(&ready).unwrap();
    drop(lease);
    assert_eq!(running.pool.count().unsure, 1);
    assert!(!running.pool.is_down(), "that says nothing of the application");
    assert!(running.pool.take(false).is_none());
    fs::write(&ready, "").unwrap();
    running.until(|count| count.idle == 1).await;
    assert_eq!(running.pool.take(false).unwrap().worker(), worker);
    running.end().await;
}

#[tokio::test]
async fn one_that_goes_on_with_a_cancelled_request_is_replaced() {
    let running = run_with(READY, |params| params.workers.idle_within = Duration::from_millis(100));
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let lease = running.pool.take(false).unwrap();
    let worker = lease.worker();
    fs::remove_file(ready_file(&socket(&lease))).unwrap();
    drop(lease);
    running.until(|count| count.idle == 1 && count.all() == 1).await;
    assert_ne!(running.pool.take(false).unwrap().worker(), worker);
    assert_eq!(running.pool.status().totals.ended_by(EndReason::Cancelled), 1);
    running.end().await;
}

#[tokio::test]
async fn a_worker_is_replaced_after_so_many_requests_and_the_new_one_is_ready_first() {
    let running = run_with(READY, |params| params.workers.requests_max = Some(10));
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let mut used = BTreeSet::new();
    for _ in 0..30 {
        let lease = running.pool.take_within(PATIENCE, false).await.unwrap();
        used.insert(lease.worker());
        lease.done();
        let replaced = running.pool.status().totals.ended_by(EndReason::Requests) as usize;
        if replaced == used.len() {
            let others = used.clone();
            until(
                || format!("{:?}", running.pool.trace(0)),
                || {
                    running
                        .pool
                        .status()
                        .workers
                        .iter()
                        .any(|it| !others.contains(&it.id) && it.start.is_some())
                },
            )
            .await;
        }
        assert!(running.pool.count().ready() >= 1);
    }
    assert!((3..=4).contains(&used.len()), "{used:?}");
    assert_eq!(running.pool.status().totals.deaths, 0);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_reloads_under_load_fail_no_request() {
    let running = run("sleep 0.02; touch $SOCKET.ready; exec sleep 1000");
    running.pool.set_wanted(4, "a test");
    running.until(|count| count.idle == 4).await;
    let (stops, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let clients = (0..4).map(|_| {
        let (pool, stops, served) = (running.pool.clone(), Arc::clone(&stops), Arc::clone(&served));
        tokio::spawn(async move {
            while !stops.load(Ordering::Relaxed) {
                let lease = pool.take_within(Duration::from_secs(2), false).await.expect("a worker is there");
                tokio::time::sleep(Duration::from_millis(1)).await;
                assert!(ready_file(&socket(&lease)).exists(), "the worker has not been ended meanwhile");
                lease.done();
                served.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    for generation in 1..=3 {
        running.pool.reload();
        let are_new = || {
            let status = running.pool.status();
            status.count.all() == 4 && status.workers.iter().all(|it| it.generation == generation)
        };
        until(|| format!("{:?}", running.pool.status()), are_new).await;
    }
    stops.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let status = running.pool.status();
    assert_eq!((status.totals.starts, status.totals.deaths, status.totals.kills), (16, 0, 0));
    assert_eq!(status.totals.ended_by(EndReason::Reload), 12);
    assert!(served.load(Ordering::Relaxed) > 100);
    running.end().await;
}

#[tokio::test]
async fn what_can_be_seen_is_what_there_is() {
    let running = run(READY);
    running.pool.set_wanted(2, "a test");
    running.until(|count| count.idle == 2).await;
    let looked = || running.pool.status().workers.iter().all(|worker| worker.memory > 0);
    until(|| format!("{:?}", running.pool.status()), looked).await;
    let leases = [running.pool.take(false).unwrap(), running.pool.take(false).unwrap()];
    leases.into_iter().for_each(Lease::done);
    let known = || running.pool.sample().fit.is_some();
    until(|| format!("{:?}", running.pool.sample()), known).await;
    let lease = running.pool.take(false).unwrap();
    lease.done();
    let sample = running.pool.sample();
    assert_eq!((sample.wanted, sample.ready, sample.idle, sample.busy_max), (2, 2, 2, 1));
    assert!(sample.start_s.unwrap() > 0.0 && sample.start_cpu_s.is_some());
    assert!(sample.fit.unwrap() > 0 && sample.worker_bytes.unwrap() > 1 << 12);
    let status = running.pool.status();
    assert_eq!(status.unhealthy, None);
    assert_eq!(status.workers.iter().map(|worker| worker.requests).sum::<u64>(), 3);
    let trace = running.pool.trace(0);
    assert_eq!(trace[0].what, PoolEvent::Wanted { from: 0, to: 2, why: "a test" });
    let ready = trace.iter().filter(|it| matches!(it.what, PoolEvent::Worker(_, WorkerEvent::Ready)));
    assert_eq!(ready.count(), 2);
    running.end().await;
}

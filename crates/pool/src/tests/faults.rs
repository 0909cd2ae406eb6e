//! What goes wrong: workers that are killed, hang, leak, do not start or do not end.

use super::*;
use std::os::unix::fs::PermissionsExt;
use suimon_fleet::workers::{EndReason, Exit, WorkerEvent};
use suimon_params::pool::GuardianParams;

#[tokio::test]
async fn one_that_is_killed_is_replaced_and_its_request_changes_nothing() {
    let running = run(READY);
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let lease = running.pool.take(false).unwrap();
    let dead = lease.worker();
    kill(running.pids()[0], Signal::KILL);
    running.until(|count| count.idle == 1 && count.all() == 1).await;
    lease.done();
    assert_eq!(running.pool.count(), WorkersCount { idle: 1, ..WorkersCount::default() });
    assert_eq!(running.pool.status().totals.deaths, 1);
    let died = PoolEvent::Worker(dead, WorkerEvent::Died(Exit::Signal(9)));
    assert!(running.pool.trace(0).iter().any(|change| change.what == died));
    running.end().await;
}

#[tokio::test]
async fn all_that_are_killed_at_once_are_replaced() {
    let running = run(READY);
    running.pool.set_wanted(4, "a test");
    running.until(|count| count.idle == 4).await;
    let leases: Vec<_> = std::iter::from_fn(|| running.pool.take(false)).collect();
    assert!(leases.iter().all(Lease::is_alive));
    let pids = running.pids();
    pids.iter().for_each(|pid| kill(*pid, Signal::KILL));
    assert!(!leases.iter().any(Lease::is_alive), "though they may still give back their memory");
    let is_new = || running.pids().len() == 4 && !running.pids().iter().any(|pid| pids.contains(pid));
    until(|| format!("{:?}", running.pool.status()), is_new).await;
    running.until(|count| count.idle == 4).await;
    assert!(!leases.iter().any(Lease::is_alive));
    drop(leases);
    assert_eq!(running.pool.count(), WorkersCount { idle: 4, ..WorkersCount::default() });
    running.end().await;
}

#[tokio::test]
async fn a_pool_is_not_down_while_those_start_that_replace_its_dead() {
    // The second one waits until it may be ready, and the third one fails.
    let script = "echo >> $FOLDER/starts; case $(wc -l < $FOLDER/starts) in
        2) until [ -e $FOLDER/go ]; do sleep 0.01; done; exit 1 ;; 3) exit 1 ;; esac
        touch $SOCKET.ready; exec sleep 1000";
    let running = run_with(script, |params| params.workers.back_off = Duration::from_secs(60));
    assert!(running.pool.is_down(), "there was none yet");
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    // It has served, so that its start was no failure.
    running.pool.take(false).unwrap().done();
    kill(running.pids()[0], Signal::KILL);
    running.until(|count| count.starting == 1).await;
    assert!(!running.pool.is_down());
    fs::write(running.folder.path().join("go"), "").unwrap();
    until(String::new, || running.pool.is_down()).await;
    running.end().await;
}

#[tokio::test]
async fn one_that_hangs_is_killed_and_replaced() {
    let running = run_with(READY, |params| params.workers.stop_within = Duration::from_millis(100));
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let (pid, lease) = (running.pids()[0], running.pool.take(false).unwrap());
    kill(pid, Signal::STOP);
    until(String::new, || state(pid) == Some('T')).await;
    lease.stuck();
    running.until(|count| count.idle == 1 && count.all() == 1).await;
    assert!(!is_there(pid));
    let totals = running.pool.status().totals;
    assert_eq!((totals.kills, totals.ended_by(EndReason::Stuck)), (1, 1));
    running.end().await;
}

#[tokio::test]
async fn one_that_takes_too_much_memory_is_replaced_while_it_serves() {
    const LEAKS: &str = "if mkdir $FOLDER/first 2>/dev/null
        then leak=$(head -c 30000000 /dev/zero | tr '\\0' x); fi
        touch $SOCKET.ready; while :; do sleep 1000 & wait $!; done";
    let running = run_with(LEAKS, |params| {
        params.workers.memory_max = Some(20 << 20);
        params.workers.memory_age = Duration::ZERO;
    });
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let first = running.pids();
    until(
        || format!("{:?}", running.pool.status()),
        || {
            let count = running.pool.count();
            assert!(count.ready() >= 1);
            count.all() == 1 && running.pids() != first
        },
    )
    .await;
    assert_eq!(running.pool.status().totals.ended_by(EndReason::Memory), 1);
    running.end().await;
}

#[tokio::test]
async fn a_pool_whose_workers_die_at_start_says_why_and_tries_again_ever_later() {
    let running = run_with("echo no database >&2; exit 3", |params| {
        params.workers.starting_cores = 1;
        params.workers.back_off = Duration::from_millis(10);
    });
    running.pool.set_wanted(2, "a test");
    let why = || running.pool.status().unhealthy.unwrap_or_default();
    until(why, || why().contains("exit code 3") && why().contains("no database")).await;
    assert!(running.pool.sample().is_unhealthy);
    let starts: Vec<_> = running
        .pool
        .trace(0)
        .into_iter()
        .filter(|it| matches!(it.what, PoolEvent::Worker(_, WorkerEvent::StartFailed(_))))
        .collect();
    assert!(starts.len() >= 6);
    let last = starts[5].at.secs_since(starts[4].at);
    assert!(last >= 0.01 * 16.0, "the fifth delay: {last} s");
    running.end().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let running = run_with("", |params| {
        params.command.program = "/no/such/program".into();
        params.workers.back_off = Duration::from_millis(1);
    });
    running.pool.set_wanted(1, "a test");
    let why = || running.pool.status().unhealthy.unwrap_or_default();
    until(why, || why().contains("could not be started") && why().contains("No such file")).await;
    running.end().await;
}

#[tokio::test]
async fn one_that_does_not_end_when_asked_is_killed() {
    let script = "trap '' TERM; touch $SOCKET.ready; while :; do sleep 1000; done";
    let running = run_with(script, |params| params.workers.stop_within = Duration::from_millis(100));
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let pids = running.pids();
    running.pool.set_wanted(0, "a test");
    running.until(|count| *count == WorkersCount::default()).await;
    assert!(!is_there(pids[0]));
    assert_eq!(running.pool.status().totals.kills, 1);
    running.end().await;
}

#[tokio::test]
async fn what_a_worker_has_started_ends_with_it_however_it_ends() {
    let script = "(sleep 1000 & echo $! >> $FOLDER/own; sleep 1000) & echo $! >> $FOLDER/own
        touch $SOCKET.ready; wait";
    for is_killed in [false, true] {
        let running = run(script);
        running.pool.set_wanted(1, "a test");
        running.until(|count| count.idle == 1).await;
        let started = numbers(&running.written("own", 2).await);
        assert!(started.iter().all(|pid| is_there(*pid)));
        if is_killed {
            kill(running.pids()[0], Signal::KILL);
        } else {
            running.pool.set_wanted(0, "a test");
        }
        until_gone(&started).await;
        running.end().await;
    }
}

#[tokio::test]
async fn an_end_is_noted_although_somebody_keeps_its_standard_error_open() {
    // What has left the process group is out of reach of the pool, so the script ends it by itself.
    let script = "echo last words >&2; setsid sleep 3 & touch $SOCKET.ready; sleep 1000";
    let running = run(script);
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let began = Instant::now();
    kill(running.pids()[0], Signal::KILL);
    running.until_event(|it| matches!(it, PoolEvent::Worker(_, WorkerEvent::StartFailed(_)))).await;
    assert!(began.elapsed() < Duration::from_millis(900), "it does not wait for what is written");
    running.until_event(|it| matches!(it, PoolEvent::Wrote(_, words) if words == "last words")).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_slot_is_lost_whatever_becomes_of_requests_and_workers() {
    let running = run_with(READY, |params| {
        params.workers.back_off = Duration::from_millis(5);
        params.workers.requests_max = Some(20);
    });
    running.pool.set_wanted(4, "a test");
    running.until(|count| count.idle == 4).await;
    let clients = (0..4_u64).map(|client| {
        let pool = running.pool.clone();
        tokio::spawn(async move {
            for round in 0..100 {
                let lease = pool.take_within(PATIENCE, false).await.expect("a worker comes back");
                tokio::task::yield_now().await;
                match (client + 3 * round) % 10 {
                    0 => drop(lease),
                    1 if round % 4 == 0 => lease.stuck(),
                    2 if round % 4 == 1 => {
                        let workers = pool.status().workers;
                        if let Some(pid) =
                            workers.iter().find(|it| it.id == lease.worker()).and_then(|it| it.pid)
                        {
                            // It may have been killed already, by nobody but us.
                            let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
                        }
                        lease.done();
                    }
                    _ => lease.done(),
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    running.until(|count| *count == WorkersCount { idle: 4, ..WorkersCount::default() }).await;
    let totals = running.pool.status().totals;
    assert!(totals.ended_by(EndReason::Stuck) > 0 && totals.starts > 4, "{totals:?}");
    running.end().await;
}

/// A pool that wants one worker and cannot have a folder, as a file is in its place.
fn run_without_folder(back_off: Duration) -> Running {
    let running = run_with(READY, |params| {
        fs::write(&params.folder, "").unwrap();
        params.workers.back_off = back_off;
    });
    running.pool.set_wanted(1, "a test");
    running
}

fn unhealthy(running: &Running) -> String {
    running.pool.status().unhealthy.unwrap_or_default()
}

#[tokio::test]
async fn a_pool_that_cannot_run_says_why_and_runs_once_it_can() {
    let running = run_without_folder(Duration::from_millis(10));
    let is_told =
        || unhealthy(&running).contains("cannot run") && unhealthy(&running).contains("is no folder");
    until(|| unhealthy(&running), is_told).await;
    assert!(running.pool.sample().is_unhealthy);
    assert_eq!(running.pool.count(), WorkersCount::default());
    let unable = || running.pool.trace(0).into_iter().filter(|it| matches!(it.what, PoolEvent::Unable(_)));
    until(|| format!("{:?}", running.pool.trace(0)), || unable().count() >= 4).await;
    let times: Vec<_> = unable().map(|it| it.at).collect();
    assert!(times[3].secs_since(times[2]) >= 0.04, "ever later: {times:?}");
    fs::remove_file(running.folder.path().join("sockets")).unwrap();
    running.until(|count| count.idle == 1).await;
    assert_eq!(running.pool.status().unhealthy, None);
    assert!(running.pool.trace(0).iter().any(|it| it.what == PoolEvent::Able));
    running.end().await;
}

#[tokio::test]
async fn a_pool_that_cannot_run_is_tried_at_once_when_it_is_reloaded_and_ends_when_told() {
    for is_reloaded in [true, false] {
        let running = run_without_folder(Duration::from_secs(1000));
        running.until_event(|it| matches!(it, PoolEvent::Unable(_))).await;
        if is_reloaded {
            fs::remove_file(running.folder.path().join("sockets")).unwrap();
            running.pool.reload();
            running.until(|count| count.idle == 1).await;
        }
        running.end().await;
    }
}

#[tokio::test]
async fn a_guardian_that_cannot_be_started_is_told_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("guardian");
    let guardian = GuardianParams { program: program.clone(), arguments: vec![] };
    let running = run_with(READY, |params| {
        params.guardian = Some(guardian);
        params.workers.back_off = Duration::from_millis(10);
    });
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    until(|| unhealthy(&running), || unhealthy(&running).contains("there is no guardian")).await;
    let new = folder.path().join("new");
    fs::write(&new, "#!/bin/sh\nwhile read -r line; do :; done\n").unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, &program).unwrap();
    until(|| unhealthy(&running), || unhealthy(&running).is_empty()).await;
    running.end().await;
}

#[tokio::test]
async fn no_more_workers_start_than_memory_has_room_for() {
    // Each takes some 20 MB or more, of 100 MiB.
    let script = "leak=$(head -c 20000000 /dev/zero | tr '\\0' x)
        touch $SOCKET.ready; while :; do sleep 1000 & wait $!; done";
    let running = run_with(script, |params| {
        params.memory.budget = Some(100 << 20);
        params.workers.starting_cores = 30;
    });
    running.pool.set_wanted(30, "a test");
    let mut counts = running.pool.watch();
    let mut most = 0;
    let told = || running.pool.trace(0).iter().any(|it| matches!(it.what, PoolEvent::NoRoom(_)));
    let began = Instant::now();
    while !told() {
        assert!(began.elapsed() < PATIENCE, "{:?}", running.pool.trace(0));
        let _ = tokio::time::timeout(Duration::from_millis(50), counts.changed()).await;
        most = most.max(counts.borrow_and_update().all());
    }
    let status = running.pool.status();
    let (fit, each) = (status.fit.unwrap(), status.worker_bytes.unwrap());
    assert!(
        each >= 15 << 20 && most <= fit.max(crate::memory::UNMEASURED_MAX),
        "{most} of {each}: {status:?}"
    );
    running.end().await;
}

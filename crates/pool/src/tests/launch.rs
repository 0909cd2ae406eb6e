//! How workers get their sockets and whose rights they have.

use super::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use suimon_fleet::workers::EndReason;
use suimon_params::pool::User;

const NOBODY: u32 = 65_534;

#[tokio::test]
async fn a_program_gets_an_open_socket_at_its_standard_input() {
    let script = "readlink /proc/$$/fd/0 >> $FOLDER/own; touch $SOCKET.ready; exec sleep 1000";
    let running = run_with(script, |params| params.command.listen = WorkerListen::StandardInput);
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    assert!(running.written("own", 1).await[0].starts_with("socket:["));
    let lease = running.pool.take(false).unwrap();
    let path = socket(&lease);
    UnixStream::connect(&path).expect("a connection waits for the program");
    lease.done();
    running.pool.set_wanted(0, "a test");
    running.until(|count| count.all() == 0).await;
    assert!(!path.exists());
    running.end().await;
}

#[tokio::test]
async fn a_program_gets_an_open_socket_as_from_systemd() {
    let script = "echo $LISTEN_FDS $LISTEN_PID $$ >> $FOLDER/own
        readlink /proc/$$/fd/0 /proc/$$/fd/3 >> $FOLDER/own; touch $SOCKET.ready; exec sleep 1000";
    let running = run_with(script, |params| params.command.listen = WorkerListen::Descriptor3);
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let own = running.written("own", 3).await;
    let pid = running.pids()[0];
    assert_eq!(own[0], format!("1 {pid} {pid}"));
    assert_eq!(own[1], "/dev/null");
    assert!(own[2].starts_with("socket:["));
    UnixStream::connect(socket(&running.pool.take(false).unwrap())).unwrap();
    running.end().await;
}

/// Not a test: what listens at the port in its environment, if there is one.
#[test]
fn listener() {
    if let Ok(port) = std::env::var("POOL_TEST_PORT") {
        let _listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
        std::thread::sleep(Duration::from_secs(1000));
    }
}

#[tokio::test]
async fn a_program_listens_at_a_port_that_it_is_told() {
    let running = run_with("", |params| {
        let command = &mut params.command;
        command.program = std::env::current_exe().unwrap();
        command.arguments = ["--exact", "tests::launch::listener"].map(str::to_owned).to_vec();
        command.environment = vec![("POOL_TEST_PORT".to_owned(), "{port}".to_owned())];
        command.listen = WorkerListen::Port;
    });
    running.pool.set_wanted(2, "a test");
    running.until(|count| count.idle == 2).await;
    let leases = [running.pool.take(false).unwrap(), running.pool.take(false).unwrap()];
    assert_ne!(leases[0].address(), leases[1].address());
    running.end().await;
}

#[tokio::test]
async fn a_worker_whose_port_was_taken_by_somebody_else_gets_no_request() {
    // It tells its port and waits: the test listens there.
    let running = run_with("echo $PORT >> $FOLDER/own; exec sleep 1000", |params| {
        params.command.environment.push(("PORT".to_owned(), "{port}".to_owned()));
        params.command.listen = WorkerListen::Port;
    });
    running.pool.set_wanted(1, "a test");
    let port: u16 = running.written("own", 1).await[0].parse().unwrap();
    let _squatter = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let squatted = || running.pool.status().totals.ended_by(EndReason::Squatted);
    until(|| format!("{:?}", running.pool.trace(0)), || squatted() == 1).await;
    assert!(running.pool.take(false).is_none());
    running.end().await;
}

#[tokio::test]
async fn a_worker_has_the_rights_of_its_user_and_of_nobody_else() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let script = "id -u >&2; id -G >&2; touch $SOCKET.ready && exec sleep 1000";
    let groups = vec![NOBODY, 12_345];
    let running = run_with(script, |params| {
        params.command.user = Some(User { id: NOBODY, group: NOBODY, groups });
    });
    // Folders of the test are only for its own user.
    let open = fs::Permissions::from_mode(0o711);
    fs::set_permissions(running.folder.path(), open).unwrap();
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let lease = running.pool.take(false).unwrap();
    let folder = socket(&lease).parent().unwrap().to_owned();
    let of_folder = fs::metadata(&folder).unwrap();
    assert_eq!((of_folder.uid(), of_folder.mode() & 0o777), (NOBODY, 0o700));
    kill(running.pids()[0], Signal::KILL);
    running
        .until_event(
            |it| matches!(it, PoolEvent::Wrote(_, words) if words.lines().eq(["65534", "65534 12345"])),
        )
        .await;
    drop(lease);
    running.end().await;
}

#[tokio::test]
async fn a_worker_has_as_many_descriptors_as_the_gateway_was_started_with() {
    let limit = getrlimit(Resource::Nofile);
    let few = 1000;
    assert!(limit.maximum.is_none_or(|maximum| maximum > few), "this shows nothing: {limit:?}");
    setrlimit(Resource::Nofile, Rlimit { current: Some(few), ..limit }).unwrap();
    assert_eq!(suimon_process::raise_descriptors(), limit.maximum);
    let script = "ulimit -Sn >> $FOLDER/own; ulimit -Hn >> $FOLDER/own; touch $SOCKET.ready; exec sleep 1000";
    let running = run(script);
    running.pool.set_wanted(1, "a test");
    running.until(|count| count.idle == 1).await;
    let hard = limit.maximum.map_or_else(|| "unlimited".to_owned(), |maximum| maximum.to_string());
    assert_eq!(running.written("own", 2).await, [few.to_string(), hard]);
    running.end().await;
}

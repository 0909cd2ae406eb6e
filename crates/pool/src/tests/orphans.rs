//! Nothing is left of a gateway that is killed.

use super::*;
use std::process::{Child, Command, Stdio};

/// Not a test: a gateway that has a pool whose workers start others, if it is told where.
#[test]
fn gateway() {
    let Ok(folder) = std::env::var("POOL_TEST_FOLDER") else { return };
    let script = "(sleep 1000 & echo $! >> $FOLDER/own; exec sleep 1000) & echo $! $$ >> $FOLDER/own
        trap '' TERM; touch $SOCKET.ready; wait; wait";
    let params = params(script, Path::new(&folder));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = Pool::new(Instant::now(), params);
        pool.set_wanted(3, "a test");
        pool.run(is_ready, std::future::pending()).await;
    });
}

struct Gateway {
    process: Child,
    folder: TempDir,
}

impl Gateway {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::orphans::gateway"])
            .env("POOL_TEST_FOLDER", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Gateway { process, folder }
    }

    /// Returns the workers and what they have started: three times three.
    async fn all(&self) -> Vec<u32> {
        let all = numbers(&written(&self.folder.path().join("own"), 6).await);
        assert_eq!(all.len(), 9);
        assert!(all.iter().all(|pid| is_there(*pid)));
        all
    }

    /// Returns the guardian, if there is one.
    fn guardian(&self) -> Option<u32> {
        let own = self.process.id();
        let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let folder = entry.unwrap().path();
            let stat = fs::read_to_string(folder.join("stat")).ok()?;
            let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            let words = fs::read_to_string(folder.join("cmdline")).ok()?;
            let pid = folder.file_name()?.to_str()?.parse().ok()?;
            (parent == own && words.contains("groups=")).then_some(pid)
        });
        children.last()
    }

    async fn kill(mut self, all: &[u32]) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        until_gone(all).await;
    }
}

#[tokio::test]
async fn no_worker_and_nothing_that_one_has_started_outlives_a_gateway_that_is_killed() {
    let gateway = Gateway::start();
    let mut all = gateway.all().await;
    all.push(gateway.guardian().expect("there is one"));
    gateway.kill(&all).await;
}

#[tokio::test]
async fn a_guardian_that_is_killed_is_replaced_by_one_that_knows_as_much() {
    let gateway = Gateway::start();
    let all = gateway.all().await;
    let first = gateway.guardian().expect("there is one");
    kill(first, Signal::KILL);
    let another = || gateway.guardian().is_some_and(|pid| pid != first && is_there(pid));
    until(String::new, another).await;
    // The shell has begun to read once its script is its program.
    gateway.kill(&all).await;
}

#[tokio::test]
async fn what_a_killed_gateway_has_left_of_its_folder_goes_at_the_next_start() {
    let gateway = Gateway::start();
    let all = gateway.all().await;
    let folder = gateway.folder.path().join("sockets");
    let left = folder.join(format!("shop.{}", gateway.process.id()));
    assert!(left.exists());
    let kept = gateway.folder.path().to_owned();
    let Gateway { mut process, folder: _folder } = gateway;
    process.kill().unwrap();
    process.wait().unwrap();
    until_gone(&all).await;
    assert!(left.exists());
    let pool = Pool::new(Instant::now(), params(READY, &kept));
    pool.run(is_ready, async {}).await;
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

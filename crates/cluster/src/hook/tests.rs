//! What is done where `stop` fails again and again, without the waits between.

use super::*;
use crate::{NodeEvent, NodeWord, ProviderView};
use std::fs;
use std::path::PathBuf;
use suimon_params::pool::CommandParams;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Long enough for a busy machine: anything slower hangs.
const HANGS: Duration = Duration::from_secs(30);

/// Whose node is the test itself, and cannot be stopped.
struct Site {
    folder: TempDir,
    _node: TcpListener,
    provided: Provided,
}

impl Site {
    /// One with a node that serves, and is named by `list` if there is a file `there`. A start takes a while
    /// once there is a file `slow`.
    async fn with_a_node(most: u32) -> (Site, NodeParams) {
        let folder = tempfile::tempdir().unwrap();
        let node = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", node.local_addr().unwrap());
        let text = format!(
            "cd {}\necho $1 >> runs\ncase $1 in\nstart) [ ! -e slow ] || sleep 0.3; echo started >> runs; echo {address} ;;\nlist) [ ! -e there ] || echo {address} ;;\n*) exit 1 ;;\nesac\n",
            folder.path().display()
        );
        fs::write(folder.path().join("hook.sh"), text).unwrap();
        let command = CommandParams {
            program: PathBuf::from("/bin/sh"),
            arguments: vec![folder.path().join("hook.sh").display().to_string()],
            ..CommandParams::default()
        };
        let lifecycle = LifecycleParams { parked: 0, most, start_within: HANGS, drain_within: HANGS };
        let params = HookParams { command, ready_path: None, within: HANGS };
        let back_off = |_| Duration::from_millis(1);
        let host = HookHost::new(params, HANGS, back_off);
        let provided = begin(1, move |wires| manager::run(host, lifecycle, wires));
        let mut site = Site { folder, _node: node, provided };
        let Some(NodeEvent::Ready(node)) = timeout(HANGS, site.provided.events.recv()).await.unwrap() else {
            panic!("it does not serve");
        };
        (site, node)
    }

    /// One whose node cannot be stopped.
    async fn with_a_stuck_node(most: u32, is_there: bool) -> Site {
        let (mut site, node) = Site::with_a_node(most).await;
        if is_there {
            site.touch("there");
        }
        site.provided.wanted.send_replace(0);
        let drains = timeout(HANGS, site.provided.events.recv()).await.unwrap();
        assert_eq!(drains, Some(NodeEvent::Draining(node.clone())));
        site.provided.words.send(NodeWord::Empty(node)).await.unwrap();
        site
    }

    async fn until_view(&mut self, is_meant: impl Fn(&ProviderView) -> bool) -> ProviderView {
        timeout(HANGS, self.provided.view.wait_for(is_meant))
            .await
            .expect("it never shows that")
            .unwrap()
            .clone()
    }

    fn touch(&self, name: &str) {
        fs::write(self.folder.path().join(name), "").unwrap();
    }

    fn runs(&self, word: &str) -> usize {
        let runs = fs::read_to_string(self.folder.path().join("runs")).unwrap();
        runs.lines().filter(|run| *run == word).count()
    }
}

#[tokio::test]
async fn a_node_that_list_does_not_name_is_taken_to_have_ended() {
    let mut site = Site::with_a_stuck_node(1, false).await;
    let says_so = |view: &ProviderView| {
        view.trouble.as_ref().is_some_and(|trouble| trouble.contains("`list` does not name it"))
    };
    let view = site.until_view(says_so).await;
    assert_eq!((view.stuck, site.runs("stop")), (0, 10));
}

#[tokio::test]
async fn a_node_that_list_names_is_not_forgotten_however_often_stop_fails() {
    let mut site = Site::with_a_stuck_node(1, true).await;
    site.until_view(|view| view.stuck == 1).await;
    timeout(HANGS, async {
        while site.runs("stop") < 25 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("it is left alone");
    // One more is wanted, and there is no room for it.
    site.provided.wanted.send_replace(1);
    let before = site.runs("stop");
    timeout(HANGS, async {
        while site.runs("stop") < before + 5 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!((site.runs("start"), site.provided.view.borrow().stuck), (1, 1));
}

#[tokio::test]
async fn a_node_is_not_stopped_again_once_another_one_may_have_its_address() {
    let mut site = Site::with_a_stuck_node(2, true).await;
    site.until_view(|view| view.stuck == 1).await;
    site.touch("slow");
    site.provided.wanted.send_replace(1);
    site.until_view(|view| view.stuck == 0 && view.starting == 0).await;
    let runs = fs::read_to_string(site.folder.path().join("runs")).unwrap();
    let since = runs.rsplit_once("start\n").unwrap().1;
    let stops = |runs: &str| runs.lines().filter(|run| *run == "stop").count();
    // One may have begun before the start, and write that down after it.
    assert!(stops(since) <= 1, "{since}");
}

#[tokio::test]
async fn a_start_that_returns_the_address_of_another_node_has_failed() {
    let (mut site, _) = Site::with_a_node(2).await;
    site.provided.wanted.send_replace(2);
    let says_so = |view: &ProviderView| {
        view.trouble.as_ref().is_some_and(|trouble| trouble.contains("a node with that address already"))
    };
    site.until_view(says_so).await;
    assert_eq!(site.runs("stop"), 0, "it would stop the other");
}

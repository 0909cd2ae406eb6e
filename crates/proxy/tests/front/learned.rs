//! What is learned outlives the process.

use crate::support::{App, Gateway, app, gateway, params, soon, until};
use std::fs;
use std::path::{Path, PathBuf};
use suimon_gate::{KindMode, RouteMode};
use suimon_params::{DeclaredRoute, Params, RoutePattern, SessionKind};

/// A gateway that knows sessions and holds none back, finds its limits, and keeps what it learns in
/// `file`.
fn learning(app: &App, file: &Path) -> Params {
    let mut params = params(app.address);
    let mut kind = SessionKind::default();
    kind.gate.mode = KindMode::Off;
    params.sessions.kinds = vec![kind];
    params.routes.declared.clear();
    params.learned_file = Some(file.to_owned());
    params
}

/// Asks for some pages, often enough for them to be worth remembering, and ends the gateway.
async fn used(mut gateway: Gateway) {
    for number in 0..12 {
        for path in ["/echo", "/sized?1", &format!("/items/{number}")] {
            assert_eq!(gateway.get(path).await.status, 200, "{path}");
        }
    }
    soon(gateway.stop()).await.unwrap();
}

fn limit(gateway: &Gateway, name: &str) -> Option<u32> {
    gateway.view().routes.iter().find(|route| route.name == name)?.gate.limit
}

/// Changes what a learned file says, with a checksum that holds.
fn rewrite(path: &Path, change: impl Fn(&str) -> String) {
    let content = fs::read_to_string(path).unwrap();
    let (line, text) = content.split_once('\n').unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!((words[..2].join(" ").as_str(), words.len()), ("suimon learned", 6), "{line}");
    let text = change(text);
    let said = format!("suimon learned {} {} {}", words[2], words[3], text.len());
    let checksum = blake3::hash(format!("{said}\n{text}").as_bytes());
    fs::write(path, format!("{said} {checksum}\n{text}")).unwrap();
}

fn in_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.json");
    (folder, path)
}

#[tokio::test]
async fn a_restarted_gateway_goes_on_with_the_routes_and_limits_it_knew() {
    let (app, (folder, file)) = (app().await, in_folder());
    let first = gateway(learning(&app, &file));
    assert_eq!(first.view().recalled, None);
    used(first).await;
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let known = fs::read_to_string(&file).unwrap();
    for name in ["GET /echo", "GET /sized", "GET /items/{id}"] {
        assert!(known.contains(&format!("\"name\":\"{name}\"")), "{known}");
    }

    // As if a long rush had shown that 37 is best there.
    rewrite(&file, |text| {
        let lines = text.lines().map(|line| {
            if line.contains("/items/{id}") {
                line.replace("\"limit\":2", "\"limit\":37")
            } else {
                line.to_owned()
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    for _ in 0..2 {
        let restarted = gateway(learning(&app, &file));
        let recalled = restarted.view().recalled.expect("it found the file");
        assert!(recalled.routes >= 3 && recalled.age.as_secs() < 60, "{recalled:?}");
        assert_eq!(limit(&restarted, "GET /items/{id}"), Some(37), "before anybody asks");
        assert!(restarted.observer.learned().gate.routes.iter().any(|route| route.took.is_some()));
        used(restarted).await;
    }
}

#[tokio::test]
async fn limits_of_three_nodes_begin_as_those_of_the_one_there_is_and_are_written_as_its() {
    let (app, (_folder, file)) = (app().await, in_folder());
    used(gateway(learning(&app, &file))).await;
    rewrite(&file, |text| {
        assert!(text.contains("\"nodes_up\": 1,"), "{text}");
        let of_three = |line: &str| line.replace("\"limit\":2", "\"limit\":36");
        let lines: Vec<_> = text.lines().map(of_three).collect();
        lines.join("\n").replace("\"nodes_up\": 1,", "\"nodes_up\": 3,")
    });
    for _ in 0..2 {
        let restarted = gateway(learning(&app, &file));
        until("limits are those of one node", || limit(&restarted, "GET /items/{id}") == Some(12)).await;
        used(restarted).await;
        assert!(fs::read_to_string(&file).unwrap().contains("\"nodes_up\": 1,"));
    }
}

#[tokio::test]
async fn a_declared_route_goes_on_too_and_is_there_once() {
    let (app, (_folder, file)) = (app().await, in_folder());
    let declaring = || {
        let pattern = RoutePattern { method: Some("GET".to_owned()), path: "/echo".to_owned() };
        let declared = DeclaredRoute { pattern, query: None, mode: RouteMode::Enforce };
        let mut params = learning(&app, &file);
        params.routes.declared = vec![declared];
        gateway(params)
    };
    used(declaring()).await;
    let mut restarted = declaring();
    let learned = restarted.observer.learned();
    let echo: Vec<_> = learned.routes.iter().filter(|(name, _)| name == "GET /echo").collect();
    assert_eq!(echo.len(), 1, "{learned:?}");
    assert!(learned.gate.routes[echo[0].1.index()].took.is_some(), "{learned:?}");
    soon(restarted.stop()).await.unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_set_aside_and_a_new_one_begun() {
    let (app, other, (folder, file)) = (app().await, app().await, in_folder());
    let holds = |ending: &str, what: &str| {
        fs::read_to_string(folder.path().join(format!("learned.json.{ending}")))
            .is_ok_and(|held| held == what)
    };
    for bad in ["", "nonsense\n", "{\"what\": \"else\"}\n"] {
        fs::write(&file, bad).unwrap();
        let gateway = gateway(learning(&app, &file));
        assert_eq!(gateway.view().recalled, None);
        until("it is set aside", || holds("damaged", bad) && !file.exists()).await;
        used(gateway).await;
        assert!(file.exists(), "it is learned anew");
    }

    let own = fs::read_to_string(&file).unwrap();
    let elsewhere = gateway(learning(&other, &file));
    assert!(elsewhere.view().recalled.is_none(), "it knows another application");
    until("it is set aside", || holds("foreign", &own)).await;
    drop(elsewhere);
    let later = "suimon learned 2 1 of a later version\n";
    fs::write(&file, later).unwrap();
    let downgraded = gateway(learning(&app, &file));
    assert!(downgraded.view().recalled.is_none());
    until("it is set aside", || holds("newer", later)).await;
}

#[tokio::test]
async fn a_gateway_that_cannot_start_leaves_the_file_alone() {
    let (app, other, (_folder, file)) = (app().await, app().await, in_folder());
    used(gateway(learning(&app, &file))).await;
    let running = gateway(learning(&app, &file));
    let mut second = learning(&other, &file);
    second.listen.plain = Some(running.plain);
    assert!(suimon_proxy::Server::bind(second).is_err(), "the port is taken");
    assert!(file.exists(), "another application's gateway did not come to be");
}

#[tokio::test]
async fn of_two_gateways_with_one_file_the_later_one_keeps_it() {
    let (app, (_folder, file)) = (app().await, in_folder());
    let earlier = gateway(learning(&app, &file));
    let later = gateway(learning(&app, &file));
    used(later).await;
    let kept = fs::read(&file).unwrap();
    used(earlier).await;
    assert_eq!(fs::read(&file).unwrap(), kept);
}

#[tokio::test]
async fn a_gateway_that_nobody_asked_writes_nothing() {
    let (app, (folder, file)) = (app().await, in_folder());
    let mut idle = gateway(learning(&app, &file));
    soon(idle.stop()).await.unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

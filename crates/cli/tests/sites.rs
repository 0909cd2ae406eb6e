//! Several sites behind one gateway, as those see them who run it.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod common;

use common::{Backend, Gateway, file, get, run, try_get_at, until};
use suimon_process::Signal;

fn settings(tickets: &Backend, hosts: &str, more: &str) -> String {
    format!(
        "[[site]]\nname = \"tickets\"\nhosts = [\"{hosts}\"]\n[site.upstream]\nnodes = [\"{}\"]\n{more}",
        tickets.url()
    )
}

#[test]
fn each_site_is_shown_commanded_and_reloaded_by_its_name() {
    let (folder, shop, tickets) = (tempfile::tempdir().unwrap(), Backend::start(), Backend::start());
    let path = file(&folder, "suimon.toml", &settings(&tickets, "tickets.example", ""));
    let gateway = Gateway::start(&["--to", &shop.url(), "--config", &path]);
    let ask = |host: &str| try_get_at(gateway.clients, host, "/page").unwrap().0;
    assert_eq!((ask("tickets.example"), ask("shop.example")), (200, 200));
    tickets.wait_for("/page");
    shop.wait_for("/page");

    let status = run(&["status", "--admin", &gateway.admin_url()]);
    assert!(status.out.contains("tickets") && status.out.contains("main"), "{}", status.out);
    let metrics = get(gateway.admin, "/metrics").1;
    for site in ["main", "tickets"] {
        assert!(metrics.contains(&format!("suimon_requests_total{{site=\"{site}\"}} 1")), "{metrics}");
    }
    let paused =
        run(&["override", "open", "--site", "tickets", "--who", "anna", "--admin", &gateway.admin_url()]);
    assert_eq!(paused.code, Some(0), "{paused:?}");
    let listed = |site: &str| run(&["override", "list", "--site", site, "--admin", &gateway.admin_url()]).out;
    assert!(listed("tickets").contains("anna") && !listed("main").contains("anna"));
    let nowhere = run(&["status", "--site", "none", "--admin", &gateway.admin_url()]);
    assert!(nowhere.code != Some(0) && nowhere.err.contains("tickets"), "{nowhere:?}");

    let reload = |text: &str, said: &str| {
        std::fs::write(&path, text).unwrap();
        gateway.process.signal(Signal::HUP);
        gateway.process.wait_err(said)
    };
    let said =
        reload(&settings(&tickets, "new.example", "[site.gate]\npatience = \"30s\"\n"), "settings reloaded");
    assert!(said.contains("site[0].hosts") && said.contains("site[0].gate.patience"), "{said}");
    assert_eq!(ask("new.example"), 200);
    tickets.wait_for("/page");
    let said =
        reload(&settings(&tickets, "new.example", "[site.gate]\npatience = 5\n"), "settings not reloaded");
    assert!(said.contains("site[0].gate.patience = 5"), "{said}");
    let said = reload("", "settings not reloaded");
    assert!(said.contains("site: 1 of them"), "{said}");
    until("it serves as before", || ask("new.example") == 200);
}

#[test]
fn what_is_wrong_with_a_site_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (tickets, twice) = (Backend::start(), folder.path().join("learned.json"));
    let state = format!("[site.learned]\nstate = \"{}\"\n", twice.display());
    let main = format!("[learned]\nstate = \"{}\"\n", twice.display());
    for (more, place) in [
        ("", "suimon.toml:9: site[0].learned.state"),
        ("[site.log]\nfilter = \"info\"\n", "suimon.toml:10: site[0].log: is the gateway's"),
    ] {
        let text = format!("{main}{}", settings(&tickets, "tickets.example", &format!("{state}{more}")));
        let ran = run(&["check", &file(&folder, "suimon.toml", &text)]);
        assert!(ran.code == Some(2) && ran.out.contains(place), "{place}: {ran:?}");
    }
}

//! Several sites behind one gateway: which one a request goes to, and what they have in common.

use crate::passage::{certificate, tls_as};
use crate::support::{
    ASK_EVERY, App, Gateway, app, ask_over, asked_until, collected, connect, gateway, params, request, soon,
    until,
};
use crate::waiting_room::{HTML, room};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use suimon_params::{Params, Recording, SessionKind, Site, SiteCertificate, SiteMatch};
use suimon_proxy::{LineCommand, Observer, Server};

const SHOP: &str = "shop.example";
const TICKETS: &str = "tickets.example";

fn site(name: &str, hosts: &[&str], paths: &[&str], params: Params) -> Site {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    let takes = SiteMatch { hosts: owned(hosts), paths: owned(paths) };
    Site { takes, certificate: None, params: Params { site: Some(name.to_owned()), ..params } }
}

/// A shop, and beside it a site for tickets, each with parameters like these.
async fn shop_and_tickets(like: fn(std::net::SocketAddr) -> Params) -> (App, App, Params) {
    let (shop, tickets) = (app().await, app().await);
    let mut params = like(shop.address);
    params.sites = vec![site("tickets", &[TICKETS], &[], like(tickets.address))];
    (shop, tickets, params)
}

fn get_at(host: &str, path: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut request = request("GET", path, headers, "");
    request.headers_mut().insert("host", host.parse().unwrap());
    request
}

/// Returns a look at the second site.
fn tickets_of(gateway: &Gateway) -> Observer {
    let sites = gateway.observer.sites();
    assert_eq!(sites.iter().map(Observer::site).collect::<Vec<_>>(), [None, Some("tickets".to_owned())]);
    sites.into_iter().next_back().unwrap()
}

#[tokio::test]
async fn each_site_has_its_own_application_and_its_own_limits() {
    let (shop, tickets, params) = shop_and_tickets(params).await;
    let gateway = gateway(params);
    let first = gateway.occupy(&shop).await;
    let waiting = tokio::spawn({
        let request = get_at(SHOP, "/hold", &[]);
        let stream = connect(gateway.plain).await;
        async move { ask_over(stream, request).await }
    });
    until("one waits at the shop", || gateway.waiting() == 1).await;
    tickets.state.release(1);
    let beside = gateway.ask(get_at("TICKETS.example:80", "/hold", &[])).await;
    assert_eq!(
        (beside.status, tickets.state.begun.load(SeqCst)),
        (200, 1),
        "no other site's queue holds it up"
    );
    let view = tickets_of(&gateway).view();
    assert_eq!((view.requests, view.gate.waiting), (1, 0));
    shop.state.release(2);
    assert_eq!((soon(first).await.unwrap().status, soon(waiting).await.unwrap().status), (200, 200));
    assert_eq!((gateway.view().requests, shop.state.begun.load(SeqCst)), (2, 2));

    tickets.kill().await;
    let dead = gateway.ask(get_at(TICKETS, "/page", &[])).await;
    let alive = gateway.ask(get_at(SHOP, "/page", &[])).await;
    assert_eq!((dead.status / 100, alive.status), (5, 200), "one that is down takes no other with it");
}

#[tokio::test]
async fn a_line_and_what_it_signs_are_of_one_site_alone() {
    let (_shop, _tickets, params) = shop_and_tickets(room).await;
    let gateway = gateway(params);
    let tickets = tickets_of(&gateway);
    gateway.taken().await;
    gateway.observer.command_line(None, &LineCommand::Pause).unwrap();
    let first = gateway.ask(get_at(SHOP, "/page", &[HTML])).await;
    let ticket = first.place().expect("the shop is full");
    let free = gateway.ask(get_at(TICKETS, "/page", &[HTML])).await;
    assert_eq!(free.status, 200, "nobody is at the other site");

    tickets.command_line(None, &LineCommand::Pause).unwrap();
    let drawn = || tickets.lines()[0].view.issued;
    let with_foreign =
        gateway.ask(get_at(TICKETS, "/other", &[HTML, ("cookie", &ticket), ("user-agent", "b")])).await;
    assert!(with_foreign.place().is_some() && drawn() == 1, "a place at the shop is none here");
    let value = |cookie: &str| cookie.split_once('=').unwrap().1.to_owned();
    let name = with_foreign.place().unwrap().split('=').next().unwrap().to_owned();
    let renamed = format!("{name}={}", value(&ticket));
    gateway.ask(get_at(TICKETS, "/other", &[HTML, ("cookie", &renamed), ("user-agent", "c")])).await;
    assert_eq!(drawn(), 2, "whatever it is called");
}

#[tokio::test]
async fn sites_of_one_host_are_told_apart_by_paths_however_they_are_spelled() {
    let (shop, tickets) = (app().await, app().await);
    let mut params = room(shop.address);
    params.sites = vec![site("tickets", &[], &["/tickets"], room(tickets.address))];
    let gateway = gateway(params);
    let begun = || (shop.state.begun.load(SeqCst), tickets.state.begun.load(SeqCst));
    for (path, status, expected) in [
        ("/page", 200, (1, 0)),
        ("/tickets/page", 200, (1, 1)),
        ("//Tickets;a=b/page", 200, (1, 2)),
        ("/%74ickets", 400, (1, 2)),
        ("/x/../tickets", 400, (1, 2)),
        ("/tickets/..;/page", 400, (1, 2)),
    ] {
        assert_eq!(gateway.ask(get_at(SHOP, path, &[])).await.status, status, "{path}");
        assert_eq!(begun(), expected, "{path}");
    }
    // The addresses beside the waiting page are those of the page that asks for them.
    let draw = "/.well-known/suimon/draw";
    tickets_of(&gateway)
        .command_line(None, &LineCommand::Open { at: std::time::SystemTime::now(), by_lot: true })
        .unwrap();
    let of_shop = gateway.ask(get_at(SHOP, draw, &[])).await.text();
    let referer = format!("http://{SHOP}/tickets/page");
    let of_tickets = gateway.ask(get_at(SHOP, draw, &[("referer", &referer)])).await.text();
    assert!(of_shop == "[]" && of_tickets.contains("seed_sha256"), "{of_shop} {of_tickets}");
    let elsewhere = gateway.ask(get_at(SHOP, draw, &[("referer", "http://evil.example/tickets/page")])).await;
    assert_eq!(elsewhere.text(), "[]");
}

#[tokio::test]
async fn an_address_below_the_base_path_of_one_site_alone_is_that_sites() {
    let (shop, tickets) = (app().await, app().await);
    let below = |address, base: &str| {
        let mut params = room(address);
        params.waiting_room.base_path = Some(base.to_owned());
        params
    };
    let mut params = below(shop.address, "");
    params.sites = vec![site("tickets", &[], &["/tickets"], below(tickets.address, "/tickets"))];
    let gateway = gateway(params);
    tickets_of(&gateway)
        .command_line(None, &LineCommand::Open { at: std::time::SystemTime::now(), by_lot: true })
        .unwrap();
    let of_shop = format!("http://{SHOP}/page");
    let of_tickets = format!("http://{SHOP}/tickets/page");
    let asked = async |path, referer: Option<&String>| {
        let headers: Vec<_> = referer.map(|page| ("referer", page.as_str())).into_iter().collect();
        gateway.ask(get_at(SHOP, path, &headers)).await.text()
    };
    let (own, plain) = ("/tickets/.well-known/suimon/draw", "/.well-known/suimon/draw");
    for (path, referer, is_of_tickets) in [
        (own, None, true),
        (own, Some(&of_shop), true),
        (plain, None, false),
        (plain, Some(&of_tickets), true),
    ] {
        let answer = asked(path, referer).await;
        assert_eq!(answer.contains("seed_sha256"), is_of_tickets, "{path} {referer:?}: {answer}");
    }

    // Where several sites stand below one path, the page says whose it is, as it does without one.
    let mut params = below(shop.address, "/x");
    params.sites = vec![site("tickets", &[], &["/tickets"], below(tickets.address, "/x"))];
    gateway.observer.adopt(params).unwrap();
    let shared = "/x/.well-known/suimon/draw";
    assert_eq!(asked(shared, None).await, "[]");
    assert!(asked(shared, Some(&of_tickets)).await.contains("seed_sha256"));
}

#[tokio::test]
async fn a_visitor_of_two_sites_by_one_connection_is_one_session_at_each() {
    let like = |address| Params {
        sessions: suimon_params::Sessions { kinds: vec![SessionKind::default()], ..Default::default() },
        ..params(address)
    };
    let (_shop, _tickets, params) = shop_and_tickets(like).await;
    let gateway = gateway(params);
    let stream = TokioIo::new(connect(gateway.plain).await);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    for _ in 0..3 {
        for host in [SHOP, TICKETS] {
            let answer =
                collected(soon(sender.send_request(get_at(host, "/page", &[]))).await.unwrap()).await;
            assert_eq!(answer.status, 200);
        }
    }
    driver.abort();
    let admitted = |observer: &Observer| observer.view().kinds[0].1.admitted;
    assert_eq!((admitted(&gateway.observer), admitted(&tickets_of(&gateway))), (1, 1));
}

#[tokio::test]
async fn each_site_shows_its_own_certificate() {
    let (_shop, _tickets, mut params) = shop_and_tickets(params).await;
    let (of_shop, of_tickets) = (certificate("a"), certificate(TICKETS));
    params.listen.tls = Some(of_shop.listen());
    params.sites[0].certificate = Some(SiteCertificate { cert: of_tickets.cert(), key: of_tickets.key() });
    let mut elsewhere = params.clone();
    elsewhere.sites[0].takes.hosts = vec!["elsewhere.example".to_owned()];
    let gateway = gateway(elsewhere);
    let address = gateway.tls.unwrap();
    let shows = async |name, files| tls_as(name, connect(address).await, files, &[b"http/1.1"]).await.is_ok();
    assert!(!shows(TICKETS, &of_tickets).await);
    gateway.observer.adopt(params).unwrap();
    assert!(shows(TICKETS, &of_tickets).await && shows("a", &of_shop).await, "by the hosts that are adopted");
    assert!(!shows(TICKETS, &of_shop).await && !shows("a", &of_tickets).await);

    // A broken certificate of one keeps no other from being renewed.
    std::fs::write(of_tickets.cert(), "half a certifica").unwrap();
    of_shop.renew("new.example");
    asked_until("the shop's is renewed", ASK_EVERY, async || {
        shows("new.example", &of_shop).await.then_some(())
    })
    .await;
}

#[tokio::test]
async fn other_settings_are_adopted_at_all_sites_or_at_none() {
    let (_shop, tickets, params) = shop_and_tickets(params).await;
    let gateway = gateway(params.clone());
    let asked = async |host| {
        let before = tickets.state.begun.load(SeqCst);
        gateway.ask(get_at(host, "/page", &[])).await;
        tickets.state.begun.load(SeqCst) > before
    };
    assert!(asked(TICKETS).await && !asked("new.example").await);
    let mut wanted = params.clone();
    wanted.sites[0].takes.hosts = vec!["new.example".to_owned()];
    gateway.observer.adopt(wanted.clone()).unwrap();
    assert!(!asked(TICKETS).await && asked("new.example").await);

    wanted.sites[0].takes.hosts = vec![TICKETS.to_owned()];
    wanted.sites[0].params.waiting_room.template = Some("/nowhere".into());
    let why = gateway.observer.adopt(wanted).unwrap_err().to_string();
    assert!(why.contains("site tickets"), "{why}");
    assert!(asked("new.example").await, "nothing is changed then");
    let why = gateway.observer.adopt(Params { sites: Vec::new(), ..params }).unwrap_err().to_string();
    assert!(why.contains("other sites take a restart"), "{why}");
}

#[tokio::test]
async fn what_is_wrong_with_a_site_is_told_before_anything_is_bound() {
    let mut params = params("127.0.0.1:1".parse().unwrap());
    let mut wrong = params.clone();
    wrong.waiting_room.template = Some("/nowhere".into());
    params.sites = vec![site("tickets", &[TICKETS], &[], wrong)];
    let refused: Vec<_> = Server::check(&params).into_iter().map(|(key, _)| key).collect();
    assert_eq!(refused, ["site[0].waiting_room.template"]);
}

/// Returns the files in a folder with what is in them.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn a_start_that_fails_at_a_later_site_changes_no_file_of_an_earlier_one() {
    let (_shop, _tickets, mut params) = shop_and_tickets(room).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    params.waiting_room.state_file = Some(file("room.json"));
    params.learned_file = Some(file("learned.json"));
    params.record = Some(Recording { file: file("gate.rec"), bytes_max: Recording::BYTES_MIN });
    soon(gateway(params.clone()).stop()).await.unwrap();
    fs::write(file("room.json"), "half of it").unwrap();
    fs::write(file("learned.json"), "nonsense").unwrap();
    fs::write(file("tickets.rec"), "not a recording").unwrap();
    let before = files(folder.path());
    assert!(before.contains_key(&file("gate.rec")));

    let tickets = params.sites[0].params.clone();
    // As the site is made, and as it begins.
    let mut made = tickets.clone();
    made.waiting_room.state_file = Some(folder.path().to_owned());
    let recording = Recording { file: file("tickets.rec"), bytes_max: Recording::BYTES_MIN };
    let begun = Params { record: Some(recording), ..tickets };
    for (wrong, said) in [(made, "is a directory"), (begun, "not a recording")] {
        params.sites[0].params = wrong;
        let why = Server::bind(params.clone()).unwrap_err().to_string();
        assert!(why.to_lowercase().contains(said), "{why}");
        assert_eq!(files(folder.path()), before, "{why}");
    }

    params.sites[0].params.record = None;
    let gateway = gateway(params);
    until("what cannot be used is set aside", || {
        ["room.json.broken", "learned.json.damaged", "gate.rec.000001"].iter().all(|name| file(name).exists())
    })
    .await;
    drop(gateway);
    assert!(file("room.json.broken").exists(), "a start that has not failed puts nothing back");
}

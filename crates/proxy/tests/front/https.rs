//! Plain HTTP that is sent to HTTPS, and headers that answers carry.

use crate::connections::this_machine;
use crate::passage::{certificate, tls_client};
use crate::requests::noting;
use crate::support::{
    app, ask_over, collected, connect, gateway, get, h2_over, params, raw, request, soon, until,
};
use crate::waiting_room::{HTML, room};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use suimon_params::{Hsts, Params, ResponseHeader};
use suimon_proxy::RequestOutcome;

const HSTS: &str = "strict-transport-security";

fn told(params: &mut Params) {
    params.https.redirect = true;
    params.https.hsts = Some(Hsts { max_age: Duration::from_secs(300), subdomains: true, preload: false });
    params.response_headers = vec![ResponseHeader::parse("X-Content-Type-Options: nosniff").unwrap()];
}

#[tokio::test]
async fn plain_http_is_sent_to_the_tls_listener_and_nothing_of_it_reaches_the_application() {
    let app = app().await;
    let files = certificate("a");
    let mut params = params(app.address);
    told(&mut params);
    params.listen.tls = Some(files.listen());
    let (gateway, kept) = noting(params, None);
    let (plain, tls) = (gateway.plain.port(), gateway.tls.unwrap().port());
    let own = format!("shop.example:{plain}");
    let at = |method: &str, host: &str, body: &str| {
        let mut request = request(method, "/order?id=1&x=%2F", &[], body.to_owned());
        request.headers_mut().insert("host", host.parse().unwrap());
        request
    };
    for (method, body, status) in
        [("GET", "", 301), ("HEAD", "", 301), ("POST", "seats=2", 308), ("PUT", "x", 308)]
    {
        let answer = gateway.ask(at(method, &own, body)).await;
        assert_eq!(answer.status, status, "{method}");
        assert_eq!(answer.header("location"), format!("https://shop.example:{tls}/order?id=1&x=%2F"));
        assert_eq!((answer.header("cache-control"), answer.body.len()), ("no-store", 0));
        // Not over plain HTTP, where anybody could say it.
        assert_eq!((answer.header(HSTS), answer.header("x-content-type-options")), ("", "nosniff"));
    }
    // Ports are mapped on the way.
    let mapped = gateway.ask(at("GET", "shop.example", "")).await;
    assert_eq!(mapped.header("location"), "https://shop.example/order?id=1&x=%2F");
    // HTTP/2 in clear.
    let (mut sender, _driver) = h2_over(connect(gateway.plain).await).await;
    let mut page = get(&format!("http://{own}/page"), &[]);
    page.headers_mut().remove("host");
    let answer = collected(soon(sender.send_request(page)).await.unwrap()).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (301, &*format!("https://shop.example:{tls}/page"))
    );
    assert_eq!(app.state.begun.load(SeqCst), 0, "none has reached it");
    // Whoever gave no host cannot be sent anywhere.
    let nowhere = raw(gateway.plain, b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(nowhere.starts_with("HTTP/1.0 400 ") && nowhere.contains("no_host"), "{nowhere}");
    // Proofs for an authority are the application's.
    let proof = gateway.get("/.well-known/acme-challenge/abc").await;
    assert_eq!((proof.status, &*proof.text()), (200, "ok"));
    assert_eq!(gateway.view().https_redirects, 6);
    assert_eq!(gateway.view().faults, 1);
    until("all are told of", || kept.outcomes().len() == 8).await;
    let outcomes = kept.outcomes();
    let of = |outcome| outcomes.iter().filter(|own| **own == outcome).count();
    assert_eq!((of(RequestOutcome::Redirected), of(RequestOutcome::BadRequest)), (6, 1), "{outcomes:?}");
}

#[tokio::test]
async fn a_connection_goes_on_behind_a_redirect() {
    let app = app().await;
    let mut params = params(app.address);
    params.https.redirect = true;
    let gateway = gateway(params);
    let two = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
               GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = raw(gateway.plain, two.as_bytes()).await;
    assert!(answers.contains("location: https://a/a\r\n"), "{answers}");
    assert!(answers.contains("location: https://a/b\r\n"), "{answers}");
    // One that asks first need not send what nobody reads.
    let asks = "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let answer = raw(gateway.plain, asks.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
}

#[tokio::test]
async fn a_proxy_says_who_came_by_plain_http() {
    let app = app().await;
    let mut params = params(app.address);
    told(&mut params);
    params.trusted_proxies = this_machine();
    let gateway = gateway(params);
    let asked = |proto: &'static str| gateway.ask(get("/x", &[("x-forwarded-proto", proto)]));
    let sent = asked("http").await;
    assert_eq!((sent.status, sent.header("location")), (301, "https://shop.example/x"));
    assert_eq!(sent.header(HSTS), "");
    let served = asked("https").await;
    assert_eq!((served.status, served.header(HSTS)), (200, "max-age=300; includeSubDomains"));
    // Its own health check says nothing.
    let check = gateway.get("/health").await;
    assert_eq!((check.status, check.header(HSTS)), (200, ""));
}

#[tokio::test]
async fn answers_over_https_carry_what_the_application_does_not_say_itself() {
    let app = app().await;
    let files = certificate("a");
    let mut params = params(app.address);
    told(&mut params);
    params.listen.tls = Some(files.listen());
    let gateway = gateway(params.clone());
    let ask = async |request| {
        let stream = tls_client(gateway.tls.unwrap(), &files, &[b"http/1.1"]).await;
        ask_over(stream, request).await
    };
    let page = ask(get("/page", &[])).await;
    assert_eq!((page.status, page.header(HSTS)), (200, "max-age=300; includeSubDomains"));
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let own = [("x-say-strict-transport-security", "max-age=1"), ("x-say-x-content-type-options", "own")];
    let page = ask(get("/page", &own)).await;
    assert_eq!(page.headers.get_all(HSTS).iter().collect::<Vec<_>>(), ["max-age=1"]);
    assert_eq!(page.headers.get_all("x-content-type-options").iter().collect::<Vec<_>>(), ["own"]);
    // What is wrong with a request, and an application that is gone, are answered by us.
    let wrong = ask(request("TRACE", "/", &[], "")).await;
    assert_eq!((wrong.status, wrong.header(HSTS)), (405, "max-age=300; includeSubDomains"));
    app.kill().await;
    let gone = ask(get("/page", &[])).await;
    assert_eq!((gone.status, gone.header(HSTS)), (502, "max-age=300; includeSubDomains"));

    // Other settings are adopted while it runs.
    params.https.hsts = None;
    params.response_headers.clear();
    gateway.observer.adopt(params).unwrap();
    let gone = ask(get("/page", &[])).await;
    assert_eq!((gone.header(HSTS), gone.header("x-content-type-options")), ("", ""));
}

#[tokio::test]
async fn the_waiting_room_carries_them_too() {
    let app = app().await;
    let files = certificate("a");
    let mut params = room(app.address);
    told(&mut params);
    params.https.redirect = false;
    params.listen.tls = Some(files.listen());
    let gateway = gateway(params);
    gateway.taken().await;
    for (path, headers, status) in [("/page", &[HTML][..], 503), ("/.well-known/suimon/draw", &[], 200)] {
        let stream = tls_client(gateway.tls.unwrap(), &files, &[b"http/1.1"]).await;
        let page = ask_over(stream, get(path, headers)).await;
        assert_eq!((page.status, page.header(HSTS)), (status, "max-age=300; includeSubDomains"), "{path}");
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{path}");
    }
}

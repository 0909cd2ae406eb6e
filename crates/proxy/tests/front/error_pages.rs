//! What people see where the application gives them nothing.

use crate::support::{app, connect, gateway, get, params, request, soon};
use std::net::SocketAddr;
use suimon_params::Params;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
const JAPANESE: (&str, &str) = ("accept-language", "ja,en;q=0.5");

/// A site with a name, a picture and colours of its own, and nobody behind it.
fn site(app: SocketAddr) -> Params {
    let mut params = params(app);
    // Held back by nobody, like an admitted visitor; newcomers would get a place instead.
    let mut kind = suimon_params::SessionKind::default();
    kind.gate.mode = suimon_gate::KindMode::Off;
    kind.gate.patience = Some(std::time::Duration::from_millis(100));
    params.sessions.kinds = vec![kind];
    params.waiting_room.name = "Riverside Tickets".to_owned();
    params.waiting_room.logo = Some("/logo.svg".to_owned());
    params.waiting_room.colours = Some(("#812040".to_owned(), "#f0a0c0".to_owned()));
    params
}

#[tokio::test]
async fn a_dead_application_is_told_of_in_the_visitors_language_and_in_the_sites_name() {
    let app = app().await;
    let address = app.address;
    app.kill().await;
    let gateway = gateway(site(address));
    let page = gateway.ask(get("/concerts/42", &[HTML, JAPANESE])).await;
    assert_eq!((page.status, page.header("content-type")), (502, "text/html; charset=utf-8"));
    let text = page.text();
    assert!(text.contains("<html lang=ja") && text.contains("ただいまサイトにつながりません"), "{text}");
    assert!(
        text.contains("Riverside Tickets") && text.contains("src=\"/logo.svg\"") && text.contains("#812040"),
        "{text}"
    );
    assert!(text.contains("content=10>") && text.contains("/.well-known/suimon/refresh?off"), "{text}");
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(page.header("cache-control"), "no-store");
    // The next retry is due less soon, and there is none after the visitor has stopped it.
    let tries = page.cookie("suimon-tries=").unwrap();
    let again = gateway.ask(get("/concerts/42", &[HTML, ("cookie", &tries)])).await;
    assert!(again.text().contains("content=20>"), "{}", again.text());
    let stopped = gateway.ask(get("/concerts/42", &[HTML, ("cookie", "suimon-refresh=off")])).await;
    assert!(!stopped.text().contains("http-equiv=refresh"), "{}", stopped.text());
    let sent = gateway.ask(request("POST", "/order", &[HTML], "seats=2")).await;
    assert!(
        !sent.text().contains("http-equiv=refresh") && sent.text().contains("nothing has been ordered"),
        "{}",
        sent.text()
    );
    // Programs read what they read before.
    let problem = gateway.ask(get("/api", &[("accept", "application/json")])).await;
    assert_eq!(problem.header("content-type"), "application/problem+json");
}

#[tokio::test]
async fn a_browser_whose_cookies_have_grown_too_large_is_told_so_in_its_language() {
    let app = app().await;
    let mut params = site(app.address);
    params.limits.head_bytes = 8 << 10;
    let gateway = gateway(params);
    for (accept, language, expected) in [
        ("text/html,*/*;q=0.8", "de-DE,de;q=0.9", "Ihr Browser sendet zu viel"),
        ("application/json", "de", "application/problem+json"),
    ] {
        let mut connection = connect(gateway.plain).await;
        let head = format!(
            "GET / HTTP/1.1\r\nhost: shop.example\r\naccept: {accept}\r\naccept-language: {language}\r\n"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.flush().await.unwrap();
        let mut answer = Vec::new();
        let cookie = format!("cookie: a={}\r\n\r\n", "x".repeat(12 << 10));
        let _ = connection.write_all(cookie.as_bytes()).await;
        let _ = soon(connection.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
}

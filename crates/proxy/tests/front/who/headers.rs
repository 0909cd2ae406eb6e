//! What is believed of a client, over the wire.

use super::*;
use crate::support::{raw, soon};
use std::net::Ipv4Addr;
use suimon_params::Network;

fn head_of(answer: &str) -> String {
    answer.split_once("\r\n\r\n").expect("a head and a body").1.to_lowercase()
}

#[tokio::test]
async fn nothing_that_only_proxies_say_reaches_the_application_from_a_stranger() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    let said = [
        "X-Forwarded-Port: 666",
        "X-Forwarded-Prefix: //evil.example",
        "X-Forwarded-Ssl: on",
        "X-Forwarded-User: evil",
        "X-Forwarded-For: evil",
        "X-Real-IP: evil",
        "True-Client-IP: evil",
        "CF-Connecting-IP: evil",
        "Forwarded: for=evil",
        "X-Original-URL: /evil",
        "X-Rewrite-URL: /evil",
        "Proxy: evil",
        "X_Forwarded_For: evil",
        "X-Forwarded_Proto: evil",
        "Suimon_Waiting: evil",
        "Content_Length: 666",
        "X-Forwarded-Host: \u{fc}evil",
    ]
    .join("\r\n");
    let request =
        format!("GET /head HTTP/1.1\r\nHost: shop\r\n{said}\r\nApi_Key: mine\r\nConnection: close\r\n\r\n");
    let seen = head_of(&raw(gateway.plain, request.as_bytes()).await);
    assert!(!seen.contains("evil") && !seen.contains("666") && !seen.contains("x-forwarded-ssl"), "{seen}");
    assert!(
        seen.contains("x-forwarded-for: 127.0.0.1\n") && seen.contains("x-forwarded-host: shop\n"),
        "{seen}"
    );
    assert!(seen.contains("api_key: mine"), "what is no such word is the application's own affair: {seen}");
}

#[tokio::test]
async fn what_is_asked_of_us_alone_is_not_passed_on() {
    let app = app().await;
    let gateway = gateway(open(app.address));
    let asks = async |expects: &str| {
        let request = format!(
            "POST /head HTTP/1.1\r\nHost: shop\r\n{expects}Content-Length: 2\r\nConnection: close\r\n\r\nhi"
        );
        soon(raw(gateway.plain, request.as_bytes())).await
    };
    let plain = asks("Expect: 100-continue\r\n").await;
    assert!(plain.contains("POST /head") && !plain.to_lowercase().contains("\nexpect"), "{plain}");
    let two = asks("Expect: 100-continue\r\nExpect: 200-ok\r\n").await;
    assert!(two.starts_with("HTTP/1.1 417"), "{two}");
}

#[tokio::test]
async fn bytes_that_are_no_letters_take_nobody_out_of_the_quota_of_their_network() {
    let app = app().await;
    let mut params = open(app.address);
    params.trusted_proxies = vec![Network { address: Ipv4Addr::LOCALHOST.into(), prefix: 8 }];
    (params.waiting_room.tickets_burst, params.waiting_room.tickets_per_second) = (3, 1e-6);
    let gateway = gateway(params);
    gateway.tell(None, &LineCommand::Pause);
    gateway.ask(get("/page", &[JSON, ("x-forwarded-for", "203.0.113.1")])).await;
    until("somebody waits", || gateway.observer.lines()[0].view.issued > 0).await;
    asked_until("the gateway knows of them", ASK_EVERY, async || {
        gateway.get("/robots.txt").await.headers.contains_key("x-was-told").then_some(())
    })
    .await;
    for garbage in ["\u{ff}", "1.2.3.4", "unknown, \u{ff}", "\u{ff}\u{fe},,,", "\""] {
        let mut drawn = 0;
        for _ in 0..6 {
            // As a proxy writes it that adds to the line it was sent.
            let line = format!("X-Forwarded-For: {garbage}, 198.51.100.7\r\n");
            let request = format!(
                "GET /page HTTP/1.1\r\nHost: shop\r\nAccept: application/json\r\n{line}Connection: close\r\n\r\n"
            );
            let latin: Vec<u8> = request.chars().map(|letter| letter as u8).collect();
            let answer = raw(gateway.plain, &latin).await;
            drawn += usize::from(!answer.contains("\"full\""));
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        }
        assert!(drawn <= 3, "{garbage}: {drawn} numbers");
    }
    let drawn = gateway.observer.lines()[0].view.issued;
    assert!(drawn <= 1 + 3, "{drawn} numbers of two networks");
}

//! A shop in axum with the gate inside: `cargo run -p suimon-tower --features axum --example axum`.
//!
//! It listens at 127.0.0.1:3000, or where its first argument says. A search keeps a core busy for 0.2 s; the
//! gate finds how many of them at once are good.

use axum::Router;
use axum::routing::get;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use suimon_tower::Gate;

const SETTINGS: &str = r#"
[[session]]
kind = "visit"
ends = ["GET /logout"]
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gate = Gate::open(SETTINGS)?;
    let pages = Router::new()
        .route("/", get(|| async { "welcome\n" }))
        .route("/search", get(search))
        .route("/logout", get(|| async { "goodbye\n" }));
    let app = pages.layer(gate.layer()).into_make_service_with_connect_info::<SocketAddr>();
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("listening on http://{}", listener.local_addr()?);

    let (stop, stopped) = tokio::sync::watch::channel(());
    let mut told = stopped.clone();
    let gate = tokio::spawn(gate.run(async move { _ = told.changed().await }));
    let mut told = stopped;
    let served = axum::serve(listener, app).with_graceful_shutdown(async move { _ = told.changed().await });
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.send_replace(());
        }
    });
    served.await?;
    gate.await?;
    Ok(())
}

async fn search() -> &'static str {
    // Within the request's own future, which holds the slot. What it spawns would go on without one once the client
    // has left.
    tokio::task::block_in_place(|| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
    });
    "found\n"
}

//! What is answered where.

use crate::Source;
use crate::guard::guard;
use crate::listener::Bounded;
use crate::state::{State, not_ready_because};
use axum::Router;
use axum::extract;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use std::future::Future;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What the operator's listener is told before it starts.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// Names it may be reached by, beside localhost and addresses.
    pub hosts: Vec<String>,
    /// Version of the gateway, to be shown.
    pub version: String,
}

const INDEX: &str = "\
Suimon, operator's listener

/metrics    numbers, for Prometheus
/api/state  everything at this moment, as JSON; `suimon status` prints it
/healthz    200 as long as the process answers
/readyz     200 if new visitors should be sent here
";

/// What every answer is made from.
#[derive(Clone)]
struct Shown {
    source: Arc<dyn Source>,
    version: Arc<str>,
}

/// Answers on `listener` until `ended` is done and open requests are answered.
///
/// # Errors
/// Fails if the listener does.
pub async fn serve(
    listener: TcpListener,
    params: Params,
    source: Arc<dyn Source>,
    ended: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(Bounded::new(listener), router(params, source)).with_graceful_shutdown(ended).await
}

fn router(params: Params, source: Arc<dyn Source>) -> Router {
    let hosts: Arc<[String]> = params.hosts.into();
    Router::new()
        .route("/", get(async || INDEX))
        .route("/metrics", get(metrics))
        .route("/api/state", get(state))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here; / lists what there is\n"))
        .layer(middleware::from_fn_with_state(hosts, guard))
        .with_state(Shown { source, version: params.version.into() })
}

async fn metrics(extract::State(shown): extract::State<Shown>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, crate::metrics::render(&*shown.source, &shown.version)).into_response()
}

async fn state(extract::State(shown): extract::State<Shown>) -> Json<State> {
    Json(State::of(&*shown.source, &shown.version))
}

async fn readyz(extract::State(shown): extract::State<Shown>) -> Response {
    match not_ready_because(shown.source.is_draining(), &shown.source.nodes()) {
        None => "ready\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response(),
    }
}

//! One request to a gateway's operator address, over plain HTTP.

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::http::request::Builder;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use suimon_proxy::upstream::{NodeParams, Scheme};
use tokio::net::TcpStream;

/// The longest a gateway may take to tell its state.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why nothing was fetched.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The URL cannot be used.
    BadUrl(String),
    /// Nobody answered there, or not as a gateway would.
    NoAnswer(String),
}

/// Returns the body of a 200 answer to `GET path` at the origin `base`.
pub(crate) async fn get(base: &str, path: &str) -> Result<Bytes, FetchError> {
    ask(base, Request::get(path), String::new()).await
}

/// Returns the body of a 200 answer to `POST path` of this JSON at the origin `base`.
pub(crate) async fn post(base: &str, path: &str, json: String) -> Result<Bytes, FetchError> {
    ask(base, Request::post(path).header("content-type", "application/json"), json).await
}

async fn ask(base: &str, request: Builder, body: String) -> Result<Bytes, FetchError> {
    let origin = NodeParams::parse(base).map_err(FetchError::BadUrl)?;
    if origin.scheme == Scheme::Https {
        return Err(FetchError::BadUrl(format!("{base}: the operator's listener speaks plain http")));
    }
    match tokio::time::timeout(PATIENCE, exchange(&origin, request, body)).await {
        Ok(answer) => answer.map_err(FetchError::NoAnswer),
        Err(_) => Err(FetchError::NoAnswer(format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

async fn exchange(origin: &NodeParams, request: Builder, body: String) -> Result<Bytes, String> {
    let stream =
        TcpStream::connect((origin.host.as_str(), origin.port)).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let driver = tokio::spawn(connection);
    let request = request.header("host", origin.authority()).header("connection", "close");
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await
        .map_err(|error| error.to_string())?
        .to_bytes();
    driver.abort();
    if !status.is_success() {
        let said = String::from_utf8_lossy(&body);
        return Err(format!("answered {status}: {}", said.lines().next().unwrap_or("")));
    }
    Ok(body)
}

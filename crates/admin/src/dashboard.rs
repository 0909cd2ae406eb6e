//! The dashboard's three files. They stand in this crate's `dashboard` folder, so that the crate
//! has all it needs wherever it is built.

use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};

/// The page loads nothing from elsewhere, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

type Headers = [(HeaderName, &'static str); 2];

const fn headers(kind: &'static str) -> Headers {
    [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY)]
}

pub(crate) fn page() -> Response {
    (headers("text/html; charset=utf-8"), include_str!("../dashboard/index.html")).into_response()
}

pub(crate) async fn script() -> Response {
    (headers("text/javascript; charset=utf-8"), include_str!("../dashboard/app.js")).into_response()
}

pub(crate) async fn style() -> Response {
    (headers("text/css; charset=utf-8"), include_str!("../dashboard/app.css")).into_response()
}

/// Returns whether a browser asks, rather than a person with a command.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

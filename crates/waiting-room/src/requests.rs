//! What a request is to the waiting room, judged by its head: whether it draws a number, whether
//! its form is kept, who sent it.

use super::answer::EARLIEST;
use super::endpoint::InternalEndpoint;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use http::request::Parts;
use http::{Method, Uri};
use suimon_identity::ticket::Ticket;
use suimon_message::accept::Form as AnswerForm;
use suimon_params::WaitingRoomParams;

/// A request with this header is a poll: it asks for the status of a place, and for nothing of the
/// application's.
pub const POLL: HeaderName = HeaderName::from_static("suimon-poll");
/// The header's value where the holder of a called place asks to begin: it is held at the gate
/// until the session has begun.
const ENTER: &[u8] = b"enter";
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
const PURPOSE: HeaderName = HeaderName::from_static("purpose");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns whether a request is for the waiting room itself: a poll, or for an address beside the
/// page.
pub fn is_for_it(parts: &Parts, params: &WaitingRoomParams) -> bool {
    parts.headers.contains_key(POLL) || is_beside_the_page(parts.uri.path(), params)
}

/// Returns whether a path is that of an address beside the page.
pub fn is_beside_the_page(path: &str, params: &WaitingRoomParams) -> bool {
    InternalEndpoint::of(path, params).is_some()
}

/// Returns whether a request may draw a number: it is the visit of a page, or of a program that
/// asks for JSON explicitly. Pictures, scripts and prefetches draw none.
pub fn draws(parts: &Parts) -> bool {
    if !matches!(parts.method, Method::GET | Method::POST) {
        return false;
    }
    let headers = &parts.headers;
    let is = |name: &HeaderName, word: &str| {
        headers.get(name).is_some_and(|value| {
            value.as_bytes().to_ascii_lowercase().windows(word.len()).any(|part| part == word.as_bytes())
        })
    };
    if is(&SEC_PURPOSE, "prefetch") || is(&PURPOSE, "prefetch") {
        return false;
    }
    // From elsewhere the ticket is not sent, and a new one would take its place.
    if parts.method == Method::POST && !is_from_here(parts) {
        return false;
    }
    let form = AnswerForm::of(headers);
    let is_visit = headers.get(&SEC_FETCH_MODE).map(|mode| mode.as_bytes().eq_ignore_ascii_case(b"navigate"));
    match is_visit {
        // A page in a frame has no visitor in front of it who would wait there.
        Some(true) => {
            headers.get(&SEC_FETCH_DEST).is_none_or(|what| what.as_bytes().eq_ignore_ascii_case(b"document"))
        }
        Some(false) => form == AnswerForm::Json && is_from_here(parts),
        None => form != AnswerForm::Problem,
    }
}

/// Returns whether the waiting page can keep what is sent: the fields of a form, from a page of
/// this site.
pub fn keeps_form(parts: &Parts) -> bool {
    let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        && AnswerForm::of(&parts.headers) == AnswerForm::Page
        && is_from_here(parts)
}

/// Returns whether the holder of a place asks to begin.
pub fn asks_to_begin(parts: &Parts) -> bool {
    parts.headers.get(&POLL).is_some_and(|value| value.as_bytes() == ENTER)
}

/// Returns whether the holder of a ticket polls sooner than anybody needs to.
pub(crate) fn is_too_early(ticket: &Ticket, now: u32) -> bool {
    now >= ticket.heard && now - ticket.heard < EARLIEST && ticket.again_after > 0
}

/// Returns whether a request was sent by a page of this site, as far as its browser says; a client
/// that says nothing is no browser.
pub(crate) fn is_from_here(parts: &Parts) -> bool {
    if let Some(site) = parts.headers.get(&SEC_FETCH_SITE) {
        return matches!(site.as_bytes(), b"same-origin" | b"none");
    }
    match parts.headers.get(ORIGIN) {
        None => true,
        Some(origin) => {
            let origin = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok());
            origin.is_some_and(|origin| is_host(parts, &origin))
        }
    }
}

/// Returns whether an address is of the host that a request was sent to.
pub(crate) fn is_host(parts: &Parts, uri: &Uri) -> bool {
    let own = parts.uri.authority().map(http::uri::Authority::as_str);
    let own = own.or_else(|| parts.headers.get(HOST).and_then(|host| host.to_str().ok()));
    matches!((own, uri.authority()), (Some(own), Some(other)) if own.eq_ignore_ascii_case(other.as_str()))
}

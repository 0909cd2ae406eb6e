//! What the waiting room answers: the page, its twin for programs, and what each of them carries.

use super::endpoint::names_a_host;
use super::notice::{LastNotice, NoticeState, WaitNotice};
use super::page::{Form, PageDetails};
use super::{WaitingRoom, texts};
use http::header::{
    ACCEPT, ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderMap,
    HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE, VARY,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use std::borrow::Cow;
use std::time::Duration;
use suimon_gate::InLine;
use suimon_identity::own::{CODE_COOKIE, LANGUAGE_COOKIE, REFRESH_COOKIE, TICKET};
use suimon_identity::ticket::Ticket;
use suimon_line::{Position, PositionStatus, Wait};
use suimon_message::accept::{self, Form as AnswerForm};
use suimon_model::KindId;
use suimon_params::WaitingStatus;
use suimon_store::lines::LineEpoch;

const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// How far the bar is for the next visitor in line, per cent, where no time is known.
const NEARLY: u32 = 95;
/// Seconds after which a page without a place polls again.
const COOKIELESS_RETRY: u32 = 60;
/// Seconds after which a client that got no place is to come again.
pub(crate) const FULL_RETRY: u32 = 10;
/// A client that polls again sooner than this many seconds after is told to come later, and the
/// gate is not asked.
pub(crate) const EARLIEST: u32 = 2;

/// The moment of an answer, and its connection.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Seconds since 1970, ...
    pub now: u32,
    /// ... which is this by the gate's clock.
    pub instant: suimon_model::Instant,
    /// Whether the client's connection is encrypted.
    pub secure: bool,
}

impl At {
    fn unix(self, time: suimon_model::Instant) -> u32 {
        self.now.saturating_add(u32::try_from(time.since(self.instant).as_secs()).unwrap_or(u32::MAX))
    }
}

/// A body that came with a request that is not admitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubmittedForm {
    /// Nothing.
    Nothing,
    /// A form that the page keeps.
    Form(Form),
    /// Something that the page cannot keep.
    Lost,
}

impl WaitingRoom {
    /// Returns the answer to a request that is not admitted, and has a place. `held` is the ticket
    /// it came with.
    pub fn answer(
        &self,
        parts: &Parts,
        waits: &InLine,
        held: Option<Ticket>,
        sent: SubmittedForm,
        at: At,
    ) -> Response<String> {
        let ticket = held.or_else(|| self.ticket_of(waits.kind, waits.position?, at.now));
        let (notice, ticket) = self.tell(waits.kind, waits.standing, ticket, at);
        let mut response = match AnswerForm::of(&parts.headers) {
            AnswerForm::Page => self.page(parts, waits.kind, &notice, ticket.as_ref(), sent),
            AnswerForm::Json | AnswerForm::Problem => self.json_form(&notice, ticket.as_ref()),
        };
        *response.status_mut() = self.status();
        self.finish(response, &notice, ticket.as_ref(), at)
    }

    /// Returns the answer to a poll. `standing`: `None` where there is nothing to wait for.
    pub fn poll(&self, standing: Option<PositionStatus>, ticket: Option<Ticket>, at: At) -> Response<String> {
        let (Some(standing), Some(ticket)) = (standing, ticket) else {
            let mut response = Response::new(String::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            return response;
        };
        let (notice, ticket) = self.tell(ticket.kind, standing, Some(ticket), at);
        let response = self.json_form(&notice, ticket.as_ref());
        self.finish(response, &notice, ticket.as_ref(), at)
    }

    /// Returns the answer to the holder of a place who asked to begin, was held at the gate, and
    /// stays where they are.
    pub fn still_next(
        &self,
        standing: PositionStatus,
        ticket: Ticket,
        held: Duration,
        at: At,
    ) -> Response<String> {
        let (mut notice, ticket) = self.tell(ticket.kind, standing, Some(ticket), at);
        // They are back at once, so that nobody behind them overtakes them meanwhile.
        if notice.state == NoticeState::Next && held.as_secs() >= u64::from(EARLIEST) {
            notice.poll_after = 0;
        }
        let response = self.json_form(&notice, ticket.as_ref());
        self.finish(response, &notice, ticket.as_ref(), at)
    }

    /// Returns the answer to the holder of a place whose session has begun. `lease` proves that;
    /// without cookies the ticket leads there.
    pub fn let_in(&self, ticket: Ticket, lease: HeaderValue, at: At) -> Response<String> {
        let notice = WaitNotice { state: NoticeState::YourTurn, poll_after: EARLIEST, ..self.full(at) };
        let mut response = self.finish(self.json_form(&notice, Some(&ticket)), &notice, None, at);
        let headers = response.headers_mut();
        headers.append(SET_COOKIE, lease);
        headers.append(SET_COOKIE, self.state.tickets.withdraw(ticket.kind, at.secure));
        response
    }

    /// Returns the answer to a poll without a place, by the state that its page is written in.
    /// `closed`: the kind whose line is, if the one it asked for is.
    pub fn poll_without_place(&self, page: &[u8], closed: Option<KindId>, at: At) -> Response<String> {
        match (page, closed) {
            (b"closed", Some(kind)) => {
                let (notice, _) = self.tell(kind, PositionStatus::Closed, None, at);
                let response = self.json_form(&notice, None);
                self.finish(response, &notice, None, at)
            }
            (b"closed" | b"full", _) => self.poll(None, None, at),
            // Without cookies it would draw a number each time it is reloaded.
            _ => {
                let mut response = Response::new(String::new());
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(COOKIELESS_RETRY));
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
        }
    }

    /// Returns the answer to a client that polls again at once: as small as it can be. Another tab
    /// of the same browser may have asked just before.
    pub fn too_early() -> Response<String> {
        let mut response = Response::new(String::new());
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(EARLIEST));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Returns the answer to a request that may draw a number only `after` seconds later.
    pub fn later(&self, parts: &Parts, kind: KindId, after: u32, at: At) -> Response<String> {
        self.without_place(parts, kind, &WaitNotice { poll_after: after, ..self.full(at) }, at)
    }

    /// Returns the answer to a poll without a place that can get one only `after` seconds later.
    pub fn full_for(after: u32) -> Response<String> {
        let mut response = WaitingRoom::too_early();
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after));
        response
    }

    /// Returns the answer to a request that may draw a number only with a pass of the
    /// application's.
    pub fn asks_for_pass(&self, parts: &Parts, kind: KindId, at: At) -> Response<String> {
        let url = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let pass_url = self.state.passes.as_ref().map(|passes| passes.address(url));
        let notice =
            WaitNotice { state: NoticeState::Pass, poll_after: COOKIELESS_RETRY, pass_url, ..self.full(at) };
        self.without_place(parts, kind, &notice, at)
    }

    fn without_place(&self, parts: &Parts, kind: KindId, notice: &WaitNotice, at: At) -> Response<String> {
        let mut response = match AnswerForm::of(&parts.headers) {
            AnswerForm::Page => {
                let sent =
                    if parts.method == Method::POST { SubmittedForm::Lost } else { SubmittedForm::Nothing };
                self.page(parts, kind, notice, None, sent)
            }
            AnswerForm::Json | AnswerForm::Problem => self.json_form(notice, None),
        };
        *response.status_mut() = self.status();
        self.finish(response, notice, None, at)
    }

    /// Returns the notice, and the ticket that remembers it.
    fn tell(
        &self,
        kind: KindId,
        standing: PositionStatus,
        ticket: Option<Ticket>,
        at: At,
    ) -> (WaitNotice, Option<Ticket>) {
        let before = ticket.map_or(LastNotice::NOTHING, |ticket| LastNotice {
            fewest_ahead: ticket.fewest_ahead,
            turn_by: ticket.turn_by,
            drawn: ticket.drawn,
        });
        let (mut notice, mut after) = WaitNotice::of(standing, before, at.now, |time| at.unix(time));
        notice.message = self.said(kind);
        if self.hides_numbers {
            notice.ahead = None;
            after.fewest_ahead = LastNotice::NOTHING.fewest_ahead;
            notice.eta = notice.eta.map(|(low, high)| texts::rounded(low, high));
        } else {
            notice.position = ticket.map(|ticket| ticket.position.number + 1);
        }
        // They are called, and nobody is before them: they may take their time.
        if matches!(standing, PositionStatus::Called(Wait { ahead: 0, .. })) {
            notice.expires_at = ticket.map(|_| at.now.saturating_add(self.state.tickets.hold()));
        }
        // The next visitor in line goes to the gate at once, and from there again.
        let again_after = if notice.state == NoticeState::Next { 0 } else { notice.poll_after };
        let ticket = ticket.map(|ticket| Ticket {
            heard: at.now,
            again_after: u16::try_from(again_after).unwrap_or(u16::MAX),
            fewest_ahead: after.fewest_ahead,
            turn_by: after.turn_by,
            ..ticket
        });
        (notice, ticket)
    }

    /// Returns the notice where no place can be given.
    fn full(&self, at: At) -> WaitNotice {
        let (notice, _) =
            WaitNotice::of(PositionStatus::Closed, LastNotice::NOTHING, at.now, |time| at.unix(time));
        WaitNotice { state: NoticeState::Full, poll_after: FULL_RETRY, ..notice }
    }

    /// Returns a ticket of a place, as if it was just drawn.
    pub(crate) fn ticket_of(&self, kind: KindId, position: Position, now: u32) -> Option<Ticket> {
        let LineEpoch { epoch, start } = self.line(kind)?;
        let LastNotice { fewest_ahead, turn_by, drawn: _ } = LastNotice::NOTHING;
        Some(Ticket {
            kind,
            position,
            epoch,
            start,
            drawn: now,
            heard: now,
            again_after: 0,
            fewest_ahead,
            turn_by,
            moved: self.state.moves.count(kind, epoch, position),
        })
    }

    fn page(
        &self,
        parts: &Parts,
        kind: KindId,
        notice: &WaitNotice,
        ticket: Option<&Ticket>,
        sent: SubmittedForm,
    ) -> Response<String> {
        let (form, form_lost) = match sent {
            SubmittedForm::Nothing => (None, false),
            SubmittedForm::Form(form) => (Some(form), false),
            SubmittedForm::Lost => (None, true),
        };
        let code = ticket.and_then(|ticket| self.state.moves.code_of(ticket));
        let commitment = self.commitment(kind);
        let url = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let url = if names_a_host(url) { Cow::Owned(format!("/.{url}")) } else { Cow::Borrowed(url) };
        let device_wrong = cookie(&parts.headers, CODE_COOKIE).is_some();
        let extras = PageDetails {
            host: host_of(parts),
            url: &url,
            progress: progress(notice, ticket),
            form: form.as_ref(),
            form_lost,
            refresh: cookie(&parts.headers, REFRESH_COOKIE) != Some("off"),
            device_wrong,
            device_code: code.as_deref().unwrap_or_default(),
            seed_hash: &commitment,
            retry_after: notice.poll_after,
        };
        let mut response = Response::new(self.pages.render(self.language(parts), notice, &extras));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, self.pages.policy(&extras));
        if device_wrong {
            // It is shown once.
            headers.append(
                SET_COOKIE,
                HeaderValue::from_static("suimon-code=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"),
            );
        }
        response
    }

    fn json_form(&self, notice: &WaitNotice, ticket: Option<&Ticket>) -> Response<String> {
        let mut response = Response::new(notice.json());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(ticket) = ticket {
            headers.insert(TICKET, self.state.tickets.header(ticket));
        }
        response
    }

    /// Adds what every answer of the room carries.
    fn finish(
        &self,
        mut response: Response<String>,
        notice: &WaitNotice,
        ticket: Option<&Ticket>,
        at: At,
    ) -> Response<String> {
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
        for name in [ACCEPT, ACCEPT_LANGUAGE, COOKIE] {
            headers.append(VARY, HeaderValue::from(name));
        }
        headers.insert(RETRY_AFTER, HeaderValue::from(notice.poll_after));
        if let Some(ticket) = ticket {
            headers.append(SET_COOKIE, self.state.tickets.cookie(ticket, at.secure));
        }
        response
    }

    fn status(&self) -> StatusCode {
        match self.status {
            WaitingStatus::Ok => StatusCode::OK,
            WaitingStatus::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            WaitingStatus::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn language(&self, parts: &Parts) -> usize {
        let chosen = cookie(&parts.headers, LANGUAGE_COOKIE).and_then(|tag| self.pages.language(tag));
        chosen.unwrap_or_else(|| accept::language(&parts.headers, self.pages.tags()))
    }
}

/// Returns the share of the wait that is over, per cent.
fn progress(notice: &WaitNotice, ticket: Option<&Ticket>) -> u32 {
    let (Some(ticket), Some((_, high))) = (ticket, notice.eta) else {
        return match notice.state {
            NoticeState::YourTurn => 100,
            NoticeState::Next => NEARLY,
            _ => 0,
        };
    };
    let waited = u64::from(notice.updated_at.saturating_sub(ticket.drawn));
    u32::try_from(100 * waited / (waited + u64::from(high)).max(1)).unwrap_or(100)
}

/// Returns the requested host, without its port.
fn host_of(parts: &Parts) -> &str {
    if let Some(host) = parts.uri.host() {
        return host;
    }
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name })
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut found = lines.filter_map(|line| cookie_in(line, name));
    found.next()
}

/// Returns the value of a cookie in one line of them.
pub(crate) fn cookie_in<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = line.split(';').filter_map(|pair| pair.split_once('='));
    pairs.find(|(own, _)| own.trim() == name).map(|(_, value)| value.trim())
}

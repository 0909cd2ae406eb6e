//! The waiting room in HTTP: who draws a number, what is told to whoever has one, and in what form.
//!
//! | file | holds |
//! |---|---|
//! | `told` | what is to be said, and its form for programs |
//! | `page`, `template`, `strip`, `words`, `time` | its form for people |
//! | `quota` | how fast one network may draw numbers |
//! | `invite` | signed links for a lane of their own |
//! | `moves` | short codes by which a place goes to another device |
//! | `side` | the few addresses beside the page |
//! | `stored` | what survives a restart |
//!
//! Whose turn it is, the line decides (`suimon-line`), and who comes in when, the gate. Here nothing is decided, and of those who wait nothing is kept.

mod invite;
mod moves;
mod page;
mod preview;
mod quota;
mod side;
mod stored;
mod strip;
mod template;
mod time;
mod told;
mod words;

pub(crate) use page::{Extras, Form, Pages};
pub use preview::preview;
pub(crate) use side::{Asked, Side};
pub use stored::StoredError;
pub(crate) use stored::{Stored, StoredLine};
pub(crate) use told::{Before, State, Told};

use crate::accept::{self, Form as AnswerForm};
use crate::buffer::AnswerBody;
use crate::keys::{Keys, KeysError};
use crate::params::{WaitingRoom, WaitingStatus};
use crate::server::StartError;
use crate::ticket::{Ticket, Tickets};
use http::header::{
    ACCEPT, ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderMap,
    HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE, VARY,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
pub(crate) use invite::Invites;
use moves::Moves;
use quota::Quota;
use std::borrow::Cow;
use std::collections::HashSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use suimon_gate::{InLine, Lane, Place, Standing};
use suimon_model::KindId;

/// Codes for another device that one network may ask for or guess at once, and a second after that.
const CODES_BURST: u32 = 20;
const CODES_PER_SECOND: f64 = 0.2;
/// Places of lost lines that are given again; beyond that their holders wait like everybody.
const REDEEMED_MAX: usize = 100_000;
/// A request with this header asks how its place stands, and for nothing of the application's.
pub(crate) const POLL: HeaderName = HeaderName::from_static("suimon-poll");
/// Carries a ticket where there are no cookies.
pub(crate) const PLACE: HeaderName = HeaderName::from_static("suimon-place");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
const PURPOSE: HeaderName = HeaderName::from_static("purpose");
const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// The cookies by which a visitor's choices are known: a language, and that the page is not to look again by itself.
const LANGUAGE_COOKIE: &str = "suimon-language";
const REFRESH_COOKIE: &str = "suimon-refresh";
pub(crate) const CHOICE_COOKIES: [&str; 2] = [LANGUAGE_COOKIE, REFRESH_COOKIE];

/// Seconds after which whoever could not be let in at once is to come again.
const SOON_RETRY: u32 = 3;
/// Seconds after which a page without a place is to ask again.
const COOKIELESS_RETRY: u32 = 60;
/// Seconds after which whoever got no place is to come again.
const FULL_RETRY: u32 = 10;
/// Whoever asks again sooner than after so many seconds is told to come later, and nobody is asked.
const EARLIEST: u32 = 2;

/// How the page looks, as far as an operator says so.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) name: String,
    pub(crate) logo: Option<String>,
    /// On light, and on dark.
    pub(crate) colours: Option<(String, String)>,
    pub(crate) template: Option<String>,
    pub(crate) hold_minutes: u64,
    pub(crate) keep_hours: u64,
}

impl Default for Look {
    fn default() -> Self {
        Look {
            name: String::new(),
            logo: None,
            colours: None,
            template: None,
            hold_minutes: 10,
            keep_hours: 24,
        }
    }
}

impl Look {
    fn of(params: &WaitingRoom, template: Option<String>) -> Look {
        Look {
            name: params.name.clone(),
            logo: params.logo.clone(),
            colours: params.colours.clone(),
            template,
            hold_minutes: params.hold.as_secs() / 60,
            keep_hours: params.keep.as_secs() / 3600,
        }
    }

    /// Returns the operator's style sheet.
    fn style(&self) -> String {
        let mut out = String::new();
        if let Some((light, dark)) = &self.colours {
            out.push_str(&format!(":root{{--accent:{light};--accent-dark:{dark}}}"));
        }
        if self.logo.is_some() {
            out.push_str("img{max-height:2.5rem;vertical-align:middle}");
        }
        out
    }

    /// Returns a text with what it says of the site put in.
    fn fill(&self, text: &str) -> String {
        // Without a name, the site's is that of the host each visitor asked for.
        let text = if self.name.is_empty() { text.to_owned() } else { text.replace(page::SITE, &self.name) };
        text.replace("{hold}", &self.hold_minutes.to_string())
            .replace("{keep}", &self.keep_hours.to_string())
            .replace("{code}", &moves::LIFE_MINUTES.to_string())
    }
}

/// Returns the operator's template, if there is one.
pub(crate) fn read_template(params: &WaitingRoom) -> Result<Option<String>, StartError> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).map_err(|error| {
            StartError::Params(format!(
                "{}: the waiting room's template cannot be read: {error}",
                path.display()
            ))
        })
    };
    params.template.as_ref().map(read).transpose()
}

/// The waiting room of all kinds that have a line.
#[derive(Debug)]
pub(crate) struct Room {
    pages: Pages,
    tickets: Tickets,
    status: WaitingStatus,
    hides_numbers: bool,
    message: Mutex<String>,
    /// By kind: whose line its tickets are for.
    lines: Vec<Option<LineOf>>,
    quota: Quota,
    /// Codes asked for and codes guessed.
    codes_quota: Quota,
    moves: Moves,
    invites: Invites,
    /// Places of lines that were lost, given again.
    redeemed: Mutex<HashSet<(KindId, u32, u16, Place)>>,
    /// By kind: the hash of the seed by which lots are drawn at its opening, or were.
    commitments: Mutex<Vec<String>>,
}

/// One line, as its tickets know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LineOf {
    /// Another line has another.
    pub(crate) epoch: u32,
    /// Counts the starts of the gateway in this epoch.
    pub(crate) start: u16,
}

/// What a request has to do with the room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standpoint {
    /// It holds this place.
    Holds(Ticket),
    /// It may draw a number, in this lane.
    Draws(Lane),
    /// It may draw a number, but its network has drawn many: a little later.
    Later,
    /// It is no visit of a page: it draws none.
    Passes,
}

impl Room {
    /// Returns the room of the `lines`, by kind; `tags` tell their tickets apart, and `template` stands in place of our page.
    pub(crate) fn new(
        params: &WaitingRoom,
        template: Option<String>,
        keys: &Keys,
        tags: Vec<[u8; 2]>,
        lines: Vec<Option<LineOf>>,
    ) -> Room {
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        let (life, hold) = (seconds(params.keep), seconds(params.hold));
        let look = Look::of(params, template);
        Room {
            pages: Pages::new(&look),
            tickets: Tickets::new(keys, life, hold, tags.clone()),
            status: params.status,
            hides_numbers: params.hides_numbers,
            message: Mutex::new(params.message.clone()),
            quota: Quota::new(params.draws_burst, params.draws_per_second),
            codes_quota: Quota::new(CODES_BURST, CODES_PER_SECOND),
            moves: Moves::new(),
            invites: Invites::new(keys, tags),
            redeemed: Mutex::default(),
            commitments: Mutex::new(vec![String::new(); lines.len()]),
            lines,
        }
    }

    /// Returns the tickets.
    pub(crate) fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    /// Returns whether the kind has a line.
    pub(crate) fn has_line(&self, kind: KindId) -> bool {
        self.line(kind).is_some()
    }

    /// Returns what tickets know of the kind's line.
    pub(crate) fn line(&self, kind: KindId) -> Option<LineOf> {
        self.lines.get(kind.index()).copied().flatten()
    }

    /// Returns the ticket, if it is a place in the line that there is.
    pub(crate) fn place_of(&self, ticket: Option<Ticket>) -> Option<Ticket> {
        let is_of_now =
            |ticket: &Ticket| self.line(ticket.kind).is_some_and(|line| line.epoch == ticket.epoch);
        ticket.filter(|ticket| is_of_now(ticket) && !self.moves.has_gone(ticket))
    }

    /// Returns what a request that would begin a session of `kind` has to do with its line. `ticket` is the one it carries, if it carries one; where
    /// others wait already, `client` is whose network may draw only so many numbers.
    pub(crate) fn standpoint(
        &self,
        kind: KindId,
        ticket: Option<Ticket>,
        parts: &Parts,
        client: Option<IpAddr>,
        now: impl Fn() -> u32,
    ) -> Standpoint {
        let ticket = ticket.filter(|ticket| ticket.kind == kind);
        if let Some(own) = self.place_of(ticket) {
            return Standpoint::Holds(own);
        }
        if !draws(parts) {
            return Standpoint::Passes;
        }
        // The line they waited in was lost; once for each place.
        if ticket.is_some_and(|ticket| !self.moves.has_gone(&ticket) && self.redeem(&ticket)) {
            return Standpoint::Draws(Lane::Resumed);
        }
        if self.invites.takes(&parts.uri, kind, now) {
            return Standpoint::Draws(Lane::Invited);
        }
        match client {
            Some(client) if !self.quota.takes(client) => Standpoint::Later,
            _ => Standpoint::Draws(Lane::Normal),
        }
    }

    /// Takes note that the place of a line that was lost is given again, and returns whether it is for the first time.
    fn redeem(&self, ticket: &Ticket) -> bool {
        let mut redeemed = self.redeemed.lock().unwrap_or_else(PoisonError::into_inner);
        redeemed.len() < REDEEMED_MAX
            && redeemed.insert((ticket.kind, ticket.epoch, ticket.start, ticket.place))
    }

    /// Says `message` to all who wait.
    pub(crate) fn say(&self, message: &str) {
        message.clone_into(&mut self.message.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns what is said to all who wait.
    pub(crate) fn said(&self) -> String {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Commits the line of `kind` to the seed by which lots are drawn at its opening, or to none.
    pub(crate) fn commit(&self, kind: KindId, seed: Option<[u64; 2]>) {
        let mut commitments = self.commitments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = commitments.get_mut(kind.index()) {
            *own = seed.map(seed_hash).unwrap_or_default();
        }
    }

    /// Returns the hash of the seed that the line of `kind` is committed to; empty if it is to none.
    pub(crate) fn commitment(&self, kind: KindId) -> String {
        let commitments = self.commitments.lock().unwrap_or_else(PoisonError::into_inner);
        commitments.get(kind.index()).cloned().unwrap_or_default()
    }

    /// Returns so many invitations to the line of `kind`, good `until` then, seconds since 1970, each as it stands in the query of a link.
    pub(crate) fn invite(&self, kind: KindId, count: usize, until: u32) -> Result<Vec<String>, KeysError> {
        (0..count).map(|_| self.invites.write(kind, until)).collect()
    }

    /// Returns the ticket of a place that was just drawn.
    fn ticket_of(&self, kind: KindId, place: Place, now: u32) -> Option<Ticket> {
        let LineOf { epoch, start } = self.line(kind)?;
        let Before { fewest_ahead, turn_by } = Before::NOTHING;
        Some(Ticket {
            kind,
            place,
            epoch,
            start,
            drawn: now,
            heard: now,
            again_after: 0,
            fewest_ahead,
            turn_by,
            moved: 0,
        })
    }

    /// Returns the answer to a request that is not let in, and has a place. `held` is the ticket it came with.
    pub(crate) fn answer(
        &self,
        parts: &Parts,
        waits: &InLine,
        held: Option<Ticket>,
        sent: Sent,
        at: At,
    ) -> Response<AnswerBody> {
        let ticket = held.or_else(|| self.ticket_of(waits.kind, waits.place?, at.now));
        let (mut told, ticket) = self.tell(waits.standing, ticket, at);
        // They came when they were called, and the gate could not let them in within the time that is good for a connection.
        if waits.standing == Standing::Called {
            told = Told { state: State::Soon, poll_after: SOON_RETRY, expires_at: None, ..told };
        }
        let mut response = match AnswerForm::of(&parts.headers) {
            AnswerForm::Page => self.page(parts, waits.kind, &told, ticket.as_ref(), sent),
            AnswerForm::Json | AnswerForm::Problem => self.twin(&told, ticket.as_ref()),
        };
        *response.status_mut() = self.status_of(&told);
        self.finish(response, &told, ticket.as_ref(), at)
    }

    /// Returns the answer to whoever asks and holds no place, by the state that their page is written in.
    pub(crate) fn poll_without_place(&self, page: &[u8], is_closed: bool, at: At) -> Response<AnswerBody> {
        match page {
            b"closed" if is_closed => {
                let (told, _) = self.tell(Standing::Closed, None, at);
                let response = self.twin(&told, None);
                self.finish(response, &told, None, at)
            }
            b"closed" | b"full" => self.poll(None, None, at),
            // It keeps no cookies, and would draw a number each time it is loaded anew.
            _ => {
                let mut response = Response::new(AnswerBody::empty());
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(COOKIELESS_RETRY));
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
        }
    }

    /// Returns the answer to whoever asks how their place stands. `standing`: `None` where there is nothing to wait for.
    pub(crate) fn poll(
        &self,
        standing: Option<Standing>,
        ticket: Option<Ticket>,
        at: At,
    ) -> Response<AnswerBody> {
        let (Some(standing), Some(ticket)) = (standing, ticket) else {
            let mut response = Response::new(AnswerBody::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            return response;
        };
        let (told, ticket) = self.tell(standing, Some(ticket), at);
        let response = self.twin(&told, ticket.as_ref());
        self.finish(response, &told, ticket.as_ref(), at)
    }

    /// Returns the answer to whoever asks again at once: as small as it can be. Another tab of the same browser may have asked just before.
    pub(crate) fn too_early() -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::empty());
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(EARLIEST));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Returns what is to be said, and the ticket that remembers it.
    fn tell(&self, standing: Standing, ticket: Option<Ticket>, at: At) -> (Told, Option<Ticket>) {
        let before = ticket.map_or(Before::NOTHING, |ticket| Before {
            fewest_ahead: ticket.fewest_ahead,
            turn_by: ticket.turn_by,
        });
        let (mut told, after) = Told::of(standing, before, at.now, |time| at.unix(time));
        told.message = self.said();
        if self.hides_numbers {
            told.ahead = None;
        } else {
            told.position = ticket.map(|ticket| ticket.place.number + 1);
        }
        if told.state == State::YourTurn {
            told.expires_at = ticket.map(|_| at.now.saturating_add(self.tickets.hold()));
        }
        let ticket = ticket.map(|ticket| Ticket {
            heard: at.now,
            again_after: u16::try_from(told.poll_after).unwrap_or(u16::MAX),
            fewest_ahead: after.fewest_ahead,
            turn_by: after.turn_by,
            ..ticket
        });
        (told, ticket)
    }

    /// Returns the answer to a request that may draw a number only a little later.
    pub(crate) fn later(&self, parts: &Parts, kind: KindId, at: At) -> Response<AnswerBody> {
        let told = self.full(at);
        let mut response = match AnswerForm::of(&parts.headers) {
            AnswerForm::Page => {
                let sent = if parts.method == Method::POST { Sent::Lost } else { Sent::Nothing };
                self.page(parts, kind, &told, None, sent)
            }
            AnswerForm::Json | AnswerForm::Problem => self.twin(&told, None),
        };
        *response.status_mut() = self.status_of(&told);
        self.finish(response, &told, None, at)
    }

    /// Returns what is to be said where no place can be given.
    fn full(&self, at: At) -> Told {
        let (told, _) = Told::of(Standing::Closed, Before::NOTHING, at.now, |time| at.unix(time));
        Told { state: State::Full, poll_after: FULL_RETRY, ..told }
    }

    fn page(
        &self,
        parts: &Parts,
        kind: KindId,
        told: &Told,
        ticket: Option<&Ticket>,
        sent: Sent,
    ) -> Response<AnswerBody> {
        let (form, form_lost) = match sent {
            Sent::Nothing => (None, false),
            Sent::Form(form) => (Some(form), false),
            Sent::Lost => (None, true),
        };
        let code = ticket.and_then(|ticket| self.moves.code_of(ticket));
        let commitment = self.commitment(kind);
        let url = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        // In a link, what begins with two slashes is another host.
        let url = if url.starts_with("//") { Cow::Owned(format!("/.{url}")) } else { Cow::Borrowed(url) };
        let extras = Extras {
            host: host_of(parts),
            url: &url,
            progress: progress(told, ticket),
            form: form.as_ref(),
            form_lost,
            refresh: cookie(&parts.headers, REFRESH_COOKIE) != Some("off"),
            device_code: code.as_deref().unwrap_or_default(),
            seed_hash: &commitment,
            retry_after: told.poll_after,
        };
        let mut response =
            Response::new(AnswerBody::text(self.pages.render(self.language(parts), told, &extras)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, self.pages.policy(&extras));
        response
    }

    fn twin(&self, told: &Told, ticket: Option<&Ticket>) -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::text(told.json()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(ticket) = ticket {
            headers.insert(PLACE, self.tickets.header(ticket));
        }
        response
    }

    /// Puts on what every answer of the room carries.
    fn finish(
        &self,
        mut response: Response<AnswerBody>,
        told: &Told,
        ticket: Option<&Ticket>,
        at: At,
    ) -> Response<AnswerBody> {
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
        for name in [ACCEPT, ACCEPT_LANGUAGE, COOKIE] {
            headers.append(VARY, HeaderValue::from(name));
        }
        headers.insert(RETRY_AFTER, HeaderValue::from(told.poll_after));
        if let Some(ticket) = ticket {
            headers.append(SET_COOKIE, self.tickets.cookie(ticket, at.secure));
        }
        response
    }

    fn status_of(&self, told: &Told) -> StatusCode {
        match (self.status, told.state) {
            // Nothing to come back for; caches and robots are to know.
            (WaitingStatus::Ok, _) => StatusCode::OK,
            (WaitingStatus::TooManyRequests, _) => StatusCode::TOO_MANY_REQUESTS,
            (WaitingStatus::Unavailable, _) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn language(&self, parts: &Parts) -> usize {
        let chosen = cookie(&parts.headers, LANGUAGE_COOKIE).and_then(|tag| self.pages.language(tag));
        chosen.unwrap_or_else(|| accept::language(&parts.headers, self.pages.tags()))
    }
}

/// Returns what is published of a seed before lots are drawn by it: the SHA-256 of its 32 hexadecimal digits, hexadecimal.
pub(crate) fn seed_hash(seed: [u64; 2]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, stored::hex(seed).as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The moment of an answer, and its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// Seconds since 1970, ...
    pub(crate) now: u32,
    /// ... which is this by the gate's clock.
    pub(crate) instant: suimon_model::Instant,
    /// Whether the client's connection is encrypted.
    pub(crate) secure: bool,
}

impl At {
    fn unix(self, time: suimon_model::Instant) -> u32 {
        self.now.saturating_add(u32::try_from(time.since(self.instant).as_secs()).unwrap_or(u32::MAX))
    }
}

/// What came with a request that is not let in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// Nothing.
    Nothing,
    /// A form that the page keeps.
    Form(Form),
    /// Something that the page cannot keep.
    Lost,
}

/// Returns whether a request is for the waiting room itself: it asks how a place stands, or is for an address beside the page.
pub(crate) fn is_for_it(parts: &Parts) -> bool {
    parts.headers.contains_key(POLL) || Side::of(parts.uri.path()).is_some()
}

/// Returns whether the waiting page can keep what is sent: the fields of a form, from a page of this site.
pub(crate) fn keeps_form(parts: &Parts) -> bool {
    let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        && AnswerForm::of(&parts.headers) == AnswerForm::Page
        && side::is_from_here(parts)
}

/// Returns whether a request may draw a number: it is the visit of a page, or a program's that asks for JSON by name. Pictures, scripts and what a browser
/// fetches before anybody wants it draw none.
pub(crate) fn draws(parts: &Parts) -> bool {
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
    // From elsewhere the ticket does not come along, and a new one would take its place.
    if parts.method == Method::POST && !side::is_from_here(parts) {
        return false;
    }
    let form = AnswerForm::of(headers);
    let is_visit = headers.get(&SEC_FETCH_MODE).map(|mode| mode.as_bytes().eq_ignore_ascii_case(b"navigate"));
    match is_visit {
        Some(true) => true,
        Some(false) => form == AnswerForm::Json && side::is_from_here(parts),
        None => form != AnswerForm::Problem,
    }
}

/// Returns the share of the wait that is over, per cent.
fn progress(told: &Told, ticket: Option<&Ticket>) -> u32 {
    let (Some(ticket), Some((_, high))) = (ticket, told.eta) else {
        return if told.state == State::YourTurn { 100 } else { 0 };
    };
    let waited = u64::from(told.updated_at.saturating_sub(ticket.drawn));
    u32::try_from(100 * waited / (waited + u64::from(high)).max(1)).unwrap_or(100)
}

/// Returns the host that was asked for, without its port.
fn host_of(parts: &Parts) -> &str {
    if let Some(host) = parts.uri.host() {
        return host;
    }
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name })
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(own, _)| own.trim() == name).map(|(_, value)| value.trim())
}

/// Returns whether the holder of a ticket asks again sooner than anybody needs to.
pub(crate) fn is_too_early(ticket: &Ticket, now: u32) -> bool {
    now >= ticket.heard && now - ticket.heard < EARLIEST && ticket.again_after > 0
}

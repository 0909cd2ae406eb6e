//! The few addresses beside the page, under `/.well-known/suimon/`: what visitors choose, and codes
//! for another device. Where visitors reach only what is below a base path, that stands before them.

use super::requests::{is_from_here, is_host};
use super::{At, WaitingRoom, seed_hash};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, REFERER, SET_COOKIE};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use serde_json::json;
use std::net::IpAddr;
use suimon_identity::own::{CODE_COOKIE, LANGUAGE_COOKIE, REFRESH_COOKIE};
use suimon_identity::ticket::Ticket;
use suimon_line::SavedLine;
use suimon_message::accept::Form as AnswerForm;
use suimon_params::WaitingRoomParams;
use suimon_store::lines::hex;

/// Everything below is the room's, behind the base path if there is one.
pub const PREFIX: &str = "/.well-known/suimon/";
/// A visitor's choices are remembered for a year, seconds.
const CHOICE_LIFE: u32 = 31_536_000;
/// The page may still say for this many seconds that a code was none.
const CODE_LIFE: u32 = 60;

/// One of the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InternalEndpoint {
    /// The language of the page is chosen.
    Language,
    /// Whether the page polls by itself is chosen.
    Refresh,
    /// A code for another device is requested.
    Code,
    /// A code is entered for a position.
    Position,
    /// The lots that were drawn are requested.
    Draw,
}

impl InternalEndpoint {
    /// Returns the address that a request is for: below the base path, below the path that this
    /// process stands at, or with nothing before it, as a proxy may have removed what was.
    pub fn of(path: &str, params: &WaitingRoomParams) -> Option<InternalEndpoint> {
        let mut before = [params.base(), &params.mount_path, ""].into_iter();
        match before.find_map(|before| path.strip_prefix(before)?.strip_prefix(PREFIX))? {
            "language" => Some(InternalEndpoint::Language),
            "refresh" => Some(InternalEndpoint::Refresh),
            "code" => Some(InternalEndpoint::Code),
            "position" => Some(InternalEndpoint::Position),
            "draw" => Some(InternalEndpoint::Draw),
            _ => None,
        }
    }

    /// Returns whether its request body is read.
    pub fn takes_body(self) -> bool {
        self == InternalEndpoint::Position
    }
}

/// A request for one of them.
#[derive(Clone, Copy, Debug)]
pub struct InternalRequest<'a> {
    /// Its head.
    pub parts: &'a Parts,
    /// The ticket it carries.
    pub ticket: Option<Ticket>,
    /// The lots of each line.
    pub drawn: &'a [(String, SavedLine)],
    /// What was sent.
    pub body: &'a [u8],
    /// Whose it is.
    pub client: IpAddr,
    /// When and where it is answered.
    pub at: At,
}

impl WaitingRoom {
    /// Answers a request for one of the addresses beside the page.
    pub fn endpoint(&self, endpoint: InternalEndpoint, asked: &InternalRequest<'_>) -> Response<String> {
        let InternalRequest { parts, ticket, drawn, body, client, at } = *asked;
        let changes = matches!(endpoint, InternalEndpoint::Code | InternalEndpoint::Position);
        let allowed = if changes { Method::POST } else { Method::GET };
        if parts.method != allowed {
            return empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        if changes && !is_from_here(parts) {
            return empty(StatusCode::FORBIDDEN);
        }
        match endpoint {
            InternalEndpoint::Language => self.choose_language(parts, at),
            InternalEndpoint::Refresh => {
                let mut response = empty(StatusCode::NO_CONTENT);
                let choice = if parts.uri.query() == Some("off") { "off" } else { "on" };
                response.headers_mut().append(SET_COOKIE, choice_cookie(REFRESH_COOKIE, choice, at));
                response
            }
            InternalEndpoint::Code => self.give_code(parts, ticket, client),
            InternalEndpoint::Position => self.take_position(parts, body, client, at),
            InternalEndpoint::Draw => draws(drawn),
        }
    }

    fn choose_language(&self, parts: &Parts, at: At) -> Response<String> {
        let query = parts.uri.query().unwrap_or_default();
        let wanted = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "to");
        let mut response = self.back(parts);
        if let Some(index) = wanted.and_then(|(_, name)| self.pages.language(&name)) {
            let tag = self.pages.tags()[index];
            response.headers_mut().append(SET_COOKIE, choice_cookie(LANGUAGE_COOKIE, tag, at));
        }
        response
    }

    fn give_code(&self, parts: &Parts, ticket: Option<Ticket>, client: IpAddr) -> Response<String> {
        let is_json = AnswerForm::of(&parts.headers) == AnswerForm::Json;
        if !self.state.codes_quota.takes(client) {
            return if is_json { empty(StatusCode::TOO_MANY_REQUESTS) } else { self.back(parts) };
        }
        let code = ticket
            .filter(|ticket| !self.state.moves.was_moved(ticket))
            .and_then(|ticket| self.state.moves.give(&ticket));
        if !is_json {
            // The page that it leads back to shows the code.
            return self.back(parts);
        }
        let Some(code) = code else { return empty(StatusCode::NOT_FOUND) };
        let text = json!({ "code": code, "expires_s": 60 * super::moves::LIFE_MINUTES }).to_string();
        let mut response = empty(StatusCode::OK).map(|_| text);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn take_position(&self, parts: &Parts, body: &[u8], client: IpAddr, at: At) -> Response<String> {
        let is_page = AnswerForm::of(&parts.headers) == AnswerForm::Page;
        let may_ask = self.state.codes_quota.takes(client);
        if !may_ask && !is_page {
            return empty(StatusCode::TOO_MANY_REQUESTS);
        }
        // Where others read bodies, they put it into the query.
        let sent = if body.is_empty() { parts.uri.query().unwrap_or_default().as_bytes() } else { body };
        let code = form_urlencoded::parse(sent).find(|(name, _)| name == "code").filter(|_| may_ask);
        let ticket = code.and_then(|(_, code)| self.state.moves.take(&code));
        let mut response = self.back(parts);
        let cookie = match ticket {
            Some(ticket) => Some(self.state.tickets.cookie(&ticket, at.secure)),
            // The page that it leads back to says so.
            None => is_page.then(|| cookie(CODE_COOKIE, "wrong", CODE_LIFE, at)),
        };
        response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        response
    }

    /// Returns the way back to the page that a request came from, if that is one of this site, and
    /// else to the site's first page.
    fn back(&self, parts: &Parts) -> Response<String> {
        let referer = parts.headers.get(REFERER).and_then(|value| value.to_str().ok());
        let from = referer.and_then(|text| text.parse::<Uri>().ok()).filter(|uri| is_host(parts, uri));
        let to = from
            .as_ref()
            .and_then(Uri::path_and_query)
            .map(|path| path.as_str())
            .filter(|path| !names_a_host(path));
        let to = to.map_or_else(|| format!("{}/", self.pages.base), str::to_owned);
        let mut response = empty(StatusCode::SEE_OTHER);
        let to = HeaderValue::try_from(to).expect("it was in a header, or in the settings as one may be");
        response.headers_mut().insert(LOCATION, to);
        response
    }
}

/// Returns what everybody may know of each opening by lot, the oldest of a line first: before it
/// the seed's hash, after it the seed and the numbers that were permuted.
fn draws(lines: &[(String, SavedLine)]) -> Response<String> {
    let openings = lines.iter().flat_map(|(kind, saved)| {
        let drawn = saved.lotteries.iter().map(move |lottery| {
            let (from, to) = lottery.range();
            json!({
                "kind": kind,
                "seed_sha256": seed_hash(lottery.seed()),
                "seed": hex(lottery.seed()),
                "from": from,
                "to": to,
            })
        });
        let to_come = saved.lots.map(|seed| json!({ "kind": kind, "seed_sha256": seed_hash(seed) }));
        drawn.chain(to_come)
    });
    let text = serde_json::Value::Array(openings.collect()).to_string();
    let mut response = empty(StatusCode::OK).map(|_| text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns whether a browser would take `path` for another host's: it begins with two slashes, or
/// with a slash and a backslash, which is the same to a browser.
pub(crate) fn names_a_host(path: &str) -> bool {
    path.starts_with("//") || path.starts_with("/\\")
}

fn choice_cookie(name: &str, value: &str, at: At) -> HeaderValue {
    cookie(name, value, CHOICE_LIFE, at)
}

fn cookie(name: &str, value: &str, life: u32, at: At) -> HeaderValue {
    let secure = if at.secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).expect("names and tags are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_known_below_its_own_paths_and_without_them_and_nowhere_else() {
        let refresh = Some(InternalEndpoint::Refresh);
        for (base, mount, path, expected) in [
            (None, "", "/.well-known/suimon/refresh", refresh),
            (None, "", "/shop/.well-known/suimon/refresh", None),
            (Some("/shop"), "", "/shop/.well-known/suimon/refresh", refresh),
            (Some("/shop"), "", "/.well-known/suimon/refresh", refresh),
            (Some("/shop"), "", "/shop/.well-known/suimon/other", None),
            (Some("/shop"), "", "/shopping/.well-known/suimon/refresh", None),
            (Some("/shop"), "", "/shop/shop/.well-known/suimon/refresh", None),
            (Some("/shop"), "", "/other/.well-known/suimon/refresh", None),
            (Some("/shop"), "/other", "/other/.well-known/suimon/refresh", refresh),
            (Some(""), "/other", "/other/.well-known/suimon/refresh", refresh),
            (Some("/shop"), "/other", "/shop/.well-known/suimon/refresh", refresh),
        ] {
            let params = WaitingRoomParams {
                base_path: base.map(str::to_owned),
                mount_path: mount.to_owned(),
                ..WaitingRoomParams::default()
            };
            assert_eq!(InternalEndpoint::of(path, &params), expected, "{base:?} {mount} {path}");
        }
    }
}

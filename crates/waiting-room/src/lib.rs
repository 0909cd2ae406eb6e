//! The waiting room in HTTP: who draws a number, what the visitors who have one are told, and in
//! what form.
//!
//! | file | holds |
//! |---|---|
//! | `requests` | what a request is to the room: whether it draws a number, whether its form is kept |
//! | `answer` | what is answered to it |
//! | `notice` | the content of a notice, and its form for programs |
//! | `error` | the page where the application gives none |
//! | `page`, `template`, `strip`, `words`, `time` | its form for people |
//! | `look`, `preview` | an operator's settings for that, and all states to look at |
//! | `quota` | how fast one network may draw numbers |
//! | `moves` | short codes by which a place goes to another device |
//! | `endpoint` | the few addresses beside the page |
//!
//! The line decides whose turn it is (`suimon-line`), and the gate who is admitted when. This crate
//! decides nothing and keeps nothing of waiting visitors.

mod answer;
mod endpoint;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod look;
mod moves;
mod notice;
mod page;
mod preview;
mod quota;
mod requests;
mod strip;
mod template;
mod texts;
mod time;

pub use answer::{At, SubmittedForm};
pub use endpoint::{InternalEndpoint, InternalRequest, PREFIX};
pub use error::{BrowserPreferences, ErrorDetails, ErrorTopic};
pub use look::read_template;
pub use page::{Form, Pages};
pub use preview::preview;
pub use requests::{POLL, asks_to_begin, draws, is_beside_the_page, is_for_it, keeps_form};

use answer::FULL_RETRY;
use http::request::Parts;
use moves::Moves;
use quota::{OpeningQuota, Quota};
use requests::is_too_early;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use suimon_identity::identify::Credentials;
use suimon_identity::invite::Invites;
use suimon_identity::keys::{Keys, KeysError};
use suimon_identity::passes::{Pass, PassUse, Passes};
use suimon_identity::ticket::{Ticket, Tickets};
use suimon_line::{Lane, Position};
use suimon_model::KindId;
use suimon_params::{Network, PassFor, WaitingRoomParams, WaitingStatus};
use suimon_store::lines::{LineEpoch, hex};

/// Codes for another device that one network may request or guess at once, and per second after
/// that.
const CODES_BURST: u32 = 20;
const CODES_PER_SECOND: f64 = 0.2;
/// Polls of one ticket at once, and per second after that: twice as often as the page of several
/// tabs polls.
const POLLS_BURST: u32 = 8;
const POLLS_PER_SECOND: f64 = 1.0;
/// Visitors who may draw a number only once the line opens are told to come then, but within this
/// many seconds.
const OPENING_RETRY_MAX: u32 = 3600;
/// Places of lost lines that are given again; beyond that their holders wait like everybody.
const REDEEMED_MAX: usize = 100_000;
/// The waiting room of all kinds that have a line.
#[derive(Debug)]
pub struct WaitingRoom {
    pages: Arc<Pages>,
    status: WaitingStatus,
    hides_numbers: bool,
    /// The message in the settings to all waiting visitors.
    message: String,
    /// Whose visitors have a lane of their own.
    crawlers: Vec<Network>,
    state: Arc<State>,
}

/// What those who wait have been given, which stays whatever the settings say.
#[derive(Debug)]
struct State {
    tickets: Tickets,
    /// By kind: what its operator has made known.
    announced: Mutex<Vec<OperatorNotice>>,
    /// By kind: whose line its tickets are for.
    lines: Vec<Option<LineEpoch>>,
    quota: Quota,
    /// Numbers drawn for an opening.
    opening_quota: OpeningQuota,
    /// Limits polls of one ticket, whatever it says itself of its last poll.
    polls: Quota,
    /// Codes asked for and codes guessed.
    codes_quota: Quota,
    moves: Moves,
    invites: Invites,
    /// Where the application decides who may draw a number.
    passes: Option<Passes>,
    /// Places of lines that were lost, given again.
    redeemed: Mutex<HashSet<(KindId, u32, u16, Position)>>,
}

/// What the operator of a line has announced to all who wait there.
#[derive(Clone, Debug, Default)]
struct OperatorNotice {
    /// The message set while it ran; `None`: that of the settings holds.
    said: Option<String>,
    /// The hash of the seed by which lots are drawn at its opening, or were; empty if there is
    /// none.
    commitment: String,
}

/// When a line opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineOpening {
    /// By the gate's clock.
    pub at: suimon_model::Instant,
    /// Seconds till then.
    pub left: u32,
}

impl LineOpening {
    fn retry_after(self) -> u32 {
        self.left.clamp(FULL_RETRY, OPENING_RETRY_MAX)
    }
}

/// What a request has to do with the room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineClaim {
    /// It holds this place.
    Holds(Ticket),
    /// It may draw a number, in this lane.
    Draws(Lane),
    /// It may draw a number, but only this many seconds later: its network has drawn many.
    Later(u32),
    /// It may draw a number with a pass of the application's.
    NeedsPass,
    /// It is not a visit of a page: it draws none.
    WithoutLine,
}

impl WaitingRoom {
    /// Returns the room of the `lines`, by kind; `tags` distinguish their tickets, and `pages` are
    /// what people see.
    pub fn new(
        params: &WaitingRoomParams,
        pages: Arc<Pages>,
        keys: &Keys,
        tags: Vec<[u8; 2]>,
        lines: Vec<Option<LineEpoch>>,
    ) -> WaitingRoom {
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        let (life, hold) = (seconds(params.keep), seconds(params.hold));
        let state = State {
            tickets: Tickets::new(keys, life, hold, tags.clone()),
            announced: Mutex::new(vec![OperatorNotice::default(); lines.len()]),
            quota: Quota::new(quota::NETWORKS, params.tickets_burst, params.tickets_per_second),
            opening_quota: OpeningQuota::new(params.tickets_for_opening),
            polls: Quota::new(quota::TICKETS, POLLS_BURST, POLLS_PER_SECOND),
            codes_quota: Quota::new(quota::NETWORKS, CODES_BURST, CODES_PER_SECOND),
            moves: Moves::new(),
            invites: Invites::new(keys, tags),
            passes: params
                .pass
                .as_ref()
                .map(|pass| Passes::new(keys, &pass.page, pass.needed_by == PassFor::Everybody, life)),
            redeemed: Mutex::default(),
            lines,
        };
        WaitingRoom::of(params, pages, Arc::new(state))
    }

    /// Returns the room with another look, in which the same people wait: what `params` say of
    /// times, quotas and passes is for a room that begins.
    pub fn adopting(&self, params: &WaitingRoomParams, pages: Arc<Pages>) -> WaitingRoom {
        WaitingRoom::of(params, pages, Arc::clone(&self.state))
    }

    fn of(params: &WaitingRoomParams, pages: Arc<Pages>, state: Arc<State>) -> WaitingRoom {
        WaitingRoom {
            pages,
            status: params.status,
            hides_numbers: params.hides_numbers,
            message: params.message.clone(),
            crawlers: params.crawlers.clone(),
            state,
        }
    }

    /// Returns the reader of waiting visitors' tickets and passes.
    pub fn credentials(&self) -> Credentials<'_> {
        Credentials { tickets: &self.state.tickets, passes: self.state.passes.as_ref() }
    }

    /// Returns the tickets.
    pub fn tickets(&self) -> &Tickets {
        &self.state.tickets
    }

    /// Returns whether the kind has a line.
    pub fn has_line(&self, kind: KindId) -> bool {
        self.line(kind).is_some()
    }

    /// Returns what tickets know of the kind's line.
    pub fn line(&self, kind: KindId) -> Option<LineEpoch> {
        self.state.lines.get(kind.index()).copied().flatten()
    }

    /// Returns the ticket, if it is a place in the present line.
    pub fn place_of(&self, ticket: Option<Ticket>) -> Option<Ticket> {
        let is_of_now =
            |ticket: &Ticket| self.line(ticket.kind).is_some_and(|line| line.epoch == ticket.epoch);
        ticket.filter(|ticket| is_of_now(ticket) && !self.state.moves.was_moved(ticket))
    }

    /// Returns what a request that would begin a session of `kind` has to do with its line.
    /// `ticket` is the one it carries, if it carries one; `client` says whose it is, and is asked
    /// only where others wait already (`has_waiters`).
    pub fn line_claim(
        &self,
        kind: KindId,
        (ticket, pass): (Option<Ticket>, Option<Pass>),
        parts: &Parts,
        has_waiters: bool,
        client: impl Fn() -> IpAddr,
        (now, opens): (impl Fn() -> u32, impl Fn() -> Option<LineOpening>),
    ) -> LineClaim {
        let ticket = ticket.filter(|ticket| ticket.kind == kind);
        if let Some(own) = self.place_of(ticket) {
            return LineClaim::Holds(own);
        }
        if !draws(parts) {
            return LineClaim::WithoutLine;
        }
        // The line they waited in was lost; once for each place.
        if ticket.is_some_and(|ticket| !self.state.moves.was_moved(&ticket) && self.redeem(&ticket)) {
            return LineClaim::Draws(Lane::Restored);
        }
        if self.state.invites.takes(&parts.uri, kind, &now) {
            return LineClaim::Draws(Lane::Invited);
        }
        if !has_waiters {
            return LineClaim::Draws(Lane::Normal);
        }
        let client = client();
        if self.crawlers.iter().any(|network| network.contains(client)) {
            return LineClaim::Draws(Lane::Crawlers);
        }
        if let (Some(passes), Some(pass), Some(line)) = (&self.state.passes, pass, self.line(kind)) {
            let now = now();
            match passes.take(pass, kind, line.epoch, now) {
                PassUse::Number => return LineClaim::Draws(Lane::Normal),
                PassUse::Place(position) => {
                    let ticket = self.ticket_of(kind, position, now);
                    return ticket.map_or(LineClaim::Later(FULL_RETRY), LineClaim::Holds);
                }
                PassUse::Later => return LineClaim::Later(FULL_RETRY),
                PassUse::Nothing => {}
            }
        }
        let asks = self.state.passes.as_ref().map(Passes::for_everybody);
        let mut after = FULL_RETRY;
        if asks != Some(true) && self.state.quota.takes(client) {
            let opens = opens();
            if opens.is_none_or(|opens| self.state.opening_quota.takes((kind, opens.at), client)) {
                return LineClaim::Draws(Lane::Normal);
            }
            after = opens.map_or(after, LineOpening::retry_after);
        }
        if asks.is_some() { LineClaim::NeedsPass } else { LineClaim::Later(after) }
    }

    /// Returns after how many seconds `client` may draw a number for the line of `kind`, which
    /// `opens` then; `None`: now.
    pub fn may_draw_after(&self, kind: KindId, opens: LineOpening, client: IpAddr) -> Option<u32> {
        self.state.opening_quota.is_full((kind, opens.at), client).then(|| opens.retry_after())
    }

    /// Returns whether the holder of a ticket polls sooner than anybody needs to, or comes with an
    /// old one again and again.
    pub fn asks_too_early(&self, ticket: &Ticket, now: u32) -> bool {
        let Ticket { kind, epoch, position, .. } = ticket;
        is_too_early(ticket, now)
            || !self.state.polls.takes_one((kind, epoch, position.lane.index(), position.number))
    }

    /// Returns where passes are read and issued, if they are.
    pub fn passes(&self) -> Option<&Passes> {
        self.state.passes.as_ref()
    }

    /// Takes note of the place that was drawn with a pass.
    pub fn note_pass(&self, pass: Option<Pass>, kind: KindId, position: Option<Position>, now: u32) {
        if let (Some(passes), Some(pass), Some(position), Some(line)) =
            (&self.state.passes, pass, position, self.line(kind))
        {
            passes.note(pass, kind, line.epoch, position, now);
        }
    }

    /// Takes note that the place of a line that was lost is given again, and returns whether that
    /// is the first time.
    fn redeem(&self, ticket: &Ticket) -> bool {
        let mut redeemed = self.state.redeemed.lock().unwrap_or_else(PoisonError::into_inner);
        redeemed.len() < REDEEMED_MAX
            && redeemed.insert((ticket.kind, ticket.epoch, ticket.start, ticket.position))
    }

    /// Shows `message` to all who wait in the line of `kind`.
    pub fn say(&self, kind: KindId, message: &str) {
        self.announce(kind, |own| own.said = Some(message.to_owned()));
    }

    /// Returns the message to all who wait in the line of `kind`.
    pub fn said(&self, kind: KindId) -> String {
        self.said_by_operator(kind).unwrap_or_else(|| self.message.clone())
    }

    /// Returns the message that was set while it ran, here or before a restart.
    pub fn said_by_operator(&self, kind: KindId) -> Option<String> {
        self.announced(kind, |own| own.said.clone())
    }

    /// Commits the line of `kind` to the seed by which lots are drawn at its opening, or to none.
    pub fn commit(&self, kind: KindId, seed: Option<[u64; 2]>) {
        self.announce(kind, |own| own.commitment = seed.map(seed_hash).unwrap_or_default());
    }

    /// Returns the hash of the seed that the line of `kind` is committed to; empty if it is to
    /// none.
    pub fn commitment(&self, kind: KindId) -> String {
        self.announced(kind, |own| own.commitment.clone())
    }

    fn announce(&self, kind: KindId, change: impl FnOnce(&mut OperatorNotice)) {
        let mut announced = self.state.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = announced.get_mut(kind.index()) {
            change(own);
        }
    }

    fn announced<T: Default>(&self, kind: KindId, of: impl FnOnce(&OperatorNotice) -> T) -> T {
        let announced = self.state.announced.lock().unwrap_or_else(PoisonError::into_inner);
        announced.get(kind.index()).map(of).unwrap_or_default()
    }

    /// Returns `count` invitations to the line of `kind`, good `until` then, seconds since 1970,
    /// each as it stands in the query of a link.
    pub fn invite(&self, kind: KindId, count: usize, until: u32) -> Result<Vec<String>, KeysError> {
        (0..count).map(|_| self.state.invites.write(kind, until)).collect()
    }
}

/// Returns what is published of a seed before lots are drawn by it: the SHA-256 of its 32
/// hexadecimal digits, hexadecimal.
pub fn seed_hash(seed: [u64; 2]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, hex(seed).as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

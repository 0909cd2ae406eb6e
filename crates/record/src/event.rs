//! One call that changes a gate, in as few bytes as it can be told in.
//!
//! ```text
//! tag, 1 byte · nanoseconds since the event before, signed · what else the tag asks for
//! ```
//!
//! The time is signed because a shell reads its clock before it takes its lock: of two threads the
//! later may go first.

use suimon_gate::{Adoption, Arrival, KindParams, Membership, RouteMode, SessionSignal};
use suimon_line::{Command, Position};
use suimon_model::persist::{Broken, Persist, Reader, Writer};
use suimon_model::{Duration, Failure, KindId, Outcome, RequestId, RouteId, SessionId};

/// A longer name of a route or a kind is cut.
pub const NAME_BYTES_MAX: usize = 256;

/// One call that changes a gate.
#[derive(Clone, Debug)]
pub enum Event {
    /// `Gate::declare_route`, or `Gate::declare_mixed_route`.
    Route {
        /// Whether it is shared by whatever has none of its own.
        is_mixed: bool,
        /// What the gate does there.
        mode: RouteMode,
        /// The path template, as metrics show it.
        name: String,
    },
    /// `Gate::renew_route`.
    Renewed {
        /// The number that is another route's from now on.
        route: RouteId,
        /// What the gate does there.
        mode: RouteMode,
        /// The new route's path template.
        name: String,
    },
    /// `Gate::begin_with_limit_of`.
    LimitOf {
        /// The route that begins.
        route: RouteId,
        /// The one whose limit it begins with.
        other: RouteId,
    },
    /// `Gate::declare_kind`.
    Kind {
        /// What is known of it.
        params: KindParams,
        /// Its name, as metrics show it.
        name: String,
    },
    /// `Gate::handle_arrival`.
    Arrival(Arrival),
    /// `Gate::handle_departure`.
    Departure(RequestId),
    /// `Gate::handle_end`, of the permit of this request.
    End(RequestId, Outcome),
    /// `Gate::handle_timeout`.
    Timeout,
    /// `Gate::drain`.
    Drain,
    /// `Gate::handle_contact`.
    Contact(KindId, Position),
    /// `Gate::handle_command`.
    Command(KindId, Command),
    /// `Gate::handle_session_signal`.
    SessionSignal(SessionId, SessionSignal),
    /// `Gate::handle_suspend`.
    Suspend(RequestId, Duration),
    /// `Gate::handle_resume`.
    Resume(RequestId),
    /// `Gate::handle_application`.
    Application(bool),
    /// `Gate::adopt`.
    Adopt(Box<Adoption>),
}

const TIMEOUT: u8 = 0;
const SESSIONLESS: u8 = 1;
const NEWCOMER: u8 = 2;
const WITHOUT_LINE: u8 = 3;
/// Plus [`LEASED`] and [`ENDS`].
const MEMBER: u8 = 4;
const LEASED: u8 = 1;
const ENDS: u8 = 2;
const DEPARTURE: u8 = 8;
const COMPLETED: u8 = 9;
const ABANDONED: u8 = 10;
const DECLINED: u8 = 11;
/// Plus the failure's number.
const FAILED: u8 = 12;
const DRAIN: u8 = 16;
const ROUTE: u8 = 17;
const KIND: u8 = 18;
const PLACED: u8 = 19;
const CONTACT: u8 = 20;
const COMMAND: u8 = 21;
const DRAWING: u8 = 22;
const WORD: u8 = 23;
const ENTERING: u8 = 24;
const PAUSE: u8 = 25;
const RESUME: u8 = 26;
const RENEWED: u8 = 27;
const APPLICATION: u8 = 28;
const MIXED: u8 = 29;
const LIMIT_OF: u8 = 30;
const ADOPT: u8 = 31;

/// By their number behind [`FAILED`].
const FAILURES: [Failure; 4] =
    [Failure::Connection, Failure::Timeout, Failure::ServerError, Failure::BadRequest];

/// Returns a name of bounded length: a longer one's beginning.
pub fn name_cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

impl Event {
    /// Appends it, `at` nanoseconds after the origin, after one at `before`.
    pub(crate) fn encode(&self, before: u64, at: u64, out: &mut Writer) {
        out.raw(&[self.tag()]);
        out.step(before, at);
        match self {
            Event::Timeout | Event::Drain => {}
            Event::Application(is_up) => is_up.save(out),
            Event::Adopt(adoption) => adoption.save(out),
            Event::Departure(request) | Event::End(request, _) | Event::Resume(request) => request.save(out),
            Event::Suspend(request, client_time) => {
                request.save(out);
                client_time.save(out);
            }
            Event::Contact(kind, position) => {
                kind.save(out);
                position.save(out);
            }
            Event::Command(kind, command) => {
                kind.save(out);
                command.save(out);
            }
            Event::SessionSignal(session, word) => {
                session.save(out);
                word.save(out);
            }
            Event::Arrival(Arrival { route, session }) => {
                route.save(out);
                match session {
                    None => {}
                    Some(Membership::Newcomer(kind) | Membership::WithoutLine(kind)) => kind.save(out),
                    Some(Membership::Drawing { kind, lane }) => {
                        kind.save(out);
                        lane.save(out);
                    }
                    Some(Membership::Placed { kind, position, session, draws }) => {
                        kind.save(out);
                        position.save(out);
                        session.save(out);
                        draws.save(out);
                    }
                    Some(Membership::Entering { kind, position, session }) => {
                        kind.save(out);
                        position.save(out);
                        session.save(out);
                    }
                    Some(Membership::Member { kind, session, leased: _, ends: _ }) => {
                        kind.save(out);
                        session.save(out);
                    }
                }
            }
            Event::Route { is_mixed: _, mode, name } => {
                mode.save(out);
                save_name(name, out);
            }
            Event::Renewed { route, mode, name } => {
                route.save(out);
                mode.save(out);
                save_name(name, out);
            }
            Event::LimitOf { route, other } => {
                route.save(out);
                other.save(out);
            }
            Event::Kind { params, name } => {
                params.save(out);
                save_name(name, out);
            }
        }
    }

    /// Takes one that follows an event at `before`. Returns when it was, too.
    pub(crate) fn decode(before: u64, from: &mut Reader<'_>) -> Result<(u64, Event), Broken> {
        let [tag] = from.array()?;
        let at = from.step(before)?;
        let event = match tag {
            TIMEOUT => Event::Timeout,
            DRAIN => Event::Drain,
            SESSIONLESS => Event::Arrival(Arrival { route: Persist::load(from)?, session: None }),
            NEWCOMER => {
                let route = Persist::load(from)?;
                Event::Arrival(Arrival { route, session: Some(Membership::Newcomer(Persist::load(from)?)) })
            }
            WITHOUT_LINE => {
                let route = Persist::load(from)?;
                Event::Arrival(Arrival {
                    route,
                    session: Some(Membership::WithoutLine(Persist::load(from)?)),
                })
            }
            DRAWING => {
                let (route, kind) = (Persist::load(from)?, Persist::load(from)?);
                let session = Some(Membership::Drawing { kind, lane: Persist::load(from)? });
                Event::Arrival(Arrival { route, session })
            }
            PLACED => {
                let (route, kind) = (Persist::load(from)?, Persist::load(from)?);
                let (position, session, draws) =
                    (Persist::load(from)?, Persist::load(from)?, Persist::load(from)?);
                Event::Arrival(Arrival {
                    route,
                    session: Some(Membership::Placed { kind, position, session, draws }),
                })
            }
            ENTERING => {
                let (route, kind) = (Persist::load(from)?, Persist::load(from)?);
                let (position, session) = (Persist::load(from)?, Persist::load(from)?);
                let session = Some(Membership::Entering { kind, position, session });
                Event::Arrival(Arrival { route, session })
            }
            MEMBER..DEPARTURE => {
                let route = Persist::load(from)?;
                let (kind, session) = (Persist::load(from)?, Persist::load(from)?);
                let (leased, ends) = (tag & LEASED != 0, tag & ENDS != 0);
                Event::Arrival(Arrival {
                    route,
                    session: Some(Membership::Member { kind, session, leased, ends }),
                })
            }
            DEPARTURE => Event::Departure(Persist::load(from)?),
            CONTACT => Event::Contact(Persist::load(from)?, Persist::load(from)?),
            COMMAND => Event::Command(Persist::load(from)?, Persist::load(from)?),
            APPLICATION => Event::Application(Persist::load(from)?),
            ADOPT => Event::Adopt(Box::new(Persist::load(from)?)),
            WORD => Event::SessionSignal(Persist::load(from)?, Persist::load(from)?),
            PAUSE => Event::Suspend(Persist::load(from)?, Persist::load(from)?),
            RESUME => Event::Resume(Persist::load(from)?),
            COMPLETED => Event::End(Persist::load(from)?, Outcome::Completed),
            DECLINED => Event::End(Persist::load(from)?, Outcome::Declined),
            ABANDONED => Event::End(Persist::load(from)?, Outcome::Abandoned),
            FAILED..DRAIN => {
                let failure = FAILURES[usize::from(tag - FAILED)];
                Event::End(Persist::load(from)?, Outcome::Failed(failure))
            }
            ROUTE | MIXED => {
                let is_mixed = tag == MIXED;
                Event::Route { is_mixed, mode: Persist::load(from)?, name: load_name(from)? }
            }
            RENEWED => Event::Renewed {
                route: Persist::load(from)?,
                mode: Persist::load(from)?,
                name: load_name(from)?,
            },
            LIMIT_OF => Event::LimitOf { route: Persist::load(from)?, other: Persist::load(from)? },
            KIND => Event::Kind { params: Persist::load(from)?, name: load_name(from)? },
            _ => return Err(from.broken("there is no such event")),
        };
        Ok((at, event))
    }

    fn tag(&self) -> u8 {
        match self {
            Event::Timeout => TIMEOUT,
            Event::Drain => DRAIN,
            Event::Contact(..) => CONTACT,
            Event::Command(..) => COMMAND,
            Event::SessionSignal(..) => WORD,
            Event::Application(_) => APPLICATION,
            Event::Adopt(_) => ADOPT,
            Event::Departure(_) => DEPARTURE,
            Event::Suspend(..) => PAUSE,
            Event::Resume(_) => RESUME,
            Event::End(_, Outcome::Completed) => COMPLETED,
            Event::End(_, Outcome::Declined) => DECLINED,
            Event::End(_, Outcome::Abandoned) => ABANDONED,
            Event::End(_, Outcome::Failed(failure)) => {
                FAILED
                    + match failure {
                        Failure::Connection => 0,
                        Failure::Timeout => 1,
                        Failure::ServerError => 2,
                        Failure::BadRequest => 3,
                    }
            }
            Event::Arrival(Arrival { session: None, .. }) => SESSIONLESS,
            Event::Arrival(Arrival { session: Some(Membership::Newcomer(_)), .. }) => NEWCOMER,
            Event::Arrival(Arrival { session: Some(Membership::WithoutLine(_)), .. }) => WITHOUT_LINE,
            Event::Arrival(Arrival { session: Some(Membership::Drawing { .. }), .. }) => DRAWING,
            Event::Arrival(Arrival { session: Some(Membership::Placed { .. }), .. }) => PLACED,
            Event::Arrival(Arrival { session: Some(Membership::Entering { .. }), .. }) => ENTERING,
            Event::Arrival(Arrival { session: Some(Membership::Member { leased, ends, .. }), .. }) => {
                MEMBER + if *leased { LEASED } else { 0 } + if *ends { ENDS } else { 0 }
            }
            Event::Route { is_mixed: false, .. } => ROUTE,
            Event::Route { is_mixed: true, .. } => MIXED,
            Event::Renewed { .. } => RENEWED,
            Event::LimitOf { .. } => LIMIT_OF,
            Event::Kind { .. } => KIND,
        }
    }
}

pub(crate) fn save_name(name: &str, out: &mut Writer) {
    let name = name_cut(name);
    name.len().save(out);
    out.raw(name.as_bytes());
}

pub(crate) fn load_name(from: &mut Reader<'_>) -> Result<String, Broken> {
    let name = String::load(from)?;
    if name.len() > NAME_BYTES_MAX { Err(from.broken("a name is too long")) } else { Ok(name) }
}

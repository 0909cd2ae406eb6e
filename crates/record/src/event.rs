//! One call that changes a gate, in as few bytes as possible.
//!
//! ```text
//! tag, 1 byte · nanoseconds since the event before, signed · what else the tag asks for
//! ```
//!
//! The time is signed because a shell reads its clock before it takes its lock: of two threads, the
//! one that read it later may get the lock first.

use crate::damage::{Damage, What};
use suimon_gate::{Adoption, Arrival, KindParams, Membership, RouteMode, Services, SessionSignal};
use suimon_line::{Command, Position};
use suimon_model::persist::{Broken, Persist, Reader, Writer};
use suimon_model::{Duration, Failure, KindId, Outcome, PoolId, RequestId, RouteId, SessionId};

/// The longest name of a route or a kind; a longer one is cut.
pub const NAME_BYTES_MAX: usize = 256;

/// The most routes, or kinds, of a recorded gate; no gateway has more.
const ROUTES_MAX: usize = 12_000;
const KINDS_MAX: usize = 64;

/// One call that changes a gate.
#[derive(Clone, Debug)]
pub enum Event {
    /// `Gate::declare_route`, or `Gate::declare_mixed_route`.
    Route {
        /// Whether it is shared by all requests that have no route of their own.
        is_mixed: bool,
        /// What the gate does there.
        mode: RouteMode,
        /// The path template, as metrics show it.
        name: String,
    },
    /// `Gate::renew_route`.
    Renewed {
        /// The number that now belongs to another route.
        route: RouteId,
        /// What the gate does there.
        mode: RouteMode,
        /// The new route's path template.
        name: String,
    },
    /// `Gate::begin_with_limit_of`.
    LimitOf {
        /// The new route.
        route: RouteId,
        /// The route whose limit it takes over.
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
    /// `Gate::declare_services`.
    Services(Box<Services>),
    /// `Gate::handle_lag`.
    Lag(Duration),
    /// `Gate::handle_workers`.
    Workers(PoolId, Option<u32>),
    /// `Gate::give_to_pool`.
    PoolOf(RouteId, PoolId),
    /// `Gate::handle_nodes`.
    Nodes(u32, u32),
    /// `Gate::handle_paused`.
    Paused(RequestId, Duration),
}

/// A row of the table of events in `docs/recording.md`, which is generated from [`TAGS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// The lowest tag of this event.
    pub first: u8,
    /// The highest one.
    pub last: u8,
    /// What happened.
    pub event: &'static str,
    /// What follows tag and time.
    pub fields: &'static str,
}

/// Makes a constant of each row, of its lowest tag, and a table of all.
macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident = $first:literal $(to $last:literal)?, $event:literal, $fields:literal;)+) => {
        $($(#[$doc])* const $name: u8 = $first;)+

        /// Every event there is, by tag.
        pub const TAGS: &[Tag] = &[
            $(Tag { first: $first, last: [$first $(, $last)?][[$first $(, $last)?].len() - 1], event: $event, fields: $fields },)+
        ];
    };
}

tags! {
    TIMEOUT = 0, "timeout: the time that the gate asked for has come", "";
    SESSIONLESS = 1, "a request of no session", "route";
    NEWCOMER = 2, "a newcomer", "route, kind";
    WITHOUT_LINE = 3, "a newcomer who gets no position in line, as it is no page visit", "route, kind";
    /// Plus [`LEASED`] and [`ENDS`].
    MEMBER = 4 to 7, "a request of a session; + 1: proved by a lease, + 2: ends its session", "route, kind, session (8 bytes)";
    DEPARTURE = 8, "a client disconnected", "request (index and generation)";
    COMPLETED = 9, "a request ended: completed", "request";
    ABANDONED = 10, "a request ended: abandoned", "request";
    DECLINED = 11, "a request ended: declined by the application (4xx)", "request";
    /// Plus the failure's number.
    FAILED = 12 to 15, "a request failed: connection, timeout, server error, bad request", "request";
    DRAIN = 16, "the gateway shuts down", "";
    ROUTE = 17, "a route", "mode, name";
    KIND = 18, "a kind of session", "settings, name";
    PLACED = 19, "a request of the holder of a position", "route, kind, position, session, whether it may draw another";
    CONTACT = 20, "a poll", "kind, position";
    COMMAND = 21, "a command of the operator to a line", "kind, command";
    DRAWING = 22, "a newcomer whose position would be in this lane", "route, kind, lane";
    WORD = 23, "what the application says of a session", "session, signal";
    ENTERING = 24, "the holder of a position asks to begin, and for nothing else", "route, kind, position, session";
    PAUSE = 25, "a request is suspended: its client is waited for", "request, time that was its client's so far";
    RESUME = 26, "it is waited for no longer", "request";
    RENEWED = 27, "a route's number given to another", "route, mode, name";
    APPLICATION = 28, "the application answers, or no longer", "whether it answers";
    MIXED = 29, "a route shared by whatever has none of its own", "mode, name";
    LIMIT_OF = 30, "a route begins with the limit of another", "route, the other";
    ADOPT = 31, "other settings are adopted", "the gate's settings; of routes and kinds that change, the mode and the settings";
    SERVICES = 32, "the services are declared", "what the split goes by; of each service its name, routes, wish and pauses";
    LAG = 33, "the application was late to take in a request without any work", "time";
    WORKERS = 34, "so many workers of a pool are ready", "pool, their number, if they are counted";
    POOL_OF = 35, "a route just declared or renewed gets another pool than the first, or than before", "route, pool";
    NODES = 36, "the application has another number of nodes", "their number before, their number now";
    PAUSED_INSIDE = 37, "the application has paused inside a request", "request, time in all";
}

/// Added to [`MEMBER`] where the session is proved by a lease.
const LEASED: u8 = 1;
/// Added to [`MEMBER`] where the request ends its session.
const ENDS: u8 = 2;

/// In the order of their numbers, counted from [`FAILED`].
const FAILURES: [Failure; 4] =
    [Failure::Connection, Failure::Timeout, Failure::ServerError, Failure::BadRequest];

/// Returns a name cut to the bounded length.
pub fn name_cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

impl Event {
    /// Returns the event alone, as it would stand right behind one of the same moment.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        self.encode(0, 0, &mut out);
        out.into_bytes()
    }

    /// Returns the event that [`Event::to_bytes`] has written.
    ///
    /// # Errors
    /// Returns [`Damage`] if the bytes are not one event.
    pub fn from_bytes(bytes: &[u8]) -> Result<Event, Damage> {
        let mut from = Reader::new(bytes);
        let read = Event::decode(0, &mut from).and_then(|read| from.finish().map(|()| read));
        match read.map_err(|broken| Damage::inside(0, broken))? {
            (0, event) => Ok(event),
            (_, _) => Err(Damage { at: 1, what: What::Content("an event alone has no time") }),
        }
    }

    /// Returns whether a gate that has so many routes and kinds can take the event.
    ///
    /// # Errors
    /// Returns what of it is impossible there.
    pub fn fits(&self, routes: usize, kinds: usize) -> Result<(), &'static str> {
        use suimon_gate::Membership::{Drawing, Entering, Member, Newcomer, Placed, WithoutLine};
        let impossible = |why| Err(why);
        match self {
            Event::Route { .. } if routes >= ROUTES_MAX => {
                impossible("there are more routes than there can be")
            }
            Event::Renewed { route, .. } if route.index() >= routes => {
                impossible("a number that no route has is given to another")
            }
            Event::LimitOf { route, other } if route.index().max(other.index()) >= routes => {
                impossible("a route that was not declared begins with a limit, or gives one")
            }
            Event::PoolOf(route, _) if route.index() >= routes => {
                impossible("a route that was not declared gets a pool")
            }
            Event::Kind { .. } if kinds >= KINDS_MAX => impossible("there are more kinds than there can be"),
            Event::Adopt(adoption)
                if adoption.routes.iter().any(|(route, _)| route.index() >= routes)
                    || adoption.kinds.iter().any(|(kind, _)| kind.index() >= kinds) =>
            {
                impossible("settings of a route or a kind that was not declared are adopted")
            }
            Event::Arrival(arrival) if arrival.route.index() >= routes => {
                impossible("a request is for a route that was not declared")
            }
            Event::Arrival(arrival) => match arrival.session {
                None => Ok(()),
                Some(
                    Newcomer(kind)
                    | WithoutLine(kind)
                    | Drawing { kind, .. }
                    | Placed { kind, .. }
                    | Entering { kind, .. }
                    | Member { kind, .. },
                ) => {
                    if kind.index() < kinds {
                        Ok(())
                    } else {
                        impossible("a session is of a kind that was not declared")
                    }
                }
            },
            _ => Ok(()),
        }
    }

    /// Appends the event, which happened `at` nanoseconds after the origin; the previous one was at
    /// `before`.
    pub(crate) fn encode(&self, before: u64, at: u64, out: &mut Writer) {
        out.raw(&[self.tag()]);
        out.step(before, at);
        match self {
            Event::Timeout | Event::Drain => {}
            Event::Application(is_up) => is_up.save(out),
            Event::Adopt(adoption) => adoption.save(out),
            Event::Services(services) => services.save(out),
            Event::Lag(lag) => lag.save(out),
            Event::Workers(pool, ready) => {
                pool.save(out);
                ready.save(out);
            }
            Event::Nodes(before, now_there) => {
                before.save(out);
                now_there.save(out);
            }
            Event::PoolOf(route, pool) => {
                route.save(out);
                pool.save(out);
            }
            Event::Departure(request) | Event::End(request, _) | Event::Resume(request) => request.save(out),
            Event::Suspend(request, time) | Event::Paused(request, time) => {
                request.save(out);
                time.save(out);
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

    /// Reads one event, with its time; the previous event was at `before`.
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
            SERVICES => Event::Services(Box::new(Persist::load(from)?)),
            LAG => Event::Lag(Persist::load(from)?),
            WORKERS => Event::Workers(Persist::load(from)?, Persist::load(from)?),
            POOL_OF => Event::PoolOf(Persist::load(from)?, Persist::load(from)?),
            NODES => Event::Nodes(Persist::load(from)?, Persist::load(from)?),
            PAUSED_INSIDE => Event::Paused(Persist::load(from)?, Persist::load(from)?),
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
            Event::Services(_) => SERVICES,
            Event::Lag(_) => LAG,
            Event::Workers(..) => WORKERS,
            Event::PoolOf(..) => POOL_OF,
            Event::Nodes(..) => NODES,
            Event::Paused(..) => PAUSED_INSIDE,
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

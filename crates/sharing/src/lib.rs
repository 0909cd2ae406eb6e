//! Amounts shared among gateways, off the path of requests.
//!
//! A lease or a ticket proves itself at any gateway, so only *amounts* are shared: the slots of a
//! route, the sessions of a kind that begin, the order of a line. Each gateway publishes one small
//! [`Record`] per period, and all compute the same split from the same records, without a leader.
//! This crate is told the time and does no I/O; whatever carries the records may lose, delay and
//! duplicate them.
//!
//! | file | holds |
//! |---|---|
//! | `record` | what a gateway publishes, as bytes and back |
//! | `split` | slots and portions by demand, and what may be taken of them now |
//! | `hash` | which gateway learns |
//! | `member` | what is known of the others, and what each ended since |
//! | `numbers` | numbers of a line in one order |
//! | `mark` | up to which of them is called |
//! | `unseen` | what was last known of gateways that are not heard of |
//! | `machine` | one gateway: exchanges, phases, its part |
//!
//! *Bound of over-admission*, at every moment, of a route with the limit L shared by N gateways:
//!
//! ```text
//! in the application ≤ L⁺ + N + S · L⁺
//! ```
//!
//! L⁺ is the highest limit published within the last [`EXPIRY_PERIODS`] periods; N gateways may each
//! borrow one slot while records show free ones ([`split::lent`]); S are gateways of which no
//! record came for [`EXPIRY_PERIODS`] periods, until what they had in the application by then has
//! ended: they died, or do not reach the engine. Those that do not reach it start nothing beyond
//! their safe share, max(1, L ÷ N⁺), N⁺ being the largest membership seen in
//! [`MEMBERSHIP_SECONDS`]. Records that are lost, late or come twice without a gap of that length
//! change nothing of it. Of sessions, the portions in force sum to 1 at most but for N⁺⁻¹ of each
//! gateway that does not reach the engine.

mod hash;
mod machine;
mod mark;
mod member;
mod numbers;
mod record;
pub mod split;
mod unseen;

pub use hash::{key_of, learner};
pub use machine::{Exchange, KindPart, Params, Part, Phase, RoutePart, Seen, Sharing};
pub use mark::{Lanes, Mark};
pub use numbers::{Allotment, Block, Numbers, Wanted};
pub use record::{
    Ended, GatewayId, KIND_RECORDS_MAX, KindRecord, KindReport, LaneRecord, NUMBERS_END, PEOPLE_MAX,
    ROUTE_RECORDS_MAX, Record, Report, RouteRecord, RouteReport,
};

/// A share that was not confirmed for so many periods has expired.
pub const EXPIRY_PERIODS: u32 = 3;
/// The safe share is that of the largest membership seen in this many seconds.
pub const MEMBERSHIP_SECONDS: f64 = 60.0;
/// The most gateways that share. Records of others are not looked at.
pub const GATEWAYS_MAX: usize = 64;

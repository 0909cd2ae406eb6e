//! The laws there are: one row each.
//!
//! A law is a file with a type that is a [`RouteLaw`] or a [`SessionLaw`], and its row in one of
//! the tables here. The settings' schema and reader, summaries, recordings, the simulator's names
//! and the documents are made of the rows.

use crate::route::RouteLaw;
use crate::route_paired::Paired;
use crate::route_paper::{PaperRouteParams, PaperRoutes};
use crate::session::{OpenGate, SessionLaw, StaticSessions};
use crate::session_flow::Flow;
use crate::session_paper::{PaperSessionParams, PaperSessions};
use suimon_model::persist::{Broken, Persist, Reader};
use suimon_model::{Instant, KindId};

/// A row: variant (and the value it holds, if any), its number in recordings, its word, its
/// meaning; the law, and how it is built.
macro_rules! laws {
    (
        $(#[$doc:meta])*
        pub enum $name:ident: $law:ident, fits($($fits:ident: $fits_type:ty),+), build $($argument:ident: $argument_type:ty),+;
        $(
            $(#[$row_doc:meta])*
            $variant:ident $(($value:ident: $type:ty))? = $tag:literal, $word:literal, $means:literal,
                $own:ty = $build:expr;
        )+
    ) => {
        suimon_model::choices! {
            $(#[$doc])*
            pub enum $name {
                $($(#[$row_doc])* $variant $(($value: $type))? = $tag, $word, $means;)+
            }
        }

        impl $name {
            /// Returns the law with nothing known, for an application assumed to have `cores`
            /// cores.
            pub fn build(self, $($argument: $argument_type),+) -> Box<dyn $law> {
                match self {
                    $($name::$variant $(($value))? => Box::new($build),)+
                }
            }

            /// Returns the law that was saved, with all it knew.
            ///
            /// # Errors
            /// Returns [`Broken`] where the bytes are not those of this law, for these routes.
            pub fn load(self, $($fits: $fits_type,)+ from: &mut Reader<'_>) -> Result<Box<dyn $law>, Broken> {
                let law: Box<dyn $law> = match self {
                    $($name::$variant { .. } => Box::new(<$own as Persist>::load(from)?),)+
                };
                if law.fits($($fits),+) { Ok(law) } else { Err(from.broken("a law that is for others")) }
            }
        }
    };
}

laws! {
    /// How a route's limit is found.
    pub enum RouteLawKind: RouteLaw, fits(routes: usize), build _cores: u32;

    /// Paired windows, one probing route at a time, one objective for the whole host.
    Paired = 0, "paired", "trials in paired windows, one route at a time, for the most useful work of the whole host",
        Paired = Paired::new(_cores);
    /// The paper's ±1 rule on each route's own throughput.
    Paper(params: PaperRouteParams) = 1, "paper", "the paper's rule, one step up or down on each route's own throughput",
        PaperRoutes = PaperRoutes::new(params);
}

laws! {
    /// How sessions are admitted.
    pub enum SessionLawKind: SessionLaw, fits(kind: KindId, routes: usize), build kind: KindId, cores: u32, now: Instant;

    /// Flow control by the visits that admitted sessions still have to make.
    Flow = 0, "flow", "by the work that admitted sessions still have to bring",
        Flow = Flow::new(kind, cores, now);
    /// The paper's threshold rule on the mean route queue.
    Paper(params: PaperSessionParams) = 1, "paper", "the paper's rule on the mean route queue",
        PaperSessions = PaperSessions::new(kind, params, now);
    /// A fixed number of sessions at once; the rest is refused.
    Static(sessions: u32) = 2, "static", "at most gate.static_sessions at once",
        StaticSessions = StaticSessions { sessions };
    /// Everybody is admitted; only the route gates hold.
    Open = 3, "open", "everybody, only routes are gated",
        OpenGate = OpenGate;
}

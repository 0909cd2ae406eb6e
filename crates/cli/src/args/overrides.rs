//! The command line of `suimon override`.

use super::{AdminAt, time};
use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon override list
  suimon override pin 'GET /search' 5 --for 30m --who anna --why 'incident 12'
  suimon override observe 'POST /cart'          measured and shown, nobody waits for it
  suimon override enforce 'GET /search'         a limit is found and enforced, whatever the settings say
  suimon override open                          nobody is held at the session gate
  suimon override drain-node http://10.0.0.5:8080
  suimon override release 3
  suimon override open --site tickets           of several sites behind one gateway, only this one

An override lasts as long as --for says, an hour if it is not said and a day at most, also over a restart. It shows in
`suimon status`, in /api/state and in the log, with who, why and until when. A reload keeps it, unless the settings change the very
same thing. When it ends, the gateway goes on with what it had learned before.

Routes are named as `suimon status` shows them, and nodes by their addresses. A drained node gets no new sessions and no requests of
others; sessions that have begun there go on there. The last node that takes requests cannot be drained. Where the gateway serves
several sites, each has overrides of its own, with numbers of their own: without --site, those of the main one.

Exit codes: 0 done; 1 nobody answered, or the gateway refused; 2 wrong usage.")]
pub(crate) struct Override {
    #[command(subcommand)]
    pub(crate) what: OverrideCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum OverrideCommand {
    /// Show what is overridden, by whom, why and until when.
    List(OverrideOf),
    /// Pin the limit of a route to a number.
    Pin {
        /// The route, such as 'GET /search'.
        #[arg(value_name = "ROUTE")]
        route: String,
        /// Its limit: requests in the application at once.
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
        #[command(flatten)]
        of: OverrideFor,
    },
    /// Only measure a route: nobody waits for it.
    Observe {
        /// The route, such as 'GET /search'.
        #[arg(value_name = "ROUTE")]
        route: String,
        #[command(flatten)]
        of: OverrideFor,
    },
    /// Find a limit for a route and enforce it.
    Enforce {
        /// The route, such as 'GET /search'.
        #[arg(value_name = "ROUTE")]
        route: String,
        #[command(flatten)]
        of: OverrideFor,
    },
    /// Hold nobody at the session gate, whatever the kind of session; those in line come in.
    Open(OverrideFor),
    /// Give a node nothing new; what has begun there goes on there.
    DrainNode {
        /// The node, by its address, such as http://10.0.0.5:8080.
        #[arg(value_name = "NODE")]
        node: String,
        #[command(flatten)]
        of: OverrideFor,
    },
    /// End an override before its time.
    Release {
        /// Its number, as the list shows it.
        #[arg(value_name = "ID")]
        id: u64,
        /// Who says so. [default: $USER]
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        #[command(flatten)]
        of: OverrideOf,
    },
}

/// Where the gateway is, and how it is shown.
#[derive(Args, Debug)]
pub(crate) struct OverrideOf {
    #[command(flatten)]
    pub(crate) at: AdminAt,
    /// Print the gateway's own JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For how long, who and why.
#[derive(Args, Debug)]
pub(crate) struct OverrideFor {
    /// For how long, a day at most.
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "1h")]
    pub(crate) life: Duration,
    /// Who says so, 64 characters at most. [default: $USER]
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    #[command(flatten)]
    pub(crate) of: OverrideOf,
}

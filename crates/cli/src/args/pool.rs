//! The command line of `suimon pool`.

use super::GatewayAt;
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon pool status
  suimon pool reload --wait            after a new version of the program; no request fails by it
  suimon pool resize 12                twelve workers, until told otherwise
  suimon pool resize auto              as many as complete the most requests; the search goes on from twelve
  suimon pool trace --follow           what happens to workers, and why

A pool is the application as processes that the gateway starts itself: [[pool]] in the settings, and docs/pools.md. How many
workers are resident is found while running; nobody has to resize anything. Without a NAME a command is for every pool; where the
gateway serves several sites, for every pool of the main one, or of --site.

Commands are taken on the gateway's machine, and from elsewhere with --token-file: docs/admin.md.

Exit codes: 0 done; 1 nobody answered, the gateway has no such pool, or it refused; or, with --wait, the new program does not start;
2 wrong usage.")]
pub(crate) struct Pool {
    #[command(subcommand)]
    pub(crate) what: PoolCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum PoolCommand {
    /// Show every pool and its workers.
    Status(PoolOf),
    /// Replace all workers, one after the other: the program has changed. Each ends once the next
    /// one is ready in its place and its own request is done.
    Reload {
        #[command(flatten)]
        of: PoolOf,
        /// Return when no worker of the old program is left, or when the new one does not start.
        #[arg(long)]
        wait: bool,
    },
    /// Fix the number of workers, or let it be found again.
    Resize {
        /// How many, from 1 to pool.max; or "auto": found by what they complete, from the present
        /// number on.
        #[arg(value_name = "N|auto")]
        workers: Workers,
        #[command(flatten)]
        of: PoolOf,
    },
    /// Show what has happened to workers lately, and why: oldest first.
    Trace {
        #[command(flatten)]
        of: PoolOf,
        /// Go on with what happens from now on, until Ctrl-C.
        #[arg(long, conflicts_with = "json")]
        follow: bool,
    },
}

/// Which pool, and where the gateway is.
#[derive(Args, Debug)]
pub(crate) struct PoolOf {
    /// The pool. [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) pool: Option<String>,
    #[command(flatten)]
    pub(crate) at: GatewayAt,
}

/// A number of workers; `None`: the law's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Workers(pub(crate) Option<u32>);

impl std::str::FromStr for Workers {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Workers(None));
        }
        let workers = text.parse().ok().filter(|workers| *workers > 0);
        let workers = workers.ok_or_else(|| "must be a number of workers from 1, or auto".to_owned())?;
        Ok(Workers(Some(workers)))
    }
}

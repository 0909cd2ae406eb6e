//! `suimon lab-node`, which the demo and the experiments start.

use super::{share, time};
use clap::Args;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct LabNode {
    /// Address of this machine that it listens on.
    #[arg(long, value_name = "IP", default_value_t = Ipv4Addr::LOCALHOST)]
    pub(crate) address: Ipv4Addr,
    /// Port there; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(crate) port: u16,
    /// Requests that it serves at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) slots: usize,
    /// Mean time of a request in a slot.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "20ms")]
    pub(crate) mean: Duration,
    /// That time is always the same, and not exponential.
    #[arg(long)]
    pub(crate) fixed: bool,
    /// Share of the requests that take another time: from the shortest to the longest, all of equal
    /// ratio as likely.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.0)]
    pub(crate) dynamic: f64,
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5ms")]
    pub(crate) dynamic_from: Duration,
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "500ms")]
    pub(crate) dynamic_to: Duration,
    /// Time in a slot after which a request waits for its next turn. [default: it keeps the slot]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) slice: Option<Duration>,
    /// Share of the time in a slot that it computes.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.1)]
    pub(crate) cpu: f64,
    /// How long it takes until it listens.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "300ms")]
    pub(crate) starts_after: Duration,
    /// Folder that stands for its /proc, for `suimon agent --proc`.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) proc: Option<PathBuf>,
}

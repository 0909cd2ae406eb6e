//! What a gateway believes of load reports.
//!
//! # Threat model
//!
//! *The attacker* sits on the network between agents and gateway. It can record, drop, delay,
//! repeat, reorder and invent datagrams. It does not have the key, and does not set clocks. *Who has
//! the key* can speak for every node: keep the file on the gateway and on the nodes alone.
//!
//! What is *invented* or changed fails at the MAC. What is *repeated* or overtaken fails at the
//! sequence number. What is *dropped* leads to no report: three periods later the gateway goes by
//! its own counts, as without agents. So what is left to an attacker is to make a report look newer
//! than it is:
//!
//! - **Delay.** Reports carry the time since the agent's start, by a clock that never goes back. The
//!   book knows the least difference between that and its own clock, which is a datagram's fastest
//!   way. One that took longer than that by more than three periods is [`Refused::Late`]. Neither
//!   clock has to be right for that, only even; 250 µs per second are allowed for their drift.
//! - **An earlier run of the agent.** Its boot is the agent's clock when it started. Only a later one
//!   replaces the present one: recordings of earlier runs are [`Refused::OldBoot`].
//! - **A gateway that has just started** knows no boot and no sequence number. So the first report of
//!   a run, and only that, must carry a clock that is within `clock_skew_max` of the gateway's
//!   ([`Refused::ClockSkew`]): a recording that is older is of no use. A younger one counts until the
//!   agent's next report, which has a higher sequence number and makes all recordings before it
//!   useless.
//!
//! So the *guarantee* is: while genuine reports come through, no report counts that is older than
//! three periods. Who holds back all reports of a node from the moment the agent or the gateway starts,
//! or for twice `clock_skew_max` (see below), can make its load look newer than it is by
//! `clock_skew_max`, and by no more.
//!
//! # What must not stay refused for ever
//!
//! - *The agent's clock was set back*, and its next run has an earlier boot. After the present run
//!   has been silent for twice `clock_skew_max`, a run with an earlier boot is accepted too. A
//!   recording of an earlier run is older than that by then, and so fails at its clock.
//! - *The agent's machine was suspended*, so its clock stood still, and all reports seem late. After
//!   twice `clock_skew_max` of nothing but late ones, the next begins anew, as the first of a run
//!   does: its clock must be right.
//! - *Two agents report for one node.* The one that started last wins; the other is counted under
//!   [`Refused::OldBoot`].
//!
//! - *A node came* while the gateway runs: it is as to a gateway that has just started.
//!
//! The sender's address is not looked at: it can be forged, and nodes may be behind NAT or have
//! several. *Units*: the gateway's clocks are told to each call: [`Instant`], and microseconds since
//! 1970. *Source*: P4 §3.1 for datagrams, every 10 ms.

use crate::datagram::{Load, Report};
use crate::keyring::Keyring;
use crate::refused::Refused;
use std::collections::BTreeMap;
use suimon_model::{Duration, Instant};

/// The most nodes of a book; names at places beyond are not known to it.
pub const NODES_MAX: usize = 256;

/// Periods after which a report is late.
const PERIODS: u32 = 3;
/// By how much clocks may drift apart: 1 of so many, 250 µs per second.
const DRIFT: i128 = 4000;

/// The last accepted report of every node, and how many were refused.
#[derive(Clone, Debug)]
pub struct Book {
    clock_skew_max: Duration,
    names: BTreeMap<String, usize>,
    runs: Vec<Option<Run>>,
    accepted: u64,
    refused: [u64; Refused::ALL.len()],
}

/// A run of an agent, as far as it was heard.
#[derive(Clone, Copy, Debug)]
struct Run {
    boot_us: u64,
    sequence: u64,
    /// When its last report came that was not late, and when the last of all.
    in_time: Instant,
    heard: Instant,
    /// The fastest way of a report: its arrival by our clock, less its sending by the agent's, in
    /// nanoseconds; and when that was noted.
    fastest: i128,
    noted: Instant,
}

/// A report that is believed.
#[derive(Clone, PartialEq, Debug)]
pub struct Accepted {
    /// The place of the node.
    pub node: usize,
    /// Its name.
    pub name: String,
    /// What it reports.
    pub load: Load,
    /// By how much it was slower on its way than the fastest report: so much older it is than it would be.
    pub delay: Duration,
}

impl Book {
    /// Returns a book that knows no node. `clock_skew_max`: how far the clocks of gateway and nodes may
    /// be apart.
    pub fn new(clock_skew_max: Duration) -> Self {
        Book {
            clock_skew_max,
            names: BTreeMap::new(),
            runs: Vec::new(),
            accepted: 0,
            refused: [0; Refused::ALL.len()],
        }
    }

    /// Says which node is at a place, below [`NODES_MAX`], from now on; `None`: there is none any more.
    /// What was heard of the one that was there is forgotten, so that the next report of it is as the
    /// first.
    pub fn name(&mut self, node: usize, name: Option<String>) {
        if node >= NODES_MAX {
            return;
        }
        self.names.retain(|_, place| *place != node);
        if self.runs.len() <= node {
            self.runs.resize(node + 1, None);
        }
        self.runs[node] = None;
        if let Some(name) = name {
            self.names.insert(name, node);
        }
    }

    /// Returns whether the node at this place has this name.
    pub fn is_named(&self, node: usize, name: &str) -> bool {
        self.names.get(name) == Some(&node)
    }

    /// Folds in a datagram, and returns the report in it if it is believed. `clock_us`: the
    /// gateway's clock, microseconds since 1970.
    ///
    /// # Errors
    /// Why it is not: see [`Refused`]. It is counted.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        clock_us: u64,
        bytes: &[u8],
        keys: &Keyring,
    ) -> Result<Accepted, Refused> {
        let believed = Report::decode(bytes, keys).and_then(|report| self.believe(now, clock_us, report));
        match &believed {
            Ok(_) => self.accepted = self.accepted.saturating_add(1),
            Err(refused) => {
                let count = &mut self.refused[refused.index()];
                *count = count.saturating_add(1);
            }
        }
        believed
    }

    /// Returns how many were accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Returns how many were refused, by reason, those of no case included.
    pub fn refused(&self) -> impl Iterator<Item = (Refused, u64)> {
        Refused::ALL.into_iter().zip(self.refused)
    }

    fn believe(&mut self, now: Instant, clock_us: u64, report: Report) -> Result<Accepted, Refused> {
        let node = *self.names.get(&report.name).ok_or(Refused::UnknownNode)?;
        let patience = self.clock_skew_max.saturating_mul(2);
        let is_near = report.clock_us.abs_diff(clock_us) <= micros(self.clock_skew_max);
        let way = i128::from(now.as_nanos()) - nanos(report.since_boot);
        let begins = Run {
            boot_us: report.boot_us,
            sequence: report.sequence,
            in_time: now,
            heard: now,
            fastest: way,
            noted: now,
        };
        let (boot_us, sequence) = (report.boot_us, report.sequence);
        let accepted = |delay: i128| Accepted {
            node,
            name: report.name,
            load: report.load,
            delay: Duration::from_nanos(u64::try_from(delay.max(0)).unwrap_or(u64::MAX)),
        };
        let run = match &mut self.runs[node] {
            Some(run) if run.boot_us == boot_us => run,
            run => {
                let is_earlier =
                    run.is_some_and(|run| boot_us < run.boot_us && now.since(run.heard) <= patience);
                if is_earlier {
                    return Err(Refused::OldBoot);
                }
                if !is_near {
                    return Err(Refused::ClockSkew);
                }
                *run = Some(begins);
                return Ok(accepted(0));
            }
        };
        if sequence <= run.sequence {
            return Err(Refused::Replayed);
        }
        (run.sequence, run.heard) = (sequence, now);
        let fastest = run.fastest + nanos(now.since(run.noted)) / DRIFT;
        if way <= fastest {
            (run.fastest, run.noted) = (way, now);
        }
        let delay = way - fastest;
        if delay > nanos(report.load.every.saturating_mul(PERIODS)) {
            if !is_near || now.since(run.in_time) <= patience {
                return Err(Refused::Late);
            }
            *run = begins;
            return Ok(accepted(0));
        }
        run.in_time = now;
        Ok(accepted(delay))
    }
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

//! What the law of the number of nodes is told, made of what gate, nodes and provider show.
//!
//! *Work* is node-seconds. Where the provider tells how much CPU time its nodes have used, a node-second is
//! as much as a node can use in a second; nodes that stay are taken to do as much for a request. Where it
//! cannot tell, a node counts as busy as routes are full ([`Asked::fullness`]). Where most of what is in the
//! application has no limit that a law holds, nodes may be busier than can be seen, and none is given back.
//! Neither known: there is no sample, and the number is held.
//!
//! CPU time does not tell of nodes that are full of requests that wait: answers of 12 seconds that hold all
//! threads of a node need none. So where people wait to be let in, limits that were found are full, and the
//! processors are not busy, work is measured by that fullness, until CPU time explains it. The law then looks
//! whether more nodes serve more, as what these requests wait for may be something that all nodes share.
//!
//! Nor does it tell of nodes that share a machine with others and wait for its processors: they use little, because
//! they get little. While that is so and every node has a request, as far as their number says, none is given back.
//!
//! *A visit* is a request that is let in. Sessions in line are work to come, which nobody behind the gateway
//! sees: each as many requests as sessions have made, each request as much work as requests have cost. And as
//! fast as the line grows, as many more come than are let in: what they will ask for counts with what begins,
//! so that the law sees the rate at which people come, and not only the one at which the gate admits them. Both
//! count while nodes are busy.

use super::api::ScalingSample;
use std::collections::BTreeMap;
use suimon_model::real::exp;
use suimon_model::{Asked, Instant, NodeId};

/// Seconds over which the work of a request is the mean.
const WORK_S: f64 = 30.0;
/// Seconds after which it is looked again how many requests a session makes.
const VISITS_EVERY_S: f64 = 5.0;

/// Seconds over which it is the mean how fast the line grows.
const GROWTH_S: f64 = 5.0;
/// The busy share of the nodes from which those in line wait for nodes, and not for something else.
const BUSY: f64 = 1.0 / 3.0;
/// Above this share of their limits requests fill the nodes, ...
const FULL: f64 = 0.9;
/// ... and below this share of the processors' time, these have time left.
const IDLE: f64 = 0.7;
/// CPU time explains how full nodes are from this share on.
const EXPLAINED: f64 = 0.9;
/// Whether nodes are full or busy is the mean of this time, seconds, ...
const MEANS_S: f64 = 5.0;
/// ... and is believed from this share of it on.
const BELIEVED: f64 = 0.8;

/// What is seen at one moment.
#[derive(Clone, Debug, Default)]
pub struct ScalingSeen {
    /// What is asked of the application.
    pub asked: Asked,
    /// CPU time that all borrowed nodes have used since the start, seconds; `None`: nobody can tell.
    pub cpu_s: Option<f64>,
    /// Whether nodes may be waiting for processors that others have.
    pub is_crowded: bool,
    /// How often each node was picked since it is there, ...
    pub picked: Vec<(NodeId, u64)>,
    /// ... and each that is borrowed.
    pub picked_of_borrowed: Vec<(NodeId, u64)>,
    /// Nodes that take new requests.
    pub serving: u32,
    /// Nodes that were ordered and do not serve yet.
    pub starting: u32,
    /// Seconds from an order until a node serves, if any was seen.
    pub start_s: Option<f64>,
}

impl ScalingSeen {
    /// Returns the requests of a node, on average; `None`: there is no node.
    pub fn requests_of_a_node(&self) -> Option<f64> {
        (self.serving > 0).then(|| self.asked.in_flight as f64 / f64::from(self.serving))
    }
}

/// Turns what is seen into samples.
#[derive(Clone, Debug)]
pub struct ScalingMeter {
    processors: f64,
    before: Option<Before>,
    /// Work and requests of the last half minute.
    work: f64,
    requests: f64,
    /// By kind: requests of a session, and when that was looked at.
    visits: Vec<f64>,
    looked: Option<Instant>,
    busy: Option<f64>,
    /// Requests per second of sessions by which the line grows.
    growth: f64,
    bound: Bound,
}

/// What binds the nodes, where CPU time is known.
#[derive(Clone, Copy, Debug, Default)]
struct Bound {
    /// The share of time in which people waited for full nodes whose processors had time left, ...
    waits: f64,
    /// ... and in which CPU time explained how full the nodes were.
    explained: f64,
    by_fullness: bool,
}

#[derive(Clone, Debug)]
struct Before {
    at: Instant,
    begun: u64,
    ended: u64,
    answered: u64,
    cpu_s: Option<f64>,
    picked: BTreeMap<NodeId, u64>,
    newcomers: Vec<f64>,
}

impl ScalingMeter {
    /// Returns a meter of nodes that can use so many processors each.
    pub fn new(processors: f64) -> Self {
        ScalingMeter {
            processors,
            before: None,
            work: 0.0,
            requests: 0.0,
            visits: vec![],
            looked: None,
            busy: None,
            growth: 0.0,
            bound: Bound::default(),
        }
    }

    /// Returns how much work is done, node-seconds per second.
    pub fn busy(&self) -> Option<f64> {
        self.busy
    }

    /// Returns what happened since the call before; `None`: nobody knows how much work was done.
    /// `visits`: by kind, the requests of a session.
    pub fn measure(
        &mut self,
        now: Instant,
        seen: &ScalingSeen,
        visits: impl Fn() -> Vec<f64>,
    ) -> Option<ScalingSample> {
        let Asked { begun, ended, answered, in_flight, waiting, .. } = seen.asked;
        let after = Before {
            at: now,
            begun,
            ended,
            answered,
            cpu_s: seen.cpu_s,
            picked: seen.picked.iter().copied().collect(),
            newcomers: seen.asked.newcomers.clone(),
        };
        let before = self.before.replace(after)?;
        let passed = now.secs_since(before.at);
        let (cpu, most) = (of_cpu(&before, seen, self.processors), f64::from(seen.serving) * passed);
        let full = seen.asked.fullness_found.map(|fullness| fullness.mean * most);
        self.bound.look(passed, most, cpu.zip(full), &seen.asked);
        // While no limit is found, as after a change of the nodes, those that are tried are all that tells.
        let any = || seen.asked.fullness.map(|fullness| fullness.mean * most);
        let (work, by_fullness) = match cpu {
            Some(cpu) if self.bound.by_fullness => {
                (Some(full.or_else(any).map_or(cpu, |full| full.max(cpu))), true)
            }
            Some(cpu) => (Some(cpu), false),
            None => (any(), true),
        };
        self.busy = work.map(|work| work / passed.max(1e-3));
        let (begun, ended) = (begun.saturating_sub(before.begun), ended.saturating_sub(before.ended));
        // Without nodes there is no work, and that is known.
        let work_s = if seen.serving == 0 { 0.0 } else { work? };
        let kept = exp(-passed / WORK_S);
        self.work = kept * self.work + work_s;
        self.requests = kept * self.requests + ended as f64;
        if self.looked.is_none_or(|at| now.secs_since(at) >= VISITS_EVERY_S) {
            (self.visits, self.looked) = (visits(), Some(now));
        }
        // A node is as busy as its limits are full, so what is within them is not work that waits.
        let in_hand = waiting + if by_fullness { 0 } else { in_flight };
        let is_busy = seen.serving == 0 || work_s >= BUSY * most;
        let in_line = if is_busy { self.in_line(&seen.asked) } else { 0.0 };
        let grown = self.grown(&before.newcomers, &seen.asked.newcomers);
        self.growth += (1.0 - exp(-passed / GROWTH_S)) * (grown / passed.max(1e-3) - self.growth);
        let held_back = if is_busy { (self.growth.max(0.0) * passed).round() as u64 } else { 0 };
        let is_half_seen = cpu.is_none() && seen.asked.fullness.is_some_and(|fullness| !fullness.is_of_most);
        // Nodes with requests look idle where they do not get the processors that they could use.
        let is_slowed = seen.is_crowded && in_flight > 0 && in_flight >= u64::from(seen.serving);
        Some(ScalingSample {
            serving: seen.serving,
            starting: seen.starting,
            load: seen.requests_of_a_node(),
            requests: u32::try_from(in_flight).unwrap_or(u32::MAX),
            begun: begun + held_back,
            ended,
            answered: answered.saturating_sub(before.answered),
            work_s,
            to_come_s: self.of_request() * (in_hand as f64 + in_line),
            by_fullness,
            is_held: is_half_seen || is_slowed || seen.asked.newcomers.iter().any(|waiting| *waiting > 0.0),
            start_s: seen.start_s,
        })
    }

    /// Returns the work of a request, node-seconds; 0 while it is unknown.
    fn of_request(&self) -> f64 {
        if self.requests > 0.0 { self.work / self.requests } else { 0.0 }
    }

    /// Returns how many requests those will still make by whom the line has grown, beyond the first, which
    /// began when they came.
    fn grown(&self, before: &[f64], newcomers: &[f64]) -> f64 {
        let more = |index: usize| self.visits.get(index).map_or(0.0, |visits| (visits - 1.0).max(0.0));
        let grown =
            |(index, waiting): (usize, &f64)| waiting - before.get(index).copied().unwrap_or_default();
        newcomers.iter().enumerate().map(|kind| grown(kind) * more(kind.0)).sum()
    }

    /// Returns how many requests those will make who wait to be let in.
    fn in_line(&self, asked: &Asked) -> f64 {
        // A session makes one request at least.
        let of = |index: usize| self.visits.get(index).copied().unwrap_or_default().max(1.0);
        asked.newcomers.iter().enumerate().map(|(index, waiting)| waiting * of(index)).sum()
    }
}

/// Returns the work that was done, by the CPU time of the borrowed nodes.
fn of_cpu(before: &Before, seen: &ScalingSeen, processors: f64) -> Option<f64> {
    let used = (seen.cpu_s? - before.cpu_s?).max(0.0) / processors;
    let since = |picked: &[(NodeId, u64)]| -> u64 {
        let since = |(node, count): &(NodeId, u64)| {
            count.saturating_sub(before.picked.get(node).copied().unwrap_or_default())
        };
        picked.iter().map(since).sum()
    };
    let (all, borrowed) = (since(&seen.picked), since(&seen.picked_of_borrowed));
    match (all, borrowed) {
        _ if seen.picked.len() == seen.picked_of_borrowed.len() => Some(used),
        // Only nodes that stay have served, and nobody knows how busy that made them.
        (1.., 0) => None,
        (all, borrowed) => Some(used * all.max(1) as f64 / borrowed.max(1) as f64),
    }
}

impl Bound {
    /// `work`: of the `most` node-seconds that were there, what CPU time comes to, and how full nodes were.
    fn look(&mut self, passed: f64, most: f64, work: Option<(f64, f64)>, asked: &Asked) {
        let Some((cpu, full)) = work else { return };
        let is_held = asked.newcomers.iter().any(|waiting| *waiting > 0.0);
        let waits = is_held && full >= FULL * most && cpu < IDLE * most;
        let weight = 1.0 - exp(-passed / MEANS_S);
        let share = |is: bool, was: f64| was + weight * (f64::from(u8::from(is)) - was);
        self.waits = share(waits, self.waits);
        self.explained = share(cpu >= EXPLAINED * full, self.explained);
        self.by_fullness = self.waits > BELIEVED || (self.by_fullness && self.explained <= BELIEVED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::Fullness;
    use suimon_model::seconds;

    /// What is seen after `requests` requests and so much CPU time, with `waiting` in line.
    fn seen(requests: u64, cpu_s: Option<f64>, waiting: usize) -> ScalingSeen {
        let asked = Asked {
            begun: requests,
            ended: requests,
            answered: requests,
            in_flight: 2,
            waiting: 0,
            newcomers: vec![waiting as f64],
            fullness: Some(Fullness { mean: 0.25, is_of_most: true }),
            fullness_found: Some(Fullness { mean: 0.25, is_of_most: true }),
        };
        let picked = vec![(NodeId(0), requests / 2), (NodeId(1), requests / 2)];
        ScalingSeen {
            asked,
            cpu_s,
            is_crowded: false,
            picked_of_borrowed: vec![(NodeId(1), requests / 2)],
            picked,
            serving: 2,
            starting: 0,
            start_s: None,
        }
    }

    fn at(second: f64) -> Instant {
        Instant::ORIGIN + seconds(second)
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    #[test]
    fn where_people_wait_for_full_nodes_with_idle_processors_fullness_is_work() {
        let mut meter = ScalingMeter::new(1.0);
        // Two nodes that use a tenth of a processor, full or not, with people who wait or not.
        let mut play = |seconds: std::ops::Range<u64>, fullness: f64, cpu_each: f64, waiting: usize| {
            let mut last = None;
            for second in seconds {
                let mut seen = seen(100 * second, Some(cpu_each * second as f64), waiting);
                seen.asked.fullness_found = Some(Fullness { mean: fullness, is_of_most: true });
                last = meter.measure(at(second as f64), &seen, Vec::new);
            }
            last.unwrap()
        };
        let before = play(0..20, 1.0, 0.1, 0);
        assert!(!before.by_fullness, "nobody waits");
        let full = play(20..40, 1.0, 0.1, 7);
        assert!(full.by_fullness && close(full.work_s, 2.0), "{full:?}");
        let half = play(40..60, 0.5, 0.1, 0);
        assert!(
            half.by_fullness && close(half.work_s, 1.0),
            "as long as CPU time does not explain it: {half:?}"
        );
        let busy = play(60..90, 0.5, 1.0, 0);
        assert!(!busy.by_fullness, "{busy:?}");
    }

    #[test]
    fn nodes_that_wait_for_a_crowded_machine_are_not_given_back() {
        let is_held = |is_crowded: bool, in_flight: u64| {
            let mut meter = ScalingMeter::new(1.0);
            let look = |requests: u64| {
                let mut seen = ScalingSeen { is_crowded, ..seen(requests, Some(0.01 * requests as f64), 0) };
                seen.asked.in_flight = in_flight;
                seen
            };
            assert_eq!(meter.measure(at(1.0), &look(100), Vec::new), None);
            meter.measure(at(2.0), &look(200), Vec::new).unwrap().is_held
        };
        assert!(is_held(true, 2) && is_held(true, 9));
        assert!(!is_held(true, 1) && !is_held(true, 0), "one node could go");
        assert!(!is_held(false, 9));
    }

    #[test]
    fn while_no_limit_is_found_full_nodes_are_not_taken_for_idle_ones() {
        let mut meter = ScalingMeter::new(1.0);
        let mut play = |seconds: std::ops::Range<u64>, is_found: bool| {
            let mut last = None;
            for second in seconds {
                let mut seen = seen(100 * second, Some(0.1 * second as f64), 7);
                let full = Some(Fullness { mean: 1.0, is_of_most: true });
                (seen.asked.fullness, seen.asked.fullness_found) = (full, full.filter(|_| is_found));
                last = meter.measure(at(second as f64), &seen, Vec::new);
            }
            last.unwrap()
        };
        assert!(play(0..40, true).by_fullness);
        let tried = play(40..60, false);
        assert!(tried.by_fullness && close(tried.work_s, 2.0), "{tried:?}");
    }
}

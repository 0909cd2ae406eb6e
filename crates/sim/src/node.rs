//! A model of an application server: an accept path, threads, waiting for others, and a processor shared by the jobs in service.
//!
//! All jobs on the processor advance in one virtual time V, so an event costs O(log n):
//!
//! ```text
//! dV/dt = work(n, M) / Σ q_i                                    job i ends when V has advanced by demand_i / q_i      (1)
//! work  = min(n, cores) · speed · E(M)                          CPU seconds done a second                             (2)
//! E(M)  = 1 for M ≤ knee, else max(floor, 1 / (1 + slope · (M − knee)))            the paper's collector              (3)
//! E(M)  = max(floor, 1 / (1 + cost · M / (heap − M)))                              a copying collector in a heap      (4)
//! work  = n · speed / (1 + contention · (n − 1) + coherency · n (n − 1))           the universal scalability law      (5)
//! 1/E(M) straight between measured points                                          a real application's own curve     (6)
//! ```
//!
//! M: memory held by the jobs in service (for (4) with what the application holds at rest). q_i: the operating system's uneven weights,
//! exponential with mean 1 plus 0.02, or all 1; without them a burst of equal jobs all ends at the same instant. Before that a request
//! passes the accept path, one at a time: a0 + κ · max(0, (n − cores) / cores) seconds, κ being the operating system's constant; takes a
//! thread, or waits for one; takes its route's lock, where it has one, and keeps it to the end; and waits for others (a database) on one of
//! the connections, without using the processor.
//! *Source*: LAWS §1 of the design, with (3) and q from what reproduces the paper's results; (4) for a real virtual machine; (5) Gunther.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use suimon_model::{Instant, Rng, seconds};

/// The grain of virtual time: what ends within it has ended.
const GRAIN: f64 = 1e-9;
/// The most requests at once at which (5) and (6) are looked at for their best.
const AT_ONCE_MAX: u32 = 10_000;

/// A node's machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// Processor cores; above 0. (5) does not know them.
    pub cores: f64,
    /// Speed of each, 1 being the one that the costs are stated for.
    pub speed: f64,
    /// What company costs.
    pub efficiency: Efficiency,
    /// Whether the operating system shares the processor evenly.
    pub even: bool,
    /// Requests handled at once; the rest wait in line for a thread. `None`: no end.
    pub threads: Option<u32>,
    /// Connections to others: so many requests wait for others at once, the rest wait in line for a connection. `None`: no end.
    pub connections: Option<u32>,
    /// a0, seconds.
    pub accept: f64,
    /// κ, seconds.
    pub accept_crowded: f64,
}

/// The most points of a measured curve.
pub const POINTS_MAX: usize = 16;

/// A measured curve: memory units in service, ascending, and the efficiency there, above 0. The first and the last hold beyond the ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// Returns the curve through `points`; `None` where there are none or more than [`POINTS_MAX`], memory does not rise from one to the
    /// next, or an efficiency is not above 0.
    pub fn through(points: &[(f64, f64)]) -> Option<Curve> {
        let rise = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let positive = points.iter().all(|(_, efficiency)| *efficiency > 0.0);
        if points.is_empty() || points.len() > POINTS_MAX || !rise || !positive {
            return None;
        }
        Some(Curve(points.to_vec()))
    }

    /// Between two points what a second of work costs, 1/E, is straight, as in (3).
    fn at(&self, memory: f64) -> f64 {
        let Curve(points) = self;
        let above = points.partition_point(|(at, _)| *at <= memory);
        match (above.checked_sub(1).map(|below| points[below]), points.get(above)) {
            (Some((from, low)), Some(&(to, high))) => {
                let share = (memory - from) / (to - from);
                1.0 / ((1.0 - share) / low + share / high)
            }
            (Some((_, only)), None) | (None, Some(&(_, only))) => only,
            (None, None) => 1.0,
        }
    }
}

/// What it costs to have many requests in service at once.
#[derive(Clone, PartialEq, Debug)]
pub enum Efficiency {
    /// Nothing.
    Flat,
    /// (3): a collector that costs nothing up to a knee.
    Knee {
        /// Memory units in service up to which it costs nothing.
        knee: f64,
        /// How fast efficiency falls beyond, per unit.
        slope: f64,
        /// The least efficiency.
        floor: f64,
    },
    /// (4): a copying collector in a heap of a given size.
    Heap {
        /// Size of the heap, in the same unit as the memory of requests.
        heap: f64,
        /// What the application holds at rest.
        resting: f64,
        /// Seconds of collection per second of work where half of the heap is live.
        cost: f64,
        /// The least efficiency.
        floor: f64,
    },
    /// (5).
    Scalability {
        /// Share of the work that must be done alone.
        contention: f64,
        /// Cost of each pair's agreement.
        coherency: f64,
    },
    /// (6).
    Measured(Curve),
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            cores: 2.0,
            speed: 1.0,
            efficiency: Efficiency::Knee { knee: 4.0, slope: 0.25, floor: 0.15 },
            even: false,
            threads: None,
            connections: None,
            accept: 0.0,
            accept_crowded: 0.0,
        }
    }
}

impl Machine {
    /// Returns the most CPU seconds of work that can be done a second, at whatever number at once, by requests that hold `memory` each in
    /// the mean.
    pub fn work_per_second_max(&self, memory: f64) -> f64 {
        let most = match self.efficiency {
            Efficiency::Scalability { .. } | Efficiency::Measured(_) => AT_ONCE_MAX,
            // With every core at work another request only adds its memory.
            Efficiency::Flat | Efficiency::Knee { .. } | Efficiency::Heap { .. } => self.cores.ceil() as u32,
        };
        (1..=most)
            .map(|jobs| self.work_per_second(jobs as usize, f64::from(jobs) * memory))
            .fold(0.0, f64::max)
    }

    /// Returns CPU seconds of work done a second by `jobs` holding `memory`.
    pub(crate) fn work_per_second(&self, jobs: usize, memory: f64) -> f64 {
        let n = jobs as f64;
        let efficiency = match self.efficiency {
            Efficiency::Flat => 1.0,
            Efficiency::Knee { knee, slope, floor } => {
                (1.0 / (1.0 + slope * (memory - knee).max(0.0))).max(floor)
            }
            Efficiency::Heap { heap, resting, cost, floor } => {
                let live = resting + memory;
                if live < heap { (1.0 / (1.0 + cost * live / (heap - live))).max(floor) } else { floor }
            }
            Efficiency::Measured(ref curve) => curve.at(memory),
            Efficiency::Scalability { contention, coherency } => {
                return n * self.speed / (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0));
            }
        };
        n.min(self.cores) * self.speed * efficiency
    }
}

/// One request's work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Job {
    /// Its number, unique while it is here.
    pub id: u64,
    /// Seconds of waiting for others.
    pub elsewhere: f64,
    /// CPU seconds.
    pub cpu: f64,
    /// Memory held while it is on the processor.
    pub memory: f64,
    /// The lock that it needs first, if it needs one.
    pub lock: Option<Lock>,
}

/// A lock inside the application, held from the time a request has its thread until it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock {
    /// Which.
    pub number: u32,
    /// So many may hold it at once; the rest wait for it, first in, first out.
    pub holders_max: u32,
}

/// A node with everything that is in it.
#[derive(Debug)]
pub struct Node {
    machine: Machine,
    rng: Rng,
    /// Requests on their way in, the first being taken in until `accepted`.
    arriving: VecDeque<Job>,
    accepted: Instant,
    /// Requests waiting for a thread.
    threadless: VecDeque<Job>,
    /// Requests that have a thread.
    running: usize,
    /// By lock: who holds it, and who waits for it.
    locks: BTreeMap<u32, (usize, VecDeque<Job>)>,
    /// Who holds which lock.
    holders: BTreeMap<u64, u32>,
    /// Requests waiting for a connection.
    unconnected: VecDeque<Job>,
    /// Waiting for others, until then.
    elsewhere: BinaryHeap<Reverse<(Instant, u64)>>,
    /// What those waiting for others will ask of the processor.
    to_come: BTreeMap<u64, Job>,
    processor: Processor,
    ended: VecDeque<u64>,
}

#[derive(Debug)]
struct Processor {
    now: Instant,
    virtual_time: f64,
    weights: f64,
    memory: f64,
    /// By the virtual time at which they end (as ordered bits) and number: weight and memory.
    jobs: BTreeMap<(u64, u64), (f64, f64)>,
    busy: f64,
    work: f64,
}

/// What a node's processor has done since the start.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// Core-seconds in use.
    pub busy: f64,
    /// CPU seconds of work done.
    pub work: f64,
}

impl Node {
    /// Returns an idle node.
    pub fn new(machine: Machine, rng: Rng) -> Self {
        Node {
            machine,
            rng,
            arriving: VecDeque::new(),
            accepted: Instant::ORIGIN,
            threadless: VecDeque::new(),
            running: 0,
            locks: BTreeMap::new(),
            holders: BTreeMap::new(),
            unconnected: VecDeque::new(),
            elsewhere: BinaryHeap::new(),
            to_come: BTreeMap::new(),
            processor: Processor {
                now: Instant::ORIGIN,
                virtual_time: 0.0,
                weights: 0.0,
                memory: 0.0,
                jobs: BTreeMap::new(),
                busy: 0.0,
                work: 0.0,
            },
            ended: VecDeque::new(),
        }
    }

    /// Takes in a request.
    pub fn handle_arrival(&mut self, now: Instant, job: Job) {
        self.handle_timeout(now);
        if self.machine.accept <= 0.0 && self.machine.accept_crowded <= 0.0 {
            return self.take_thread(now, job);
        }
        self.arriving.push_back(job);
        if self.arriving.len() == 1 {
            self.accepted = now + seconds(self.accept_time());
        }
    }

    /// The machine is another from now on. What is being taken in goes on as it began.
    pub fn handle_change(&mut self, now: Instant, machine: Machine) {
        self.handle_timeout(now);
        self.machine = machine;
        self.connect(now);
    }

    /// Does what is due by `now`: see [`Node::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.poll_timeout().filter(|due| *due <= now) {
            self.step(due);
        }
        self.processor.advance(now, &self.machine);
    }

    /// Returns the number of a request that has ended, until there is none.
    pub fn poll_ended(&mut self) -> Option<u64> {
        self.ended.pop_front()
    }

    /// Returns when `handle_timeout` is to be called, if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let accepted = (!self.arriving.is_empty()).then_some(self.accepted);
        let back = self.elsewhere.peek().map(|Reverse((at, _))| *at);
        let done = self.processor.next_end(&self.machine);
        [accepted, back, done].into_iter().flatten().min()
    }

    /// Returns what has been done by `now`.
    pub fn usage(&mut self, now: Instant) -> Usage {
        self.processor.advance(now, &self.machine);
        Usage { busy: self.processor.busy, work: self.processor.work }
    }

    /// Returns how many requests are here.
    pub fn in_service(&self) -> usize {
        self.arriving.len() + self.threadless.len() + self.running
    }

    fn step(&mut self, now: Instant) {
        self.processor.advance(now, &self.machine);
        if !self.arriving.is_empty() && self.accepted <= now {
            let job = self.arriving.pop_front().expect("somebody was being taken in a line ago");
            if !self.arriving.is_empty() {
                self.accepted = now + seconds(self.accept_time());
            }
            self.take_thread(now, job);
        }
        while let Some(Reverse((_, id))) =
            self.elsewhere.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.elsewhere.pop();
            let job = self.to_come.remove(&id).expect("whoever waits for others comes back once");
            self.processor.start(job, weight(&self.machine, &mut self.rng));
        }
        self.connect(now);
        while let Some(id) = self.processor.pop_ended() {
            self.ended.push_back(id);
            self.running -= 1;
            self.unlock(now, id);
            if let Some(job) = self.threadless.pop_front() {
                self.take_thread(now, job);
            }
        }
    }

    fn take_thread(&mut self, now: Instant, job: Job) {
        if self.machine.threads.is_some_and(|threads| self.running >= threads as usize) {
            return self.threadless.push_back(job);
        }
        self.running += 1;
        if let Some(lock) = job.lock {
            let (held, waiting) = self.locks.entry(lock.number).or_default();
            if *held >= lock.holders_max as usize {
                return waiting.push_back(job);
            }
            *held += 1;
            self.holders.insert(job.id, lock.number);
        }
        self.work(now, job);
    }

    /// Begins the work of a request that has its thread and its lock.
    fn work(&mut self, now: Instant, job: Job) {
        if job.elsewhere > 0.0 {
            self.unconnected.push_back(job);
            self.connect(now);
        } else {
            self.processor.start(job, weight(&self.machine, &mut self.rng));
        }
    }

    /// Gives a connection to whoever waits for one, as long as there are any.
    fn connect(&mut self, now: Instant) {
        while self.machine.connections.is_none_or(|all| self.elsewhere.len() < all as usize)
            && let Some(job) = self.unconnected.pop_front()
        {
            self.elsewhere.push(Reverse((now + seconds(job.elsewhere), job.id)));
            self.to_come.insert(job.id, job);
        }
    }

    /// Hands the lock that request `id` held, if any, to whoever waits for it longest.
    fn unlock(&mut self, now: Instant, id: u64) {
        let Some(number) = self.holders.remove(&id) else { return };
        let (held, waiting) = self.locks.get_mut(&number).expect("a lock that is held is known");
        match waiting.pop_front() {
            Some(job) => {
                self.holders.insert(job.id, number);
                self.work(now, job);
            }
            None => *held -= 1,
        }
    }

    fn accept_time(&self) -> f64 {
        let Machine { cores, accept, accept_crowded, .. } = self.machine;
        accept + accept_crowded * ((self.processor.jobs.len() as f64 - cores) / cores).max(0.0)
    }
}

fn weight(machine: &Machine, rng: &mut Rng) -> f64 {
    if machine.even { 1.0 } else { rng.exponential(1.0) + 0.02 }
}

impl Processor {
    fn start(&mut self, job: Job, weight: f64) {
        let ends = self.virtual_time + job.cpu / weight;
        // Positive floats order as their bits do.
        self.jobs.insert((ends.to_bits(), job.id), (weight, job.memory));
        self.weights += weight;
        self.memory += job.memory;
    }

    fn pop_ended(&mut self) -> Option<u64> {
        let (&(ends, id), &(weight, memory)) = self.jobs.first_key_value()?;
        if f64::from_bits(ends) > self.virtual_time + GRAIN {
            return None;
        }
        self.jobs.remove(&(ends, id));
        self.weights -= weight;
        self.memory -= memory;
        if self.jobs.is_empty() {
            // Sums of floats drift; an idle processor is the moment to set them right.
            (self.weights, self.memory, self.virtual_time) = (0.0, 0.0, 0.0);
        }
        Some(id)
    }

    fn next_end(&self, machine: &Machine) -> Option<Instant> {
        let (&(ends, _), _) = self.jobs.first_key_value()?;
        let left = (f64::from_bits(ends) - self.virtual_time).max(0.0);
        if left <= GRAIN {
            return Some(self.now);
        }
        // Rounded up, so that the job really has ended then.
        Some(self.now + seconds(left / self.rate(machine)) + std::time::Duration::from_nanos(1))
    }

    /// Returns dV/dt of (1).
    fn rate(&self, machine: &Machine) -> f64 {
        machine.work_per_second(self.jobs.len(), self.memory) / self.weights.max(1e-9)
    }

    fn advance(&mut self, now: Instant, machine: &Machine) {
        if !self.jobs.is_empty() {
            let passed = now.secs_since(self.now);
            self.virtual_time += self.rate(machine) * passed;
            self.busy += (self.jobs.len() as f64).min(machine.cores) * passed;
            self.work += machine.work_per_second(self.jobs.len(), self.memory) * passed;
        }
        self.now = self.now.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: u64, memory: f64) -> Job {
        Job { id, elsewhere: 0.0, cpu: 0.4, memory, lock: None }
    }

    /// Plays `node` until it is idle; returns how many ended, and when the last.
    fn drain(node: &mut Node) -> (usize, f64) {
        let (mut count, mut last) = (0, 0.0);
        while let Some(next) = node.poll_timeout() {
            node.handle_timeout(next);
            while node.poll_ended().is_some() {
                count += 1;
                last = next.as_secs_f64();
            }
        }
        (count, last)
    }

    fn seconds_for(machine: &Machine, jobs: u64, memory: f64) -> f64 {
        let mut node = Node::new(machine.clone(), Rng::new(3));
        (0..jobs).for_each(|id| node.handle_arrival(Instant::ORIGIN, job(id, memory)));
        let (count, last) = drain(&mut node);
        assert_eq!(count as u64, jobs);
        last
    }

    #[test]
    fn two_cores_do_two_seconds_of_work_a_second() {
        let last = seconds_for(&Machine::default(), 40, 0.0);
        assert!((8.0..8.5).contains(&last), "16 s of work on 2 cores, the tail on one: {last}");
    }

    #[test]
    fn too_much_memory_at_once_costs_most_of_the_machine() {
        let knee = Machine::default();
        assert!(seconds_for(&knee, 40, 1.0) > 2.0 * seconds_for(&knee, 40, 0.1));
        let efficiency = Efficiency::Heap { heap: 50.0, resting: 5.0, cost: 0.2, floor: 0.05 };
        let heap = Machine { efficiency, ..knee };
        assert!(seconds_for(&heap, 40, 1.0) > 1.5 * seconds_for(&heap, 40, 0.1));
    }

    #[test]
    fn threads_bound_what_runs_and_nothing_is_lost_for_it() {
        let machine = Machine { threads: Some(3), ..Machine::default() };
        let last = seconds_for(&machine, 40, 1.0);
        assert!(
            (8.0..8.7).contains(&last),
            "three at once hold no more memory than the collector bears: {last}"
        );
    }

    #[test]
    fn waiting_for_others_takes_time_and_no_processor() {
        let mut node = Node::new(Machine { even: true, ..Machine::default() }, Rng::new(3));
        (0..4).for_each(|id| node.handle_arrival(Instant::ORIGIN, Job { elsewhere: 2.0, ..job(id, 0.0) }));
        let (count, last) = drain(&mut node);
        assert_eq!(count, 4);
        assert!((last - 2.8).abs() < 1e-6, "2 s beside each other, then 1.6 s of work on 2 cores: {last}");
        assert!((node.usage(Instant::ORIGIN + seconds(10.0)).work - 1.6).abs() < 1e-6);
    }

    #[test]
    fn so_many_wait_for_others_at_once_as_there_are_connections() {
        let machine = Machine { even: true, connections: Some(2), ..Machine::default() };
        let mut node = Node::new(machine, Rng::new(3));
        (0..6).for_each(|id| node.handle_arrival(Instant::ORIGIN, Job { elsewhere: 2.0, ..job(id, 0.0) }));
        let (count, last) = drain(&mut node);
        assert_eq!(count, 6);
        assert!(
            (last - 6.4).abs() < 1e-6,
            "three times two beside each other, then the work of the last two: {last}"
        );
    }

    #[test]
    fn a_lock_is_held_to_the_end_by_one_after_the_other_and_others_pass() {
        let mut node = Node::new(Machine { even: true, ..Machine::default() }, Rng::new(3));
        let lock = Some(Lock { number: 7, holders_max: 1 });
        (0..5).for_each(|id| {
            node.handle_arrival(Instant::ORIGIN, Job { elsewhere: 1.0, lock, ..job(id, 0.0) });
        });
        node.handle_arrival(Instant::ORIGIN, job(5, 0.0));
        assert_eq!(node.in_service(), 6);
        node.handle_timeout(Instant::ORIGIN + seconds(0.5));
        assert_eq!((node.poll_ended(), node.poll_ended()), (Some(5), None));
        let (count, last) = drain(&mut node);
        assert_eq!(count, 5);
        assert!((last - 5.0 * 1.4).abs() < 1e-6, "five times 1 s elsewhere and 0.4 s of work: {last}");
    }

    #[test]
    fn the_accept_path_takes_one_at_a_time_and_longer_when_the_machine_is_crowded() {
        let quiet = Machine { accept: 0.01, ..Machine::default() };
        let crowded = Machine { accept_crowded: 0.01, ..quiet.clone() };
        let last = |machine: &Machine| {
            let mut node = Node::new(machine.clone(), Rng::new(3));
            (0..20).for_each(|id| node.handle_arrival(Instant::ORIGIN, job(id, 0.0)));
            let mut last = 0.0;
            while !node.arriving.is_empty() {
                let next = node.poll_timeout().expect("somebody is arriving");
                node.handle_timeout(next);
                last = next.as_secs_f64();
            }
            last
        };
        assert!((last(&quiet) - 0.2).abs() < 1e-6, "20 · 10 ms");
        assert!(last(&crowded) > 0.3, "{}", last(&crowded));
    }

    #[test]
    fn the_scalability_law_has_its_best_where_its_formula_says() {
        let scalability = |contention: f64, n: f64| Efficiency::Scalability {
            contention,
            coherency: (1.0 - contention) / (n * n),
        };
        for best in [4.0, 10.0, 30.0] {
            let machine = Machine { efficiency: scalability(0.02, best), ..Machine::default() };
            let at = |n: usize| machine.work_per_second(n, 0.0);
            let top = (1..200).max_by(|a, b| at(*a).total_cmp(&at(*b)));
            assert_eq!(top, Some(best as usize));
            assert!((machine.work_per_second_max(0.0) - at(best as usize)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_measured_curve_is_straight_in_its_cost_and_holds_beyond_its_ends() {
        let curve = Curve::through(&[(1.0, 1.0), (4.0, 0.5), (8.0, 0.25)]).unwrap();
        let close = |memory: f64, efficiency: f64| assert!((curve.at(memory) - efficiency).abs() < 1e-12);
        close(0.0, 1.0);
        close(1.0, 1.0);
        close(2.5, 1.0 / 1.5);
        close(4.0, 0.5);
        close(6.0, 1.0 / 3.0);
        close(100.0, 0.25);
        let machine =
            Machine { cores: 1.0, even: true, efficiency: Efficiency::Measured(curve), ..Machine::default() };
        assert!((seconds_for(&machine, 4, 1.0) - 4.0 * 0.4 / 0.5).abs() < 1e-6, "all four end together");
    }

    #[test]
    fn a_measured_curve_must_rise_in_memory_and_stay_above_nothing() {
        for points in [&[][..], &[(1.0, 1.0), (1.0, 0.5)], &[(1.0, 0.0)], &[(0.5, 1.0); 17]] {
            assert_eq!(Curve::through(points), None, "{points:?}");
        }
    }
}

//! A model of an application server: cores shared among the jobs in service, and a collector that takes its share.
//!
//! All jobs advance in one virtual time V, so an event costs O(log n):
//!
//! ```text
//! dV/dt = min(n, cores) · E(M) · speed / Σ q_i       job i ends when V has advanced by demand_i / q_i          (1)
//! E(M)  = 1 for M ≤ knee, else max(E_min, 1 / (1 + slope · (M − knee)))       M = memory units in service       (2)
//! ```
//!
//! q_i are the operating system's uneven weights, exponential with mean 1 plus 0.02; without them a burst of equal jobs all
//! ends at the same instant. The numbers of the collector are those with which the model shows the paper's results.

use std::collections::BTreeMap;
use suimon_model::{Instant, Rng, seconds};

/// The machine and its collector.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Processor cores.
    pub cores: f64,
    /// Memory units in service up to which the collector costs nothing.
    pub knee: f64,
    /// How fast efficiency falls beyond the knee, per unit.
    pub slope: f64,
    /// The least efficiency.
    pub efficiency_min: f64,
    /// Speed of the whole host; 1 unless capacity changes.
    pub speed: f64,
}

impl Default for Machine {
    fn default() -> Self {
        Machine { cores: 2.0, knee: 4.0, slope: 0.25, efficiency_min: 0.15, speed: 1.0 }
    }
}

/// One piece of work.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its number, unique while it is in service.
    pub id: u64,
    /// CPU seconds it needs.
    pub demand: f64,
    /// Memory units it holds.
    pub memory: f64,
}

/// The server with its jobs in service.
#[derive(Debug)]
pub struct Server {
    machine: Machine,
    rng: Rng,
    now: Instant,
    virtual_time: f64,
    weights: f64,
    memory: f64,
    /// By the virtual time at which they end (as ordered bits) and number.
    jobs: BTreeMap<(u64, u64), (f64, f64)>,
}

impl Server {
    /// Returns an idle server.
    pub fn new(machine: Machine, rng: Rng) -> Self {
        Server {
            machine,
            rng,
            now: Instant::ORIGIN,
            virtual_time: 0.0,
            weights: 0.0,
            memory: 0.0,
            jobs: BTreeMap::new(),
        }
    }

    /// Changes the machine at `now`.
    pub fn change(&mut self, now: Instant, change: impl FnOnce(&mut Machine)) {
        self.advance(now);
        change(&mut self.machine);
    }

    /// Takes a job in.
    pub fn start(&mut self, now: Instant, job: Job) {
        self.advance(now);
        let weight = self.rng.exponential(1.0) + 0.02;
        let ends = self.virtual_time + job.demand / weight;
        // Positive floats order as their bits do.
        self.jobs.insert((ends.to_bits(), job.id), (weight, job.memory));
        self.weights += weight;
        self.memory += job.memory;
    }

    /// Returns the number of a job that has ended by `now`, until there is none.
    pub fn ended(&mut self, now: Instant) -> Option<u64> {
        self.advance(now);
        let (&(ends, id), _) = self.jobs.first_key_value()?;
        if f64::from_bits(ends) > self.virtual_time + 1e-12 {
            return None;
        }
        let (weight, memory) = self.jobs.remove(&(ends, id)).expect("the first job is in the table");
        self.weights -= weight;
        self.memory -= memory;
        if self.jobs.is_empty() {
            // Sums of floats drift; an idle server is the moment to set them right.
            (self.weights, self.memory) = (0.0, 0.0);
        }
        Some(id)
    }

    /// Returns when the next job ends if nothing else starts.
    pub fn next_end(&self) -> Option<Instant> {
        let (&(ends, _), _) = self.jobs.first_key_value()?;
        let left = (f64::from_bits(ends) - self.virtual_time).max(0.0);
        // Rounded up, so that the job really has ended then.
        Some(self.now + seconds(left / self.rate()) + std::time::Duration::from_nanos(1))
    }

    /// Returns how many jobs are in service.
    pub fn in_service(&self) -> usize {
        self.jobs.len()
    }

    fn rate(&self) -> f64 {
        let over = (self.memory - self.machine.knee).max(0.0);
        let efficiency = (1.0 / (1.0 + self.machine.slope * over)).max(self.machine.efficiency_min);
        let busy = (self.jobs.len() as f64).min(self.machine.cores);
        busy * efficiency * self.machine.speed / self.weights.max(1e-9)
    }

    fn advance(&mut self, now: Instant) {
        if !self.jobs.is_empty() {
            self.virtual_time += self.rate() * now.secs_since(self.now);
        }
        self.now = self.now.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(server: &mut Server) -> (usize, f64) {
        let (mut count, mut last) = (0, 0.0);
        while let Some(next) = server.next_end() {
            while server.ended(next).is_some() {
                count += 1;
                last = next.as_secs_f64();
            }
        }
        (count, last)
    }

    fn seconds_for(jobs: u64, memory: f64) -> f64 {
        let mut server = Server::new(Machine::default(), Rng::new(3));
        (0..jobs).for_each(|id| server.start(Instant::ORIGIN, Job { id, demand: 0.4, memory }));
        let (count, last) = drain(&mut server);
        assert_eq!(count as u64, jobs);
        last
    }

    #[test]
    fn two_cores_do_two_seconds_of_work_a_second() {
        let last = seconds_for(40, 0.0);
        assert!((8.0..8.5).contains(&last), "16 s of work on 2 cores, the tail on one: {last}");
    }

    #[test]
    fn too_much_memory_at_once_costs_most_of_the_machine() {
        assert!(seconds_for(40, 1.0) > 2.0 * seconds_for(40, 0.1));
    }
}

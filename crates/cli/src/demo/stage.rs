//! The three acts: the bound, without Suimon, with it.

use super::live::Live;
use super::outcome::{self, Bound, DemoResult, Name, Run, Sample, Seen};
use super::processes::{Gateway, INTERRUPTED, LOOK, PROGRESS_MAX, Processes, suimon, url_in};
use super::{Demo, Outcome};
use crate::args::AdminAt;
use crate::{fetch, interrupt};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};
use suimon_crowd::{Options, SHOP_JOURNEY};
use suimon_process::Running;
use suimon_settings::{Faults, journey};
use suimon_workload::{Arrivals, Journey, Think, Workload};

/// Sessions played before measuring the bound, so that the shop is warmed up.
const WARMING_SESSIONS: u32 = 3;
/// About how long the bound is measured, at most.
const BOUND_S_MAX: f64 = 5.0;
/// The fewest and the most sessions for measuring the bound.
const BOUND_SESSIONS: (f64, f64) = (10.0, 2000.0);

/// Everything that the demo runs with.
pub(super) struct Stage<'a> {
    args: &'a Demo,
    processes: Processes,
    runtime: tokio::runtime::Runtime,
    live: Live,
}

/// A shop that has been started.
struct Shop {
    process: Running,
    url: String,
    /// The cost of its pages, as arguments that give another shop the same cost.
    work: Vec<String>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(args: &'a Demo) -> Outcome<Self> {
        let processes = Processes::new()?;
        Ok(Stage {
            args,
            live: Live::new(args, &processes.cores.describe("the shop")),
            processes,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Plays all three acts.
    pub(super) fn play(mut self) -> Outcome<DemoResult> {
        let began = httpdate::fmt_http_date(SystemTime::now());
        let (bound, work) = self.bound()?;
        self.live.bound(bound.per_s, bound.cpu_s_per_session, self.processes.cores.count);
        let none = self.run(Name::None, &work, bound.per_s)?;
        let suimon = self.run(Name::Suimon, &work, bound.per_s)?;
        self.live.end();
        let runs = [none, suimon];
        Ok(DemoResult {
            version: env!("CARGO_PKG_VERSION"),
            began,
            holds: outcome::holds(&runs),
            clients: self.args.clients,
            scale: self.args.scale,
            seed: self.args.seed,
            seconds: self.args.seconds(),
            settle_s: outcome::settle_s(self.args.seconds()),
            cores: self.processes.cores.describe("the shop"),
            cores_of_the_shop: self.processes.cores.count,
            bound,
            runs,
        })
    }

    /// Measures what one session costs the shop: one visitor at a time, without think times to save
    /// time.
    fn bound(&mut self) -> Outcome<(Bound, Vec<String>)> {
        let mut shop = self.shop(&[])?;
        let warming = self.sessions(&mut shop, WARMING_SESSIONS)?.visitors;
        let wanted_s = (f64::from(self.args.seconds()) / 7.0).clamp(1.0, BOUND_S_MAX);
        let count = wanted_s / warming.session_time.mean_s.max(1e-6);
        // The shop is idle before and after, so all of its work in between belongs to these
        // sessions.
        let seen = self.sessions(&mut shop, count.clamp(BOUND_SESSIONS.0, BOUND_SESSIONS.1) as u32)?;
        let sessions = seen.visitors.sessions_completed;
        // If the system does not report CPU time, elapsed time is close: nearly all of it is the
        // shop's work.
        let used = seen.shop_cpu_s.filter(|used| *used > 0.0);
        let used = used.unwrap_or(seen.visitors.session_time.mean_s * sessions as f64);
        let cpu_s_per_session = used / sessions as f64;
        let per_s = self.processes.cores.count as f64 / cpu_s_per_session;
        let visitors = per_s * (thinking_s(&workload(self.args, None)?) + cpu_s_per_session);
        Ok((Bound { cpu_s_per_session, sessions, per_s, visitors }, shop.work))
    }

    fn sessions(&mut self, shop: &mut Shop, count: u32) -> Outcome<Seen> {
        let seen = self.watch(Some(count), shop, None)?;
        let (completed, failed) = (seen.visitors.sessions_completed, seen.visitors.mid_session_failures);
        if completed < u64::from(count) || failed > 0 {
            return Err(format!(
                "the bound could not be measured: of {count} sessions, one at a time, {completed} were finished and {failed} \
                 requests failed; is this machine so busy? A lower --scale gives visitors more patience"
            )
            .into());
        }
        Ok(seen)
    }

    /// Plays the crowd against a fresh shop.
    fn run(&mut self, name: Name, work: &[String], bound: f64) -> Outcome<Run> {
        self.live.act(name);
        let mut shop = self.shop(work)?;
        let mut gateway = match name {
            Name::None => None,
            Name::Suimon => Some(self.processes.gateway(&shop.url, &[], || self.live.draw())?),
        };
        let seen = self.watch(None, &mut shop, gateway.as_mut())?;
        Ok(Run::new(name, seen, outcome::settle_s(self.args.seconds()), bound))
    }

    /// Plays the crowd, or `sessions` sessions one after another, and shows the progress. Returns
    /// what was measured.
    fn watch(
        &mut self,
        sessions: Option<u32>,
        shop: &mut Shop,
        mut gateway: Option<&mut Gateway>,
    ) -> Outcome<Seen> {
        let (sender, progress) = sync_channel(PROGRESS_MAX);
        let options = Options {
            base_url: gateway.as_ref().map_or(&shop.url, |gateway| &gateway.url).clone(),
            workload: workload(self.args, sessions)?,
            seed: Some(self.args.seed),
            // No warm-up: rates leave out the beginning later, but failures always count.
            warmup: Duration::ZERO,
            measure: sessions.is_none().then(|| Duration::from_secs(self.args.seconds().into())),
            progress: Some(Box::new(move |progress| drop(sender.try_send(progress.clone())))),
        };
        let before = self.processes.cores.used(&shop.process);
        let play = || suimon_crowd::run(options, interrupt::first());
        let crowd = thread::Builder::new().name("crowd".to_owned()).spawn(play)?;
        let mut samples = Vec::new();
        loop {
            match progress.recv_timeout(LOOK) {
                Ok(progress) => {
                    // A second without a response is only a gap in the figures.
                    let ask = |gateway: &&mut Gateway| {
                        let body = self
                            .runtime
                            .block_on(fetch::get(&AdminAt::of(&gateway.admin), suimon_admin::STATE_PATH));
                        Some(Sample::of(&serde_json::from_slice(&body.ok()?).ok()?, progress.at_s))
                    };
                    let sample = gateway.as_ref().and_then(ask);
                    self.live.progress(&progress, sample.as_ref());
                    samples.extend(sample);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.live.draw();
            shop.process.must_run()?;
            gateway.as_mut().map_or(Ok(()), |gateway| gateway.process.must_run())?;
        }
        let visitors = crowd.join().map_err(|_| "the crowd ended before its time")??;
        if interrupt::asked() {
            return Err(INTERRUPTED.into());
        }
        let after = self.processes.cores.used(&shop.process);
        let between = |index: usize| Some(after[index]? - before[index]?);
        Ok(Seen { visitors, gateway: samples, shop_cpu_s: between(0), shops_core_busy_s: between(1) })
    }

    fn shop(&mut self, work: &[String]) -> Outcome<Shop> {
        let scale = self.args.scale.to_string();
        let program = suimon("shop")?.args(["--port", "0", "--scale", &scale]).args(work);
        let program = self.processes.cores.application(program);
        let wanted = ["listening on ", "--light-work "];
        let (process, [url, same_work]) = self.processes.start(program, wanted, || self.live.draw())?;
        let work = same_work.split_once("--light-work").map_or("", |(_, counts)| counts);
        let work = ["--light-work"].into_iter().chain(work.split_ascii_whitespace());
        Ok(Shop { url: url_in(&url)?, process, work: work.map(str::to_owned).collect() })
    }
}

/// Returns the workload: the crowd, or one visitor with `sessions` sessions and no think times.
fn workload(args: &Demo, sessions: Option<u32>) -> Result<Workload, Faults> {
    let mut workload = journey::read(SHOP_JOURNEY)?.faster_by(args.scale);
    if let Arrivals::Closed { users, sessions_each, .. } = &mut workload.arrivals {
        (*users, *sessions_each) = (if sessions.is_some() { 1 } else { args.clients }, sessions);
    }
    if sessions.is_some() {
        for kind in &mut workload.kinds {
            let kind = Arc::make_mut(kind);
            kind.think = Think::Constant(Duration::ZERO);
            kind.steps.iter_mut().for_each(|step| step.think = None);
        }
    }
    Ok(workload)
}

/// Returns the mean total think time of one session, in seconds.
fn thinking_s(workload: &Workload) -> f64 {
    let thinking = |journey: &Journey| -> f64 {
        let thinks = journey.steps.iter().skip(1).map(|step| step.think.unwrap_or(journey.think));
        thinks.map(|think| think.mean().as_secs_f64()).sum()
    };
    let weight: f64 = workload.kinds.iter().map(|journey| journey.weight).sum();
    workload.kinds.iter().map(|journey| thinking(journey) * journey.weight / weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        demo: Demo,
    }

    #[test]
    fn the_journey_is_played_faster_and_without_thinking_where_sessions_are_counted() {
        let args = Line::parse_from(["demo", "--clients", "7", "--scale", "4"]).demo;
        let crowd = workload(&args, None).unwrap();
        assert_eq!(crowd.arrivals.users_max(), 7);
        assert_eq!(crowd.kinds[0].think.mean(), Duration::from_millis(750));
        // One think time before each of the seven steps except the first.
        assert!((thinking_s(&crowd) - 4.5).abs() < 1e-9);
        let one = workload(&args, Some(5)).unwrap();
        assert_eq!((one.arrivals.users_max(), one.kinds[0].think.mean()), (1, Duration::ZERO));
        assert!(!one.arrivals.is_endless());
    }
}

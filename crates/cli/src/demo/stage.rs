//! The three acts: the bound, without Suimon, with it.

use super::live::Live;
use super::outcome::{self, Bound, DemoResult, Name, Run, Sample, Seen};
use super::{Demo, Outcome};
use crate::{fetch, interrupt};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, SystemTime};
use std::{env, thread};
use suimon_crowd::{Options, SHOP_JOURNEY};
use suimon_process::{Program, Running, cpu};
use suimon_settings::{Faults, journey};
use suimon_workload::{Arrivals, Journey, Think, Workload};

/// Sessions played before measuring the bound, so that the shop is warmed up.
const WARMING_SESSIONS: u32 = 3;
/// About how long the bound is measured, at most.
const BOUND_S_MAX: f64 = 5.0;
/// The fewest and the most sessions for measuring the bound.
const BOUND_SESSIONS: (f64, f64) = (10.0, 2000.0);
/// The longest a process may take to become ready. The shop measures its own work at start, which
/// takes seconds, and longer on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often the demo checks its processes.
const LOOK: Duration = Duration::from_millis(100);
/// Most progress reports of the crowd that wait to be shown; further ones are dropped.
const PROGRESS_MAX: usize = 64;
const INTERRUPTED: &str = "interrupted; nothing was left running and no report was written";

/// Everything that the demo runs with.
pub(super) struct Stage<'a> {
    args: &'a Demo,
    /// Folder for the processes' output.
    folder: tempfile::TempDir,
    cores: Cores,
    runtime: tokio::runtime::Runtime,
    live: Live,
}

/// The shop's cores.
struct Cores {
    /// Its own core; `None`: it runs on any core.
    own: Option<usize>,
    /// How many cores it can use at once.
    count: usize,
}

/// A shop that has been started.
struct Shop {
    process: Running,
    url: String,
    /// The cost of its pages, as arguments that give another shop the same cost.
    work: Vec<String>,
}

/// A gateway that has been started.
struct Gateway {
    process: Running,
    url: String,
    admin: String,
}

impl Cores {
    /// Gives the shop one core, and the others to this thread and all it starts. Needs two or more
    /// cores, and a system that allows pinning.
    fn share_out() -> Cores {
        let count = thread::available_parallelism().map_or(1, usize::from);
        match suimon_process::allowed_cores().as_deref() {
            Ok([own, others @ ..]) if !others.is_empty() && suimon_process::stay_on(others).is_ok() => {
                Cores { own: Some(*own), count: 1 }
            }
            _ => Cores { own: None, count },
        }
    }

    /// Describes where the shop runs.
    fn describe(&self) -> &'static str {
        match (self.own, self.count) {
            (Some(_), _) => "the shop has one core to itself",
            (None, 1) => "shop, gateway and crowd share one core",
            (None, _) => "shop, gateway and crowd share all cores",
        }
    }

    /// Returns so far, in seconds, the CPU time of the shop and the busy time of its own core,
    /// stolen time included.
    fn used(&self, shop: &Running) -> [Option<f64>; 2] {
        let core = self.own.and_then(|core| cpu::core_time(core).ok()?);
        let busy = core.map(|core| core.busy + core.stolen);
        [cpu::process_time(shop.pid()).ok(), busy].map(|time| Some(time?.as_secs_f64()))
    }
}

impl<'a> Stage<'a> {
    pub(super) fn new(args: &'a Demo) -> Outcome<Self> {
        let cores = Cores::share_out();
        Ok(Stage {
            args,
            folder: tempfile::tempdir()?,
            live: Live::new(args, cores.describe()),
            cores,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Plays all three acts.
    pub(super) fn play(mut self) -> Outcome<DemoResult> {
        let began = httpdate::fmt_http_date(SystemTime::now());
        let (bound, work) = self.bound()?;
        self.live.bound(bound.per_s, bound.cpu_s_per_session, self.cores.count);
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
            seconds: self.args.seconds,
            settle_s: outcome::settle_s(self.args.seconds),
            cores: self.cores.describe(),
            cores_of_the_shop: self.cores.count,
            bound,
            runs,
        })
    }

    /// Measures what one session costs the shop: one visitor at a time, without think times to save
    /// time.
    fn bound(&mut self) -> Outcome<(Bound, Vec<String>)> {
        let mut shop = self.shop(&[])?;
        let warming = self.sessions(&mut shop, WARMING_SESSIONS)?.visitors;
        let wanted_s = (f64::from(self.args.seconds) / 7.0).clamp(1.0, BOUND_S_MAX);
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
        let per_s = self.cores.count as f64 / cpu_s_per_session;
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
            Name::Suimon => Some(self.gateway(&shop.url)?),
        };
        let seen = self.watch(None, &mut shop, gateway.as_mut())?;
        Ok(Run::new(name, seen, outcome::settle_s(self.args.seconds), bound))
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
            measure: sessions.is_none().then(|| Duration::from_secs(self.args.seconds.into())),
            progress: Some(Box::new(move |progress| drop(sender.try_send(progress.clone())))),
        };
        let before = self.cores.used(&shop.process);
        let play = || suimon_crowd::run(options, interrupt::first());
        let crowd = thread::Builder::new().name("crowd".to_owned()).spawn(play)?;
        let mut samples = Vec::new();
        loop {
            match progress.recv_timeout(LOOK) {
                Ok(progress) => {
                    // A second without a response is only a gap in the figures.
                    let ask = |gateway: &&mut Gateway| {
                        let body =
                            self.runtime.block_on(fetch::get(&gateway.admin, suimon_admin::STATE_PATH));
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
        let after = self.cores.used(&shop.process);
        let between = |index: usize| Some(after[index]? - before[index]?);
        Ok(Seen { visitors, gateway: samples, shop_cpu_s: between(0), shops_core_busy_s: between(1) })
    }

    fn shop(&mut self, work: &[String]) -> Outcome<Shop> {
        let scale = self.args.scale.to_string();
        let mut program = self.program("shop")?.args(["--port", "0", "--scale", &scale]).args(work);
        if let Some(core) = self.cores.own {
            program = program.cores(&[core]);
        }
        let (process, [url, same_work]) = self.start(program, ["listening on ", "--light-work "])?;
        let work = same_work.split_once("--light-work").map_or("", |(_, counts)| counts);
        let work = ["--light-work"].into_iter().chain(work.split_ascii_whitespace());
        Ok(Shop { url: url_in(&url)?, process, work: work.map(str::to_owned).collect() })
    }

    fn gateway(&mut self, to: &str) -> Outcome<Gateway> {
        let program = self.program("serve")?.args(["--to", to, "--listen", "127.0.0.1:0"]);
        let program = program.args(["--admin", "127.0.0.1:0", "--lease-keys", "none", "--learned", "none"]);
        let (process, [clients, operator]) = self.start(program, ["  clients ", "  operator "])?;
        Ok(Gateway { url: url_in(&clients)?, admin: url_in(&operator)?, process })
    }

    /// Returns a command of this binary.
    fn program(&self, command: &str) -> Outcome<Program> {
        // The demo shows Suimon's defaults, independent of the user's environment.
        Ok(Program::new(format!("suimon {command}"), env::current_exe()?)
            .without_env("SUIMON_LOG")
            .arg(command))
    }

    /// Starts it and returns the lines containing each of `wanted`, on either stream.
    fn start<const N: usize>(
        &mut self,
        program: Program,
        wanted: [&str; N],
    ) -> Outcome<(Running, [String; N])> {
        let mut process = program.start(self.folder.path())?;
        let told = process.wait_for("word of being ready", READY_WITHIN, |process| {
            self.live.draw();
            let said = process.said() + &process.complained();
            let whole = |line: &&str| line.ends_with('\n');
            let line = |wanted: &str| {
                said.split_inclusive('\n').filter(whole).find(|line| line.contains(wanted)).map(str::to_owned)
            };
            let told: Vec<String> = wanted.iter().filter_map(|wanted| line(wanted)).collect();
            if interrupt::asked() { Some(None) } else { <[String; N]>::try_from(told).ok().map(Some) }
        })?;
        Ok((process, told.ok_or(INTERRUPTED)?))
    }
}

/// Returns the URL in a line of a process's output.
fn url_in(line: &str) -> Outcome<String> {
    let at = line.find("http://").ok_or_else(|| format!("there is no address in {line:?}"))?;
    let end = line[at..].find([' ', ',', ';', '\n']).map_or(line.len(), |length| at + length);
    Ok(line[at..end].to_owned())
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

    #[test]
    fn nobody_else_runs_on_the_shops_core() {
        let cores = Cores::share_out();
        assert!(cores.count >= 1);
        if let Some(own) = cores.own {
            let others = suimon_process::allowed_cores().unwrap();
            assert!(!others.is_empty() && !others.contains(&own), "{own} of {others:?}");
        }
    }
}

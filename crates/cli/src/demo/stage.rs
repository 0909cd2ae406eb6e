//! The three acts: the bound, without Suimon, with it.

use super::cores::{self, Cores};
use super::crowd::{DemoCrowd, Said};
use super::gateway::Watcher;
use super::live::Live;
use super::outcome::{self, DemoResult, Name, Run, Seen};
use super::process::{CoreGroup, Process};
use super::{Demo, DemoError};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};
use suimon_crowd::Report;

/// Sessions played before the bound is measured, so that nothing is done there for the first time.
const WARMING_SESSIONS: u32 = 3;
/// About how long the bound is measured, at most.
const BOUND_S_MAX: f64 = 5.0;
/// The fewest and the most sessions it is measured over.
const BOUND_SESSIONS: (f64, f64) = (10.0, 2000.0);
/// The longest a crowd may take to tell its report once its time is over.
const REPORT_WITHIN: Duration = Duration::from_secs(20);

/// What is played on.
pub(super) struct Stage<'a> {
    args: &'a Demo,
    cores: Cores,
    interrupted: Arc<AtomicBool>,
    live: Live,
}

/// What the bound rests on.
struct Bound {
    cpu_s_per_session: f64,
    sessions: u64,
    per_s: f64,
}

/// CPU time until now, where the system tells.
struct Used {
    /// The shop's.
    shop_s: Option<f64>,
    /// Everybody's on the shop's core.
    core_s: Option<f64>,
}

/// A shop that has been started.
struct Shop {
    process: Process,
    url: String,
    /// What its pages cost, as arguments that make another shop cost the same.
    work: Vec<String>,
}

/// A gateway that has been started.
struct Gateway {
    process: Process,
    url: String,
    admin: String,
}

impl<'a> Stage<'a> {
    pub(super) fn new(args: &'a Demo, interrupted: Arc<AtomicBool>) -> Self {
        Stage { args, cores: Cores::share_out(), interrupted, live: Live::new(args) }
    }

    /// Plays all of it.
    pub(super) fn play(mut self) -> Result<DemoResult, DemoError> {
        let began = httpdate::fmt_http_date(SystemTime::now());
        self.live.begin(self.cores.describe());
        let (bound, work) = self.bound()?;
        self.live.bound(bound.per_s, bound.cpu_s_per_session, self.cores.of_the_shop);
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
            cores_of_the_shop: self.cores.of_the_shop,
            cpu_s_per_session: bound.cpu_s_per_session,
            bound_sessions: bound.sessions,
            bound_sessions_per_s: bound.per_s,
            visitors_at_the_bound: bound.per_s * (self.crowd("").thinking_s() + bound.cpu_s_per_session),
            runs,
        })
    }

    /// Measures what one session costs the shop: one visitor at a time, who does not think, so that
    /// it is soon done.
    fn bound(&mut self) -> Result<(Bound, Vec<String>), DemoError> {
        let mut shop = self.shop(&[])?;
        let warming = self.sessions(&mut shop, WARMING_SESSIONS)?;
        let wanted_s = (f64::from(self.args.seconds) / 7.0).clamp(1.0, BOUND_S_MAX);
        let count = wanted_s / warming.session_time.mean_s.max(1e-6);
        // The shop is idle before and after, so that all of its work between is these sessions' and
        // no other's.
        let before = shop.process.cpu_seconds();
        let report = self.sessions(&mut shop, count.clamp(BOUND_SESSIONS.0, BOUND_SESSIONS.1) as u32)?;
        let used = shop.process.cpu_seconds().zip(before).map(|(after, before)| after - before);
        let sessions = report.sessions_completed;
        // Where the system does not tell, the time it took is nearly all the shop's work.
        let used = used.filter(|used| *used > 0.0).unwrap_or(report.session_time.mean_s * sessions as f64);
        let cpu_s_per_session = used / sessions as f64;
        let per_s = self.cores.of_the_shop as f64 / cpu_s_per_session;
        Ok((Bound { cpu_s_per_session, sessions, per_s }, shop.work))
    }

    fn sessions(&mut self, shop: &mut Shop, count: u32) -> Result<Report, DemoError> {
        let crowd = DemoCrowd { users: 1, seconds: None, sessions: Some(count), ..self.crowd(&shop.url) };
        let report = self.watch(&crowd, shop, None)?.visitors;
        if report.sessions_completed < u64::from(count) || report.mid_session_failures > 0 {
            return Err(DemoError::Failed(format!(
                "the bound could not be measured: of {count} sessions, one at a time, {} were finished and {} requests \
                 failed; is this machine so busy? A lower --scale gives visitors more patience",
                report.sessions_completed, report.mid_session_failures
            )));
        }
        Ok(report)
    }

    /// Lets the crowd come to a fresh shop.
    fn run(&mut self, name: Name, work: &[String], bound: f64) -> Result<Run, DemoError> {
        self.live.act(name);
        let mut shop = self.shop(work)?;
        let mut gateway = match name {
            Name::None => None,
            Name::Suimon => Some(self.gateway(&shop.url)?),
        };
        let to = gateway.as_ref().map_or(&shop.url, |gateway| &gateway.url);
        let seen = self.watch(&self.crowd(to), &mut shop, gateway.as_mut())?;
        Ok(Run::new(name, seen, outcome::settle_s(self.args.seconds), bound))
    }

    fn crowd(&self, to: &str) -> DemoCrowd {
        DemoCrowd {
            to: to.to_owned(),
            users: self.args.clients,
            seed: self.args.seed,
            scale: self.args.scale,
            seconds: Some(self.args.seconds),
            sessions: None,
        }
    }

    /// Plays a crowd to its end and shows how it goes; returns what was seen of it.
    fn watch(
        &mut self,
        crowd: &DemoCrowd,
        shop: &mut Shop,
        mut gateway: Option<&mut Gateway>,
    ) -> Result<Seen, DemoError> {
        let before = self.used(shop);
        let mut players = Process::start("crowd", &crowd.arguments(), &self.cores, CoreGroup::Others)?;
        let mut watcher = None;
        let mut samples = Vec::new();
        let mut over_at = None;
        loop {
            if let Some(line) = players.next_line(&self.interrupted)? {
                match serde_json::from_str(&line) {
                    Ok(Said::Begin) => {
                        let began = Instant::now();
                        over_at = crowd.seconds.map(|seconds| began + Duration::from_secs(seconds.into()));
                        if let Some(gateway) = &gateway {
                            let started = Watcher::start(gateway.admin.clone(), began);
                            watcher = Some(started.map_err(|error| {
                                DemoError::Failed(format!(
                                    "no thread could be had to watch the gateway: {error}"
                                ))
                            })?);
                        }
                    }
                    Ok(Said::Progress(progress)) => self.live.progress(&progress),
                    Ok(Said::Report(visitors)) => {
                        let after = self.used(shop);
                        let between = |of: fn(&Used) -> Option<f64>| Some(of(&after)? - of(&before)?);
                        return Ok(Seen {
                            visitors: *visitors,
                            gateway: samples,
                            shop_cpu_s: between(|used| used.shop_s),
                            shops_core_busy_s: between(|used| used.core_s),
                        });
                    }
                    // A remark on standard error; kept there, should it be its last.
                    Err(_) => {}
                }
            }
            for sample in watcher.iter().flat_map(Watcher::new_samples) {
                self.live.sample(&sample);
                samples.push(sample);
            }
            self.live.draw();
            shop.process.ensure_alive()?;
            if let Some(gateway) = &mut gateway {
                gateway.process.ensure_alive()?;
            }
            if over_at.is_some_and(|over: Instant| over.elapsed() > REPORT_WITHIN) {
                return Err(players.failure("did not come to an end"));
            }
        }
    }

    fn used(&self, shop: &Shop) -> Used {
        let core = self.cores.shop.as_ref().and_then(|cores| cores.first());
        Used { shop_s: shop.process.cpu_seconds(), core_s: core.and_then(|core| cores::busy_seconds(*core)) }
    }

    fn shop(&self, work: &[String]) -> Result<Shop, DemoError> {
        let scale = self.args.scale.to_string();
        let mut arguments = ["shop", "--port", "0", "--scale", &scale].map(str::to_owned).to_vec();
        arguments.extend_from_slice(work);
        let mut process = Process::start("shop", &arguments, &self.cores, CoreGroup::Shop)?;
        let [listening, same_work] =
            process.wait_for(["listening on ", "--light-work "], &self.interrupted)?;
        let work = same_work.split_once("--light-work").map_or("", |(_, counts)| counts);
        let work: Vec<String> =
            ["--light-work"].into_iter().chain(work.split_ascii_whitespace()).map(str::to_owned).collect();
        Ok(Shop { url: url_in(&listening, &mut process)?, process, work })
    }

    fn gateway(&self, to: &str) -> Result<Gateway, DemoError> {
        let arguments = [
            "serve",
            "--to",
            to,
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--lease-keys",
            "none",
            "--learned",
            "none",
        ];
        let mut process =
            Process::start("gateway", &arguments.map(str::to_owned), &self.cores, CoreGroup::Others)?;
        let [clients, operator] = process.wait_for(["  clients ", "  operator "], &self.interrupted)?;
        Ok(Gateway { url: url_in(&clients, &mut process)?, admin: url_in(&operator, &mut process)?, process })
    }
}

/// Returns the URL in a line that a child has said.
fn url_in(line: &str, child: &mut Process) -> Result<String, DemoError> {
    let at = line.find("http://").ok_or_else(|| child.failure("did not say where it listens"))?;
    let end = line[at..].find([' ', ',', ';']).map_or(line.len(), |length| at + length);
    Ok(line[at..end].to_owned())
}

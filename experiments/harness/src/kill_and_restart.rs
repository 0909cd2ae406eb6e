//! `kill-and-restart`: the application dies under load and comes back.
//!
//! Beside the crowd there are witnesses: visitors whose sessions began before the crash. They send
//! requests all the time and note every answer with its reason.

mod tell;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_admin::State;
use suimon_crowd::Report;
use suimon_process::{Running, listening_address};

use crate::apps::{Shop, ShopKind, ShopOptions};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::gateways::{Gateway, start_suimon};
use crate::http::Visitor;
use crate::journey::{Arrivals, Journey, Thinks};
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, While, failed};

const NAME: &str = "kill-and-restart";
/// Visitors whose sessions began before the crash.
const WITNESSES: usize = 6;
/// From one answer of a witness to its next request.
const WITNESS_PAUSE: Duration = Duration::from_millis(500);
/// Interval of the looks at the gateway.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long it may take until all slots are free, after the crowd has gone.
const DRAIN_MAX: Duration = Duration::from_secs(20);
/// A gateway's code for a refusal, in `Proxy-Status`.
const DENIED: &str = "http_request_denied";

/// What happens to visitors when the application is killed under load and comes back?
///
/// A crowd at a shop behind Suimon; after a while `kill -9`, and after a pause a start on the same
/// port. It holds if Suimon refuses no admitted session (502 and 504 while the application is dead
/// are honest), every request is answered within the visitors' patience, sessions are completed
/// again afterwards, and all slots are free after the crowd has gone.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run kill-and-restart                      the bundled shop, about a minute
  ./experiments/run kill-and-restart --shop tomcat        the Tomcat shop")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop_options: ShopOptions,
    /// Which application.
    #[arg(long, value_enum, default_value_t = ShopKind::Bundled)]
    shop: ShopKind,
    /// Users at once.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=2000))]
    users: u32,
    /// From the crowd's start to the kill, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    kill_at: u64,
    /// From the kill to the new start, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    dead_for: u64,
    /// From the new start to the crowd's end, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    then: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    shop: ShopKind,
    users: u32,
    seed: u64,
    /// Seconds since the crowd's start.
    killed_at_s: f64,
    started_again_at_s: f64,
    listening_again_at_s: f64,
    /// What the crowd saw, including the time without the application.
    crowd: Report,
    timeline: Vec<Look>,
    witnesses: Vec<Testimony>,
    /// Refusals of the gateway by reason, and how many of them were of newcomers.
    refusals: Vec<(String, u64)>,
    newcomers_refused: u64,
    /// From the crowd's end until no request was in the application or waiting, seconds; absent:
    /// never.
    drained_after_s: Option<f64>,
    claims: Vec<Claim>,
}

/// The gateway at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Look {
    at_s: f64,
    waiting: usize,
    in_flight: usize,
    refused: u64,
    upstream_errors: u64,
    disconnects_waiting: u64,
    node: String,
}

/// One answer to one witness.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Testimony {
    witness: usize,
    asked_at_s: f64,
    took_s: f64,
    /// Absent if there was no answer.
    status: Option<u16>,
    /// `Proxy-Status`, if the gateway answered itself; or why there was no answer.
    reason: Option<String>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        (options.users, options.kill_at, options.then) = (options.users.min(40), 5, 10);
    }
    let common = options.common.prepare(NAME)?;
    let data = measure(&common, &options)?;
    data::save(&common.out.join("data/result.json"), &data)?;
    tell::draw(&common, &data)?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let scale = options.shop_options.scale;
    let mut shop = Shop {
        kind: options.shop,
        options: &options.shop_options,
        suimon: &common.suimon,
        core: common.app_core,
        logs: &common.scratch,
        work: None,
        filter: None,
    };
    eprintln!("opening the shop");
    let opened = shop.open()?;
    // At the second start it need not measure the work of a page again.
    shop.work = Some(opened.work);
    let address = opened.address;
    let gateway = start_suimon(common, &common.scratch, address, None, common.load_core)?;
    let arrivals = Arrivals::Closed { users: options.users, sessions_each: None };
    let journey =
        Journey { seed: common.seed, arrivals, scale, thinks: Thinks::Varied, endless: false, in_line: None };
    let seconds = options.kill_at + options.dead_for + options.then;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &common.scratch,
        core: common.load_core,
        journey: journey.toml(),
        to: gateway.address,
        warmup: Duration::ZERO,
        measure: Some(Duration::from_secs(seconds)),
    };
    eprintln!("{} users for {seconds} s; the shop is killed after {} s", options.users, options.kill_at);
    let patience = Duration::from_secs_f64(journey.patience_s());
    let witnesses = Witnesses::begin(gateway.address, patience)?;
    let playing = crowd.start()?;
    let mut scene = Scene::new(options, &shop, address, opened.process, &gateway);
    let crowd = playing.finish(|at| scene.look(at))?;
    let gone = Instant::now();
    let witnesses = witnesses.end(&scene)?;
    let drained_after_s = drained(&gateway, gone);
    let end = gateway.state().ok_or("it does not tell its state").trouble("the gateway")?;
    let (killed, started, listening) = scene.times()?;
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        shop: options.shop,
        users: options.users,
        seed: common.seed,
        killed_at_s: killed,
        started_again_at_s: started,
        listening_again_at_s: listening,
        crowd,
        timeline: scene.timeline,
        witnesses,
        refusals: end.refusals.iter().map(|reason| (reason.reason.clone(), reason.count)).collect(),
        newcomers_refused: end.kinds.iter().map(|kind| kind.refused).sum(),
        drained_after_s,
        claims: Vec::new(),
    };
    data.claims = tell::judge(&data, patience);
    Ok(data)
}

/// What happens to the shop while the crowd plays, and what is observed.
struct Scene<'a> {
    options: &'a Options,
    shop: &'a Shop<'a>,
    address: SocketAddr,
    process: Option<Running>,
    gateway: &'a Gateway,
    began: Instant,
    killed: Option<Duration>,
    started: Option<Duration>,
    listening: Option<Duration>,
    looked: Option<Duration>,
    timeline: Vec<Look>,
}

impl<'a> Scene<'a> {
    fn new(
        options: &'a Options,
        shop: &'a Shop<'a>,
        address: SocketAddr,
        process: Running,
        gateway: &'a Gateway,
    ) -> Self {
        Scene {
            options,
            shop,
            address,
            process: Some(process),
            gateway,
            began: Instant::now(),
            killed: None,
            started: None,
            listening: None,
            looked: None,
            timeline: Vec::new(),
        }
    }

    /// Is called every tenth of a second with the time since the crowd's start.
    fn look(&mut self, at: Duration) -> Result<()> {
        if self.killed.is_none() && at >= Duration::from_secs(self.options.kill_at) {
            // Dropping it is `kill -9`.
            drop(self.process.take());
            self.killed = Some(at);
            eprintln!("{:5.1} s: the shop is killed", at.as_secs_f64());
        }
        let dead_for = Duration::from_secs(self.options.dead_for);
        if self.started.is_none() && self.killed.is_some_and(|killed| at >= killed + dead_for) {
            self.process = Some(self.shop.start(self.address.port())?);
            self.started = Some(at);
            eprintln!("{:5.1} s: the shop is started again", at.as_secs_f64());
        }
        if self.listening.is_none()
            && self.started.is_some()
            && let Some(process) = &mut self.process
        {
            process.must_run()?;
            if listening_address(&process.said()).is_some() {
                self.listening = Some(at);
                eprintln!("{:5.1} s: the shop listens again", at.as_secs_f64());
            }
        }
        if self.looked.is_some_and(|looked| at < looked + LOOK_EVERY) {
            return Ok(());
        }
        self.looked = Some(at);
        if let Some(state) = self.gateway.state() {
            self.timeline.push(Look::of(&state, at));
        }
        Ok(())
    }

    fn times(&self) -> Result<(f64, f64, f64)> {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        match (seconds(self.killed), seconds(self.started), seconds(self.listening)) {
            (Some(killed), Some(started), Some(listening)) => Ok((killed, started, listening)),
            _ => {
                failed("the shop did not listen again before the crowd ended: give it more time with --then")
            }
        }
    }
}

impl Look {
    fn of(state: &State, at: Duration) -> Look {
        Look {
            at_s: at.as_secs_f64(),
            waiting: state.totals.waiting(),
            in_flight: state.totals.in_flight,
            refused: state.refusals.iter().map(|reason| reason.count).sum(),
            upstream_errors: state.totals.upstream_errors,
            disconnects_waiting: state.totals.disconnects_waiting,
            node: state.nodes.first().map(|node| node.status.clone()).unwrap_or_default(),
        }
    }
}

/// Visitors who began before the crash and send requests all the time.
struct Witnesses {
    began: Instant,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Testimony>>>,
}

impl Witnesses {
    /// Logs all of them in, then starts their requests.
    fn begin(gateway: SocketAddr, patience: Duration) -> Result<Self> {
        let (began, over) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let mut threads = Vec::new();
        for witness in 0..WITNESSES {
            let mut visitor = Visitor::new(gateway, patience);
            let answer = visitor.ask("/login", Some(&format!("user=witness{witness}&password=secret")))?;
            if answer.status != 200 || visitor.cookie_names().next().is_none() {
                return failed(format!("witness {witness} cannot log in: status {}", answer.status));
            }
            let over = Arc::clone(&over);
            threads.push(thread::spawn(move || testify(witness, visitor, began, &over)));
        }
        Ok(Witnesses { began, over, threads })
    }

    /// Ends them and returns all testimonies, with times since the crowd's start.
    fn end(self, scene: &Scene<'_>) -> Result<Vec<Testimony>> {
        self.over.store(true, Ordering::Relaxed);
        let before = scene.began.duration_since(self.began).as_secs_f64();
        let mut all = Vec::new();
        for thread in self.threads {
            let joined = thread.join().map_err(|_| Trouble::Failed("a witness panicked".to_string()));
            all.extend(
                joined?.into_iter().map(|said| Testimony { asked_at_s: said.asked_at_s - before, ..said }),
            );
        }
        all.sort_by(|a, b| a.asked_at_s.total_cmp(&b.asked_at_s));
        Ok(all)
    }
}

fn testify(witness: usize, mut visitor: Visitor, began: Instant, over: &AtomicBool) -> Vec<Testimony> {
    let mut said = Vec::new();
    let mut logged_in = true;
    while !over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let form = format!("user=witness{witness}&password=secret");
        // A restarted shop has forgotten its visitors; a visitor that is asked to log in does so.
        let (path, form) = if logged_in { ("/browse?page=1", None) } else { ("/login", Some(form.as_str())) };
        let answer = visitor.ask(path, form);
        let (status, reason) = match &answer {
            Ok(answer) => (Some(answer.status), answer.header("proxy-status").map(str::to_string)),
            Err(trouble) => (None, Some(trouble.to_string())),
        };
        match status {
            Some(403) => logged_in = false,
            Some(200) => logged_in = true,
            _ => {}
        }
        said.push(Testimony {
            witness,
            asked_at_s: asked.duration_since(began).as_secs_f64(),
            took_s: asked.elapsed().as_secs_f64(),
            status,
            reason,
        });
        thread::sleep(WITNESS_PAUSE);
    }
    said
}

/// Waits until no request is in flight or waiting, and returns when that was, counted from `since`.
fn drained(gateway: &Gateway, since: Instant) -> Option<f64> {
    while since.elapsed() < DRAIN_MAX {
        let state = gateway.state()?;
        let at_nodes: u32 = state.nodes.iter().map(|node| node.in_flight).sum();
        if state.totals.in_flight == 0 && state.totals.waiting() == 0 && at_nodes == 0 {
            return Some(since.elapsed().as_secs_f64());
        }
        thread::sleep(Duration::from_millis(50));
    }
    None
}

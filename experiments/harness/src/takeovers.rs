//! `takeovers`: the gateway is replaced again and again in the middle of a rush, by processes that
//! take over, and by `kill -9` and a new start.
//!
//! Beside the crowd there are witnesses: some inside, who ask for pages all the time, and some in
//! line, who poll and never go in. Each notes what it loses.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_crowd::Report;
use suimon_process::{Signal, free_address, group};
use suimon_statistics::table::numbers;

use crate::apps::{OpenShop, Shop, ShopKind, ShopOptions};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::gateways::{Gateway, Served};
use crate::http::{Answer, Visitor};
use crate::journey::{Arrivals, InLine, Journey, Thinks};
use crate::machine::Machine;
use crate::trouble::{Result, Trouble, While, failed};

const NAME: &str = "takeovers";
/// Witnesses inside, and in line.
const INSIDE: usize = 6;
const IN_LINE: usize = 12;
/// From one answer of a witness to its next request: inside, and in line, where whoever polls sooner is
/// told so.
const INSIDE_PAUSE: Duration = Duration::from_millis(100);
const IN_LINE_PAUSE: Duration = Duration::from_secs(3);
/// How long a witness waits for an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// From the crowd's start to the first end of the gateway, and from the last to the crowd's end.
const SETTLING: Duration = Duration::from_secs(15);
/// How long a process may take to take over.
const TAKES_OVER_WITHIN: Duration = Duration::from_secs(30);
/// What the log says of one that has.
const HAS_TAKEN_OVER: &str = "takeover: process ";

/// What do visitors lose when the gateway is replaced again and again in the middle of a rush?
///
/// A crowd above capacity at a shop behind Suimon, with a line. In one cell the gateway is taken over
/// 20 times (SIGUSR2), in the other it is ended 5 times by `kill -9` and started again. It holds if
/// no request fails through takeovers, no begun session is lost in either cell, and no place is.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run takeovers                      the bundled shop, about 3 minutes
  ./experiments/run takeovers --shop tomcat        the Tomcat shop")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop_options: ShopOptions,
    /// Which application.
    #[arg(long, value_enum, default_value_t = ShopKind::Bundled)]
    shop: ShopKind,
    /// Users at once.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=2000))]
    users: u32,
    /// Sessions that may be under way at once.
    #[arg(long, value_name = "N", default_value_t = 24)]
    sessions: u32,
    /// How often the gateway is taken over.
    #[arg(long, value_name = "N", default_value_t = 20)]
    takeovers: u32,
    /// How often it is killed.
    #[arg(long, value_name = "N", default_value_t = 5)]
    kills: u32,
    /// From one to the next, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    every: u64,
}

/// How the gateway ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    TakenOver,
    Killed,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    shop: ShopKind,
    users: u32,
    sessions: u32,
    seed: u64,
    cells: Vec<Cell>,
    claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cell {
    way: Way,
    /// When the gateway ended, and how long it took until the next one was there, seconds.
    ends: Vec<(f64, f64)>,
    witnesses: Losses,
    crowd: Report,
}

/// What witnesses have lost, and how much they have asked for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Losses {
    asked_inside: u64,
    asked_in_line: u64,
    /// Requests without an answer, or with one that is none of the visitor's state, by what it was.
    failed: BTreeMap<String, u64>,
    /// Answers to a visitor inside that sent it to the line.
    sessions_lost: u64,
    /// Answers to a visitor in line with another place, or none.
    places_lost: u64,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if options.common.quick {
        (options.takeovers, options.kills, options.every) = (3, 1, 3);
        (options.users, options.sessions) = (options.users.min(40), options.sessions.min(15));
    }
    let common = options.common.prepare(NAME)?;
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        shop: options.shop,
        users: options.users,
        sessions: options.sessions,
        seed: common.seed,
        cells: Vec::new(),
        claims: Vec::new(),
    };
    for way in [Way::TakenOver, Way::Killed] {
        let cell = cell(&common, &options, way)?;
        data.cells.push(cell);
    }
    data.claims = data.cells.iter().flat_map(judge).collect();
    data::save(&common.out.join("data/result.json"), &data)?;
    let text = format!(
        "# The gateway is replaced in a rush\n\nWritten by `./experiments/run {NAME}` from `data/result.json`.\n\n{}",
        table(&data)
    );
    data::write(&common.out.join("table.md"), &text)?;
    print!("{}{}", table(&data), claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

fn cell(common: &Common, options: &Options, way: Way) -> Result<Cell> {
    let folder = common.scratch.join(format!("{way:?}").to_lowercase());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).trouble(folder.display())?;
    let shop = Shop {
        kind: options.shop,
        options: &options.shop_options,
        suimon: &common.suimon,
        core: common.app_core,
        logs: &folder,
        work: None,
        filter: None,
    };
    let OpenShop { process: _running, address: app, .. } = shop.open()?;
    let times = if way == Way::TakenOver { options.takeovers } else { options.kills };
    let every = Duration::from_secs(options.every);
    let mut scene = Scene::begin(common, &folder, app, (way, times, every), options.sessions)?;
    let journey = Journey {
        seed: common.seed,
        arrivals: Arrivals::Closed { users: options.users, sessions_each: None },
        scale: options.shop_options.scale,
        thinks: Thinks::Varied,
        endless: false,
        in_line: Some(InLine { patience: Duration::from_secs(3600), away: 0.0 }),
    };
    let witnesses = Witnesses::begin(scene.listen)?;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey: journey.toml(),
        to: scene.listen,
        warmup: Duration::ZERO,
        measure: Some(SETTLING + every * times + SETTLING),
    };
    eprintln!("{way:?}: {} users, {times} times", options.users);
    let crowd = crowd.start()?.finish(|at| scene.look(at))?;
    if scene.ends.len() < times as usize {
        return failed(format!("only {} of {times} times: give it more time with --every", scene.ends.len()));
    }
    Ok(Cell { way, ends: scene.ends.clone(), witnesses: witnesses.end()?, crowd })
}

/// The gateway, and what happens to it while the crowd plays.
struct Scene<'a> {
    common: &'a Common,
    folder: PathBuf,
    app: SocketAddr,
    listen: SocketAddr,
    admin: SocketAddr,
    way: Way,
    left: u32,
    every: Duration,
    settings: String,
    gateway: Option<Gateway>,
    /// The process that is the gateway now, if another has taken over from the first.
    now: Option<u32>,
    next: Duration,
    ends: Vec<(f64, f64)>,
}

impl<'a> Scene<'a> {
    fn begin(
        common: &'a Common,
        folder: &Path,
        app: SocketAddr,
        (way, left, every): (Way, u32, Duration),
        sessions: u32,
    ) -> Result<Self> {
        let settings = format!(
            "[gate]\nsession_law = \"static\"\nstatic_sessions = {sessions}\n\n[[session]]\nkind = \"shopping\"\nbegins = [\"POST /login\"]\nends = [\"POST /logout\"]\n"
        );
        let mut scene = Scene {
            common,
            folder: folder.to_owned(),
            app,
            listen: free_address()?,
            admin: free_address()?,
            way,
            left,
            every,
            settings,
            gateway: None,
            now: None,
            next: SETTLING,
            ends: Vec::new(),
        };
        scene.start()?;
        Ok(scene)
    }

    fn start(&mut self) -> Result<()> {
        let to = format!("http://{}", self.app);
        let served = Served {
            to: &to,
            listen: self.listen,
            admin: self.admin,
            learned: "learned.json",
            keys: "lease.keys",
        };
        let started = served.start(self.common, &self.folder, Some(&self.settings), self.common.load_core);
        self.gateway = Some(started?);
        Ok(())
    }

    /// Is called every tenth of a second with the time since the crowd's start.
    fn look(&mut self, at: Duration) -> Result<()> {
        if self.left == 0 || at < self.next {
            return Ok(());
        }
        let began = Instant::now();
        match self.way {
            Way::TakenOver => self.take_over()?,
            Way::Killed => {
                // Dropping it is `kill -9`.
                drop(self.gateway.take());
                self.start()?;
            }
        }
        self.left -= 1;
        self.next += self.every;
        self.ends.push((at.as_secs_f64(), began.elapsed().as_secs_f64()));
        Ok(())
    }

    fn take_over(&mut self) -> Result<()> {
        let first =
            self.gateway.as_ref().and_then(Gateway::pid).ok_or("it has ended").trouble("the gateway")?;
        let log = self.folder.join("gateway.err");
        let said = || fs::read_to_string(&log).trouble(log.display());
        let already = said()?.matches(HAS_TAKEN_OVER).count();
        group::signal(self.now.unwrap_or(first), Signal::USR2);
        let began = Instant::now();
        while began.elapsed() < TAKES_OVER_WITHIN {
            let text = said()?;
            let word = text.split(HAS_TAKEN_OVER).skip(1 + already).find_map(|rest| rest.split_once(' '));
            if let Some((pid, _)) = word {
                self.now = Some(pid.parse().trouble(pid)?);
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        failed(format!("no process has taken over: see {}", log.display()))
    }
}

/// Whatever it comes to, no process is left.
impl Drop for Scene<'_> {
    fn drop(&mut self) {
        if let Some(pid) = self.now {
            group::signal(pid, Signal::KILL);
        }
    }
}

/// Visitors who note what they lose.
struct Witnesses {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Losses>>,
}

impl Witnesses {
    /// Begins the sessions of those inside. Those in line get their places once there is one.
    fn begin(gateway: SocketAddr) -> Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for number in 0..INSIDE {
            let mut visitor = witness(gateway, number);
            let form = log_in(number);
            let answer = visitor.ask("/login", Some(&form))?;
            if answer.status != 200 {
                return failed(format!("witness {number} cannot log in: status {}", answer.status));
            }
            let over = Arc::clone(&over);
            threads.push(thread::spawn(move || inside(visitor, &over)));
        }
        for number in INSIDE..INSIDE + IN_LINE {
            let over = Arc::clone(&over);
            threads.push(thread::spawn(move || in_line(|| witness(gateway, number), &log_in(number), &over)));
        }
        Ok(Witnesses { over, threads })
    }

    fn end(self) -> Result<Losses> {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Losses::default();
        for thread in self.threads {
            let losses = thread.join().map_err(|_| Trouble::Failed("a witness panicked".to_string()))?;
            all.add(losses);
        }
        Ok(all)
    }
}

impl Losses {
    fn add(&mut self, other: Losses) {
        self.asked_inside += other.asked_inside;
        self.asked_in_line += other.asked_in_line;
        self.sessions_lost += other.sessions_lost;
        self.places_lost += other.places_lost;
        for (what, count) in other.failed {
            *self.failed.entry(what).or_default() += count;
        }
    }

    fn fail(&mut self, what: String) {
        *self.failed.entry(what).or_default() += 1;
    }

    fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}

fn witness(gateway: SocketAddr, number: usize) -> Visitor {
    Visitor::new(gateway, PATIENCE).with_browser(format!("witness {number}"))
}

fn log_in(number: usize) -> String {
    format!("user=witness{number}&password=secret")
}

/// Asks again where it is sent on, as browsers do.
fn ask(visitor: &mut Visitor, path: &str, form: Option<&str>) -> Result<Answer> {
    let answer = visitor.ask(path, form)?;
    if answer.status == 307 { visitor.ask(path, form) } else { Ok(answer) }
}

fn poll(visitor: &mut Visitor) -> Result<Answer> {
    let answer = visitor.poll("/login")?;
    if answer.status == 307 { visitor.poll("/login") } else { Ok(answer) }
}

fn place(answer: &Answer) -> Option<u64> {
    let json: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    json["position"].as_u64()
}

fn inside(mut visitor: Visitor, over: &AtomicBool) -> Losses {
    let mut losses = Losses::default();
    while !over.load(Ordering::Relaxed) {
        losses.asked_inside += 1;
        match ask(&mut visitor, "/browse?page=1", None) {
            Ok(answer) if answer.status == 200 => {}
            Ok(answer) if place(&answer).is_some() => losses.sessions_lost += 1,
            Ok(answer) => losses.fail(format!("status {}", answer.status)),
            Err(_) => losses.fail("no answer".to_string()),
        }
        thread::sleep(INSIDE_PAUSE);
    }
    losses
}

fn in_line(stranger: impl Fn() -> Visitor, form: &str, over: &AtomicBool) -> Losses {
    let (mut losses, mut own, mut visitor) = (Losses::default(), None, stranger());
    thread::sleep(SETTLING / 2);
    while !over.load(Ordering::Relaxed) {
        let asked = if own.is_none() {
            ask(&mut visitor, "/login", Some(form))
        } else {
            losses.asked_in_line += 1;
            poll(&mut visitor)
        };
        match asked {
            Ok(answer) => match (place(&answer), own) {
                (Some(place), None) => own = Some(place),
                (Some(place), Some(own)) => losses.places_lost += u64::from(place != own),
                // Let in: there was no line yet.
                (None, None) if answer.status == 200 => visitor = stranger(),
                // Too early.
                (None, Some(_)) if answer.status == 429 => {}
                (None, Some(_)) if answer.status == 200 => losses.places_lost += 1,
                (None, _) => losses.fail(format!("status {}", answer.status)),
            },
            Err(_) if own.is_some() => losses.fail("no answer".to_string()),
            Err(_) => {}
        }
        thread::sleep(IN_LINE_PAUSE);
    }
    losses
}

fn crowd_failures(cell: &Cell) -> u64 {
    cell.crowd.first_step_failures + cell.crowd.mid_session_failures
}

/// Only a takeover is held to losing no request.
fn judge(cell: &Cell) -> Vec<Claim> {
    let what = words(cell.way);
    let (failures, witnesses) = (crowd_failures(cell), &cell.witnesses);
    let mut claims = Vec::new();
    if cell.way == Way::TakenOver {
        let text = format!(
            "{what}: no request fails: {} of the witnesses', {failures} of the crowd's {}",
            witnesses.failures(),
            cell.crowd.requests
        );
        claims.push(Claim::new(text, failures + witnesses.failures() == 0));
    }
    claims.push(Claim::new(
        format!(
            "{what}: no begun session is sent to the line: {} of {} requests",
            witnesses.sessions_lost, witnesses.asked_inside
        ),
        witnesses.sessions_lost == 0,
    ));
    claims.push(Claim::new(
        format!("{what}: no place is lost: {} of {} polls", witnesses.places_lost, witnesses.asked_in_line),
        witnesses.places_lost == 0 && witnesses.asked_in_line > 0,
    ));
    claims
}

fn words(way: Way) -> &'static str {
    match way {
        Way::TakenOver => "taken over",
        Way::Killed => "kill -9",
    }
}

fn table(data: &Data) -> String {
    let row = |cell: &Cell| {
        let order = cell.crowd.line.as_ref().map(|line| line.order).unwrap_or_default();
        let longest = cell.ends.iter().map(|(_, took)| *took).fold(0.0, f64::max);
        vec![
            words(cell.way).to_string(),
            cell.ends.len().to_string(),
            format!("{longest:.2} s"),
            (cell.crowd.requests + cell.witnesses.asked_inside + cell.witnesses.asked_in_line).to_string(),
            (crowd_failures(cell) + cell.witnesses.failures()).to_string(),
            cell.crowd.sessions_completed.to_string(),
            (cell.crowd.sessions_failed_inside + cell.witnesses.sessions_lost).to_string(),
            cell.witnesses.places_lost.to_string(),
            format!("{} of {}", order.overtaken, order.judged),
        ]
    };
    let headings = [
        "end",
        "times",
        "longest",
        "requests",
        "failed",
        "sessions",
        "sessions failed",
        "places lost",
        "overtaken",
    ];
    numbers(&headings, &data.cells.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        Answer { status: 200, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    #[test]
    fn a_place_is_read_from_what_a_script_is_told() {
        assert_eq!(place(&answer("{\"state\":\"waiting\",\"position\":7}")), Some(7));
        assert_eq!(place(&answer("<html>a page</html>")), None);
    }

    #[test]
    fn losses_of_all_witnesses_are_added_up() {
        let mut all = Losses { places_lost: 1, ..Losses::default() };
        let mut other = Losses { sessions_lost: 2, ..Losses::default() };
        other.fail("no answer".to_string());
        other.fail("status 502".to_string());
        all.add(other.clone());
        all.add(other);
        assert_eq!((all.places_lost, all.sessions_lost, all.failures()), (1, 4, 4));
    }
}

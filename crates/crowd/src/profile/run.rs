//! A run: point after point, each with its clients, until all are measured or too much fails.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use suimon_model::Instant;
use suimon_workload::Window;
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::MissedTickBehavior;

use super::books::PointBooks;
use super::plan::{Plan, Point, Role};
use super::probe::Probe;
use super::report::{Ended, PointReport, ProfileReport, Second};
use super::stop::StopRule;
use crate::clock::Clock;
use crate::machine::{ensure_descriptors, thread_cpu_time};
use crate::target::{Addresses, BaseUrl};
use crate::trouble::Trouble;

/// How long a client whose request failed waits, so that failing costs nobody much.
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// How often it is told how it goes.
const TICK: Duration = Duration::from_secs(1);

/// Is told what happens.
pub type OnNews = Box<dyn FnMut(&News<'_>) + Send>;

/// What is to be measured, and where.
pub struct Options {
    /// Where: `http://host:port`, and a path that stands before every path.
    pub target: String,
    /// Whether that may be another machine.
    pub allow_remote: bool,
    /// Sent with each request.
    pub headers: HeaderMap,
    /// What.
    pub plan: Plan,
    /// Is told what happens.
    pub news: Option<OnNews>,
}

/// What happened.
#[derive(Debug)]
pub enum News<'a> {
    /// Another second went by.
    Tick(&'a Progress),
    /// A point was measured.
    Measured(&'a PointReport),
}

/// How it goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// The point being played, from 0.
    pub index: usize,
    /// How many there are.
    pub points: usize,
    /// What it is.
    pub point: Point,
    /// What is being done.
    pub phase: Phase,
    /// The share of all planned time that is over, 0 to 1.
    pub done: f64,
    /// Planned time that is left, seconds.
    pub left_s: f64,
    /// Requests answered in the last second, light and heavy.
    pub answered: Second,
    /// Requests that failed since the point began.
    pub errors: u64,
}

/// A part of a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Played, not measured.
    WarmUp,
    /// Measured.
    Measuring,
    /// Nothing new is sent; what is in flight is waited for.
    LastAnswers,
}

/// Why a run could not begin.
#[derive(Debug)]
pub enum ProfileError {
    /// The target or the plan cannot be used; the sentence says why.
    Unusable(String),
    /// The target is another machine, and nobody has allowed that.
    Remote(String),
    /// The process may not hold this many connections.
    TooManyConnections {
        /// Descriptors needed.
        needed: u64,
        /// Descriptors it may have.
        limit: u64,
    },
    /// The host's name was not resolved.
    UnknownHost(String, std::io::Error),
    /// The runtime did not start.
    Runtime(std::io::Error),
}

impl ProfileError {
    /// Returns whether what was asked for is wrong (and not the world).
    pub const fn is_usage(&self) -> bool {
        matches!(self, ProfileError::Unusable(_) | ProfileError::Remote(_))
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::Unusable(sentence) => f.write_str(sentence),
            ProfileError::Remote(target) => write!(
                f,
                "{target} is not this machine: a profile overloads what it measures. If its owner agrees, \
                 add --allow-remote"
            ),
            ProfileError::TooManyConnections { needed, limit } => write!(
                f,
                "so many requests in flight need {needed} descriptors and this process may have {limit}: \
                 raise it (ulimit -Hn), or send fewer"
            ),
            ProfileError::UnknownHost(host, error) => write!(f, "the host {host} was not found ({error})"),
            ProfileError::Runtime(error) => write!(f, "the runtime did not start ({error})"),
        }
    }
}

impl std::error::Error for ProfileError {}

/// Looks whether these options can be played, without sending anything.
///
/// # Errors
/// Fails with what is wrong with them.
pub fn check(options: &Options) -> Result<(), ProfileError> {
    base_of(options).map(drop)
}

fn base_of(options: &Options) -> Result<BaseUrl, ProfileError> {
    let base = BaseUrl::parse(&options.target).map_err(ProfileError::Unusable)?;
    options.plan.check().map_err(ProfileError::Unusable)?;
    if !base.is_loopback() && !options.allow_remote {
        return Err(ProfileError::Remote(options.target.clone()));
    }
    Ok(base)
}

/// Plays the plan and returns what was measured. It ends early when too much fails or `shutdown` is
/// ready; what is in flight then is dropped.
///
/// Blocks the calling thread, which plays all clients; so call it from a thread of its own, not
/// from inside an async runtime.
///
/// # Errors
/// Fails if it cannot begin.
pub fn run(options: Options, shutdown: impl Future<Output = ()>) -> Result<ProfileReport, ProfileError> {
    let base = base_of(&options)?;
    ensure_descriptors(options.plan.in_flight_max())
        .map_err(|(needed, limit)| ProfileError::TooManyConnections { needed, limit })?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ProfileError::Runtime)?;
    let local = LocalSet::new();
    let report = local.block_on(&runtime, play(options, base, shutdown));
    drop(local);
    runtime.shutdown_background();
    report
}

/// What all clients share; they live in one thread.
struct Shared {
    plan: Plan,
    probes: [Probe; 2],
    addresses: Addresses,
    clock: Clock,
    books: RefCell<PointBooks>,
    series: RefCell<Vec<Second>>,
    /// Nothing new is to be sent.
    winding_down: Cell<bool>,
    /// Too much has failed.
    broken: Notify,
}

async fn play(
    options: Options,
    base: BaseUrl,
    shutdown: impl Future<Output = ()>,
) -> Result<ProfileReport, ProfileError> {
    let Options { target, allow_remote, headers, plan, news } = options;
    let addresses =
        base.resolve().await.map_err(|error| ProfileError::UnknownHost(base.host.clone(), error))?;
    if !allow_remote && !addresses.are_loopback() {
        return Err(ProfileError::Remote(target));
    }
    let probe = |role| Probe::new(plan.service(role), &base, &headers, plan.new_connections);
    let mut report = ProfileReport::new(&target, &plan, SystemTime::now());
    let shared = Rc::new(Shared {
        probes: Role::ALL.map(probe),
        addresses,
        clock: Clock::start(),
        books: RefCell::new(PointBooks::new(Window { from: Instant::ORIGIN, to: Instant::ORIGIN })),
        series: RefCell::default(),
        winding_down: Cell::new(false),
        broken: Notify::new(),
        plan,
    });
    let points = shared.plan.points();
    let mut teller = Teller { news, lasts: shared.plan.lasts(), over: Duration::ZERO, points: points.len() };
    let mut shutdown = pin!(shutdown);
    for (index, point) in points.iter().enumerate() {
        let ended = play_point(&shared, (index, point), &mut report, &mut teller, shutdown.as_mut()).await;
        if ended != Ended::AllPoints {
            report.end(ended, &shared.plan, point, &shared.books.borrow());
            break;
        }
        teller.over += point.warmup + point.measure;
    }
    report.series = shared.series.take();
    Ok(report)
}

/// Plays one point to the last answer, and returns whether the next one may follow.
async fn play_point(
    shared: &Rc<Shared>,
    (index, point): (usize, &Point),
    report: &mut ProfileReport,
    teller: &mut Teller,
    mut shutdown: Pin<&mut impl Future<Output = ()>>,
) -> Ended {
    let clock = shared.clock;
    let began = clock.now();
    let window = Window { from: began + point.warmup, to: began + point.warmup + point.measure };
    *shared.books.borrow_mut() = PointBooks::new(window);
    shared.winding_down.set(false);
    let cpu_before = thread_cpu_time();
    let mut cpu = Duration::ZERO;
    let mut clients = JoinSet::new();
    for role in Role::ALL {
        for _ in 0..point.in_flight(role) {
            clients.spawn_local(client(Rc::clone(shared), role));
        }
    }
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let ended = loop {
        tokio::select! {
            biased;
            () = shutdown.as_mut() => break Ended::Interrupted,
            () = shared.broken.notified() => break Ended::Errors,
            () = clock.sleep_until(window.to), if !shared.winding_down.get() => {
                shared.winding_down.set(true);
                cpu = thread_cpu_time().saturating_sub(cpu_before);
            }
            _ = ticks.tick() => teller.tick(shared, index, point, began),
            done = clients.join_next() => match done {
                Some(Err(error)) => if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
                Some(Ok(())) => {}
                None => break Ended::AllPoints,
            },
        }
    };
    if ended != Ended::AllPoints {
        cpu = thread_cpu_time().saturating_sub(cpu_before);
    }
    // What is still in flight is dropped, and with it its connection.
    clients.shutdown().await;
    let measured = PointReport::new(point, &shared.books.borrow(), began, clock.now(), cpu, &report.points);
    if ended == Ended::AllPoints {
        teller.tell(&News::Measured(&measured));
    }
    report.points.push(measured);
    ended
}

/// One client: asks, and asks again as soon as it is answered.
async fn client(shared: Rc<Shared>, role: Role) {
    let probe = &shared.probes[role as usize];
    let rule = StopRule::new(shared.plan.errors_max);
    let mut kept = None;
    while !shared.winding_down.get() {
        let began = shared.clock.now();
        let asked = tokio::time::timeout(shared.plan.timeout, probe.ask(&shared.addresses, &mut kept));
        let outcome = asked.await.unwrap_or(Err(Trouble::TimedOut));
        let now = shared.clock.now();
        let failed = outcome.is_err();
        if !failed {
            shared.count(role, now);
        }
        shared.books.borrow_mut().ended(role, began, now, outcome);
        if failed {
            if shared.books.borrow().broken(rule).is_some() {
                shared.broken.notify_one();
            }
            tokio::time::sleep(ERROR_PAUSE).await;
        }
    }
}

impl Shared {
    fn count(&self, role: Role, now: Instant) {
        let mut series = self.series.borrow_mut();
        let second = now.as_secs_f64() as usize;
        if series.len() <= second {
            series.resize(second + 1, Second::default());
        }
        match role {
            Role::Light => series[second].light += 1,
            Role::Heavy => series[second].heavy += 1,
        }
    }
}

/// Tells how it goes.
struct Teller {
    news: Option<OnNews>,
    points: usize,
    /// Planned time of all points, and of those that are over.
    lasts: Duration,
    over: Duration,
}

impl Teller {
    fn tell(&mut self, news: &News<'_>) {
        if let Some(listener) = &mut self.news {
            listener(news);
        }
    }

    fn tick(&mut self, shared: &Shared, index: usize, point: &Point, began: Instant) {
        let now = shared.clock.now();
        let planned = point.warmup + point.measure;
        let over = self.over + now.since(began).min(planned);
        let books = shared.books.borrow();
        let phase = if now < books.window.from {
            Phase::WarmUp
        } else if now < books.window.to {
            Phase::Measuring
        } else {
            Phase::LastAnswers
        };
        // The last whole second.
        let second = (now.as_secs_f64() as usize).checked_sub(1);
        let answered = second.and_then(|second| shared.series.borrow().get(second).copied());
        let progress = Progress {
            index,
            points: self.points,
            point: *point,
            phase,
            done: over.as_secs_f64() / self.lasts.as_secs_f64().max(1e-9),
            left_s: self.lasts.saturating_sub(over).as_secs_f64(),
            answered: answered.unwrap_or_default(),
            errors: Role::ALL.iter().map(|role| books.service(*role).errors_ever).sum(),
        };
        drop(books);
        self.tell(&News::Tick(&progress));
    }
}

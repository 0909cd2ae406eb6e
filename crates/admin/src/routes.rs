//! The paths and their answers.

use crate::Source;
use crate::guard::guard;
use crate::learned::Learned;
use crate::listener::Bounded;
use crate::names;
use crate::pool::{PoolAnswer, PoolDetails, PoolRequest};
use crate::state::{self, State, not_ready_because};
use crate::verdict::SituationClock;
use crate::waiting_room::{INVITES_MAX, LineAnswer, LineOrder, LineRequest, LineState};
use crate::windows::{EVERY_S, Windows};
use axum::Router;
use axum::extract;
use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde::Deserialize;
use std::fmt::Write;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use suimon_proxy::PoolError;
use tokio::net::TcpListener;

/// What the operator's listener is told before it starts.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// Names it may be reached by, beside localhost and addresses.
    pub hosts: Vec<String>,
    /// Version of the gateway, to be shown.
    pub version: String,
    /// Whether any client that reaches it may command the waiting room and the pools: to be so on
    /// loopback alone, as there is no password.
    pub takes_commands: bool,
}

/// Every path, with what is there.
const PATHS: [(&str, &str); 7] = [
    (names::METRICS_PATH, "numbers, for Prometheus"),
    (names::STATE_PATH, "current state as JSON; `suimon status` prints it"),
    (
        names::LEARNED_PATH,
        "what was learned of visitors and application, as JSON; `suimon sim --from` makes a scenario of it",
    ),
    (
        names::WAITING_ROOM_PATH,
        "the waiting room's lines, as JSON; `suimon waiting-room` shows and commands them",
    ),
    (names::POOL_PATH, "pools of workers, as JSON; `suimon pool` shows and commands them"),
    (names::HEALTH_PATH, "200 as long as the process answers"),
    (names::READY_PATH, "200 if the gateway is ready for new visitors"),
];

/// What every answer is made from.
#[derive(Clone)]
struct Shown {
    source: Arc<dyn Source>,
    version: Arc<str>,
    takes_commands: bool,
    memory: Arc<Mutex<History>>,
}

/// Earlier values, as far as the verdict needs them.
#[derive(Default)]
struct History {
    windows: Windows,
    verdicts: SituationClock,
}

impl Shown {
    /// Returns what is answered to a command that `suimon COMMAND` gives, if none is taken.
    fn refuses_commands(&self, command: &str) -> Option<Response> {
        let why = format!(
            "commands are accepted on loopback only, because this listener has no authentication: run `suimon {command}` on the gateway's machine, with admin.listen on 127.0.0.1\n"
        );
        (!self.takes_commands).then(|| (StatusCode::FORBIDDEN, why).into_response())
    }

    /// Takes note of the state, each second.
    async fn watch(self) {
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(EVERY_S));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let view = self.source.view();
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            memory.windows.note(&view);
            let verdict = state::verdict_of(&*self.source, &view, &memory.windows);
            memory.verdicts.note(verdict, state::now_unix());
        }
    }
}

/// Answers on `listener` until `ended` is done and open requests are answered.
///
/// # Errors
/// Fails if the listener does.
pub async fn serve(
    listener: TcpListener,
    params: Params,
    source: Arc<dyn Source>,
    ended: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let hosts = params.hosts.into();
    let shown = Shown {
        source,
        version: params.version.into(),
        takes_commands: params.takes_commands,
        memory: Arc::default(),
    };
    let served =
        axum::serve(Bounded::new(listener), router(hosts, shown.clone())).with_graceful_shutdown(ended);
    tokio::select! {
        done = served.into_future() => done,
        () = shown.watch() => unreachable!("it goes on for ever"),
    }
}

fn router(hosts: Arc<[String]>, shown: Shown) -> Router {
    Router::new()
        .route("/", get(async || index()))
        .route(names::METRICS_PATH, get(metrics))
        .route(names::STATE_PATH, get(state))
        .route(names::LEARNED_PATH, get(learned))
        .route(names::WAITING_ROOM_PATH, get(lines).post(command_lines))
        .route(names::POOL_PATH, get(pools).post(command_pools))
        .route(names::HEALTH_PATH, get(async || "ok\n"))
        .route(names::READY_PATH, get(readyz))
        .fallback(async || (StatusCode::NOT_FOUND, "not found; / lists all paths\n"))
        .layer(middleware::from_fn_with_state(hosts, guard))
        .with_state(shown)
}

fn index() -> String {
    let mut text = "Suimon, admin listener\n\n".to_string();
    for (path, what) in PATHS {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{path:<13} {what}");
    }
    text
}

async fn metrics(extract::State(shown): extract::State<Shown>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, crate::metrics::render(&*shown.source, &shown.version)).into_response()
}

/// What may be asked of the state, and of the pools.
#[derive(Deserialize)]
struct SinceQuery {
    /// Decisions or changes up to this one are known already.
    #[serde(default)]
    since: u64,
}

async fn state(
    extract::State(shown): extract::State<Shown>,
    extract::Query(SinceQuery { since }): extract::Query<SinceQuery>,
) -> Json<State> {
    let mut memory = shown.memory.lock().unwrap_or_else(PoisonError::into_inner);
    let History { windows, verdicts } = &mut *memory;
    Json(State::of(&*shown.source, &shown.version, windows, verdicts, since))
}

async fn learned(extract::State(shown): extract::State<Shown>) -> Json<Learned> {
    let nodes = shown.source.nodes().len();
    Json(Learned::of(&shown.source.learned(), nodes, &shown.version))
}

async fn lines(extract::State(shown): extract::State<Shown>) -> Json<LineAnswer> {
    Json(answer(&shown, Vec::new()))
}

async fn command_lines(
    extract::State(shown): extract::State<Shown>,
    request: Result<Json<LineRequest>, JsonRejection>,
) -> Response {
    if let Some(refusal) = shown.refuses_commands("waiting-room") {
        return refusal;
    }
    let LineRequest { kind, order } = match request {
        Ok(Json(request)) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let kind = kind.as_deref();
    let command = match order.command(SystemTime::now()) {
        Ok(command) => command,
        Err(why) => return (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    };
    let done = match (command, &order) {
        (Some(command), _) => shown.source.command_line(kind, &command).map(|()| Vec::new()),
        (None, LineOrder::Invite { count, life_s }) if (1..=INVITES_MAX).contains(count) => {
            shown.source.invite(kind, *count, Duration::from_secs(*life_s))
        }
        (None, _) => {
            let why = format!("count must be from 1 to {INVITES_MAX}\n");
            return (StatusCode::BAD_REQUEST, why).into_response();
        }
    };
    match done {
        Ok(invitations) => Json(answer(&shown, invitations)).into_response(),
        Err(error) => (StatusCode::NOT_FOUND, format!("{error}\n")).into_response(),
    }
}

fn answer(shown: &Shown, invitations: Vec<String>) -> LineAnswer {
    LineAnswer { lines: shown.source.lines().into_iter().map(LineState::of).collect(), invitations }
}

async fn pools(
    extract::State(shown): extract::State<Shown>,
    extract::Query(SinceQuery { since }): extract::Query<SinceQuery>,
) -> Json<PoolAnswer> {
    Json(pools_since(&shown, since))
}

async fn command_pools(
    extract::State(shown): extract::State<Shown>,
    request: Result<Json<PoolRequest>, JsonRejection>,
) -> Response {
    if let Some(refusal) = shown.refuses_commands("pool") {
        return refusal;
    }
    let PoolRequest { pool, order } = match request {
        Ok(Json(request)) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    match shown.source.command_pool(pool.as_deref(), order.command()) {
        Ok(()) => Json(pools_since(&shown, 0)).into_response(),
        Err(error @ PoolError::NoSuch(_)) => (StatusCode::NOT_FOUND, format!("{error}\n")).into_response(),
        Err(error @ (PoolError::Size(_) | PoolError::Memory(_))) => {
            (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response()
        }
    }
}

fn pools_since(shown: &Shown, since: u64) -> PoolAnswer {
    let view = shown.source.view();
    let now = state::now_unix();
    let started_at = now - view.uptime.as_secs_f64();
    let pools = shown.source.pools(since);
    let pools = pools.iter().map(|pool| PoolDetails::of(pool, &view, started_at)).collect();
    PoolAnswer { now, pools }
}

async fn readyz(extract::State(shown): extract::State<Shown>) -> Response {
    match not_ready_because(shown.source.is_draining(), &shown.source.nodes()) {
        None => "ready\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response(),
    }
}

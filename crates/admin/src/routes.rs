//! The paths and their answers.

use crate::access::{Access, Peer};
use crate::asked::{SiteQuery, Sites};
use crate::config::{CONFIG_BYTES_MAX, CONFIG_TYPE};
use crate::dashboard;
use crate::guard::{Guard, guard, would_command};
use crate::history::HistoryState;
use crate::learned::Learned;
use crate::listener::{AdminListener, Bounded};
use crate::names;
use crate::overrides::{OverrideAnswer, OverrideCommand, OverrideRequest, OverrideState};
use crate::pool::{PoolAnswer, PoolDetails, PoolRequest};
use crate::request::read;
use crate::shown::Shown;
use crate::sites::{Site, SitesAnswer};
use crate::state::{self, State};
use crate::text::Format;
use crate::waiting_room::{INVITES_MAX, LineAnswer, LineOrder, LineRequest, LineState};
use axum::Router;
use axum::extract;
use axum::extract::rejection::{JsonRejection, StringRejection};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{MethodRouter, get};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use suimon_proxy::{OverrideError, PoolError};

/// What the operator's listener is told before it starts.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// Names it may be reached by, beside localhost and addresses.
    pub hosts: Vec<String>,
    /// Version of the gateway, to be shown.
    pub version: String,
    /// Who may reach what.
    pub access: Arc<Access>,
}

/// Every path, with what is there.
const PATHS: [(&str, &str); 13] = [
    (names::METRICS_PATH, "numbers, for Prometheus; also as OpenMetrics"),
    (names::STATE_PATH, "current state as JSON; `suimon status` prints it"),
    (names::SITES_PATH, "the sites behind the gateway; what is said of one is asked for with ?site=NAME"),
    (names::HISTORY_PATH, "the last 900 seconds, or with ?seconds=86400 the last day by minutes, as JSON"),
    (names::EVENTS_PATH, "the state each second, as server-sent events; the dashboard listens"),
    (
        names::LEARNED_PATH,
        "what was learned of visitors and application, as JSON; `suimon sim --from` makes a scenario of it",
    ),
    (
        names::WAITING_ROOM_PATH,
        "the waiting room's lines, as JSON; `suimon waiting-room` shows and commands them",
    ),
    (names::POOL_PATH, "pools of workers, as JSON; `suimon pool` shows and commands them"),
    (
        names::OVERRIDE_PATH,
        "what an operator overrides for a while, as JSON; `suimon override` shows, sets and releases it",
    ),
    (
        names::CONFIG_PATH,
        "the settings in force, as TOML; by POST others, adopted whole or not at all (?dry_run=true: only told)",
    ),
    (names::OPENAPI_PATH, "all of this, as an OpenAPI document"),
    (names::HEALTH_PATH, "200 as long as the process answers"),
    (names::READY_PATH, "200 if the gateway is ready for new visitors"),
];

/// What describes the listener; `cargo xtask docs` writes it.
const OPENAPI: &str = include_str!("../openapi.json");

/// The sites, with what is remembered of them from second to second. Clones are of the same.
#[derive(Clone)]
pub struct Watch {
    sites: Sites,
    guard: Guard,
}

impl Watch {
    /// Returns the watch over `sites`: at least one, the main one first.
    ///
    /// # Errors
    /// Fails if there is no site.
    pub fn new(params: Params, sites: Vec<Site>) -> io::Result<Watch> {
        if sites.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no site to be shown"));
        }
        let guard = Guard { hosts: params.hosts.into(), access: Arc::clone(&params.access) };
        Ok(Watch { sites: Sites::new(sites, &params.version, params.access), guard })
    }

    /// Takes note of all sites each second, where no listener does. Never returns.
    pub async fn run(self) {
        self.sites.watch().await;
    }

    /// Returns what `/api/state` answers of the main site.
    pub fn state(&self) -> State {
        self.sites.main().state(0)
    }

    /// Answers on `listener` until `ended` is done and open requests are answered.
    ///
    /// # Errors
    /// Fails if the listener does.
    pub async fn serve(
        self,
        listener: impl Into<AdminListener>,
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let Watch { sites, guard } = self;
        let service = router(guard, sites.clone()).into_make_service_with_connect_info::<Peer>();
        let told = sites.clone();
        let ended = async move {
            ended.await;
            told.end();
        };
        let served = axum::serve(Bounded::new(listener.into()), service).with_graceful_shutdown(ended);
        tokio::select! {
            done = served.into_future() => done,
            () = sites.watch() => unreachable!("it goes on for ever"),
        }
    }
}

/// Answers on `listener` until `ended` is done and open requests are answered. `sites`: at least one,
/// the main one first.
///
/// # Errors
/// Fails if the listener does, or if there is no site.
pub async fn serve(
    listener: impl Into<AdminListener>,
    params: Params,
    sites: Vec<Site>,
    ended: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    Watch::new(params, sites)?.serve(listener, ended).await
}

fn router(guarded: Guard, sites: Sites) -> Router {
    let routes = routes().into_iter();
    routes
        .fold(Router::new(), |router, (path, answer)| router.route(path, answer))
        .fallback(async || (StatusCode::NOT_FOUND, "not found; / lists all paths\n"))
        .layer(middleware::from_fn_with_state(guarded, guard))
        .with_state(sites)
}

/// The dashboard to a browser, the paths to everybody else.
async fn root(headers: HeaderMap) -> Response {
    if dashboard::is_asked_for(&headers) { dashboard::page() } else { index().into_response() }
}

/// Returns every path with what answers there. Those of [`names::COMMAND_PATHS`] take POST, too.
fn routes() -> Vec<(&'static str, MethodRouter<Sites>)> {
    let of_config = get(config).post(adopt_config).layer(extract::DefaultBodyLimit::max(CONFIG_BYTES_MAX));
    vec![
        ("/", get(root)),
        (names::SCRIPT_PATH, get(dashboard::script)),
        (names::STYLE_PATH, get(dashboard::style)),
        (names::METRICS_PATH, get(metrics)),
        (names::STATE_PATH, get(state)),
        (names::SITES_PATH, get(sites_now)),
        (names::HISTORY_PATH, get(history)),
        (names::EVENTS_PATH, get(events)),
        (names::LEARNED_PATH, get(learned)),
        (names::WAITING_ROOM_PATH, get(lines).post(command_lines)),
        (names::POOL_PATH, get(pools).post(command_pools)),
        (names::OVERRIDE_PATH, get(overrides).post(command_overrides)),
        (names::CONFIG_PATH, of_config),
        (names::OPENAPI_PATH, get(openapi)),
        (names::HEALTH_PATH, get(async || "ok\n")),
        (names::READY_PATH, get(readyz)),
    ]
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

fn index() -> String {
    let mut text = "Suimon, admin listener: a browser gets the dashboard here\n\n".to_string();
    for (path, what) in PATHS {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{path:<13} {what}");
    }
    text
}

/// Returns what `/metrics` answers of these sites, the main one first, in Prometheus' text format.
pub fn metrics_text(sites: &[Site], version: &str, access: &Access) -> String {
    crate::metrics::render(sites, version, access, Format::Prometheus)
}

async fn metrics(extract::State(sites): extract::State<Sites>, headers: HeaderMap) -> Response {
    let format = Format::accepted(&headers);
    let about = [(header::CONTENT_TYPE, format.content_type()), (header::VARY, "accept")];
    (about, crate::metrics::render(&sites.all, &sites.version, &sites.access, format)).into_response()
}

async fn sites_now(extract::State(sites): extract::State<Sites>) -> Json<SitesAnswer> {
    Json(SitesAnswer { sites: sites.states() })
}

/// What may be asked of the state, and of the pools.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SinceQuery {
    /// Decisions or changes up to this one are known already.
    #[serde(default)]
    since: u64,
}

async fn state(
    shown: Shown,
    uri: Uri,
    headers: HeaderMap,
    extract::Query(SinceQuery { since }): extract::Query<SinceQuery>,
) -> Json<State> {
    let state = shown.state(since);
    Json(State { takes_commands: would_command(&headers, &uri), ..state })
}

/// The longest history, seconds: a day.
const HISTORY_SECONDS_MAX: f64 = 86_400.0;

/// How far back the history is asked for.
#[derive(Deserialize)]
struct HistoryQuery {
    #[serde(default = "HistoryQuery::usual")]
    seconds: f64,
}

impl HistoryQuery {
    const fn usual() -> f64 {
        900.0
    }
}

async fn history(
    shown: Shown,
    extract::Query(HistoryQuery { seconds }): extract::Query<HistoryQuery>,
) -> Response {
    if !(0.0..=HISTORY_SECONDS_MAX).contains(&seconds) {
        let why = format!("seconds must be from 0 to {HISTORY_SECONDS_MAX}\n");
        return (StatusCode::BAD_REQUEST, why).into_response();
    }
    let view = shown.source.view();
    let history: HistoryState = shown.memory().samples.history(&view, seconds, state::now_unix());
    Json(history).into_response()
}

async fn events(extract::State(sites): extract::State<Sites>, shown: Shown, headers: HeaderMap) -> Response {
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0);
    shown.stage.stream(seen, |seen| shown.live(seen, sites.beside()))
}

async fn learned(shown: Shown) -> Json<Learned> {
    let nodes = shown.source.nodes().len();
    Json(Learned::of(&shown.source.learned(), nodes, &shown.version))
}

async fn lines(shown: Shown) -> Json<LineAnswer> {
    Json(answer(&shown, Vec::new()))
}

async fn command_lines(shown: Shown, request: Result<Json<Value>, JsonRejection>) -> Response {
    let LineRequest { kind, order } = match read(request) {
        Ok(request) => request,
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
    let lines = shown.source.lines().into_iter().map(LineState::of).collect();
    LineAnswer { site: shown.site(), lines, invitations }
}

async fn pools(
    shown: Shown,
    extract::Query(SinceQuery { since }): extract::Query<SinceQuery>,
) -> Json<PoolAnswer> {
    Json(pools_since(&shown, since))
}

async fn command_pools(shown: Shown, request: Result<Json<Value>, JsonRejection>) -> Response {
    let PoolRequest { pool, order } = match read(request) {
        Ok(request) => request,
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
    PoolAnswer { site: shown.site(), now, pools }
}

async fn overrides(shown: Shown) -> Json<OverrideAnswer> {
    Json(overrides_of(&shown))
}

async fn command_overrides(shown: Shown, request: Result<Json<Value>, JsonRejection>) -> Response {
    let command = match read(request).and_then(OverrideRequest::command) {
        Ok(command) => command,
        Err(why) => return (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    };
    let done = match command {
        OverrideCommand::Set(order) => shown.source.override_with(order),
        OverrideCommand::Release(id, who) => shown.source.release(id, &who),
    };
    match done {
        Ok(()) => Json(overrides_of(&shown)).into_response(),
        Err(error) => {
            let status = match error {
                OverrideError::NoSuchRoute(_) | OverrideError::NoSuchNode(..) | OverrideError::NoSuch(_) => {
                    StatusCode::NOT_FOUND
                }
                OverrideError::Several(_) | OverrideError::LastNode(_) | OverrideError::Full => {
                    StatusCode::BAD_REQUEST
                }
                OverrideError::HandedOver => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, format!("{error}\n")).into_response()
        }
    }
}

fn overrides_of(shown: &Shown) -> OverrideAnswer {
    let overrides = shown.source.overrides().iter().map(OverrideState::of).collect();
    OverrideAnswer { site: shown.site(), overrides }
}

async fn config(extract::State(sites): extract::State<Sites>) -> Response {
    match sites.main().source.config() {
        Some(config) => ([(header::CONTENT_TYPE, CONFIG_TYPE)], config.text).into_response(),
        None => (StatusCode::NOT_FOUND, "this gateway has no settings to be shown\n").into_response(),
    }
}

/// How settings are posted.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ConfigQuery {
    /// Whether it is only told what would change.
    #[serde(default)]
    dry_run: bool,
}

async fn adopt_config(
    extract::State(sites): extract::State<Sites>,
    extract::Query(ConfigQuery { dry_run }): extract::Query<ConfigQuery>,
    text: Result<String, StringRejection>,
) -> Response {
    let text = match text {
        Ok(text) => text,
        Err(error) => return (error.status(), format!("{error}\n")).into_response(),
    };
    // It reads files.
    let answer = tokio::task::spawn_blocking(move || sites.main().source.adopt_config(&text, dry_run)).await;
    let Ok(answer) = answer else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the settings could not be checked\n").into_response();
    };
    let status = match (answer.adopted || answer.dry_run, answer.faults.is_empty()) {
        (_, false) => StatusCode::UNPROCESSABLE_ENTITY,
        (true, true) => StatusCode::OK,
        (false, true) => StatusCode::CONFLICT,
    };
    (status, Json(answer)).into_response()
}

async fn readyz(
    extract::State(sites): extract::State<Sites>,
    extract::Query(SiteQuery { site }): extract::Query<SiteQuery>,
) -> (StatusCode, String) {
    sites.readiness(site.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::OneOfEverything;
    use crate::verdict::SituationClock;
    use crate::windows::Windows;
    use serde_json::json;
    use std::collections::BTreeSet;

    /// Returns what in `value` is not as the schema says, or is more than it says.
    fn faults(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        if let Some(place) = schema["$ref"].as_str() {
            return faults(root, root.pointer(&place[1..]).unwrap_or(&Value::Null), value, at);
        }
        if let Some(ways) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            let each: Vec<_> = ways.iter().map(|way| faults(root, way, value, at)).collect();
            return if each.iter().any(Vec::is_empty) { vec![] } else { each.concat() };
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return vec![format!("{at}: no type: {schema}")],
        };
        let own = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let is_number = own == "integer" && kinds.contains(&"number");
        if !kinds.contains(&own) && !is_number {
            return vec![format!("{at}: {own}, and should be {kinds:?}")];
        }
        match value {
            Value::Array(values) => values
                .iter()
                .enumerate()
                .flat_map(|(index, value)| faults(root, &schema["items"], value, &format!("{at}[{index}]")))
                .collect(),
            Value::Object(values) => {
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                let missing =
                    required.iter().filter_map(Value::as_str).filter(|key| !values.contains_key(*key));
                let mut found: Vec<_> = missing.map(|key| format!("{at}.{key}: missing")).collect();
                for (key, value) in values {
                    let at = format!("{at}.{key}");
                    match (schema["properties"].get(key), schema.get("additionalProperties")) {
                        (Some(own), _) | (None, Some(own)) => found.extend(faults(root, own, value, &at)),
                        (None, None) => found.push(format!("{at}: not described")),
                    }
                }
                found
            }
            _ => vec![],
        }
    }

    #[test]
    fn the_state_is_as_its_schema_says_and_what_is_not_is_found() {
        let root: Value = serde_json::from_str(OPENAPI).unwrap();
        let schema =
            &root["paths"][names::STATE_PATH]["get"]["responses"]["200"]["content"]["application/json"];
        let told = |value: &Value| faults(&root, &schema["schema"], value, "state");
        let (windows, mut clock) = (Windows::default(), SituationClock::default());
        let state = State::of(&OneOfEverything, "VERSION", &windows, &mut clock, 0);
        let right = serde_json::to_value(&state).unwrap();
        assert_eq!(told(&right), [""; 0]);
        for (place, wrong) in
            [("/routes/0/limit", json!("three")), ("/now", json!(null)), ("/overrides", json!([{ "id": 1 }]))]
        {
            let mut other = right.clone();
            *other.pointer_mut(place).unwrap() = wrong;
            assert_ne!(told(&other), [""; 0], "{place}");
        }
        let mut more = right;
        more["totals"]["unheard_of"] = json!(1);
        assert_eq!(told(&more), ["state.totals.unheard_of: not described"]);
    }

    #[test]
    fn each_path_and_method_is_described_and_no_other() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            described
                .extend(methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())));
        }
        // Pages that people read are not listed, and no part of it.
        let listed: BTreeSet<&str> = PATHS.iter().map(|(path, _)| *path).collect();
        let paths: Vec<_> = routes().into_iter().map(|(path, _)| path).collect();
        assert!(listed.iter().all(|path| paths.contains(path)), "each that is listed is there");
        let there = paths.into_iter().filter(|path| listed.contains(path)).flat_map(|path| {
            let post = names::COMMAND_PATHS.contains(&path).then_some("post");
            std::iter::once("get").chain(post).map(move |method| (path.to_owned(), method.to_owned()))
        });
        assert_eq!(described, there.collect());
    }
}

//! The document that describes the listener, made from the paths and from the types that are answered.
//! `cargo xtask docs` writes it to `openapi.json`, which is what a gateway shows.

use crate::config::{CONFIG_TYPE, ConfigAnswer};
use crate::overrides::{PINNED_LIMIT_MAX, WHO_CHARS_MAX, WHY_CHARS_MAX};
use crate::request::LARGEST_WHOLE;
use crate::{
    HistoryState, Learned, LineAnswer, LineRequest, OverrideAnswer, PoolAnswer, PoolRequest, SitesAnswer,
    State, names,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use suimon_proxy::OVERRIDE_SECONDS_MAX;

/// Where schemas stand in the document.
const SCHEMAS: &str = "/components/schemas";
/// One line of text.
const LINE_PATTERN: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";

/// Returns the document as it is written.
pub fn openapi_document() -> String {
    let mut text = serde_json::to_string_pretty(&document()).expect("it is made of texts and numbers");
    text.push('\n');
    text
}

fn document() -> Value {
    let (mut answers, mut requests) = (Schemas::new(true), Schemas::new(false));
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let since = |what: &str| {
        json!([site(), {
            "name": "since", "in": "query", "description": what,
            "schema": { "type": "integer", "format": "uint64", "minimum": 0, "maximum": u64::MAX },
        }])
    };
    let text = || json!({ "text/plain": { "schema": { "type": "string" } } });
    let paths = json!({
        names::METRICS_PATH: { "get": get("Numbers, in Prometheus' text format", text()) },
        names::STATE_PATH: { "get": of_site(with(
            get("Everything at one moment", json(answers.of::<State>())),
            json!({ "parameters": since("Decisions up to this one are left out") }),
        )) },
        names::SITES_PATH: {
            "get": get("The sites behind the gateway, the main one first", json(answers.of::<SitesAnswer>())),
        },
        names::HISTORY_PATH: { "get": of_site(with(
            get("The last quarter of an hour by seconds, or the last day by minutes", json(answers.of::<HistoryState>())),
            json!({
                "parameters": [site(), {
                    "name": "seconds", "in": "query",
                    "description": "How far back: up to 900 by seconds, above that by minutes",
                    "schema": { "type": "number", "minimum": 0, "maximum": 86_400, "default": 900 },
                }],
            }),
        )) },
        names::EVENTS_PATH: {
            "get": of_site(get(
                "The state each second, as server-sent events named state: a LiveState each",
                json!({ "text/event-stream": { "schema": { "type": "string" } } }),
            )),
        },
        names::LEARNED_PATH: {
            "get": of_site(get("What was learned of visitors and application", json(answers.of::<Learned>()))),
        },
        names::WAITING_ROOM_PATH: {
            "get": of_site(get("The waiting room's lines", json(answers.of::<LineAnswer>()))),
            "post": of_site(post("Says something to the lines", json(requests.of::<LineRequest>()), json(answers.of::<LineAnswer>()))),
        },
        names::POOL_PATH: {
            "get": of_site(with(
                get("The pools of workers", json(answers.of::<PoolAnswer>())),
                json!({ "parameters": since("Changes up to this one are left out") }),
            )),
            "post": of_site(post("Says something to the pools", json(requests.of::<PoolRequest>()), json(answers.of::<PoolAnswer>()))),
        },
        names::OVERRIDE_PATH: {
            "get": of_site(get("What an operator overrides for a while", json(answers.of::<OverrideAnswer>()))),
            "post": of_site(post("Overrides something, or releases it", json(override_request()), json(answers.of::<OverrideAnswer>()))),
        },
        names::CONFIG_PATH: {
            "get": with(
                get("The settings in force, without secrets", json!({ CONFIG_TYPE: { "schema": { "type": "string" } } })),
                json!({ "responses": { "404": refused("This gateway has none to be shown") } }),
            ),
            "post": with(
                post(
                    "Puts other settings in force, all or none",
                    json!({ CONFIG_TYPE: { "schema": { "type": "string", "description": "A whole file of settings" } } }),
                    json(answers.of::<ConfigAnswer>()),
                ),
                json!({
                    "parameters": [{
                        "name": "dry_run", "in": "query",
                        "description": "Whether it is only told what would change",
                        "schema": { "type": "boolean" },
                    }],
                    "responses": {
                        "409": { "description": "Something in it takes a restart", "content": json(answers.of::<ConfigAnswer>()) },
                        "422": { "description": "Something in it is wrong", "content": json(answers.of::<ConfigAnswer>()) },
                    },
                }),
            ),
        },
        names::OPENAPI_PATH: {
            "get": get("This document", json(json!({ "type": "object" }))),
        },
        names::HEALTH_PATH: { "get": get("Whether the process answers", text()) },
        names::READY_PATH: { "get": of_site(with(
            get("Whether the gateway is ready for new visitors: any of its sites, or the one that is named", text()),
            json!({ "responses": { "503": refused("It is not, and why") } }),
        )) },
    });
    let mut schemas = answers.definitions();
    for (name, schema) in requests.definitions() {
        schemas.entry(name).or_insert(schema);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Suimon's admin listener",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Metrics, state, and what an operator says to a gateway. See docs/admin.md.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "servers": [{ "url": "http://127.0.0.1:8001" }],
        "security": [{}, { "bearer": [] }, { "basic": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "The token of admin.token_file" },
                "basic": { "type": "http", "scheme": "basic", "description": "The token as the password; any name" },
            },
        },
    })
}

/// Schemas of types, with those that they use.
struct Schemas(SchemaGenerator);

impl Schemas {
    /// Returns schemas of what is written (`written`), or of what is read.
    fn new(written: bool) -> Self {
        let settings =
            SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = SCHEMAS.into());
        let settings = if written { settings.for_serialize() } else { settings.for_deserialize() };
        Schemas(settings.into_generator())
    }

    fn of<T: JsonSchema>(&mut self) -> Value {
        self.0.subschema_for::<T>().to_value()
    }

    fn definitions(mut self) -> Map<String, Value> {
        self.0.take_definitions(true)
    }
}

fn refused(why: &str) -> Value {
    json!({ "description": why, "content": { "text/plain": { "schema": { "type": "string" } } } })
}

/// Returns a path's answer to GET, and what is refused everywhere.
#[allow(clippy::needless_pass_by_value, reason = "it is made where it is handed over")]
fn get(summary: &str, content: Value) -> Value {
    json!({
        "summary": summary,
        "responses": {
            "200": { "description": "So it is", "content": content },
            "401": refused("A token is needed, or this is not the token"),
            "403": refused("Nothing proves who asks, or a web page from elsewhere may have asked"),
            "421": refused("The host is none of this listener's"),
        },
    })
}

/// Returns the parameter that says which site is meant.
fn site() -> Value {
    json!({
        "name": "site", "in": "query",
        "description": "The site that is meant, by its name; left out: the main one",
        "schema": { "type": "string" },
    })
}

/// Returns `path`, which speaks of a site, with the parameter for it if it has no parameters of its own,
/// and with what is answered where there is no such site.
fn of_site(path: Value) -> Value {
    let absent = |key: &str| path["responses"].get(key).is_none();
    let mut responses = Map::new();
    for (key, why) in [("400", "A query that cannot be read"), ("404", "There is no site of that name")] {
        if absent(key) {
            responses.insert(key.to_owned(), refused(why));
        }
    }
    let parameters = path.get("parameters").cloned().unwrap_or_else(|| json!([site()]));
    with(path, json!({ "parameters": parameters, "responses": responses }))
}

/// Returns the same of POST, with what commands may get besides.
#[allow(clippy::needless_pass_by_value, reason = "it is made where it is handed over")]
fn post(summary: &str, request: Value, content: Value) -> Value {
    with(
        get(summary, content),
        json!({
            "requestBody": { "required": true, "content": request },
            "responses": {
                "400": refused("It cannot be done so, and why"),
                "404": refused("There is nothing of that name, or number"),
                "413": refused("It is too long"),
            },
        }),
    )
}

/// Returns `own` with what `more` has.
fn with(mut own: Value, more: Value) -> Value {
    match (&mut own, more) {
        (Value::Object(own), Value::Object(more)) => {
            for (key, value) in more {
                let before = own.remove(&key).unwrap_or(Value::Null);
                own.insert(key, with(before, value));
            }
        }
        (own, more) => *own = more,
    }
    own
}

/// Returns the schema of what is overridden, which says one thing at a time.
fn override_request() -> Value {
    let text = json!({ "type": "string" });
    let one = |summary: &str, own: Value, is_release: bool| {
        let required: Vec<String> =
            own.as_object().map(|own| own.keys().cloned().collect()).unwrap_or_default();
        let who = json!({
            "who": { "type": ["string", "null"], "maxLength": WHO_CHARS_MAX, "pattern": LINE_PATTERN },
            "why": { "type": ["string", "null"], "maxLength": WHY_CHARS_MAX, "pattern": LINE_PATTERN },
        });
        let how_long = json!({ "for_s": { "type": ["integer", "null"], "minimum": 1, "maximum": OVERRIDE_SECONDS_MAX } });
        let properties = with(own, who);
        let properties = if is_release { properties } else { with(properties, how_long) };
        json!({
            "title": summary, "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    };
    let number = json!({ "type": "integer", "minimum": 1, "maximum": PINNED_LIMIT_MAX });
    json!({ "oneOf": [
        one("Pin a limit", json!({ "route": text, "limit": number }), false),
        one("Observe or enforce", json!({ "route": text, "mode": { "enum": ["observe", "enforce"] } }), false),
        one("Open the session gate", json!({ "gate": { "const": "open" } }), false),
        one("Drain a node", json!({ "node": text, "drain": { "const": true } }), false),
        one("Release", json!({ "release": { "type": "integer", "format": "uint64", "minimum": 0, "maximum": LARGEST_WHOLE } }), true),
    ] })
}

//! A journey file as it is written. Shape only: unknown keys are refused before (`known.rs`), what
//! the values may be is checked in [`super`].

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

#[derive(Deserialize, Default)]
pub(super) struct File {
    pub(super) seed: Option<Value>,
    #[serde(default)]
    pub(super) arrivals: Arrivals,
    #[serde(default)]
    pub(super) visitor: Visitor,
    #[serde(default)]
    pub(super) journey: Vec<Journey>,
}

#[derive(Deserialize, Default)]
pub(super) struct Arrivals {
    pub(super) closed: Option<Closed>,
    pub(super) open: Option<Open>,
}

#[derive(Deserialize)]
pub(super) struct Closed {
    pub(super) users: Option<Value>,
    pub(super) start_over: Option<Value>,
    pub(super) spacing: Option<Value>,
    pub(super) sessions_each: Option<Value>,
    pub(super) pause: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Open {
    pub(super) rate_per_s: Option<Value>,
    #[serde(default)]
    pub(super) phases: Vec<Phase>,
    pub(super) spacing: Option<Value>,
    pub(super) users_max: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Phase {
    #[serde(rename = "for")]
    pub(super) lasts: Option<Value>,
    pub(super) rate_per_s: Option<Value>,
    pub(super) from_per_s: Option<Value>,
    pub(super) to_per_s: Option<Value>,
}

/// What holds for every journey that does not say otherwise.
#[derive(Deserialize, Default)]
pub(super) struct Visitor {
    pub(super) returning: Option<Value>,
    pub(super) think: Option<Value>,
    pub(super) patience: Option<Value>,
    pub(super) leave: Option<Value>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) on_refusal: Option<OnRefusal>,
    pub(super) in_line: Option<InLine>,
}

#[derive(Deserialize, Clone)]
pub(super) struct InLine {
    pub(super) patience: Option<Value>,
    pub(super) away: Option<Value>,
    pub(super) farm: Option<Farm>,
    pub(super) forge: Option<Forge>,
}

#[derive(Deserialize, Clone)]
pub(super) struct Farm {
    pub(super) share: Option<Value>,
    pub(super) numbers: Option<Value>,
    pub(super) jars: Option<Value>,
    pub(super) every: Option<Value>,
}

#[derive(Deserialize, Clone)]
pub(super) struct Forge {
    pub(super) share: Option<Value>,
    pub(super) tickets: Option<Value>,
    pub(super) every: Option<Value>,
}

#[derive(Deserialize, Clone)]
pub(super) struct OnFailure {
    pub(super) retry_from: Option<Value>,
    pub(super) retry_from_after_error: Option<Value>,
    pub(super) retries_max: Option<Value>,
    pub(super) pause_after_timeout: Option<Value>,
    pub(super) pause_after_error: Option<Value>,
}

#[derive(Deserialize, Clone)]
pub(super) struct OnRefusal {
    pub(super) retries_max: Option<Value>,
    pub(super) wait_default: Option<Value>,
    pub(super) wait_max: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Journey {
    pub(super) name: Option<Value>,
    pub(super) weight: Option<Value>,
    pub(super) users: Option<Value>,
    pub(super) think: Option<Value>,
    pub(super) patience: Option<Value>,
    pub(super) leave: Option<Value>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) on_refusal: Option<OnRefusal>,
    pub(super) in_line: Option<InLine>,
    #[serde(default)]
    pub(super) steps: Vec<Step>,
}

#[derive(Deserialize)]
pub(super) struct Step {
    pub(super) name: Option<Value>,
    pub(super) method: Option<Value>,
    pub(super) path: Option<Value>,
    pub(super) form: Option<BTreeMap<String, Value>>,
    pub(super) body: Option<Value>,
    pub(super) content_type: Option<Value>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) expect: Expect,
    #[serde(default)]
    pub(super) capture: BTreeMap<String, Capture>,
    pub(super) think: Option<Value>,
    pub(super) patience: Option<Value>,
    pub(super) leave: Option<Value>,
}

#[derive(Deserialize, Default)]
pub(super) struct Expect {
    pub(super) status: Option<Value>,
    pub(super) text: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Capture {
    pub(super) input: Option<Value>,
    pub(super) header: Option<Value>,
    pub(super) between: Option<Value>,
}

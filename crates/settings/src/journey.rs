//! Journey files: what a crowd does, from TOML to a checked [`Workload`].
//!
//! ```toml
//! [arrivals.closed]
//! users = 100
//! [[journey]]
//! name = "reading"
//! [[journey.steps]]
//! name = "front"
//! path = "/"
//! ```
//!
//! Everything else has a default. The shop's own file, `crates/crowd/journeys/shop.toml`, shows and
//! explains every key. Keys nobody knows are refused, and all that is wrong is reported together.

pub(crate) mod known;
mod raw;
mod steps;
pub(crate) mod values;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use suimon_model::Duration;
use suimon_workload::{
    Arrivals, Farm, Forge, InLine, Journey, OnFailure, OnRefusal, Patience, Phase, Retry, Spacing, Step,
    Think, Workload,
};
use toml::Value;

use crate::faults::Faults;
use crate::known::KnownKeys;
use crate::lines::Lines;
use crate::read;
use values::Reader;

/// The most users at once.
pub const USERS_MAX: u32 = 2_000_000;
/// The most kinds of journey in a file.
pub const KINDS_MAX: usize = 100;
/// The most steps of a journey.
pub const STEPS_MAX: usize = 200;
/// The most retries that can be asked for.
const RETRIES_MAX: u32 = 1_000_000;
/// The most numbers that one visitor who farms can be told to draw, and the most tickets that one
/// who forges can be told to send.
const FARM_NUMBERS_MAX: u32 = 1000;
const FORGED_TICKETS_MAX: u32 = 1000;
/// The highest rate of arrivals, sessions per second.
const RATE_MAX: f64 = 100_000.0;
/// The largest seed a TOML file can write.
const SEED_MAX: u64 = i64::MAX as u64;

const DEFAULT_SEED: u64 = 1;
const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);
const DEFAULT_THINK: Duration = Duration::from_secs(3);
const DEFAULT_RETRIES_MAX: u32 = 3;
const DEFAULT_PAUSE_AFTER_ERROR: Duration = Duration::from_secs(3);
const DEFAULT_USERS_MAX: u32 = 10_000;

/// Returns the workload that `text` describes.
///
/// # Errors
/// Fails with everything that is wrong with it.
pub fn read(text: &str) -> Result<Workload, Faults> {
    let table = read::parse("journeys", text)?;
    let mut reader = Reader::default();
    let file = KnownKeys { path: "", keys: known::FILE };
    known::refuse(&file, &table, &mut reader.faults);
    let workload = reader.workload(table);
    reader.faults.into_result(workload)
}

impl Reader {
    /// Returns the workload that `table`, or what of it is a journey file's, describes. Its keys
    /// have been looked at before.
    pub(crate) fn workload(&mut self, mut table: toml::Table) -> Workload {
        table.retain(|key, _| known::FILE.contains(&key));
        // What is left to go wrong is a value where a table belongs, which has been told.
        let file: raw::File = table.try_into().unwrap_or_default();
        let seed = file.seed.as_ref().map_or(DEFAULT_SEED, |seed| self.whole("seed", seed, 0, SEED_MAX));
        let mut arrivals = self.arrivals(&file.arrivals, file.journey.iter().any(|raw| raw.users.is_some()));
        let returning = self.boolean("visitor.returning", file.visitor.returning.as_ref(), false);
        let kinds = self.kinds(&file.journey, &file.visitor);
        self.users_by_journey(&file.journey, &kinds, &mut arrivals);
        Workload { kinds, arrivals, returning, seed }
    }
}

/// Returns the workload of the file at `path`.
///
/// # Errors
/// Fails if it cannot be read, or with everything that is wrong with it; each line names the file.
pub fn load(path: &Path) -> Result<Workload, Faults> {
    let name = path.display().to_string();
    let text = crate::read::text_of(path)?;
    read(&text).map_err(|faults| Lines::new(&name, &text).name(&faults))
}

impl Reader {
    fn arrivals(&mut self, arrivals: &raw::Arrivals, by_journey: bool) -> Arrivals {
        let one_user = Arrivals::Closed {
            users: 1,
            start_over: Duration::ZERO,
            spacing: Spacing::Even,
            sessions_each: None,
            pause: Think::Constant(Duration::ZERO),
        };
        match (&arrivals.closed, &arrivals.open) {
            (Some(closed), None) => self.closed(closed, by_journey),
            (None, Some(open)) => self.open(open),
            (None, None) => {
                self.faults
                    .missing("arrivals", "[arrivals.closed] with users, or [arrivals.open] with a rate");
                one_user
            }
            (Some(_), Some(_)) => {
                self.faults.value("arrivals", "closed and open", "one of the two");
                one_user
            }
        }
    }

    fn closed(&mut self, closed: &raw::Closed, by_journey: bool) -> Arrivals {
        let users = match &closed.users {
            Some(users) if by_journey => {
                let allowed = "left out where the journeys say how many users play them";
                self.faults.value("arrivals.closed.users", users, allowed);
                1
            }
            None if by_journey => 1,
            Some(users) => self.whole_u32("arrivals.closed.users", users, 1, USERS_MAX),
            None => {
                self.faults.missing("arrivals.closed.users", format!("how many, from 1 to {USERS_MAX}"));
                1
            }
        };
        let sessions_each = closed.sessions_each.as_ref();
        let pause = closed.pause.as_ref();
        Arrivals::Closed {
            users,
            start_over: self.duration_or(
                "arrivals.closed.start_over",
                closed.start_over.as_ref(),
                Duration::from_secs(1),
            ),
            spacing: self.spacing("arrivals.closed.spacing", closed.spacing.as_ref()),
            sessions_each: sessions_each
                .map(|each| self.whole_u32("arrivals.closed.sessions_each", each, 1, u32::MAX)),
            pause: pause.map_or(Think::Constant(Duration::ZERO), |p| self.think("arrivals.closed.pause", p)),
        }
    }

    /// Lets each user of a closed crowd keep to one journey, where the journeys say how many do.
    fn users_by_journey(&mut self, raw: &[raw::Journey], kinds: &[Arc<Journey>], arrivals: &mut Arrivals) {
        if raw.iter().all(|raw| raw.users.is_none()) {
            return;
        }
        for (index, raw) in raw.iter().enumerate() {
            let key = format!("journey[{index}]");
            match (&raw.users, &raw.weight) {
                (None, _) => {
                    self.faults.missing(format!("{key}.users"), "how many, as for the other journeys");
                }
                (Some(_), Some(weight)) => {
                    let allowed = "left out where users are given: they play nothing else";
                    self.faults.value(format!("{key}.weight"), weight, allowed);
                }
                (Some(_), None) => {}
            }
        }
        let all: u32 = kinds.iter().filter_map(|kind| kind.users).fold(0, u32::saturating_add);
        if !(1..=USERS_MAX).contains(&all) {
            self.faults.value("journey[].users", all, format!("together 1 to {USERS_MAX}"));
        }
        match arrivals {
            Arrivals::Closed { users, .. } => *users = all,
            Arrivals::Open { .. } => {
                self.faults.value("journey[].users", all, "left out where arrivals are open");
            }
        }
    }

    fn open(&mut self, open: &raw::Open) -> Arrivals {
        let key = "arrivals.open";
        let phases = match &open.rate_per_s {
            Some(_) if !open.phases.is_empty() => {
                self.faults.value(format!("{key}.rate_per_s"), "given beside phases", "one of the two");
                Vec::new()
            }
            Some(rate) => {
                let rate = self.number(&format!("{key}.rate_per_s"), rate, 0.0, false, RATE_MAX);
                vec![Phase { lasts: Duration::MAX, from_per_s: rate, to_per_s: rate }]
            }
            None if open.phases.is_empty() => {
                self.faults
                    .missing(format!("{key}.rate_per_s"), "sessions per second, or [[arrivals.open.phases]]");
                Vec::new()
            }
            None => {
                let last = open.phases.len() - 1;
                let phase = |(i, phase)| self.phase(&format!("{key}.phases[{i}]"), phase, i == last);
                open.phases.iter().enumerate().map(phase).collect()
            }
        };
        let users_max = open.users_max.as_ref();
        Arrivals::Open {
            phases,
            spacing: match &open.spacing {
                None => Spacing::Poisson,
                Some(spacing) => self.spacing("arrivals.open.spacing", Some(spacing)),
            },
            users_max: users_max.map_or(DEFAULT_USERS_MAX, |max| {
                self.whole_u32("arrivals.open.users_max", max, 1, USERS_MAX)
            }),
        }
    }

    fn phase(&mut self, key: &str, phase: &raw::Phase, is_last: bool) -> Phase {
        let mut rate = |name: &str, value: &Option<Value>| {
            value.as_ref().map(|value| self.number(&format!("{key}.{name}"), value, 0.0, true, RATE_MAX))
        };
        let (steady, from, to) = (
            rate("rate_per_s", &phase.rate_per_s),
            rate("from_per_s", &phase.from_per_s),
            rate("to_per_s", &phase.to_per_s),
        );
        let (from_per_s, to_per_s) = match (steady, from, to) {
            (Some(rate), None, None) => (rate, rate),
            (None, Some(from), Some(to)) => (from, to),
            _ => {
                self.faults.missing(key, "either rate_per_s, or both from_per_s and to_per_s");
                (1.0, 1.0)
            }
        };
        let lasts = match &phase.lasts {
            Some(lasts) => self.duration_above_zero(&format!("{key}.for"), lasts),
            None if is_last && steady.is_some() => Duration::MAX,
            None => {
                self.faults
                    .missing(format!("{key}.for"), "a duration (only a steady last phase may last for ever)");
                Duration::ZERO
            }
        };
        Phase { lasts, from_per_s, to_per_s }
    }

    fn spacing(&mut self, key: &str, value: Option<&Value>) -> Spacing {
        let Some(value) = value else { return Spacing::Even };
        match value.as_str() {
            Some("even") => Spacing::Even,
            Some("poisson") => Spacing::Poisson,
            _ => {
                self.faults.value(key, value, "\"even\" or \"poisson\"");
                Spacing::Even
            }
        }
    }

    fn kinds(&mut self, journeys: &[raw::Journey], visitor: &raw::Visitor) -> Vec<Arc<Journey>> {
        if journeys.is_empty() {
            self.faults.missing("journey", "at least one [[journey]] with [[journey.steps]]");
        }
        if journeys.len() > KINDS_MAX {
            self.faults.value(
                "journey",
                format!("{} of them", journeys.len()),
                format!("at most {KINDS_MAX}"),
            );
        }
        let mut names = BTreeSet::new();
        let mut kinds = Vec::new();
        for (i, raw) in journeys.iter().enumerate() {
            let key = format!("journey[{i}]");
            let journey = self.journey(&key, raw, visitor);
            if !names.insert(journey.name.clone()) {
                self.faults.value(format!("{key}.name"), &journey.name, "unlike every other journey's");
            }
            kinds.push(Arc::new(journey));
        }
        kinds
    }

    fn journey(&mut self, key: &str, raw: &raw::Journey, visitor: &raw::Visitor) -> Journey {
        let name = self.wanted_text(&format!("{key}.name"), raw.name.as_ref(), "a name");
        let weight = raw.weight.as_ref();
        let weight =
            weight.map_or(1.0, |weight| self.number(&format!("{key}.weight"), weight, 0.0, false, 1e6));
        let users = raw.users.as_ref();
        let users = users.map(|users| self.whole_u32(&format!("{key}.users"), users, 0, USERS_MAX));
        let steps = self.steps(key, &raw.steps);
        let (think_key, think) = own_or_shared(key, "think", raw.think.as_ref(), visitor.think.as_ref());
        let (patience_key, patience) =
            own_or_shared(key, "patience", raw.patience.as_ref(), visitor.patience.as_ref());
        let (leave_key, leave) = own_or_shared(key, "leave", raw.leave.as_ref(), visitor.leave.as_ref());
        let (failure_key, on_failure) =
            own_or_shared(key, "on_failure", raw.on_failure.as_ref(), visitor.on_failure.as_ref());
        let (refusal_key, on_refusal) =
            own_or_shared(key, "on_refusal", raw.on_refusal.as_ref(), visitor.on_refusal.as_ref());
        let (line_key, in_line) =
            own_or_shared(key, "in_line", raw.in_line.as_ref(), visitor.in_line.as_ref());
        Journey {
            name,
            weight,
            users,
            think: think.map_or(Think::Constant(DEFAULT_THINK), |think| self.think(&think_key, think)),
            patience: patience.map_or(Patience::Constant(DEFAULT_PATIENCE), |patience| {
                self.patience(&patience_key, patience)
            }),
            on_failure: self.on_failure(&failure_key, on_failure, &steps),
            leave: leave.map_or(0.0, |leave| self.number(&leave_key, leave, 0.0, true, 1.0)),
            on_refusal: self.on_refusal(&refusal_key, on_refusal),
            in_line: self.in_line(&line_key, in_line),
            steps,
        }
    }

    fn on_failure(&mut self, key: &str, raw: Option<&raw::OnFailure>, steps: &[Step]) -> OnFailure {
        // The paper's visitors keep their login and go back to the second page.
        let second = 1.min(steps.len().saturating_sub(1));
        let mut retry = Retry {
            from: second,
            from_after_error: second,
            retries_max: DEFAULT_RETRIES_MAX,
            pause_after_timeout: Duration::ZERO,
            pause_after_error: DEFAULT_PAUSE_AFTER_ERROR,
        };
        let Some(raw) = raw else { return OnFailure::Retry(retry) };
        if let Some(max) = &raw.retries_max {
            retry.retries_max = self.whole_u32(&format!("{key}.retries_max"), max, 0, RETRIES_MAX);
        }
        let (timeout, error) = (raw.pause_after_timeout.as_ref(), raw.pause_after_error.as_ref());
        retry.pause_after_timeout =
            self.duration_or(&format!("{key}.pause_after_timeout"), timeout, Duration::ZERO);
        let error_key = format!("{key}.pause_after_error");
        if let Some(error) = error {
            retry.pause_after_error = self.duration_above_zero(&error_key, error);
        }
        if let Some(from) = &raw.retry_from {
            retry.from = self.retry_from(&format!("{key}.retry_from"), from, steps);
            retry.from_after_error = retry.from;
        }
        if let Some(from) = &raw.retry_from_after_error {
            retry.from_after_error = self.retry_from(&format!("{key}.retry_from_after_error"), from, steps);
        }
        if retry.retries_max == 0 { OnFailure::GiveUp } else { OnFailure::Retry(retry) }
    }

    /// Reads a step's name, or its number counted from 1 (a number past the last step means the
    /// last).
    fn retry_from(&mut self, key: &str, value: &Value, steps: &[Step]) -> usize {
        let Some(name) = value.as_str() else {
            let number = self.whole(key, value, 1, STEPS_MAX as u64) as usize;
            return (number - 1).min(steps.len().saturating_sub(1));
        };
        steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
            let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
            self.faults.value(
                key,
                value,
                format!("the name of a step ({}) or its number from 1", names.join(", ")),
            );
            0
        })
    }

    fn on_refusal(&mut self, key: &str, raw: Option<&raw::OnRefusal>) -> OnRefusal {
        let mut policy = OnRefusal::default();
        let Some(raw) = raw else { return policy };
        if let Some(max) = &raw.retries_max {
            policy.retries_max = self.whole_u32(&format!("{key}.retries_max"), max, 0, RETRIES_MAX);
        }
        if let Some(wait) = &raw.wait_default {
            policy.wait_default = self.duration_above_zero(&format!("{key}.wait_default"), wait);
        }
        if let Some(wait) = &raw.wait_max {
            policy.wait_max = self.duration_above_zero(&format!("{key}.wait_max"), wait);
        }
        policy
    }

    fn in_line(&mut self, key: &str, raw: Option<&raw::InLine>) -> InLine {
        let mut policy = InLine::default();
        let Some(raw) = raw else { return policy };
        policy.patience = match &raw.patience {
            Some(patience) if patience.as_str() == Some("endless") => None,
            Some(patience) => Some(self.duration_above_zero(&format!("{key}.patience"), patience)),
            None => None,
        };
        if let Some(away) = &raw.away {
            policy.away = self.number(&format!("{key}.away"), away, 0.0, true, 1.0);
        }
        if let Some(farm) = &raw.farm {
            policy.farm = self.farm(&format!("{key}.farm"), farm);
        }
        if let Some(forge) = &raw.forge {
            policy.forge = self.forge(&format!("{key}.forge"), forge, policy.farm.share);
        }
        policy
    }

    fn farm(&mut self, key: &str, raw: &raw::Farm) -> Farm {
        let mut farm = Farm::default();
        if let Some(share) = &raw.share {
            farm.share = self.number(&format!("{key}.share"), share, 0.0, true, 1.0);
        }
        if let Some(numbers) = &raw.numbers {
            farm.numbers = self.whole_u32(&format!("{key}.numbers"), numbers, 1, FARM_NUMBERS_MAX);
        }
        farm.jars = farm.jars.min(farm.numbers);
        if let Some(jars) = &raw.jars {
            farm.jars = self.whole_u32(&format!("{key}.jars"), jars, 0, farm.numbers);
        }
        if let Some(every) = &raw.every {
            farm.every = self.duration_above_zero(&format!("{key}.every"), every);
        }
        farm
    }

    /// Nobody does both, so there are no more than those who do not farm.
    fn forge(&mut self, key: &str, raw: &raw::Forge, farm: f64) -> Forge {
        let mut forge = Forge::default();
        if let Some(share) = &raw.share {
            forge.share = self.number(&format!("{key}.share"), share, 0.0, true, 1.0);
            if forge.share <= 1.0 && farm + forge.share > 1.0 {
                self.faults.value(format!("{key}.share"), share, "with farm.share at most 1");
            }
        }
        if let Some(tickets) = &raw.tickets {
            forge.tickets = self.whole_u32(&format!("{key}.tickets"), tickets, 1, FORGED_TICKETS_MAX);
        }
        if let Some(every) = &raw.every {
            forge.every = self.duration_above_zero(&format!("{key}.every"), every);
        }
        forge
    }
}

/// Returns the journey's own value or else that of all visitors, with the key it stands at.
fn own_or_shared<'a, T>(
    key: &str,
    name: &str,
    own: Option<&'a T>,
    shared: Option<&'a T>,
) -> (String, Option<&'a T>) {
    match own {
        Some(_) => (format!("{key}.{name}"), own),
        None => (format!("visitor.{name}"), shared),
    }
}

#[cfg(test)]
mod tests;

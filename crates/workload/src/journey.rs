//! What a crowd does: journeys, their steps, which answers count, and what a visitor does without
//! one.

use std::sync::Arc;

use suimon_model::{Duration, Instant, KindId, Rng};

use crate::{Arrivals, Patience, Template, Think};

/// Placeholders that need no capture: the numbers of the user and of the session, both from 1, and
/// an address.
pub const VALUES_GIVEN: [&str; 3] = ["user", "session", "address"];

/// Everything that a crowd or a simulator must know to play visitors.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// The kinds of journey; [`KindId`] is an index into it. At least one.
    pub kinds: Vec<Arc<Journey>>,
    /// How users arrive, and how many sessions each plays.
    pub arrivals: Arrivals,
    /// Whether a user's next session is the same visitor again, with the cookies and the connection
    /// of the last one. Otherwise each session is a stranger.
    pub returning: bool,
    /// All randomness follows from it.
    pub seed: u64,
}

/// One kind of session.
#[derive(Clone, PartialEq, Debug)]
pub struct Journey {
    /// Its name.
    pub name: String,
    /// How often it is chosen, relative to the other kinds; above 0.
    pub weight: f64,
    /// In a closed crowd: this many users play it and nothing else, and `weight` is not looked at.
    /// Said by every kind or by none.
    pub users: Option<u32>,
    /// The steps, in order; at least one.
    pub steps: Vec<Step>,
    /// Think time before each step but the first, unless the step has its own.
    pub think: Think,
    /// How long a visitor waits for an answer. Drawn once per session: a person is impatient, not a
    /// request.
    pub patience: Patience,
    /// Probability that the visitor leaves for good after a good answer, at each step but the last;
    /// 0 to 1.
    pub leave: f64,
    /// What follows a time-out or an error.
    pub on_failure: OnFailure,
    /// What follows a refusal.
    pub on_refusal: OnRefusal,
    /// What a visitor does in a waiting room.
    pub in_line: InLine,
}

/// One request of a journey.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Its name, unique in its journey.
    pub name: String,
    /// The method, in capitals.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: Template,
    /// What is sent with it.
    pub body: Body,
    /// Header lines beyond those every browser sends.
    pub headers: Vec<(String, Template)>,
    /// What makes an answer a good one.
    pub expect: Expect,
    /// What is kept from the answer for later steps.
    pub captures: Vec<Capture>,
    /// Think time before this step, if not the journey's.
    pub think: Option<Think>,
    /// Patience for this step, if not the visitor's own; drawn for each request.
    pub patience: Option<Patience>,
    /// Probability that the visitor leaves for good after this step's good answer, if not the
    /// journey's.
    pub leave: Option<f64>,
}

impl Step {
    /// Returns a step that asks for a page and accepts any answer with a status below 400.
    pub fn get(name: &str, path: &str) -> Self {
        Step {
            name: name.to_owned(),
            method: "GET".to_owned(),
            path: Template::parse(path),
            body: Body::None,
            headers: Vec::new(),
            expect: Expect::default(),
            captures: Vec::new(),
            think: None,
            patience: None,
            leave: None,
        }
    }
}

/// What is sent with a request.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// Nothing.
    None,
    /// The fields of an HTML form, URL-encoded by the sender.
    Form(Vec<(String, Template)>),
    /// Anything else, as it is.
    Raw {
        /// Its `Content-Type`.
        content_type: String,
        /// The text itself.
        text: Template,
    },
}

/// What makes an answer a good one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expect {
    /// Allowed statuses, as inclusive ranges.
    pub statuses: Vec<(u16, u16)>,
    /// Texts that must all appear in the body.
    pub texts: Vec<String>,
}

impl Default for Expect {
    fn default() -> Self {
        Expect { statuses: vec![(200, 399)], texts: Vec::new() }
    }
}

impl Expect {
    /// Returns whether the status is allowed.
    pub fn allows(&self, status: u16) -> bool {
        self.statuses.iter().any(|&(low, high)| (low..=high).contains(&status))
    }
}

/// A value kept from an answer under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// The name placeholders use.
    pub name: String,
    /// Where it is found. An answer without it does not count as good.
    pub source: Source,
}

/// Where in an answer a value is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The text between the first `after` and the next `before` in the body.
    Between {
        /// The text just before the value.
        after: String,
        /// The text just behind the value.
        before: String,
    },
    /// The value of a header.
    Header(String),
    /// The `value` of the first HTML `<input>` with this `name`.
    Input(String),
}

/// What follows a time-out, an error or a broken connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OnFailure {
    /// The session is over.
    GiveUp,
    /// Another try.
    Retry(Retry),
}

/// How a failed step is tried again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retry {
    /// The step (from 0) to return to after a timeout. If an earlier step fails, that step is
    /// repeated.
    pub from: usize,
    /// The same after an error: a wrong answer may mean that the server has lost the session.
    pub from_after_error: usize,
    /// The most retries in one session; after that the visitor gives up.
    pub retries_max: u32,
    /// Time before the retry after a timeout. The paper's visitors retry at once.
    pub pause_after_timeout: Duration,
    /// Time before the retry after an error. It should not be zero: errors come fast.
    pub pause_after_error: Duration,
}

/// What follows a refusal (the server said "not now").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnRefusal {
    /// The most refusals in a row that a visitor waits out before giving up the session.
    pub retries_max: u32,
    /// The wait if the server names none.
    pub wait_default: Duration,
    /// The longest wait, whatever the server says.
    pub wait_max: Duration,
}

impl Default for OnRefusal {
    fn default() -> Self {
        OnRefusal {
            retries_max: 1000,
            wait_default: Duration::from_secs(3),
            wait_max: Duration::from_secs(300),
        }
    }
}

/// What a visitor does in a waiting room: waits for the turn, as the page's script does.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InLine {
    /// Mean time after which a waiting visitor gives up, exponential; `None`: nobody does.
    pub patience: Option<Duration>,
    /// Probability that a waiting visitor closes the tab once and returns some minutes later; 0 to
    /// 1.
    pub away: f64,
    /// Visitors who want more than one position.
    pub farm: Farm,
    /// Visitors who want a better position than theirs.
    pub forge: Forge,
}

impl InLine {
    /// Returns when a visitor who begins to wait at `now` gives up; `None`: never.
    pub fn gives_up_at(&self, now: Instant, rng: &mut Rng) -> Option<Instant> {
        self.patience.map(|mean| now + suimon_model::seconds(rng.exponential(mean.as_secs_f64())))
    }
}

/// Visitors who get many tickets and wait with several of them until the first is admitted.
#[derive(Clone, PartialEq, Debug)]
pub struct Farm {
    /// Probability that a visitor who has to wait does this; 0 to 1.
    pub share: f64,
    /// Tickets that each of them gets, the first included.
    pub numbers: u32,
    /// How many of the tickets wait, each with its own cookies; the cookies of the others are
    /// discarded.
    pub jars: u32,
    /// Time between two tickets.
    pub every: Duration,
}

impl Default for Farm {
    fn default() -> Self {
        Farm { share: 0.0, numbers: 20, jars: 5, every: Duration::from_millis(500) }
    }
}

/// Visitors who wait and meanwhile try to be admitted with an edited ticket.
#[derive(Clone, PartialEq, Debug)]
pub struct Forge {
    /// Probability that a visitor who has to wait does this; 0 to 1, and at most 1 together with
    /// `farm.share`.
    pub share: f64,
    /// Edited tickets that each of them sends.
    pub tickets: u32,
    /// The least time between two of them.
    pub every: Duration,
}

impl Default for Forge {
    fn default() -> Self {
        Forge { share: 0.0, tickets: 20, every: Duration::from_secs(3) }
    }
}

/// What a visitor does who has to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Waits with one position.
    Waits,
    /// Gets several positions.
    Farms,
    /// Waits, and tries to get a better position.
    Forges,
}

impl InLine {
    /// Draws what a visitor will do if it has to wait.
    pub fn manner(&self, rng: &mut Rng) -> Manner {
        // No random number is drawn if everybody waits, so that such workloads do not depend on it.
        let (farm, forge) = (self.farm.share, self.forge.share);
        match if farm + forge > 0.0 { rng.uniform() } else { 1.0 } {
            drawn if drawn < farm => Manner::Farms,
            drawn if drawn < farm + forge => Manner::Forges,
            _ => Manner::Waits,
        }
    }
}

impl Journey {
    /// Returns the probability that a visitor leaves for good after a good answer to the step of
    /// this number; 0 for the last.
    pub fn leaves_after(&self, step: usize) -> f64 {
        if step + 1 >= self.steps.len() { 0.0 } else { self.steps[step].leave.unwrap_or(self.leave) }
    }
}

impl Workload {
    /// Returns the kind that the next session of a user is of: the user's own, where users keep to
    /// their kinds, and else one by weight.
    pub fn choose(&self, user: u32, rng: &mut Rng) -> KindId {
        if let Some(own) = self.kind_of(user) {
            return own;
        }
        let weights: Vec<f64> = self.kinds.iter().map(|kind| kind.weight).collect();
        let index = rng.weighted(&weights).unwrap_or(0);
        KindId(u32::try_from(index).expect("kinds are few"))
    }

    /// Returns the kind that a user keeps to: the first users those of the first kind, and so on,
    /// and from the beginning again where there are more users than the kinds say.
    fn kind_of(&self, user: u32) -> Option<KindId> {
        let users: Vec<u64> =
            self.kinds.iter().map(|kind| kind.users.map(u64::from)).collect::<Option<_>>()?;
        let mut user = u64::from(user).checked_rem(users.iter().sum())?;
        let kind = users.iter().position(|users| {
            let found = user < *users;
            user = user.saturating_sub(*users);
            found
        });
        kind.map(|kind| KindId(u32::try_from(kind).expect("kinds are few")))
    }

    /// Returns the journey of a kind.
    pub fn journey(&self, kind: KindId) -> &Arc<Journey> {
        &self.kinds[kind.index()]
    }

    /// Returns the user's own random source.
    pub fn rng_of(&self, user: u32) -> Rng {
        Rng::stream(self.seed, u64::from(user))
    }

    /// Returns when a user whose session ended at `now` begins the next one; `None` if the user has
    /// `played` all of them.
    pub fn next_session(&self, now: Instant, played: u32, rng: &mut Rng) -> Option<Instant> {
        match &self.arrivals {
            Arrivals::Open { .. } => None,
            Arrivals::Closed { sessions_each, pause, .. } => {
                let more = sessions_each.is_none_or(|each| played < each);
                more.then(|| now + pause.draw(rng))
            }
        }
    }

    /// Returns the same workload in a world `divisor` times as fast: all times divided, all rates
    /// multiplied. `divisor` is above 0.
    #[must_use]
    pub fn faster_by(mut self, divisor: f64) -> Self {
        for kind in &mut self.kinds {
            let journey = Arc::make_mut(kind);
            journey.think = journey.think.divided_by(divisor);
            journey.patience = journey.patience.clone().divided_by(divisor);
            for step in &mut journey.steps {
                step.think = step.think.map(|think| think.divided_by(divisor));
                step.patience = step.patience.take().map(|patience| patience.divided_by(divisor));
            }
            if let OnFailure::Retry(retry) = &mut journey.on_failure {
                retry.pause_after_timeout = retry.pause_after_timeout.div_f64(divisor);
                retry.pause_after_error = retry.pause_after_error.div_f64(divisor);
            }
            journey.on_refusal.wait_default = journey.on_refusal.wait_default.div_f64(divisor);
            journey.on_refusal.wait_max = journey.on_refusal.wait_max.div_f64(divisor);
            journey.in_line.patience = journey.in_line.patience.map(|patience| patience.div_f64(divisor));
            journey.in_line.farm.every = journey.in_line.farm.every.div_f64(divisor);
            journey.in_line.forge.every = journey.in_line.forge.every.div_f64(divisor);
        }
        self.arrivals = self.arrivals.faster_by(divisor);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(users: [Option<u32>; 2]) -> Workload {
        let kind = |users| Journey {
            name: String::new(),
            weight: 1.0,
            users,
            steps: vec![Step::get("a", "/")],
            think: Think::Constant(Duration::ZERO),
            patience: Patience::Constant(Duration::ZERO),
            leave: 0.0,
            on_failure: OnFailure::GiveUp,
            on_refusal: OnRefusal::default(),
            in_line: InLine::default(),
        };
        let arrivals = Arrivals::Closed {
            users: 5,
            start_over: Duration::ZERO,
            spacing: crate::Spacing::Even,
            sessions_each: None,
            pause: Think::Constant(Duration::ZERO),
        };
        Workload {
            kinds: users.map(|users| Arc::new(kind(users))).to_vec(),
            arrivals,
            returning: false,
            seed: 1,
        }
    }

    #[test]
    fn a_user_who_keeps_to_a_kind_plays_no_other_and_draws_nothing() {
        let workload = workload([Some(3), Some(2)]);
        let mut rng = Rng::new(7);
        let kinds: Vec<u32> = (0..10).map(|user| workload.choose(user, &mut rng).0).collect();
        assert_eq!(kinds, [0, 0, 0, 1, 1, 0, 0, 0, 1, 1]);
        assert_eq!(rng.bits(), Rng::new(7).bits());
    }

    #[test]
    fn where_a_kind_does_not_say_how_many_all_choose_by_weight() {
        let workload = workload([Some(3), None]);
        let mut rng = Rng::new(7);
        let second = (0..1000).filter(|_| workload.choose(0, &mut rng).0 == 1).count();
        assert!((400..600).contains(&second), "{second}");
    }
}

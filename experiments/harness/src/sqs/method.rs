//! The paper's four methods, and Suimon's.

use serde::{Deserialize, Serialize};
use suimon_chart::Hue;
use suimon_control::{PaperRouteParams, PaperSessionParams, RouteLawKind, SessionLawKind};
use suimon_gate::QueueOrder;
use suimon_model::Duration;
use suimon_sim::{Laws, RouteChoice, Scenario, SessionChoice};

use super::worlds::Site;

/// The initial limit of the paper's page rule. The paper does not give it; with higher ones the
/// rule loses more.
const INITIAL: u32 = 2;

/// A method of control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// Nothing.
    None,
    /// The best fixed number of sessions.
    SessionOnly,
    /// The paper's two schedulers, with Suimon's defaults for what the paper leaves open.
    PageOnly,
    /// The paper's two schedulers, with our defaults for what the paper leaves open.
    SqsAsSet,
    /// The same with the best constants of a scan at 400 clients who wait for 60 s.
    Sqs,
    /// Suimon's laws without settings.
    Suimon,
}

impl Method {
    /// In the order in which they are drawn: Suimon last, on top.
    pub(super) const ALL: [Method; 6] =
        [Method::None, Method::SessionOnly, Method::PageOnly, Method::SqsAsSet, Method::Sqs, Method::Suimon];

    /// Returns its name in figures.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Method::None => "no control",
            Method::SessionOnly => "session only",
            Method::PageOnly => "page only",
            Method::SqsAsSet => "SQS, defaults",
            Method::Sqs => "SQS, tuned",
            Method::Suimon => "Suimon",
        }
    }

    /// Returns its colour.
    pub(super) const fn hue(self) -> Hue {
        match self {
            Method::None => Hue::Vermilion,
            Method::SessionOnly => Hue::Grey,
            Method::PageOnly => Hue::Purple,
            Method::SqsAsSet | Method::Sqs => Hue::Amber,
            Method::Suimon => Hue::Blue,
        }
    }
}

/// A method with its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Control {
    None,
    Static(u32),
    PageOnly(Constants),
    SqsAsSet,
    Sqs(Constants),
    Suimon,
}

/// What the paper leaves open in its two rules.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Constants {
    /// The initial limit.
    pub(super) initial: u32,
    /// The mean queue length above which the interval grows, in tenths of a request.
    pub(super) threshold_tenths: u32,
    /// The steps by which it grows and shrinks; the first is also the initial interval.
    pub(super) up_ms: u32,
    pub(super) down_ms: u32,
}

impl Constants {
    /// Returns the defaults of `crates/control/src/laws.rs`, from a limit of 2.
    pub(super) fn usual() -> Constants {
        let sessions = PaperSessionParams::default();
        Constants {
            initial: INITIAL,
            threshold_tenths: (sessions.threshold * 10.0).round() as u32,
            up_ms: u32::try_from(sessions.up.as_millis()).unwrap_or(u32::MAX),
            down_ms: u32::try_from(sessions.down.as_millis()).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn threshold(self) -> f64 {
        f64::from(self.threshold_tenths) / 10.0
    }

    fn setting(self) -> String {
        let Constants { initial, up_ms, down_ms, .. } = self;
        format!("initial {initial}, threshold {}, up {up_ms} ms, down {down_ms} ms", self.threshold())
    }

    fn routes(self, scale: f64) -> RouteChoice {
        let period = PaperRouteParams::default().period.div_f64(scale);
        RouteChoice::Law(RouteLawKind::Paper(PaperRouteParams { initial: self.initial, period }))
    }

    fn sessions(self, scale: f64) -> SessionChoice {
        let ms = |ms| Duration::from_millis(u64::from(ms)).div_f64(scale);
        SessionChoice::Law(SessionLawKind::Paper(PaperSessionParams {
            threshold: self.threshold(),
            up: ms(self.up_ms),
            down: ms(self.down_ms),
            period: PaperSessionParams::default().period.div_f64(scale),
        }))
    }
}

impl Control {
    pub(super) const fn method(self) -> Method {
        match self {
            Control::None => Method::None,
            Control::Static(_) => Method::SessionOnly,
            Control::PageOnly(_) => Method::PageOnly,
            Control::SqsAsSet => Method::SqsAsSet,
            Control::Sqs(_) => Method::Sqs,
            Control::Suimon => Method::Suimon,
        }
    }

    /// Returns whether it is shown: only one of the fixed numbers of sessions is.
    pub(super) const fn is_shown(self, fixed: u32) -> bool {
        !matches!(self, Control::Static(sessions) if sessions != fixed)
    }

    /// Returns its numbers in words; empty if it has none.
    pub(super) fn setting(self) -> String {
        match self {
            Control::None | Control::Suimon => String::new(),
            Control::Static(sessions) => format!("{sessions} sessions"),
            Control::PageOnly(Constants { initial, .. }) => format!("initial {initial}"),
            Control::SqsAsSet => Constants::usual().setting(),
            Control::Sqs(constants) => constants.setting(),
        }
    }

    /// Puts it in front of the application of `scenario`, whose clients wait for at least
    /// `patience` seconds.
    pub(super) fn stand_before(self, scenario: &mut Scenario, patience: Option<f64>, site: Site) -> Laws {
        let scale = site.scale();
        let law = |law| SessionChoice::Law(law);
        let (routes, sessions) = match self {
            Control::None => (RouteChoice::Off, law(SessionLawKind::Open)),
            Control::Static(sessions) => (RouteChoice::Off, law(SessionLawKind::Static(sessions))),
            Control::PageOnly(constants) => (constants.routes(scale), law(SessionLawKind::Open)),
            Control::SqsAsSet => (Constants::usual().routes(scale), Constants::usual().sessions(scale)),
            Control::Sqs(constants) => (constants.routes(scale), constants.sessions(scale)),
            Control::Suimon => {
                // In front of the real shop it has no settings at all.
                if site == Site::Tomcat {
                    scenario.gate.kinds.iter_mut().for_each(|kind| kind.ends.clear());
                }
                return Laws::AS_SET;
            }
        };
        // As in the paper, queues are first in, first out. Newcomers wait in line for as long as
        // clients wait for an answer, which an operator who tuned the method knows. And the paper's
        // server does not notice client disconnects, while a real gateway does.
        scenario.gate.params.order = QueueOrder::FirstIn;
        scenario.gate.unaware = site == Site::Paper;
        let patience = Duration::from_secs_f64(patience.unwrap_or(scenario.measure.as_secs_f64()));
        for kind in &mut scenario.gate.kinds {
            kind.params.patience = Some(patience);
            kind.params.hold = Some(patience);
        }
        Laws { routes, whole: false, sessions }
    }
}

//! What is measured, in which order, and which numbers are tried for methods that need some.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{Data, Options};
use crate::gateways::{Control, PaperSettings};

/// Warm-up and measured time of one setting in a scan.
pub(super) const SCAN_TIMES: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(15));

/// Sessions at once that are tried for `static`.
const STATIC_TRIED: [u32; 5] = [12, 20, 28, 36, 50];
/// Values of maxconn that are tried for `haproxy`.
const MAXCONN_TRIED: [u32; 5] = [2, 3, 4, 6, 8];
/// The crowd with which maxconn is tried, if there is one of this size.
const MAXCONN_USERS: u32 = 200;
/// Settings that are tried for `paper`: initial limit, threshold, step in milliseconds.
const PAPER_TRIED: [(u32, f64, u32); 6] =
    [(2, 1.0, 12), (2, 1.0, 50), (2, 3.0, 12), (5, 1.0, 50), (5, 3.0, 12), (5, 3.0, 50)];

/// A method of control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// The crowd goes straight to the shop.
    None,
    /// Suimon's route limits; sessions are not held back.
    RoutesOnly,
    /// The best fixed number of sessions at once.
    Static,
    /// The paper's two rules, with the best of a few settings.
    Paper,
    /// HAProxy with the best maxconn and a queue.
    Haproxy,
    /// Suimon without settings.
    Suimon,
}

impl Method {
    pub(crate) const ALL: [Method; 6] =
        [Method::None, Method::RoutesOnly, Method::Static, Method::Paper, Method::Haproxy, Method::Suimon];

    /// Returns its name on the command line and in the data.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::RoutesOnly => "routes-only",
            Method::Static => "static",
            Method::Paper => "paper",
            Method::Haproxy => "haproxy",
            Method::Suimon => "suimon",
        }
    }

    /// Returns the settings to try; in a quick run only the first and the last.
    fn tried(self, quick: bool) -> Vec<Control> {
        let all: Vec<Control> = match self {
            Method::None | Method::RoutesOnly | Method::Suimon => Vec::new(),
            Method::Static => STATIC_TRIED.into_iter().map(Control::Static).collect(),
            Method::Haproxy => MAXCONN_TRIED.into_iter().map(Control::Haproxy).collect(),
            Method::Paper => PAPER_TRIED
                .into_iter()
                .map(|(initial, threshold, step_ms)| {
                    Control::Paper(PaperSettings { initial, threshold, step_ms })
                })
                .collect(),
        };
        if quick && all.len() > 2 { vec![all[0], all[all.len() - 1]] } else { all }
    }
}

/// One thing to measure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Step {
    /// One setting of a method at a size, shortly.
    Scan(Method, u32, Control),
    /// A method at a size.
    Cell(Method, u32),
}

/// Returns what is missing in `data`: scans first, then the cells. All methods run at one size
/// before the next, so that a machine that becomes slower affects all of them.
pub(super) fn steps(options: &Options, data: &Data) -> Vec<Step> {
    let cells: Vec<(Method, u32)> = options
        .users
        .iter()
        .flat_map(|users| options.methods.iter().map(|method| (*method, *users)))
        .filter(|(method, users)| data.cell(*method, *users).is_none())
        .collect();
    let mut steps = Vec::new();
    for method in &options.methods {
        if named(*method, options).is_some() || !cells.iter().any(|(needed, _)| needed == method) {
            continue;
        }
        let users = scan_users(*method, options);
        let is_tried = |control: &Control| data.scans.iter().any(|tried| tried.control == *control);
        let missing = method.tried(options.common.quick).into_iter().filter(|control| !is_tried(control));
        steps.extend(missing.map(|control| Step::Scan(*method, users, control)));
    }
    steps.extend(cells.into_iter().map(|(method, users)| Step::Cell(method, users)));
    steps
}

/// Returns the setting a method runs with: the one named on the command line, or the best of its
/// scan.
pub(super) fn chosen(method: Method, options: &Options, data: &Data) -> Option<Control> {
    let best = || {
        let tried = data.scans.iter().filter(|tried| tried.method == method);
        let better = |a: &&super::Tried, b: &&super::Tried| {
            let failures = b.mid_session_failures.cmp(&a.mid_session_failures);
            a.sessions_per_s.total_cmp(&b.sessions_per_s).then(failures)
        };
        tried.max_by(better).map(|tried| tried.control)
    };
    match method {
        Method::None => Some(Control::None),
        Method::RoutesOnly => Some(Control::RoutesOnly),
        Method::Suimon => Some(Control::Suimon),
        Method::Static | Method::Paper | Method::Haproxy => named(method, options).or_else(best),
    }
}

fn named(method: Method, options: &Options) -> Option<Control> {
    match method {
        Method::Static => options.static_sessions.map(Control::Static),
        Method::Haproxy => options.haproxy_maxconn.map(Control::Haproxy),
        _ => None,
    }
}

fn scan_users(method: Method, options: &Options) -> u32 {
    let largest = options.users.iter().copied().max().unwrap_or(MAXCONN_USERS);
    if method == Method::Haproxy { largest.min(MAXCONN_USERS) } else { largest }
}

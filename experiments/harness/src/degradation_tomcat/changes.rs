//! The heavy job becomes five times as heavy and light again; heavy load comes and goes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_admin::State;

use super::setups::Setup;
use super::{ALONE_S, HEAVY, HEAVY_CLIENTS, LIGHT, LIGHT_CLIENTS, Load, alone, folder, learn, open};
use crate::common::Common;
use crate::http::Visitor;
use crate::trouble::{Result, failed};

/// The wish: the heavy one is slowed so many times as much as the light one.
pub(super) const WISHED: f64 = 2.0;
/// Bytes of XML of the heavy job, so that five times as much is still done several times in ten
/// seconds.
const SIZE: u32 = 100_000;
/// When the job becomes five times as heavy, and when it becomes light again; seconds.
pub(super) const HEAVIER_AT: u64 = 60;
pub(super) const LIGHTER_AT: u64 = 120;
const END: u64 = 180;
/// Seconds for which heavy load is there, gone, and there again.
const THERE: u32 = 50;
/// Longest time between a change and its effect that can be told.
const WINDOW: usize = 10;

/// What changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Change {
    /// The heavy job is five times the work for a minute.
    Cost,
    /// Heavy clients come, go and come again.
    Load,
}

/// What was seen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Changed {
    pub(super) change: Change,
    /// Mean seconds of a request alone before the load came, straight to the application.
    pub(super) light_alone_s: f64,
    pub(super) heavy_alone_s: f64,
    /// Second by second: light and heavy jobs done.
    pub(super) seconds: Vec<(u32, u32)>,
    /// Second by second: how much the gateway sees each slowed, and the cap of the heavy one.
    pub(super) seen: Vec<Seen>,
    /// When heavy load came, and when it went; or when the cost changed. Seconds.
    pub(super) at: Vec<f64>,
}

/// The gateway's view at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) at_s: f64,
    pub(super) light: Option<f64>,
    pub(super) heavy: Option<f64>,
    pub(super) cap: Option<f64>,
}

impl Changed {
    /// Returns for each second the ratio of the slowdowns over the ten seconds before it, as
    /// clients saw them: in a closed loop clients ÷ answers per second is the response time.
    pub(super) fn ratios(&self) -> Vec<(f64, f64)> {
        let window = |(index, seconds): (usize, &[(u32, u32)])| {
            let (light, heavy) =
                seconds.iter().fold((0, 0), |sum, second| (sum.0 + second.0, sum.1 + second.1));
            let slowed = |clients: u32, done: u32, alone: f64| f64::from(clients) / f64::from(done) / alone;
            (light > 0 && heavy > 0).then(|| {
                let ratio = slowed(HEAVY_CLIENTS, heavy, self.heavy_alone_s)
                    / slowed(LIGHT_CLIENTS, light, self.light_alone_s);
                ((index + WINDOW) as f64, ratio)
            })
        };
        self.seconds.windows(WINDOW).enumerate().filter_map(window).collect()
    }

    /// Returns after how many seconds from `from` the ratio is within a quarter of the wish for ten
    /// seconds on end, and how far off it is at most afterwards until `to`, as a factor.
    pub(super) fn again(&self, from: f64, to: f64) -> Option<(f64, f64)> {
        let ratios: Vec<(f64, f64)> =
            self.ratios().into_iter().filter(|(at, _)| (from..to).contains(at)).collect();
        let off = |ratio: f64| (ratio / WISHED).max(WISHED / ratio);
        let steady =
            ratios.windows(WINDOW).position(|some| some.iter().all(|(_, ratio)| off(*ratio) <= 1.25))?;
        let most = ratios[steady..].iter().map(|(_, ratio)| off(*ratio)).fold(1.0, f64::max);
        Some((ratios[steady].0 - from, most))
    }
}

pub(super) fn measure(common: &Common) -> Result<Vec<Changed>> {
    [Change::Cost, Change::Load].into_iter().map(|change| one(common, change)).collect()
}

fn one(common: &Common, change: Change) -> Result<Changed> {
    let folder = folder(common, "change")?;
    let shop = open(common, &folder, SIZE, &mut None)?;
    let setup = Setup::Ratio(WISHED);
    let learned = learn(common, &shop)?;
    let Some(mut gateway) = setup.start(common, &folder, shop.address, Some(&learned))? else {
        return failed("the gateway did not start");
    };
    let (light_alone_s, heavy_alone_s) = alone(common, &folder, shop.address, ALONE_S)?;
    let quick = common.quick;
    let load = match change {
        Change::Cost => Load {
            light: LIGHT.into(),
            heavy: HEAVY.into(),
            heavy_clients: vec![HEAVY_CLIENTS],
            settle_s: 0,
            seconds: if quick { 15 } else { END as u32 },
        },
        Change::Load => Load {
            light: LIGHT.into(),
            heavy: HEAVY.into(),
            heavy_clients: vec![HEAVY_CLIENTS, 0, HEAVY_CLIENTS],
            settle_s: 0,
            seconds: if quick { 10 } else { THERE },
        },
    };
    let scale = if quick { 12 } else { 1 };
    let times = |times: u32| -> Result<()> {
        let answer =
            Visitor::new(shop.address, super::PATIENCE).ask(&format!("{HEAVY}?times={times}"), Some(""))?;
        if answer.status == 200 { Ok(()) } else { failed(format!("{HEAVY}: status {}", answer.status)) }
    };
    let mut due = match change {
        Change::Cost => vec![(LIGHTER_AT / scale, 1), (HEAVIER_AT / scale, 5)],
        Change::Load => vec![],
    };
    let (mut seen, mut at) = (vec![], vec![]);
    let report = load.play(common, &folder, gateway.address, |since| {
        gateway.must_run()?;
        if let Some((_, many)) = due.pop_if(|(when, _)| since >= Duration::from_secs(*when)) {
            times(many)?;
            at.push(since.as_secs_f64());
        }
        if seen.len() as u64 <= since.as_secs()
            && let Some(now) = gateway.state()
        {
            seen.push(seen_at(since, &now));
        }
        Ok(())
    })?;
    if change == Change::Load {
        at = report.points.iter().skip(1).map(|point| point.from_s).collect();
    }
    Ok(Changed {
        change,
        light_alone_s,
        heavy_alone_s,
        seconds: report.series.iter().map(|second| (second.light, second.heavy)).collect(),
        seen,
        at,
    })
}

fn seen_at(since: Duration, state: &State) -> Seen {
    let service = |index: usize| state.services.get(index);
    Seen {
        at_s: since.as_secs_f64(),
        light: service(0).and_then(|service| service.slowdown),
        heavy: service(1).and_then(|service| service.slowdown),
        cap: service(1).and_then(|service| service.cap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(seconds: Vec<(u32, u32)>) -> Changed {
        let (light_alone_s, heavy_alone_s) = (0.01, 0.1);
        Changed { change: Change::Cost, light_alone_s, heavy_alone_s, seconds, seen: vec![], at: vec![] }
    }

    #[test]
    fn the_ratio_is_that_of_clients_to_answers() {
        // Light: 30 clients, 100 a second: 0.3 s, 30 times. Heavy: 20 clients, 5 a second: 4 s, 40
        // times.
        let ratios = changed(vec![(100, 5); 12]).ratios();
        assert_eq!(ratios.len(), 3);
        assert!((ratios[0].1 - 40.0 / 30.0).abs() < 1e-9, "{ratios:?}");
    }

    #[test]
    fn the_wish_is_met_again_once_it_is_met_for_ten_seconds() {
        let seconds = [vec![(100, 20); 30], vec![(120, 4); 60]].concat();
        let (after, off) = changed(seconds).again(30.0, 90.0).unwrap();
        assert!((3.0..=10.0).contains(&after) && off < 1.3, "{after} s, {off}");
        assert_eq!(changed(vec![(100, 20); 60]).again(0.0, 60.0), None);
    }
}

//! The results. The JSON file has these names, so they must not change.

use crate::numbers::{fine_time, rate};
use serde::Serialize;
use suimon_crowd::profile::{PointReport, Role, Second};
use suimon_statistics::table;

/// How far the ratio may be from the wish, as a factor, and how much of the floor must be kept.
const RATIO_WITHIN: f64 = 1.25;
const FLOOR_KEPT: f64 = 0.95;

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Degraded {
    /// Version of Suimon.
    pub(super) version: &'static str,
    /// When it began, as an HTTP date.
    pub(super) began: String,
    /// Who ran where, in words.
    pub(super) cores: String,
    /// Clients of each service; each asks again as soon as it is answered.
    pub(super) light_clients: u32,
    pub(super) heavy_clients: u32,
    /// Light jobs a second without any heavy one.
    pub(super) light_most_per_s: f64,
    /// The wished ratio of the slowdowns.
    pub(super) ratio_wished: f64,
    /// The wished floor of the light service.
    pub(super) floor_per_s: f64,
    /// In the order in which they were played.
    pub(super) acts: [Act; 3],
}

/// What is in front of the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Front {
    /// Nothing.
    Nothing,
    /// Suimon, with a wished ratio of slowdowns.
    Ratio,
    /// Suimon, with a floor.
    Floor,
}

/// What came of one of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Act {
    pub(super) front: Front,
    /// The gateway's settings.
    pub(super) settings: Option<String>,
    pub(super) light: Side,
    pub(super) heavy: Side,
    /// Slowdown of the heavy service ÷ that of the light one.
    pub(super) ratio: f64,
    /// Seconds from the beginning of the load, between which it was measured.
    pub(super) measured_from_s: f64,
    pub(super) measured_to_s: f64,
    /// Jobs done, second by second.
    pub(super) series: Vec<Second>,
    /// The pause that the gateway gave each heavy request.
    pub(super) pauses: Vec<Pause>,
}

/// One of the services.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Side {
    /// Mean seconds of a request alone, through what is in front.
    pub(super) alone_s: f64,
    pub(super) per_s: f64,
    /// Clients ÷ jobs a second, which is the response time of a closed loop, ÷ the time alone.
    pub(super) slowdown: f64,
    pub(super) p50_s: f64,
    pub(super) p99_s: f64,
    pub(super) errors: u64,
}

/// A pause at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Pause {
    /// Seconds from the beginning of the load.
    pub(super) at_s: f64,
    pub(super) seconds: f64,
}

impl Side {
    /// Returns what was measured of the service at `point`; `None` if nothing was answered.
    pub(super) fn of(point: &PointReport, role: Role, clients: u32, alone_s: f64) -> Option<Side> {
        let service = point.service(role).filter(|service| service.completed > 0)?;
        Some(Side {
            alone_s,
            per_s: service.per_second,
            slowdown: f64::from(clients) / service.per_second / alone_s,
            p50_s: service.response.p50_s,
            p99_s: service.response.p99_s,
            errors: service.errors,
        })
    }
}

impl Front {
    /// Returns its name for people.
    pub(super) fn title(self, ratio: f64, floor: f64) -> String {
        match self {
            Front::Nothing => "without Suimon".to_owned(),
            Front::Ratio => format!("slowdown 1 : {ratio}"),
            Front::Floor => format!("floor {floor:.0}/s"),
        }
    }
}

impl Degraded {
    pub(super) fn title(&self, act: &Act) -> String {
        act.front.title(self.ratio_wished, self.floor_per_s)
    }

    pub(super) fn act(&self, front: Front) -> &Act {
        self.acts.iter().find(|act| act.front == front).expect("each was played")
    }

    fn ratio_holds(&self) -> bool {
        let off = self.act(Front::Ratio).ratio / self.ratio_wished;
        (1.0 / RATIO_WITHIN..=RATIO_WITHIN).contains(&off)
    }

    fn floor_holds(&self) -> bool {
        self.act(Front::Floor).light.per_s >= FLOOR_KEPT * self.floor_per_s
    }

    /// Returns whether both wishes were kept, and nothing failed.
    pub(super) fn holds(&self) -> bool {
        let errors: u64 = self.acts[1..].iter().map(|act| act.light.errors + act.heavy.errors).sum();
        self.ratio_holds() && self.floor_holds() && errors == 0
    }

    /// Returns what came of it, in a sentence or two.
    pub(super) fn verdict(&self) -> String {
        let word = |holds: bool| if holds { "kept" } else { "missed" };
        format!(
            "{}: heavy slowed {} times as much as light, wished {} ({}); light {}/s, floor {:.0}/s ({}). \
             Without Suimon: {} and {}/s.",
            if self.holds() { "Suimon held" } else { "Suimon did not hold" },
            rate(self.act(Front::Ratio).ratio),
            self.ratio_wished,
            word(self.ratio_holds()),
            rate(self.act(Front::Floor).light.per_s),
            self.floor_per_s,
            word(self.floor_holds()),
            rate(self.acts[0].ratio),
            rate(self.acts[0].light.per_s),
        )
    }
}

/// Headings of the table.
pub(super) const HEADINGS: [&str; 7] =
    ["light/s", "slowed", "99 of 100", "heavy/s", "slowed", "99 of 100", "ratio"];

/// Returns the numbers of an act, as the headings say.
pub(super) fn cells(act: &Act) -> [String; 7] {
    let side =
        |side: &Side| [rate(side.per_s), format!("{}\u{d7}", rate(side.slowdown)), fine_time(side.p99_s)];
    let [[a, b, c], [d, e, f]] = [side(&act.light), side(&act.heavy)];
    [a, b, c, d, e, f, rate(act.ratio)]
}

/// Returns all acts side by side, for the terminal.
pub(super) fn table(outcome: &Degraded) -> String {
    let rows = outcome.acts.iter().map(|act| std::iter::once(outcome.title(act)).chain(cells(act)).collect());
    let headings: Vec<&str> = std::iter::once("").chain(HEADINGS).collect();
    table::numbers(&headings, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn side(alone_s: f64, per_s: f64, clients: f64) -> Side {
        Side { alone_s, per_s, slowdown: clients / per_s / alone_s, p50_s: 0.01, p99_s: 0.1, errors: 0 }
    }

    fn act(front: Front, light_per_s: f64, heavy_per_s: f64) -> Act {
        let (light, heavy) = (side(0.001, light_per_s, 30.0), side(0.1, heavy_per_s, 20.0));
        Act {
            front,
            settings: (front != Front::Nothing).then(|| "[degradation]\nmode = \"slowdown\"\n".to_owned()),
            ratio: heavy.slowdown / light.slowdown,
            light,
            heavy,
            measured_from_s: 8.0,
            measured_to_s: 24.0,
            series: vec![Second { light: light_per_s as u32, heavy: heavy_per_s as u32 }; 24],
            pauses: vec![Pause { at_s: 1.0, seconds: 0.2 }, Pause { at_s: 2.0, seconds: 0.3 }],
        }
    }

    pub(in super::super) fn outcome() -> Degraded {
        Degraded {
            version: "0.0.0",
            began: "now".to_owned(),
            cores: "the application has one core to itself".to_owned(),
            light_clients: 30,
            heavy_clients: 20,
            light_most_per_s: 2_000.0,
            ratio_wished: 2.0,
            floor_per_s: 1_200.0,
            acts: [
                act(Front::Nothing, 200.0, 8.0),
                act(Front::Ratio, 1_000.0, 3.4),
                act(Front::Floor, 1_300.0, 2.0),
            ],
        }
    }

    #[test]
    fn it_holds_where_both_wishes_were_kept_and_nothing_failed() {
        let kept = outcome();
        assert!(kept.holds(), "{}", kept.verdict());
        assert!(kept.verdict().starts_with("Suimon held: heavy slowed 1.96 times"), "{}", kept.verdict());
        let spoil: [fn(&mut Degraded); 3] = [
            |it| it.acts[1].ratio = 2.6,
            |it| it.acts[2].light.per_s = 1_100.0,
            |it| it.acts[2].heavy.errors = 1,
        ];
        for spoil in spoil {
            let mut missed = outcome();
            spoil(&mut missed);
            assert!(!missed.holds() && missed.verdict().starts_with("Suimon did not hold"));
        }
    }

    #[test]
    fn the_acts_stand_below_each_other() {
        let table = table(&outcome());
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines.len() == 4 && lines[0].contains("light/s"), "{table}");
        assert!(lines[1].contains("without Suimon") && lines[2].contains("slowdown 1 : 2"), "{table}");
        assert!(lines[3].contains("floor 1200/s") && lines[3].contains("23.1\u{d7}"), "{table}");
    }
}

//! `flash-crowd`: ten times as many visitors as can be served arrive at once, and wait in line.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_chart::{Axis, Band, Hue, Plot, Rule, Series, Span};
use suimon_crowd::LineWait;
use suimon_statistics::median;
use suimon_statistics::table::numbers;

use crate::apps::{ShopOptions, open_tomcat};
use crate::bound::{self, Bound};
use crate::claims::{self, Claim};
use crate::common::{Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::figures::{self, Panel};
use crate::gateways::start_suimon;
use crate::journey::{Arrivals, InLine, Journey, Thinks};
use crate::machine::Machine;
use crate::observe::{Seen, observe};
use crate::trouble::{Result, Trouble};

const NAME: &str = "flash-crowd";
/// Sessions of the shop's warm-up, and sessions in which the bound is measured.
const WARMUP_SESSIONS: u32 = 40;
const BOUND_SESSIONS: u32 = 60;
/// The load before the flash and after it, as shares of the bound.
const BEFORE: f64 = 0.6;
const BEHIND: f64 = 0.3;
/// What visitors do in line: a mean patience of twenty minutes, and one in twenty closes the tab
/// for a while.
const IN_LINE: InLine = InLine { patience: Duration::from_secs(1200), away: 0.05 };
/// The least share of the bound that is completed while people wait.
const GOODPUT_MIN: f64 = 0.9;
/// 95 of 100 are overtaken by at most as many people as are admitted in this many seconds.
const OVERTAKEN_MAX_S: f64 = 1.0;
/// The largest median error of the predicted wait, after a minute of waiting.
const ERROR_MAX: f64 = 0.15;
/// In the figures, visitors are grouped by when they arrived or began, in spans of this many
/// seconds.
const STRETCH_S: f64 = 10.0;

/// Progress is reported each time this many states were read, one per second.
const PROGRESS_EVERY: u64 = 30;
/// The line counts as empty below this share of its longest length.
const DRY: f64 = 0.02;

/// What happens when ten times as many visitors as can be served arrive at once and wait in line?
///
/// A Tomcat shop on one core, and Suimon without settings. Visitors arrive at 0.6 of the bound,
/// then for a minute at ten times the bound, then at 0.3 of it. It holds if at least 0.9 of the
/// bound is completed while people wait, no admitted session fails, 95 of 100 are overtaken by at
/// most a second's worth of admissions, and the predicted wait is wrong by at most 15 % in the
/// median.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run flash-crowd                 about a quarter of an hour
  ./experiments/run flash-crowd --times 5 --seconds 300")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    shop: ShopOptions,
    /// Sessions per second in the flash, as multiples of the bound.
    #[arg(long, value_name = "X", default_value_t = 10.0)]
    times: f64,
    /// Length of the flash, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    flash: u64,
    /// Time at 0.6 of the bound before the flash, not counted, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    warmup: u64,
    /// Time from the beginning of the flash, seconds; long enough for the line to become empty.
    #[arg(long, value_name = "SECONDS", default_value_t = 720)]
    seconds: u64,
    /// Draws the figure from existing data.
    #[arg(long)]
    redraw: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    scale: f64,
    times: f64,
    warmup_s: f64,
    flash_s: f64,
    /// Measured before visitors came, and after they had gone.
    bound: Bound,
    bound_after: Bound,
    seen: Seen,
    /// Predicted and real waits, by when visitors first saw the waiting page, and the line by the
    /// second.
    told: Vec<Told>,
    in_line: Vec<u32>,
    claims: Vec<Claim>,
}

/// Visitors who first saw the waiting page in the same span and were admitted: medians of the
/// predictions after a minute of waiting, and of the real waits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Told {
    /// Middle of the span, from the beginning of the flash.
    from_s: f64,
    visitors: u64,
    low_s: f64,
    high_s: f64,
    waited_s: f64,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let data = data::measured(&path, NAME, options.redraw, || measure(&common, options))?;
    draw(&common.out.join("figure.svg"), &data)?;
    print!("{}{}", tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let (warmup, flash, seconds) =
        if common.quick { (5, 5, 40) } else { (options.warmup, options.flash, options.seconds) };
    if seconds <= flash {
        return Err(Trouble::Usage(format!("--seconds {seconds}: must be more than the flash's {flash}")));
    }
    let scale = options.shop.scale;
    eprintln!("opening the shop and measuring the bound");
    let opened = open_tomcat(common, &options.shop, None)?;
    let bound =
        bound::measure(common, &common.scratch, &opened, scale, WARMUP_SESSIONS, BOUND_SESSIONS, Thinks::No)?;
    let rate = |share: f64| share * bound.sessions_per_s;
    eprintln!(
        "B = {:.2} sessions/s; {:.0} visitors come in {flash} s, then {:.1} a second",
        bound.sessions_per_s,
        rate(options.times) * flash as f64,
        rate(BEHIND)
    );
    let mut gateway = start_suimon(common, &common.scratch, opened.address, None, common.load_core)?;
    let phases = vec![
        (warmup as f64, rate(BEFORE)),
        (flash as f64, rate(options.times)),
        ((seconds - flash) as f64, rate(BEHIND)),
    ];
    let journey = Journey {
        seed: common.seed,
        arrivals: Arrivals::Open(phases),
        scale,
        thinks: Thinks::Varied,
        endless: false,
        in_line: Some(IN_LINE),
    };
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &common.scratch,
        core: common.load_core,
        journey: journey.toml(),
        to: gateway.address,
        warmup: Duration::from_secs(warmup),
        measure: Some(Duration::from_secs(seconds)),
    };
    let states = common.scratch.join("states.jsonl");
    let mut looks = 0_u64;
    let mut seen = observe(common, &crowd, opened.process.pid(), &mut gateway, &states, |state| {
        looks += 1;
        if looks.is_multiple_of(PROGRESS_EVERY) {
            eprintln!(
                "  {} sessions are inside, {} visitors wait",
                state.totals.sessions_remembered,
                state.totals.waiting()
            );
        }
    })?;
    eprintln!("measuring the bound again");
    let bound_after =
        bound::measure(common, &common.scratch, &opened, scale, WARMUP_SESSIONS, BOUND_SESSIONS, Thinks::No)?;
    // The crowd's report beside its journey has every single wait; here their sums are enough.
    let waits = seen.crowd.line.as_mut().map(|line| std::mem::take(&mut line.waits)).unwrap_or_default();
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        scale,
        times: options.times,
        flash_s: flash as f64,
        bound,
        bound_after,
        told: told(&waits, warmup as f64),
        warmup_s: warmup as f64,
        in_line: in_line(&waits, warmup + seconds),
        seen,
        claims: Vec::new(),
    };
    data.claims = judge(&data);
    Ok(data)
}

/// Returns predicted and real waits, by when visitors arrived; `from_s`: when the flash began.
fn told(waits: &[LineWait], from_s: f64) -> Vec<Told> {
    let judged = waits.iter().filter(|wait| wait.entered && !wait.away).filter_map(|wait| {
        let (told, left) = wait.judged(LineWait::SETTLED_S)?;
        Some((wait.from_s - from_s, told.low_s, told.high_s, left))
    });
    let mut stretches: BTreeMap<i64, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for (came, low, high, left) in judged {
        stretches.entry((came / STRETCH_S).floor() as i64).or_default().push((low, high, left));
    }
    let told = stretches.into_iter().map(|(stretch, waits)| {
        let middle = |of: fn(&(f64, f64, f64)) -> f64| median(&waits.iter().map(of).collect::<Vec<f64>>());
        Told {
            from_s: (stretch as f64 + 0.5) * STRETCH_S,
            visitors: waits.len() as u64,
            low_s: middle(|wait| wait.0),
            high_s: middle(|wait| wait.1),
            waited_s: middle(|wait| wait.2),
        }
    });
    told.collect()
}

/// Returns how many were in line in each second of the run, counting those whose wait is over.
fn in_line(waits: &[LineWait], seconds: u64) -> Vec<u32> {
    let mut changes = vec![0_i64; seconds as usize + 2];
    let mut note = |at_s: f64, change: i64| {
        let at = (at_s.max(0.0) as usize).min(changes.len() - 1);
        changes[at] += change;
    };
    for wait in waits {
        note(wait.from_s, 1);
        note(wait.from_s + wait.waited_s, -1);
    }
    let mut now = 0;
    let seconds = changes.iter().take(seconds as usize).map(|change| {
        now += change;
        u32::try_from(now).unwrap_or_default()
    });
    seconds.collect()
}

impl Data {
    /// Returns the seconds of the run in which people waited, from the beginning of the flash.
    fn waited_in(&self) -> std::ops::Range<usize> {
        let from = self.warmup_s as usize;
        let most = self.in_line.iter().copied().max().unwrap_or_default();
        let has_waiters = |people: &u32| f64::from(*people) > DRY * f64::from(most);
        let to = self.in_line.iter().rposition(has_waiters).map_or(from, |last| last + 1);
        from..to.max(from)
    }

    /// Returns the bound, the mean of both measurements: the machine's speed varies.
    fn bound_per_s(&self) -> f64 {
        f64::midpoint(self.bound.sessions_per_s, self.bound_after.sessions_per_s)
    }

    /// Returns sessions completed per second while people waited, as a share of the bound.
    fn goodput(&self) -> f64 {
        let waited_in = self.waited_in();
        let seconds = waited_in.len().max(1) as f64;
        let completed = self.seen.completed_by_second.get(waited_in).unwrap_or_default();
        f64::from(completed.iter().sum::<u32>()) / seconds / self.bound_per_s()
    }
}

fn judge(data: &Data) -> Vec<Claim> {
    let crowd = &data.seen.crowd;
    let line = crowd.line.clone().unwrap_or_default();
    let settled = line.told.iter().find(|told| told.from_s > 0.0).copied().unwrap_or_default();
    let error = settled.error_by_low.unwrap_or(f64::INFINITY);
    let overtaken = line.order.overtaken_p95_s.unwrap_or(f64::INFINITY);
    let (goodput, seconds) = (data.goodput(), data.waited_in().len());
    vec![
        Claim::new(
            format!(
                "at least {GOODPUT_MIN} B is completed in the {seconds} s in which people wait: {goodput:.2} B"
            ),
            goodput >= GOODPUT_MIN,
        ),
        Claim::new(
            format!(
                "no session that has begun is lost: {} failures in {} sessions",
                crowd.mid_session_failures, crowd.sessions_begun
            ),
            crowd.mid_session_failures == 0 && crowd.sessions_failed_inside == 0,
        ),
        Claim::new(
            format!(
                "95 of 100 are overtaken by at most {OVERTAKEN_MAX_S:.0} s of admissions: {overtaken:.2} s, {} people",
                line.order.overtaken_by_p95
            ),
            overtaken <= OVERTAKEN_MAX_S,
        ),
        Claim::new(
            format!(
                "the time told after a minute is off by at most {:.0} % in the median: {:.0} %, of {} waits",
                100.0 * ERROR_MAX,
                100.0 * error,
                settled.judged
            ),
            error <= ERROR_MAX && settled.judged > 0,
        ),
    ]
}

fn tables(data: &Data) -> String {
    let line = data.seen.crowd.line.clone().unwrap_or_default();
    let percent =
        |share: Option<f64>| share.map_or("–".to_string(), |share| format!("{:.0} %", 100.0 * share));
    let rows: Vec<Vec<String>> = line
        .told
        .iter()
        .map(|told| {
            vec![
                if told.from_s > 0.0 { format!("after {:.0} s", told.from_s) } else { "first".to_string() },
                told.judged.to_string(),
                percent(told.error_by_low),
                percent(told.error_by_middle),
                percent(told.error_by_high),
                percent(told.within_range),
                percent(told.longer_than_told),
            ]
        })
        .collect();
    format!(
        "\nB = {:.2} sessions/s; {} visitors waited, {} got in, {} gave up, {} still wait; others had {:.0} % of the shop's core\n  \
         waits: median {:.0} s, 95 of 100 under {:.0} s; {} polls\n\nThe time told, off in the median\n{}",
        data.bound_per_s(),
        line.visitors,
        line.entered,
        line.gave_up,
        line.still_waiting,
        100.0 * data.seen.foreign(),
        line.wait.p50_s,
        line.wait.p95_s,
        line.polls,
        numbers(&["told", "waits", "low", "middle", "high", "within", "longer"], &rows),
    )
}

fn draw(path: &Path, data: &Data) -> Result<()> {
    let flash = || Span::new(0.0, data.flash_s, &format!("{:.0} B come", data.times));
    let at = |second: usize| second as f64 - data.warmup_s;
    let stretch = STRETCH_S as usize;
    let completed =
        data.seen.completed_by_second.chunks_exact(stretch).enumerate().map(|(index, seconds)| {
            (at(index * stretch) + STRETCH_S / 2.0, f64::from(seconds.iter().sum::<u32>()) / STRETCH_S)
        });
    let sessions = Plot::new("Sessions completed, before, in and behind a flash crowd")
        .describe("Sessions completed a second stay near the bound as long as people wait.")
        .x(Axis::new("seconds from the flash's beginning"))
        .y(Axis::new("sessions per second").from(0.0))
        .series(Series::dotted("completed", Hue::Blue, completed.collect()))
        .rule(Rule::new(data.bound_per_s(), "B"))
        .span(flash());
    let in_line = data.in_line.iter().enumerate().map(|(second, people)| (at(second), f64::from(*people)));
    let line = Plot::new("Visitors in line")
        .describe("The line grows in the flash and gets shorter from then on.")
        .x(Axis::new("seconds from the flash's beginning"))
        .y(Axis::new("visitors").from(0.0))
        .series(Series::line("in line", Hue::Blue, in_line.collect()))
        .span(flash());
    let minutes = |of: fn(&Told) -> f64| {
        data.told.iter().map(|told| (told.from_s, of(told) / 60.0)).collect::<Vec<(f64, f64)>>()
    };
    let range = data.told.iter().map(|told| (told.from_s, told.low_s / 60.0, told.high_s / 60.0)).collect();
    let told = Plot::new("What was told after a minute, and what came")
        .describe("By when visitors came: the range told of the time left, and the time left.")
        .x(Axis::new("visitors, by the seconds between the flash's beginning and their arrival"))
        .y(Axis::new("minutes left").from(0.0))
        .band(Band::new(Hue::Amber, range))
        .series(Series::line("told: low", Hue::Amber, minutes(|told| told.low_s)))
        .series(Series::line("told: high", Hue::Amber, minutes(|told| told.high_s)).dashed())
        .series(Series::dotted("waited", Hue::Blue, minutes(|told| told.waited_s)));
    figures::write(
        path,
        &[Panel::Lines(sessions, 300.0), Panel::Lines(line, 240.0), Panel::Lines(told, 320.0)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_crowd::{LineTold, Who};

    fn wait(from_s: f64, waited_s: f64) -> LineWait {
        LineWait {
            who: Who::Visitor,
            line: "00ff".to_owned(),
            from_s,
            waited_s,
            entered: true,
            position: Some(1),
            away: false,
            polls: 1,
            told: vec![
                LineTold { after_s: 2.0, low_s: 1.0, high_s: 2.0 },
                LineTold { after_s: 61.0, low_s: 80.0, high_s: 120.0 },
            ],
        }
    }

    #[test]
    fn what_was_told_after_a_minute_is_held_against_what_came() {
        let told = told(&[wait(65.0, 161.0), wait(66.0, 171.0), wait(69.0, 151.0), wait(90.0, 80.0)], 60.0);
        assert_eq!(told.len(), 1, "of the last too little was left");
        assert_eq!((told[0].from_s, told[0].visitors, told[0].waited_s), (5.0, 3, 100.0));
    }

    #[test]
    fn those_in_line_are_counted_by_the_second() {
        assert_eq!(in_line(&[wait(1.5, 2.0), wait(2.0, 9.0)], 5), [0, 1, 2, 1, 1]);
    }
}

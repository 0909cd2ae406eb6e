//! How a profile goes: a bar that is drawn over, or a line now and then where nobody watches.

use super::{Profile, words};
use crate::numbers::{fine_time, rate};
use crate::terminal::{self, Colour, Line, Live};
use std::io::{self, Write};
use std::time::Duration;
use suimon_crowd::profile::{News, OnNews, Phase, PointReport, Progress, Role};

/// Seconds between two lines where nobody watches.
const QUIET_EVERY: u32 = 10;
/// Columns of the bar.
const BAR: usize = 24;

/// Returns who is told.
pub(super) fn news(args: &Profile) -> OnNews {
    let mut live = terminal::can_draw(&io::stderr()).then(Live::default);
    let names = [args.light.to_string(), args.heavy.to_string()];
    let mut quiet = 0;
    Box::new(move |news| {
        let line = match (news, &mut live) {
            (News::Tick(progress), Some(live)) => return live.draw(&[bar(progress)]),
            (News::Tick(progress), None) => {
                quiet = (quiet + 1) % QUIET_EVERY;
                if quiet > 0 {
                    return;
                }
                said(progress)
            }
            (News::Measured(point), live) => {
                if let Some(live) = live {
                    live.wipe();
                }
                measured(point, &names)
            }
        };
        // Nothing is lost if nobody can be told.
        let columns = terminal::columns_of(io::stderr());
        let _ = write!(io::stderr(), "{}", terminal::paragraphs(&line, columns));
    })
}

fn bar(progress: &Progress) -> Line {
    let filled = (progress.done * BAR as f64).round().clamp(0.0, BAR as f64) as usize;
    Line::default()
        .coloured(Colour::Blue, &"━".repeat(filled))
        .faint(&"─".repeat(BAR - filled))
        .plain(&format!(" {}", said(progress)))
}

fn said(progress: &Progress) -> String {
    let phase = match progress.phase {
        Phase::WarmUp => "warm-up",
        Phase::Measuring => "measuring",
        Phase::LastAnswers => "last responses",
    };
    let errors = if progress.errors > 0 { format!(" | {} errors", progress.errors) } else { String::new() };
    format!(
        "{}/{} {} + {} in flight, {phase} | {} + {} per second{errors} | {} left",
        progress.index + 1,
        progress.points,
        progress.point.light,
        progress.point.heavy,
        progress.answered.light,
        progress.answered.heavy,
        words::long(Duration::from_secs_f64(progress.left_s)),
    )
}

fn measured(point: &PointReport, names: &[String; 2]) -> String {
    let services = Role::ALL.iter().zip(names).filter_map(|(role, name)| {
        let service = point.service(*role)?;
        Some(format!("{name} {}/s, mean {}", rate(service.per_second), fine_time(service.response.mean_s)))
    });
    format!(
        "{} + {} in flight: {}",
        point.light_in_flight,
        point.heavy_in_flight,
        services.collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::page::tests::report;
    use super::*;
    use suimon_crowd::profile::{Point, Second};

    fn progress(done: f64) -> Progress {
        Progress {
            index: 2,
            points: 8,
            point: Point {
                light: 30,
                heavy: 5,
                alone: false,
                warmup: Duration::ZERO,
                measure: Duration::ZERO,
            },
            phase: Phase::Measuring,
            done,
            left_s: 75.4,
            answered: Second { light: 120, heavy: 2 },
            errors: 3,
        }
    }

    #[test]
    fn the_bar_fills_and_stays_as_long_as_it_is() {
        for (done, filled) in [(0.0, 0), (0.5, 12), (1.0, 24), (7.0, 24)] {
            let line = bar(&progress(done)).written(200, false);
            assert_eq!(line.matches('━').count(), filled);
            assert_eq!(line.matches(['━', '─']).count(), BAR);
            assert!(
                line.ends_with(
                    "3/8 30 + 5 in flight, measuring | 120 + 2 per second | 3 errors | 1 min 15 s left"
                ),
                "{line}"
            );
        }
    }

    #[test]
    fn a_measured_point_is_told_in_a_line() {
        let report = report();
        let names = ["GET /quote".to_owned(), "GET /report".to_owned()];
        assert_eq!(measured(&report.points[0], &names), "1 + 0 in flight: GET /quote 500/s, mean 2.00 ms");
        assert!(measured(&report.points[3], &names).contains("; GET /report "));
    }
}

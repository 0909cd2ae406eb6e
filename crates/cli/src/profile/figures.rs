//! The papers' figures, from the numbers.

use super::table::{of_service, told_names};
use crate::numbers::fine_time;
use crate::page::LINES_MAX;
use suimon_chart::{Axis, Bars, Hue, Plot, Series, Span};
use suimon_crowd::profile::{PointReport, ProfileReport, Role, Segment, ServiceReport};

/// The most points of a line over time.
const OVER_TIME_MAX: usize = 80;
/// Room above the highest line for the names of the points.
const HEADROOM: f64 = 4.0;
/// Milliseconds in a second.
const MS: f64 = 1e3;
/// Colours of the segments that a client sees.
const SEGMENT_HUES: [Hue; 4] = [Hue::Purple, Hue::Amber, Hue::Blue, Hue::Green];

/// Returns the colour of a service.
const fn hue(role: Role) -> Hue {
    match role {
        Role::Light => Hue::Blue,
        Role::Heavy => Hue::Vermilion,
    }
}

/// Returns completions per second over the whole run, each point's measured time marked.
pub(super) fn over_time(report: &ProfileReport) -> Plot {
    let width = report.series.len().div_ceil(OVER_TIME_MAX).max(1);
    let line = |role: Role| {
        let bins = report.series.chunks(width).enumerate();
        let of = |second: &suimon_crowd::profile::Second| match role {
            Role::Light => second.light,
            Role::Heavy => second.heavy,
        };
        let points = bins.map(|(index, bin)| {
            let sum: u32 = bin.iter().map(of).sum();
            ((index * width) as f64 + bin.len() as f64 / 2.0, f64::from(sum) / bin.len() as f64)
        });
        Series::line(report.name(role), hue(role), points.collect())
    };
    let highest = report.series.iter().map(|second| second.light.max(second.heavy)).max().unwrap_or(0);
    let plot = Plot::new("Completions over time")
        .describe("Completions per second of both services over the whole run, on a logarithmic scale.")
        .x(Axis::new("seconds").from(0.0).to(report.series.len() as f64))
        .y(Axis::new("completed per second").logarithmic().to(f64::from(highest) * HEADROOM));
    let span = |point: &PointReport| {
        let label = if point.alone { "alone".to_owned() } else { format!("+ {}", point.heavy_in_flight) };
        Span::new(point.measured_from_s, point.to_s, &label)
    };
    let plot = report.points.iter().map(span).fold(plot, Plot::span);
    Role::ALL.into_iter().map(line).fold(plot, Plot::series)
}

/// Returns completions per second by heavy requests in flight.
pub(super) fn completions(report: &ProfileReport) -> Plot {
    by_heavy(report, "Completions", Axis::new("completed per second").logarithmic(), |service| {
        Some(service.per_second)
    })
    .describe("Completions per second of both services by heavy requests in flight.")
}

/// Returns how many times slower each service is than alone, by heavy requests in flight.
pub(super) fn slowdown(report: &ProfileReport) -> Plot {
    by_heavy(report, "Slowdown", Axis::new("times slower than alone").logarithmic(), |service| {
        service.slowdown
    })
    .describe("Mean response time divided by that of the service alone, by heavy requests in flight.")
}

fn by_heavy(
    report: &ProfileReport,
    title: &str,
    y: Axis,
    value: impl Fn(&ServiceReport) -> Option<f64>,
) -> Plot {
    let line = |role: Role| {
        let points = report.together().enumerate().map(|(index, point)| {
            let value = point.service(role).and_then(&value);
            (index as f64, value.unwrap_or(f64::NAN))
        });
        Series::dotted(report.name(role), hue(role), points.collect())
    };
    Role::ALL.into_iter().map(line).fold(Plot::new(title).x(heavy_axis(report)).y(y), Plot::series)
}

/// Returns an axis of the numbers of heavy requests, each as far from the next: 0 has no place on a
/// logarithmic one, and on an even one 0 and 1 fall together.
fn heavy_axis(report: &ProfileReport) -> Axis {
    let words: Vec<(f64, String)> = report
        .together()
        .enumerate()
        .map(|(index, point)| (index as f64, point.heavy_in_flight.to_string()))
        .collect();
    let last = words.len().saturating_sub(1).max(1) as f64;
    Axis::new("heavy requests in flight").from(0.0).to(last).words(words)
}

/// Returns response times of a service by heavy requests in flight.
pub(super) fn response_times(report: &ProfileReport, role: Role) -> Plot {
    let plot = Plot::new("Response times")
        .describe("Response times by heavy requests in flight, on a logarithmic scale.")
        .x(heavy_axis(report))
        .y(Axis::new("seconds").logarithmic());
    let line = |name: &str, hue: Hue, value: fn(&ServiceReport) -> f64| {
        let points = report.together().enumerate().map(|(index, point)| {
            let service = point.service(role).filter(|service| service.completed > 0);
            (index as f64, service.map_or(f64::NAN, value))
        });
        Series::dotted(name, hue, points.collect())
    };
    plot.series(line("longest", Hue::Grey, |service| service.response.max_s))
        .series(line("99 of 100", Hue::Purple, |service| service.response.p99_s))
        .series(line("90 of 100", Hue::Green, |service| service.response.p90_s))
        .series(line("half", hue(role), |service| service.response.p50_s))
}

/// Returns the share of a service's responses that ended within a time, for some of the points.
pub(super) fn distribution(report: &ProfileReport, role: Role) -> Plot {
    let points: Vec<(&PointReport, &ServiceReport)> =
        of_service(report, role).filter(|(point, service)| !point.alone && service.completed > 0).collect();
    let chosen = spread(points.len(), LINES_MAX + 1);
    let longest =
        chosen.iter().map(|index| points[*index].1.response.max_s).fold(f64::NEG_INFINITY, f64::max);
    let plot = Plot::new("Distribution of response times")
        .describe("The share of responses that ended within a time, on a logarithmic scale of time.")
        .x(Axis::new("seconds").logarithmic())
        .y(Axis::new("% of responses within").from(0.0).to(100.0));
    chosen.into_iter().enumerate().fold(plot, |plot, (index, place)| {
        let (point, service) = points[place];
        let mut sum = 0;
        let mut line: Vec<(f64, f64)> =
            service.distribution.first().map(|bin| (bin.from_s, 0.0)).into_iter().collect();
        line.extend(service.distribution.iter().map(|bin| {
            sum += bin.count;
            (
                bin.to_s.min(service.response.max_s.max(bin.from_s)),
                sum as f64 * 100.0 / service.completed as f64,
            )
        }));
        // To the right edge, where the names are.
        line.push((longest, 100.0));
        plot.series(Series::line(&format!("+ {}", point.heavy_in_flight), Hue::of(index), line))
    })
}

/// Returns at most `wanted` of `count` places, the first and the last among them, as far apart as
/// can be.
fn spread(count: usize, wanted: usize) -> Vec<usize> {
    if count <= wanted {
        return (0..count).collect();
    }
    (0..wanted).map(|index| index * (count - 1) / (wanted - 1)).collect()
}

/// Returns the mean of each segment of a response, as the client sees it, point by point.
pub(super) fn segments(report: &ProfileReport, role: Role) -> Bars {
    let bars = Segment::ALL.iter().zip(SEGMENT_HUES).fold(
        Bars::new("Segments").unit("ms, mean").stacked().describe("Mean of each segment of a response."),
        |bars, (segment, hue)| bars.group(segment.name(), hue),
    );
    of_service(report, role).filter(|(_, service)| service.completed > 0).fold(
        bars,
        |bars, (point, service)| {
            let of = |segment: &Segment| {
                service.segments.get(segment.name()).map_or(0.0, |times| times.mean_s * MS)
            };
            bars.row(&row_name(point, role), Segment::ALL.iter().map(of).collect())
        },
    )
}

/// Returns the mean of each segment that the application told of, and what is left of the response
/// time; `None` if it told nothing.
pub(super) fn told(report: &ProfileReport, role: Role) -> Option<Bars> {
    let mut names = told_names(report, role);
    names.truncate(LINES_MAX);
    if names.is_empty() {
        return None;
    }
    let bars = names.iter().enumerate().fold(
        Bars::new("Inside the application").unit("ms, mean").stacked().describe(
            "Mean of each segment that the application told of, and the rest of the response time.",
        ),
        |bars, (index, name)| bars.group(name, SEGMENT_HUES.get(index).copied().unwrap_or(Hue::Vermilion)),
    );
    let bars = bars.group("rest", Hue::Grey);
    let rows = of_service(report, role).filter(|(_, service)| service.completed > 0);
    Some(rows.fold(bars, |bars, (point, service)| {
        let mut values: Vec<f64> =
            names.iter().map(|name| service.told.get(name).map_or(0.0, |times| times.mean_s * MS)).collect();
        values.push((service.response.mean_s * MS - values.iter().sum::<f64>()).max(0.0));
        bars.row(&row_name(point, role), values)
    }))
}

fn row_name(point: &PointReport, role: Role) -> String {
    match (point.alone, role) {
        (true, _) => "alone".to_owned(),
        (false, Role::Light) => format!("+ {} heavy", point.heavy_in_flight),
        (false, Role::Heavy) => format!("{} heavy", point.heavy_in_flight),
    }
}

/// Returns a mean in words, for a headline.
pub(super) fn mean(service: &ServiceReport) -> String {
    fine_time(service.response.mean_s)
}

#[cfg(test)]
mod tests {
    use super::super::page::tests::report;
    use super::*;
    use suimon_chart::{Dress, Size};

    #[test]
    fn of_many_points_the_first_the_last_and_some_between_are_drawn() {
        assert_eq!(spread(3, 6), [0, 1, 2]);
        assert_eq!(spread(11, 6), [0, 2, 4, 6, 8, 10]);
        assert_eq!(spread(20, 6), [0, 3, 7, 11, 15, 19]);
        assert!(spread(0, 6).is_empty());
    }

    #[test]
    fn all_figures_can_be_drawn_of_something_and_of_nothing() {
        let whole = report();
        let mut nothing = report();
        nothing.points.clear();
        nothing.series.clear();
        for (report, empty) in [(&whole, false), (&nothing, true)] {
            let mut drawn = vec![over_time(report), completions(report), slowdown(report)];
            for role in Role::ALL {
                drawn.extend([response_times(report, role), distribution(report, role)]);
            }
            for plot in drawn {
                let svg = plot.svg(Size::new(460.0, 290.0), Dress::Page);
                assert_eq!(svg.contains("nothing was measured"), empty, "{plot:?}");
                assert!(!svg.contains("NaN") && !svg.contains("inf"));
            }
            let svg = segments(report, Role::Heavy).svg(460.0, Dress::Page);
            assert_eq!(svg.contains("nothing was measured"), empty);
            assert_eq!(told(report, Role::Light).is_none(), empty);
            assert!(told(report, Role::Heavy).is_none(), "it told nothing");
        }
    }

    #[test]
    fn what_the_application_does_not_tell_of_is_the_rest() {
        let svg = told(&report(), Role::Light).unwrap().svg(460.0, Dress::Page);
        // Alone: 2 ms, of which 0.5 ms are told.
        assert!(
            svg.contains("alone, accept: 0.5 ms, mean") && svg.contains("alone, rest: 1.5 ms, mean"),
            "{svg}"
        );
    }
}

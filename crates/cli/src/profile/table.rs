//! What was measured, as tables for the terminal.

use crate::numbers::{fine_time, rate, share};
use crate::terminal;
use std::io;
use suimon_crowd::profile::{PointReport, ProfileReport, Role, Segment, ServiceReport};
use suimon_statistics::table;

/// Columns where standard output is no terminal.
const WIDTH_DEFAULT: usize = 120;
/// Above this share of a core the measuring program itself may have been what was slow.
const CLIENT_BUSY: f64 = 0.8;

/// Segments that the application told of, those that are known first.
const KNOWN: [&str; 4] = ["sent", "accept", "job", "pause"];

/// Returns the tables, and what is to be said of them.
pub(super) fn of(report: &ProfileReport) -> String {
    let width = terminal::size_of(io::stdout()).map_or(WIDTH_DEFAULT, |size| size.columns);
    let mut text = String::new();
    for role in Role::ALL {
        text.push_str(&format!("\n  {} ({})\n", report.name(role), word(role)));
        let rows = rows(report, role);
        text.push_str(&table::folded(&table::text_first(&rows), &rows, width));
        text.push_str("\n  mean of each segment\n");
        let rows = segments(report, role);
        text.push_str(&table::folded(&table::text_first(&rows), &rows, width));
    }
    for caution in cautions(report) {
        text.push_str(&format!("\n{caution}\n"));
    }
    terminal::paragraphs(&text, width)
}

const fn word(role: Role) -> &'static str {
    match role {
        Role::Light => "light",
        Role::Heavy => "heavy",
    }
}

/// Returns warnings: the measuring program was busy itself, or a point was too short for a service.
pub(super) fn cautions(report: &ProfileReport) -> Vec<String> {
    let most = report.points.iter().map(|point| point.client_cpu_share).fold(0.0, f64::max);
    let busy = (most > CLIENT_BUSY).then(|| {
        format!(
            "Caution: this program used {} of a core itself; the site may be faster than it could measure.",
            share(most)
        )
    });
    busy.into_iter().chain(Role::ALL.into_iter().filter_map(|role| too_short(report, role))).collect()
}

/// Returns a warning if fewer requests of a service completed at a point than are in flight there:
/// less than one round of its closed loop.
fn too_short(report: &ProfileReport, role: Role) -> Option<String> {
    let short = of_service(report, role).filter(|(point, service)| {
        let in_flight = match role {
            Role::Light => point.light_in_flight,
            Role::Heavy => point.heavy_in_flight,
        };
        service.completed < u64::from(in_flight)
    });
    let points: Vec<String> = short.map(|(point, _)| label(point)).collect();
    (!points.is_empty()).then(|| {
        format!(
            "Caution: fewer requests for {} completed than were in flight ({}). The figures of these points say little: \
             measure longer (--seconds).",
            report.name(role),
            points.join("; ")
        )
    })
}

/// Returns what the point is called where the other service is named above it.
pub(super) fn label(point: &PointReport) -> String {
    if point.alone {
        "alone".to_owned()
    } else {
        format!("{} + {}", point.light_in_flight, point.heavy_in_flight)
    }
}

/// Returns the points at which the service was asked for, with what came of it.
pub(super) fn of_service(
    report: &ProfileReport,
    role: Role,
) -> impl Iterator<Item = (&PointReport, &ServiceReport)> {
    report.points.iter().filter_map(move |point| Some((point, point.service(role)?)))
}

/// Headings of the numbers of a service.
pub(super) const HEADINGS: [&str; 9] =
    ["completed", "per second", "mean", "p50", "p90", "p99", "max", "slowdown", "errors"];

/// Returns the numbers of a service, as they stand under [`HEADINGS`].
pub(super) fn cells(service: &ServiceReport) -> [String; 9] {
    let time = |seconds: f64| if service.completed > 0 { fine_time(seconds) } else { "–".to_owned() };
    let times = &service.response;
    [
        service.completed.to_string(),
        rate(service.per_second),
        time(times.mean_s),
        time(times.p50_s),
        time(times.p90_s),
        time(times.p99_s),
        time(times.max_s),
        service.slowdown.map_or_else(|| "–".to_owned(), |slowdown| format!("×{}", rate(slowdown))),
        match service.errors {
            0 => "0".to_owned(),
            some => format!("{some} ({})", share(service.error_share)),
        },
    ]
}

fn rows(report: &ProfileReport, role: Role) -> Vec<Vec<String>> {
    let head = std::iter::once("light + heavy").chain(HEADINGS).map(str::to_owned).collect();
    let row = |(point, service)| std::iter::once(label(point)).chain(cells(service)).collect();
    std::iter::once(head).chain(of_service(report, role).map(row)).collect()
}

/// Returns the names of the segments that the application told of, those that are known first.
pub(super) fn told_names(report: &ProfileReport, role: Role) -> Vec<String> {
    let mut names: Vec<String> =
        of_service(report, role).flat_map(|(_, service)| service.told.keys().cloned()).collect();
    names.sort_by_key(|name| {
        (KNOWN.iter().position(|known| known == name).unwrap_or(KNOWN.len()), name.clone())
    });
    names.dedup();
    names
}

fn segments(report: &ProfileReport, role: Role) -> Vec<Vec<String>> {
    let told = told_names(report, role);
    let own = Segment::ALL.map(|segment| segment.name().to_owned());
    let head = std::iter::once("light + heavy".to_owned())
        .chain(own.iter().cloned())
        .chain(told.iter().map(|name| format!("told: {name}")))
        .collect();
    let row = |(point, service): (&PointReport, &ServiceReport)| {
        let mean = |of: Option<&suimon_crowd::Quantiles>| {
            of.filter(|times| times.count > 0).map_or_else(|| "–".to_owned(), |times| fine_time(times.mean_s))
        };
        let own = own.iter().map(|name| mean(service.segments.get(name)));
        let told = told.iter().map(|name| mean(service.told.get(name)));
        std::iter::once(label(point)).chain(own).chain(told).collect()
    };
    std::iter::once(head).chain(of_service(report, role).map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::page::tests::report;
    use super::*;

    #[test]
    fn both_services_are_told_of_point_by_point() {
        let text = of(&report());
        for wanted in
            ["GET /quote (light)", "GET /report (heavy)", "alone", "30 + 40", "×1.00", "told: accept"]
        {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(!text.contains("Caution") && !text.contains("NaN"));
    }

    #[test]
    fn a_client_that_was_busy_itself_is_said_so() {
        let mut report = report();
        report.points[1].client_cpu_share = 0.93;
        assert!(of(&report).contains("used 93\u{a0}% of a core itself"));
    }

    #[test]
    fn a_point_that_was_too_short_for_a_service_is_named() {
        let mut report = report();
        report.points[4].heavy.as_mut().unwrap().completed = 39;
        let text = of(&report);
        assert!(
            text.contains("fewer requests for GET /report completed than were in flight (30 + 40)"),
            "{text}"
        );
    }

    #[test]
    fn known_segments_come_in_the_order_in_which_they_happen() {
        let mut report = report();
        let told = &mut report.points[0].light.as_mut().unwrap().told;
        for name in ["db", "pause", "sent", "job"] {
            told.insert(name.to_owned(), suimon_crowd::Quantiles::default());
        }
        assert_eq!(told_names(&report, Role::Light), ["sent", "accept", "job", "pause", "db"]);
    }
}

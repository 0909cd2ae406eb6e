//! The report: one page that carries all it needs and asks nothing of anybody.

use super::figures;
use super::table::{HEADINGS, cautions, cells, label, of_service};
use crate::numbers::{rate, share};
use crate::page::{self, bars, both_widths, escape, half};
use std::fmt::{Result, Write as _};
use std::time::{Duration, UNIX_EPOCH};
use suimon_crowd::profile::{Ended, PointReport, ProfileReport, Role, ServiceReport};

/// Returns the page; all numbers stay inside it.
pub(super) fn page(report: &ProfileReport) -> String {
    let mut page = String::with_capacity(128 * 1024);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, report);
    page
}

fn write_page(page: &mut String, report: &ProfileReport) -> Result {
    let headline = headline(report);
    page::begin(page, &format!("Suimon profile: {headline}"), &headline, &lead(report))?;
    for caution in report.why.clone().into_iter().chain(cautions(report)) {
        writeln!(page, "<p class=\"caution\">{}</p>", escape(&caution))?;
    }
    page::section(
        page,
        "Completions over time",
        "Both services through the whole run. Each measured time is marked, with the number of heavy requests in flight; \
         the time between is warm-up and last responses.",
        &both_widths(&figures::over_time(report)),
    )?;
    page.push_str("<div class=\"pair\">\n");
    page::section(
        page,
        "Completions by load",
        "How much of each service gets done, by heavy requests in flight.",
        &half(&figures::completions(report)),
    )?;
    page::section(
        page,
        "The degradation scheme",
        "How many times slower each service is than alone. The steeper line pays for the load.",
        &half(&figures::slowdown(report)),
    )?;
    for role in Role::ALL {
        page::section(
            page,
            &format!("Response times, {}", escape(report.name(role))),
            "Half of the responses ended within the lowest line.",
            &half(&figures::response_times(report, role)),
        )?;
    }
    for role in Role::ALL {
        page::section(
            page,
            &format!("Distribution, {}", escape(report.name(role))),
            "The share of responses that ended within a time; each line is a number of heavy requests in flight.",
            &half(&figures::distribution(report, role)),
        )?;
    }
    for role in Role::ALL {
        page::section(
            page,
            &format!("Segments, {}", escape(report.name(role))),
            "Where the response time goes, as the client sees it.",
            &bars(&figures::segments(report, role)),
        )?;
    }
    for role in Role::ALL {
        if let Some(told) = figures::told(report, role) {
            page::section(
                page,
                &format!("Inside, {}", escape(report.name(role))),
                "As the application tells by Server-Timing; the rest is what it does not tell of.",
                &bars(&told),
            )?;
        }
    }
    page.push_str("</div>\n");
    page::section(page, "All numbers", "", &numbers(report))?;
    page::section(page, "How this was measured", "", &method(report))?;
    page::end(page, report)
}

/// What came of a service at a point.
type At<'a> = (&'a PointReport, &'a ServiceReport);

/// Returns the first and the last point beside the other service at which anything was answered.
fn ends(report: &ProfileReport, role: Role) -> Option<(At<'_>, At<'_>)> {
    let mut points =
        of_service(report, role).filter(|(point, service)| !point.alone && service.completed > 0);
    let first = points.next()?;
    Some((first, points.last()?))
}

fn headline(report: &ProfileReport) -> String {
    let Some(((first, before), (last, after))) = ends(report, Role::Light) else {
        return headline_alone(report).unwrap_or_else(|| "Not enough was measured".to_owned());
    };
    format!(
        "With {} of {} in flight, {} completes {} per second instead of {}",
        last.heavy_in_flight,
        report.heavy,
        report.light,
        rate(after.per_second),
        match first.heavy_in_flight {
            0 => rate(before.per_second),
            some => format!("{} with {some}", rate(before.per_second)),
        }
    )
}

/// Returns what each service takes alone, if both were answered.
fn headline_alone(report: &ProfileReport) -> Option<String> {
    if report.ended != Ended::AllPoints {
        return None;
    }
    let alone = |role| of_service(report, role).find(|(point, service)| point.alone && service.completed > 0);
    let [light, heavy] = [alone(Role::Light)?.1, alone(Role::Heavy)?.1].map(figures::mean);
    Some(format!("Alone, {} takes {light} on average, and {} {heavy}", report.light, report.heavy))
}

fn lead(report: &ProfileReport) -> String {
    let slower = |role| {
        let (_, (last, service)) = ends(report, role)?;
        Some(format!(
            "With {} light and {} heavy requests in flight, {} takes {} on average, {} times as long as alone.",
            last.light_in_flight,
            last.heavy_in_flight,
            report.name(role),
            figures::mean(service),
            rate(service.slowdown?)
        ))
    };
    Role::ALL.into_iter().filter_map(slower).collect::<Vec<_>>().join(" ")
}

/// A table for each service, a row for each point.
fn numbers(report: &ProfileReport) -> String {
    let of_role = |role| {
        let rows = of_service(report, role).map(|(point, service)| (label(point), cells(service).to_vec()));
        let table = page::table("laws", "light + heavy", &HEADINGS, rows);
        format!("<h3 class=\"drawn\">{}</h3>\n{table}", escape(report.name(role)))
    };
    Role::ALL.into_iter().map(of_role).collect()
}

fn method(report: &ProfileReport) -> String {
    let began = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs_f64(report.started_unix_s.max(0.0)));
    let connections = if report.new_connections { "a new connection" } else { "a kept connection" };
    let client = report.points.iter().map(|point| point.client_cpu_share).fold(0.0, f64::max);
    format!(
        "<p>Requests went to {} on {began}, in a closed loop: each client asks over {connections}, and again as soon as it has the response. \
         A response that did not end within {:.0} s, or was not 2xx, is an error. Response times are from when the client began to ask to \
         the last byte, of responses that ended within a point's measured time. Alone: one request at a time of one service, nothing else.</p>\n\
         <p>This program used up to {} of a core. Suimon {}; docs/profile.md explains how to read the figures.</p>\n\
         <p class=\"soft\">All numbers are inside this page, as JSON, in the element <code>numbers</code>.</p>\n",
        escape(&report.target),
        report.timeout_s,
        share(client.max(0.01)),
        escape(&report.version),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use suimon_crowd::Quantiles;
    use suimon_crowd::profile::{DistributionBin, Second, Segment};

    fn service(count: u64, seconds: f64, slowdown: f64, told: bool) -> ServiceReport {
        let times = |part: f64| Quantiles {
            count,
            mean_s: seconds * part,
            min_s: seconds * part / 2.0,
            p50_s: seconds * part,
            p90_s: seconds * part * 1.5,
            p95_s: seconds * part * 1.7,
            p99_s: seconds * part * 2.0,
            max_s: seconds * part * 3.0,
        };
        let bin =
            |from: f64, to: f64, count| DistributionBin { from_s: seconds * from, to_s: seconds * to, count };
        ServiceReport {
            in_flight_mean: 1.0,
            completed: count,
            per_second: count as f64 / 10.0,
            response: times(1.0),
            slowdown: Some(slowdown),
            errors: 0,
            error_share: 0.0,
            errors_by_kind: BTreeMap::new(),
            segments: Segment::ALL.iter().map(|segment| (segment.name().to_owned(), times(0.25))).collect(),
            told: if told { BTreeMap::from([("accept".to_owned(), times(0.25))]) } else { BTreeMap::new() },
            distribution: vec![bin(0.5, 1.0, count / 2), bin(1.0, 3.0, count - count / 2)],
        }
    }

    fn point(light: u32, heavy: u32, alone: bool, from_s: f64) -> PointReport {
        let slow = f64::from(1 + heavy);
        PointReport {
            light_in_flight: light,
            heavy_in_flight: heavy,
            alone,
            from_s,
            measured_from_s: from_s + 2.0,
            to_s: from_s + 10.0,
            light: (light > 0).then(|| service(5000 / (1 + u64::from(heavy)), 0.002 * slow, slow, true)),
            heavy: (heavy > 0).then(|| service(40, 0.2 * slow, slow, false)),
            client_cpu_share: 0.2,
        }
    }

    pub(in super::super) fn report() -> ProfileReport {
        let points = [(1, 0, true), (0, 1, true), (30, 0, false), (30, 1, false), (30, 40, false)];
        let place = |(index, (light, heavy, alone)): (usize, (u32, u32, bool))| {
            point(light, heavy, alone, index as f64 * 12.0)
        };
        ProfileReport {
            version: "0.1.0".to_owned(),
            target: "http://127.0.0.1:8080".to_owned(),
            started_unix_s: 1.7e9,
            light: "GET /quote".to_owned(),
            heavy: "GET /report".to_owned(),
            new_connections: false,
            timeout_s: 60.0,
            errors_max: 0.1,
            points_planned: 5,
            ended: Ended::AllPoints,
            why: None,
            points: points.into_iter().enumerate().map(place).collect(),
            series: vec![Second { light: 50, heavy: 2 }; 60],
        }
    }

    #[test]
    fn the_page_says_what_the_heavy_one_does_to_the_light_one_and_asks_nothing_of_anybody() {
        let page = page(&report());
        for wanted in [
            "<h1>With 40 of GET /report in flight, GET /quote completes 12.1 per second instead of 500</h1>",
            "GET /quote takes 82.0 ms on average, 41.0 times as long as alone",
            "Distribution, GET /report",
            "Inside, GET /quote",
        ] {
            assert!(page.contains(wanted), "{wanted}");
        }
        for absent in
            ["src=", "href=", "@import", "url(", "<link", "NaN", "Inside, GET /report", "class=\"caution\""]
        {
            assert!(!page.contains(absent), "{absent}");
        }
    }

    #[test]
    fn the_numbers_inside_the_page_are_the_numbers() {
        let report = report();
        let page = page(&report);
        let inside = page.split_once("id=\"numbers\">").unwrap().1.split_once("</script>").unwrap().0;
        assert_eq!(serde_json::from_str::<ProfileReport>(inside).unwrap(), report);
    }

    #[test]
    fn a_path_cannot_break_the_page() {
        let mut bad = report();
        bad.light = "GET /</script><script>".to_owned();
        assert_eq!(page(&bad).matches("<script").count(), 1);
    }

    #[test]
    fn a_run_that_was_stopped_says_so_first() {
        let mut stopped = report();
        stopped.ended = Ended::Errors;
        stopped.why = Some("Stopped: all failed.".to_owned());
        stopped.points.truncate(2);
        let page = page(&stopped);
        assert!(page.contains("<p class=\"caution\">Stopped: all failed.</p>"));
        assert!(page.contains("<h1>Not enough was measured</h1>"));
    }

    #[test]
    fn services_alone_are_told_as_such() {
        let mut alone = report();
        alone.points.retain(|point| point.alone);
        assert!(page(&alone).contains("<h1>Alone, GET /quote takes "), "{}", page(&alone));
    }
}

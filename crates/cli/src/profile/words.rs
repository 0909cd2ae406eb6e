//! What is said before anything is sent: how much, where to, and for how long.

use crate::numbers::plural;
use std::time::Duration;
use suimon_crowd::profile::{ANSWER_BYTES_MAX, Plan};
use suimon_settings::duration;

/// Returns the plan as lines for people.
pub(super) fn of(target: &str, plan: &Plan) -> String {
    let points = plan.points();
    let heavy: Vec<String> = plan.heavy_in_flight.iter().map(u32::to_string).collect();
    let alone = points.iter().find(|point| point.alone).map(|point| short(point.measure));
    let first = if alone.is_some() { "each service alone, one request at a time" } else { "" };
    let together = format!(
        "always {} of {}\n  beside {} of {}",
        plural(plan.light_in_flight.into(), "request in flight", "requests in flight"),
        plan.light,
        heavy.join(", "),
        plan.heavy,
    );
    let services = match (alone.is_some(), heavy.is_empty()) {
        (true, true) => format!("{first}: {} and {}", plan.light, plan.heavy),
        (true, false) => format!("{first}; then\n  {together}"),
        (false, _) => together,
    };
    let measured = short(plan.measure);
    let times = match (alone, heavy.is_empty()) {
        (Some(alone), true) => format!("{alone} measured"),
        (Some(alone), false) => format!("{measured} measured; a service alone {alone}"),
        (None, _) => format!("{measured} measured"),
    };
    let connections = if plan.new_connections {
        "a new connection for each request"
    } else {
        "one connection each, kept open"
    };
    format!(
        "Load on {target}, as fast as it answers; at most {} in flight, {connections}:
  {services}
{}, {} in all, and up to {} after each for its last responses:
  {} warm-up, then {times}
Stops if more than {} % of a service's requests fail. At most {} MiB of a response are read; redirects are not followed.
",
        plan.in_flight_max(),
        plural(points.len() as u64, "point", "points"),
        long(plan.lasts()),
        short(plan.timeout),
        short(plan.warmup),
        (plan.errors_max * 1e6).round() / 1e4,
        ANSWER_BYTES_MAX >> 20,
    )
}

/// Returns a time of some minutes as people say it.
pub(super) fn long(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

fn short(time: Duration) -> String {
    // To the millisecond: a scale leaves more digits than anybody reads.
    duration::show(Duration::from_millis(time.as_millis() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_crowd::profile::Service;

    #[test]
    fn it_is_said_how_much_is_sent_and_for_how_long() {
        let plan = Plan {
            light: Service::parse("GET /quote").unwrap(),
            heavy: Service::parse("GET /report").unwrap(),
            light_in_flight: 30,
            heavy_in_flight: vec![0, 1, 40],
            warmup: Duration::from_secs(10),
            measure: Duration::from_secs(60),
            timeout: Duration::from_secs(45),
            errors_max: 0.1,
            new_connections: false,
            alone: true,
        };
        let words = of("http://127.0.0.1:8080", &plan);
        for wanted in [
            "Load on http://127.0.0.1:8080",
            "at most 70 in flight, one connection each",
            "always 30 requests in flight of GET /quote",
            "beside 0, 1, 40 of GET /report",
            "5 points, 4 min 20 s in all, and up to 45s after each",
            "10s warm-up, then 1m measured; a service alone 15s",
            "more than 10 % of",
        ] {
            assert!(words.contains(wanted), "{wanted}: {words}");
        }
        assert!(
            of("x", &Plan { new_connections: true, ..plan.clone() }).contains("a new connection for each")
        );
        let words = of("x", &Plan { heavy_in_flight: vec![], ..plan });
        for wanted in [
            "one request at a time: GET /quote and GET /report\n2 points, 50 s",
            "warm-up, then 15s measured",
        ] {
            assert!(words.contains(wanted), "{wanted}: {words}");
        }
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        assert_eq!(
            [9.6, 60.0, 260.2].map(|s| long(Duration::from_secs_f64(s))),
            ["10 s", "1 min", "4 min 20 s"]
        );
    }
}

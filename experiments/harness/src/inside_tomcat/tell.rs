//! What was found: the claims, the figure and the tables.

use suimon_chart::{Axis, Plot, Series};
use suimon_statistics::table::numbers;

use super::methods::Method;
use super::{Cell, Data, OVERLOADED};
use crate::claims::Claim;
use crate::common::Common;
use crate::figures::{self, Panel};
use crate::trouble::Result;

/// What the filter must complete of what the gateway in front does, at all sizes above capacity together.
const OF_GATEWAY_MIN: f64 = 0.95;

/// Returns what was to hold, and whether it does.
pub(super) fn judge(data: &Data) -> Vec<Claim> {
    let sizes: Vec<u32> = data.sizes().into_iter().filter(|users| *users >= OVERLOADED).collect();
    let total = |method: Method| -> f64 { sizes.iter().filter_map(|users| data.share(method, *users)).sum() };
    let (inside, in_front) = (total(Method::Filter), total(Method::Gateway));
    let ratio = inside / in_front;
    let failures: u64 = data.sizes().iter().map(|users| data.failures(Method::Filter, *users)).sum();
    let shares = |method| {
        let of_size = |users: &u32| data.share(method, *users).map(|share| format!("{share:.2}"));
        sizes.iter().filter_map(of_size).collect::<Vec<_>>().join(", ")
    };
    vec![
        Claim::new(
            format!(
                "inside, at least {OF_GATEWAY_MIN} of the sessions that the gateway in front completes above capacity: \
                 {ratio:.3} ({} of the bound, and {})",
                shares(Method::Filter),
                shares(Method::Gateway)
            ),
            ratio >= OF_GATEWAY_MIN,
        ),
        Claim::new(format!("inside, no failure inside a session: {failures}"), failures == 0 && inside > 0.0),
    ]
}

/// Draws the figure.
pub(super) fn draw(common: &Common, data: &Data) -> Result<()> {
    let panel = |title: &str, axis: &str, value: &dyn Fn(Method, u32) -> Option<f64>| {
        let sizes: Vec<f64> = data.sizes().into_iter().map(f64::from).collect();
        let mut plot =
            Plot::new(title).x(Axis::new("users").logarithmic().ticks(sizes)).y(Axis::new(axis).from(0.0));
        for method in Method::ALL {
            let point = |users: &u32| value(method, *users).map(|value| (f64::from(*users), value));
            let points: Vec<(f64, f64)> = data.sizes().iter().filter_map(point).collect();
            if !points.is_empty() {
                let series = Series::dotted(&label(data, method), method.hue(), points);
                plot = plot.series(if method.is_dashed() { series.dashed() } else { series });
            }
        }
        Panel::Lines(plot, 320.0)
    };
    let share = |method, users| data.share(method, users);
    let failures = |method, users| {
        let rounds = data.of(method, users).count();
        (rounds > 0).then(|| data.failures(method, users) as f64 / rounds as f64)
    };
    let panels = [
        panel("Sessions completed per second, as a share of the bound", "share of the bound", &share),
        panel("Failures inside sessions", &format!("failures in {} s", data.measured_s), &failures),
    ];
    figures::write(&common.out.join("figure.svg"), &panels)
}

fn label(data: &Data, method: Method) -> String {
    let setting = data.cells.iter().find(|cell| cell.method == method).map_or("", |cell| &cell.setting);
    if setting.is_empty() { method.name().to_string() } else { format!("{} {setting}", method.name()) }
}

/// Returns the tables.
pub(super) fn tables(data: &Data) -> String {
    let bounds: Vec<String> =
        data.bounds.iter().map(|bound| format!("{:.2}", bound.sessions_per_s)).collect();
    let headings = [
        "cell",
        "users",
        "per s",
        "of B",
        "inside",
        "at start",
        "refused",
        "session p50",
        "app cpu",
        "gateway",
    ];
    let row = |cell: &Cell| {
        let name = label(data, cell.method);
        let Some(seen) = &cell.seen else { return vec![name, cell.users.to_string(), "failed".to_string()] };
        let (crowd, percent) = (&seen.crowd, |share: f64| format!("{:.0} %", share * 100.0));
        vec![
            name,
            cell.users.to_string(),
            format!("{:.2}", crowd.sessions_per_s),
            format!("{:.2}", crowd.sessions_per_s / data.bound_per_s()),
            crowd.mid_session_failures.to_string(),
            crowd.first_step_failures.to_string(),
            crowd.refusals.to_string(),
            format!("{:.1} s", crowd.session_time.p50_s),
            percent(seen.app_cpu_share),
            seen.gateway_cpu_share.map_or(String::new(), percent),
        ]
    };
    let tried = |cell: &Cell| {
        vec![
            format!("{} {}", cell.method.name(), cell.setting),
            cell.users.to_string(),
            format!("{:.2}", cell.per_s()),
            cell.failures().to_string(),
        ]
    };
    format!(
        "\nB = {:.2} sessions/s (measured: {}); {}\n\n{}\nSettings tried\n{}",
        data.bound_per_s(),
        bounds.join(", "),
        data.machine.processor,
        numbers(&headings, &data.cells.iter().map(row).collect::<Vec<_>>()),
        numbers(&["setting", "users", "per s", "inside"], &data.scans.iter().map(tried).collect::<Vec<_>>()),
    )
}

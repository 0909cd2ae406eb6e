//! The report: one page that contains all it needs and loads nothing from the network.

use super::comparison::{self, Row};
use super::figures;
use super::outcome::{DemoResult, Name, Run};
use crate::numbers::{rate, share, time};
use crate::page::{self, bars, both_widths, escape, half, section};
use std::fmt::Write as _;

/// Returns the page.
pub(super) fn page(outcome: &DemoResult) -> String {
    let mut page = String::with_capacity(128 * 1024);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, outcome);
    page
}

fn write_page(page: &mut String, outcome: &DemoResult) -> std::fmt::Result {
    let title = if outcome.holds { "Suimon held" } else { "Suimon did not hold" };
    page::begin(page, &format!("Suimon demo: {title}"), &headline(outcome), &lead(outcome))?;
    if let Some(caution) = outcome.caution() {
        writeln!(page, "<p class=\"caution\">{}</p>", escape(&caution))?;
    }
    page.push_str("<section class=\"cards\">\n");
    for run in &outcome.runs {
        card(page, outcome, run)?;
    }
    page.push_str("</section>\n");
    section(
        page,
        "Sessions finished",
        "A visitor counts only when the whole journey is done: log in, look around three times, search, buy, log out. \
         The dotted line is the most this shop can do. Mean over five seconds.",
        &both_widths(&figures::sessions(outcome, "Sessions finished")),
    )?;
    page.push_str("<div class=\"pair\">\n");
    section(
        page,
        "Where sessions failed",
        "Time-outs and errors by step. A visitor lost at the search has already cost the shop four pages.",
        &bars(&figures::failures(outcome)),
    )?;
    section(
        page,
        "Where visitors are",
        "With Suimon: in line, or let in; and of those let in, queued for a slot or in the shop.",
        &half(&figures::queues(outcome)),
    )?;
    section(
        page,
        "When the next one is let in",
        "Suimon sets the pace by the work that sessions under way still bring. 0: the gate is open.",
        &half(&figures::interval(outcome)),
    )?;
    section(
        page,
        "How much at once",
        "Each route's limit, found while running from how much gets done.",
        &half(&figures::limits(outcome)),
    )?;
    page.push_str("</div>\n");
    section(page, "Side by side", "", &numbers(outcome))?;
    section(page, "How this was measured", "", &method(outcome))?;
    page::end(page, outcome)
}

fn headline(outcome: &DemoResult) -> String {
    let [none, suimon] = &outcome.runs;
    // The bound is an average: by chance a run may exceed it a little.
    let of_the_bound = share(suimon.goodput_share.min(1.0));
    if !outcome.holds {
        return format!("Suimon did not hold: {of_the_bound} of what can be done");
    }
    match (none.goodput_share, suimon.goodput_share) {
        (before, now) if before < now / 1.3 => {
            format!("{of_the_bound} of what can be done, instead of {}", share(before))
        }
        _ => format!("{of_the_bound} of what can be done"),
    }
}

fn lead(outcome: &DemoResult) -> String {
    let [none, suimon] = outcome.runs.each_ref().map(|run| match run.mid_session_failures {
        0 => "none".to_owned(),
        count => count.to_string(),
    });
    format!(
        "{} visitors came, twice, to a small shop that {:.0} keep busy. Requests that failed in the middle of a session: \
         without Suimon {none}, with it {suimon}.",
        outcome.clients, outcome.bound.visitors
    )
}

fn card(page: &mut String, outcome: &DemoResult, run: &Run) -> std::fmt::Result {
    let class = match run.name {
        Name::None => "none",
        Name::Suimon => "suimon",
    };
    let filled = (run.goodput_share * 100.0).clamp(0.0, 100.0);
    let plural = |count: u64, one: &str, many: &str| {
        if count == 1 { format!("<b>1</b> {one}") } else { format!("<b>{count}</b> {many}") }
    };
    writeln!(
        page,
        "<article class=\"card {class}\">\n<h2>{}</h2>\n<p class=\"big\">{}<small> sessions a second</small></p>\n\
         <div class=\"gauge\" role=\"img\" aria-label=\"{} of the bound\"><i style=\"width:{filled:.1}%\"></i></div>\n\
         <p class=\"soft\">{} of the {} it can do</p>\n<ul>\n<li>{}</li>\n<li>{}</li>\n<li>{}</li>\n</ul>\n</article>",
        run.name.title(),
        rate(run.sessions_per_s),
        share(run.goodput_share),
        share(run.goodput_share),
        rate(outcome.bound.per_s),
        plural(run.visitors.sessions_completed, "session finished", "sessions finished"),
        plural(run.mid_session_failures, "failure inside a session", "failures inside sessions"),
        plural(run.wasted_requests, "page made for nothing", "pages made for nothing"),
    )
}

fn numbers(outcome: &DemoResult) -> String {
    let [none, suimon] = &outcome.runs;
    let mut table = format!(
        "<table>\n<thead><tr><th></th><th scope=\"col\">{}</th><th scope=\"col\">{}</th></tr></thead>\n<tbody>\n",
        none.name.title(),
        suimon.name.title()
    );
    let mut rows = |rows: Vec<Row>| {
        for (name, [none, suimon]) in rows {
            let name = escape(&name);
            table.push_str(&format!(
                "<tr><th scope=\"row\">{name}</th><td>{}</td><td>{}</td></tr>\n",
                escape(&none),
                escape(&suimon)
            ));
        }
    };
    rows(comparison::numbers(outcome));
    let failed = comparison::failures(outcome).into_iter();
    rows(failed.map(|(step, values)| (format!("failed at {step}"), values)).collect());
    table.push_str("</tbody>\n</table>\n");
    table
}

fn method(outcome: &DemoResult) -> String {
    let cores = if outcome.cores_of_the_shop == 1 {
        "1 core".to_owned()
    } else {
        format!("{} cores", outcome.cores_of_the_shop)
    };
    let crowd = outcome.runs.iter().map(|run| run.visitors.crowd_cpu_share).fold(0.0, f64::max);
    let busy = |run: &Run| {
        run.shop_cpu_s.map(|used| share(used / run.visitors.duration_s / outcome.cores_of_the_shop as f64))
    };
    let shop = match outcome.runs.each_ref().map(busy) {
        [Some(none), Some(suimon)] => {
            format!(" The shop was at work for {none} of the time without Suimon, {suimon} with it.")
        }
        _ => String::new(),
    };
    let settle = if outcome.settle_s > 0.0 {
        format!(" Rates leave out the first {:.0} s; failures are of the whole run.", outcome.settle_s)
    } else {
        String::new()
    };
    format!(
        "<p>Shop, gateway and crowd were processes of their own on one machine; {}. The bound: {cores} \u{f7} {} of CPU a \
         session, from {} sessions played one at a time on a warm shop, is {} sessions a second. Then {} visitors, each \
         playing one session after another for {} s, came straight to a fresh shop, and again, with the same seed, to another \
         fresh one through a gateway that was told nothing but the shop's address:</p>\n\
         <pre>suimon serve --to http://127.0.0.1:PORT</pre>\n\
         <p>All times were divided by {}: what pages cost, how long visitors think, how long they wait.{settle} \
         The crowd itself used at most {} of a core.{shop}</p>\n\
         <p class=\"soft\">Suimon {}, {}. Again: <code>suimon demo --clients {} --scale {} --seed {} --seconds {}</code>. \
         All numbers are inside this page, as JSON, in the element <code>numbers</code>.</p>\n",
        outcome.cores,
        time(outcome.bound.cpu_s_per_session),
        outcome.bound.sessions,
        rate(outcome.bound.per_s),
        outcome.clients,
        outcome.seconds,
        outcome.scale,
        share(crowd.max(0.01)),
        outcome.version,
        escape(&outcome.began),
        outcome.clients,
        outcome.scale,
        outcome.seed,
        outcome.seconds,
    )
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{outcome, run};
    use super::*;

    fn good() -> DemoResult {
        outcome([run(Name::None, 1, 317), run(Name::Suimon, 6, 0)])
    }

    #[test]
    fn the_page_tells_how_it_went_and_asks_nothing_of_anybody() {
        let page = page(&good());
        for text in [
            "92\u{a0}% of what can be done, instead of 15\u{a0}%",
            "that 30 keep busy",
            "without Suimon 317, with it none",
            "GET /search",
        ] {
            assert!(page.contains(text), "{text}");
        }
        for outside in ["src=", "href=", "@import", "url(", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("NaN") && !page.contains(">inf"));
    }

    #[test]
    fn nobody_is_told_of_more_than_all_that_can_be_done() {
        let mut lucky = good();
        lucky.runs[1].goodput_share = 1.04;
        assert!(headline(&lucky).starts_with("100\u{a0}% of what can be done"), "{}", headline(&lucky));
    }

    #[test]
    fn the_numbers_inside_the_page_are_the_numbers() {
        let outcome = good();
        let page = page(&outcome);
        let inside = page.split_once("id=\"numbers\">").unwrap().1.split_once("</script>").unwrap().0;
        assert!(serde_json::from_str::<serde_json::Value>(inside).is_ok());
        assert!(inside == serde_json::to_string(&outcome).unwrap(), "the page says something else");
    }

    #[test]
    fn a_step_cannot_break_the_page() {
        let mut bad = good();
        for run in &mut bad.runs {
            run.visitors.steps[0].step = "</script><script>".to_owned();
        }
        assert_eq!(page(&bad).matches("<script").count(), 1);
    }

    #[test]
    fn what_did_not_hold_is_said_first() {
        let page = page(&outcome([run(Name::None, 1, 317), run(Name::Suimon, 6, 2)]));
        assert!(page.contains("<h1>Suimon did not hold") && page.contains("with it 2."));
    }
}

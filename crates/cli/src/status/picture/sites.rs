//! All sites of a gateway, in a line each.

use super::{KIND_COLUMNS, colour_of, short};
use crate::terminal::Line;
use suimon_admin::{SiteState, State};
use suimon_statistics::table::width;

/// Returns the sites with their verdicts, and how to see one of them; of more than `most` those that need
/// a look. Nothing where there are none.
pub(super) fn overview(sites: &[SiteState], most: usize) -> Vec<Line> {
    let Some(main) = sites.first() else { return Vec::new() };
    let mut shown: Vec<&SiteState> = sites.iter().collect();
    if shown.len() > most {
        shown.sort_by_key(|site| rank(site));
    }
    let names = shown.iter().map(|site| width(&site.name)).max().unwrap_or_default();
    let names = names.min(2 * KIND_COLUMNS);
    let mut lines = vec![Line::default().bold("Sites")];
    lines.extend(shown.iter().take(most).map(|site| {
        let line = Line::default().plain(&format!("  {:names$}  ", short(&site.name, names)));
        line.marked(colour_of(&site.verdict), &situation(site)).plain(": ").plain(&site.verdict.sentence)
    }));
    if shown.len() > most {
        lines.push(Line::default().plain(&format!("  and {} more: suimon status", shown.len() - most)));
    }
    let other = shown.iter().find(|site| site.name != main.name).map_or("NAME", |site| &site.name);
    let how = format!("  below: {}; `suimon status --site {other}` shows another", main.name);
    lines.extend([Line::default().faint(&how), Line::default()]);
    lines
}

/// Returns which other sites need a look, in a line; nothing if none does.
pub(super) fn in_trouble(state: &State, sites: &[SiteState]) -> Vec<Line> {
    let mut others: Vec<&SiteState> = sites
        .iter()
        .filter(|site| state.site.as_ref() != Some(&site.name))
        .filter(|site| matches!(site.verdict.level.as_str(), "critical" | "warning"))
        .collect();
    others.sort_by_key(|site| rank(site));
    let said = |line: Line, site: &&SiteState| {
        let before = if line == Line::default() { "" } else { ", " };
        line.plain(before).plain(&site.name).plain(" ").marked(colour_of(&site.verdict), &situation(site))
    };
    let line = others.iter().fold(Line::default(), said);
    if others.is_empty() { Vec::new() } else { vec![line] }
}

fn situation(site: &SiteState) -> String {
    site.verdict.situation.replace('_', " ").to_uppercase()
}

/// Returns how early a site is named where there is no room for all.
fn rank(site: &SiteState) -> usize {
    let order = ["critical", "warning", "busy"];
    order.iter().position(|level| *level == site.verdict.level).unwrap_or(order.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_admin::Verdict;

    fn site(name: &str, level: &str, situation: &str) -> SiteState {
        let verdict = Verdict {
            level: level.into(),
            situation: situation.into(),
            sentence: format!("So it is with {name}."),
            since: 0.0,
        };
        SiteState {
            name: name.into(),
            serves: Vec::new(),
            verdict,
            waiting: 0,
            in_flight: 0,
            ready: level != "critical",
            not_ready_because: None,
        }
    }

    fn drawn(sites: &[SiteState], most: usize) -> Vec<String> {
        overview(sites, most).iter().map(|line| line.written(usize::MAX, false)).collect()
    }

    #[test]
    fn each_site_has_a_line_and_it_is_said_how_to_see_another() {
        let sites = [site("main", "ok", "open"), site("tickets", "critical", "application_down")];
        assert_eq!(
            drawn(&sites, usize::MAX),
            [
                "Sites",
                "  main     OPEN: So it is with main.",
                "  tickets  APPLICATION DOWN: So it is with tickets.",
                "  below: main; `suimon status --site tickets` shows another",
                "",
            ]
        );
        assert!(drawn(&[], 4).is_empty());
    }

    #[test]
    fn where_there_is_no_room_those_in_trouble_are_named() {
        let mut sites: Vec<SiteState> = (0..9).map(|at| site(&format!("s{at}"), "ok", "open")).collect();
        sites[7] = site("s7", "warning", "paused");
        sites[8] = site("s8", "critical", "application_down");
        let lines = drawn(&sites, 3);
        assert!(lines[1].starts_with("  s8  APPLICATION DOWN") && lines[2].starts_with("  s7  PAUSED"));
        assert_eq!(lines[4], "  and 6 more: suimon status");
        assert_eq!(lines.len(), 7);
    }
}

//! Whether nodes are chosen by the load that they report, and where reports are taken from.

use crate::Faults;
use crate::read::Sections;
use suimon_params::upstream::{Balance, LoadReportParams};

/// Returns how a node is chosen, and where the load that nodes report is taken from.
pub(crate) fn load_reports(sections: &Sections, faults: &mut Faults) -> (Balance, LoadReportParams) {
    let balance = sections.once("upstream").choice("balance", Balance::of);
    let values = sections.once("upstream.load_reports");
    let reports = LoadReportParams {
        listen: values.address("listen"),
        keys_file: values.given_path("keys"),
        clock_skew_max: values.time("clock_skew_max"),
        orca: values.flag("orca"),
        agent_check: values.given_count("agent_check").and_then(|port| u16::try_from(port).ok()),
    };
    if let Some(port) = reports.agent_check.filter(|_| reports.orca) {
        let allowed = "left out where upstream.load_reports.orca = true: a node's load has one source";
        faults.value("upstream.load_reports.agent_check", port, allowed);
    }
    if reports.listen.is_some() && reports.keys_file.is_none() {
        let wanted = "upstream.load_reports.listen needs the keys that reports are sealed with; `suimon agent --new-key FILE` makes them";
        faults.missing("upstream.load_reports.keys", wanted);
    }
    let lacks = match balance {
        Balance::Shares => None,
        Balance::Reported if reports.listen.is_some() || reports.orca || reports.agent_check.is_some() => {
            None
        }
        Balance::Reported => {
            Some("\"shares\", or upstream.load_reports.listen, orca or agent_check must be set")
        }
        // Utilisation in responses is no run queue.
        Balance::Paper if reports.listen.is_some() => None,
        Balance::Paper => Some("\"shares\", or upstream.load_reports.listen must be set"),
    };
    if let Some(allowed) = lacks {
        faults.value("upstream.balance", format!("{:?}", balance.word()), allowed);
    }
    (balance, reports)
}

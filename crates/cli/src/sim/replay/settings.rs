//! The recorded settings of the gate with some changes, checked like a settings file.

use suimon_control::{RouteLawKind, SessionLawKind};
use suimon_gate::Params;
use suimon_settings::{Settings, duration};
use toml::{Table, Value};

/// Returns the recorded settings with these changes, each written `gate.key=value`.
pub(super) fn changed(recorded: &Params, changes: &[String]) -> Result<Params, String> {
    let mut gate = written(recorded);
    for change in changes {
        let Some((key, value)) = change.split_once('=') else {
            return Err(format!("--with {change}: must be KEY=VALUE, such as gate.order=fifo"));
        };
        let Some(key) = key.trim().strip_prefix("gate.") else {
            return Err(format!(
                "--with {change}: only settings of [gate] can be tried on a recording, such as gate.order=fifo"
            ));
        };
        if key == "detect_app_cookies" {
            return Err(format!("--with {change}: what is recorded comes after cookies were looked at"));
        }
        put(&mut gate, key, value_of(value.trim()));
    }
    let file = Table::from_iter([("gate".to_string(), Value::Table(gate))]);
    match Settings::parse("--with", &file.to_string()) {
        Ok(settings) => Ok(Params { finds_workers: recorded.finds_workers.clone(), ..settings.proxy.gate }),
        Err(faults) => Err(faults.to_string()),
    }
}

/// Returns the text as a TOML value, or else as a string, because quotes are hard to type in a
/// shell.
fn value_of(text: &str) -> Value {
    let table = format!("x = {text}").parse::<Table>().ok();
    table.and_then(|mut table| table.remove("x")).unwrap_or_else(|| Value::String(text.to_string()))
}

/// Puts a value at a dotted path. A value that is in the way stays, and the check reports it.
fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => _ = table.insert(path.to_string(), value),
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Returns settings as a settings file would have them.
fn written(params: &Params) -> Table {
    let Params { cores, seed, route_law, session_law, order, patience, .. } = params;
    let count = |count: usize| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let text = |text: &str| Value::String(text.to_string());
    let time = |time: &std::time::Duration| Value::String(duration::show(*time));
    let mut gate = Table::from_iter([
        ("cores".to_string(), Value::Integer(i64::from(*cores))),
        ("seed".to_string(), Value::Integer(i64::try_from(*seed).unwrap_or(i64::MAX))),
        ("patience".to_string(), time(patience)),
        ("waiting_max".to_string(), count(params.waiting_max)),
        ("sessions_max".to_string(), count(params.sessions_max)),
        ("session_idle".to_string(), time(&params.session_idle)),
        ("decisions_max".to_string(), count(params.decisions_max)),
    ]);
    put(&mut gate, "order", text(order.word()));
    put(&mut gate, "route_law", text(route_law.word()));
    put(&mut gate, "session_law", text(session_law.word()));
    // The parameters of those laws that have some.
    if let RouteLawKind::Paper(numbers) = route_law {
        put(&mut gate, "paper_route.initial", Value::Integer(i64::from(numbers.initial)));
        put(&mut gate, "paper_route.period", time(&numbers.period));
    }
    match session_law {
        SessionLawKind::Static(sessions) => {
            put(&mut gate, "static_sessions", Value::Integer(i64::from(*sessions)));
        }
        SessionLawKind::Paper(numbers) => {
            put(&mut gate, "paper_session.threshold", Value::Float(numbers.threshold));
            put(&mut gate, "paper_session.up", time(&numbers.up));
            put(&mut gate, "paper_session.down", time(&numbers.down));
            put(&mut gate, "paper_session.period", time(&numbers.period));
        }
        _ => {}
    }
    gate
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_gate::QueueOrder;

    fn with(recorded: &Params, changes: &[&str]) -> Result<Params, String> {
        changed(recorded, &changes.iter().map(|change| (*change).to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_not_changed_stays_as_recorded() {
        let text = "[gate]\nroute_law = \"paper\"\nsession_law = \"paper\"\norder = \"fifo\"\npatience = \"1500ms\"\ncores = 3
            [gate.paper_route]\ninitial = 9\n[gate.paper_session]\nthreshold = 1.5";
        let recorded = Settings::parse("test.toml", text).unwrap().proxy.gate;
        assert_eq!(format!("{:?}", with(&recorded, &[]).unwrap()), format!("{recorded:?}"));
        let fixed =
            Settings::parse("test.toml", "[gate]\nsession_law = \"static\"\nstatic_sessions = 4").unwrap();
        let changed = with(&fixed.proxy.gate, &["gate.cores=11"]).unwrap();
        assert_eq!((changed.cores, changed.session_law), (11, SessionLawKind::Static(4)));
    }

    #[test]
    fn values_are_written_as_in_the_file_with_or_without_quotes() {
        let recorded = Params::default();
        let changes = [
            "gate.order=fifo",
            "gate.patience=\"20s\"",
            "gate.paper_route.initial=7",
            "gate.route_law = paper",
        ];
        let changed = with(&recorded, &changes).unwrap();
        assert_eq!((changed.order, changed.patience.as_secs()), (QueueOrder::FirstIn, 20));
        assert!(matches!(changed.route_law, RouteLawKind::Paper(numbers) if numbers.initial == 7));
    }

    #[test]
    fn what_cannot_be_is_told_as_for_the_file() {
        let told = |change: &str| with(&Params::default(), &[change]).unwrap_err();
        assert!(
            told("gate.order=fastest").contains("gate.order = \"fastest\": must be"),
            "{}",
            told("gate.order=fastest")
        );
        assert!(told("gate.ordr=fifo").contains("did you mean gate.order?"));
        assert!(told("gate.session_law=static").contains("gate.static_sessions is missing"));
        assert!(told("gate.cores=0").contains("gate.cores = 0: must be"));
        assert!(told("listen.http=off").contains("only settings of [gate]"));
        assert!(told("gate.order").contains("must be KEY=VALUE"));
        assert!(told("gate.detect_app_cookies=false").contains("after cookies"));
    }
}

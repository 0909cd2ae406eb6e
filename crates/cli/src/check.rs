//! `suimon check`: reports everything that is wrong with a file, or what would run from it. Opens
//! no port.

use crate::args::Check;
use crate::exit::Exit;
use crate::file_kind::FileKind;
use crate::found_nodes;
use crate::serve::admin::Credentials;
use crate::serve::{kubernetes, logging, state_files};
use crate::summary;
use serde_json::{Value, json};
use std::path::Path;
use suimon_proxy::Server;
use suimon_settings::{Fault, Faults, Settings, journey, scenario, text_of, with_lines};

/// The parsed content of a file.
enum Found {
    Settings(Box<Settings>),
    Journeys(Box<suimon_workload::Workload>),
    Scenario(Box<suimon_sim::Scenario>),
}

/// Checks the file, prints the result on standard output, and returns 0 or 2.
pub(crate) fn run(args: &Check) -> Exit {
    let name = args.file.display().to_string();
    match read(&args.file) {
        Ok(found) => {
            let lines = summary_of(&found);
            if args.json {
                let summary: serde_json::Map<String, Value> = lines
                    .into_iter()
                    .map(|(key, value)| (key.replace(' ', "_"), Value::String(value)))
                    .collect();
                println!("{:#}", json!({ "file": name, "ok": true, "faults": [], "summary": summary }));
            } else {
                println!("{name}: ok");
                print!("{}", summary::aligned(&lines));
            }
            Exit::Done
        }
        Err(faults) => {
            if args.json {
                let faults: Vec<Value> = faults.iter().map(fault_json).collect();
                println!("{:#}", json!({ "file": name, "ok": false, "faults": faults }));
            } else {
                let count = faults.iter().count();
                println!("{name}: {count} {} wrong", if count == 1 { "thing is" } else { "things are" });
                println!("{faults}");
            }
            Exit::Usage
        }
    }
}

/// Reads the file as the kind of file it is.
fn read(path: &Path) -> Result<Found, Faults> {
    let name = path.display().to_string();
    let text = text_of(path)?;
    let by_line = |faults: Faults| with_lines(&name, &text, &faults);
    match FileKind::of_text(&text) {
        FileKind::Settings => settings(&name, &text).map(|settings| Found::Settings(Box::new(settings))),
        FileKind::Journeys => {
            journey::read(&text).map_err(by_line).map(|workload| Found::Journeys(Box::new(workload)))
        }
        FileKind::Scenario if name == "-" => {
            scenario::read(&name, &text).map(|scenario| Found::Scenario(Box::new(scenario)))
        }
        FileKind::Scenario => scenario::load(path).map(|scenario| Found::Scenario(Box::new(scenario))),
    }
}

/// Reads settings, and refuses all that `suimon serve` would refuse.
fn settings(name: &str, text: &str) -> Result<Settings, Faults> {
    let mut settings = Settings::of_file(name, text)?;
    let mut faults = Faults::none();
    state_files::check(&settings, &mut faults);
    if let Err(why) = logging::filter("log.filter", &settings.log_filter) {
        faults.other(why);
    }
    settings.proxy.lease.keys_file = state_files::keys_there(&settings.lease_keys);
    if let Err(why) = Credentials::load(&settings) {
        faults.other(why);
    }
    for nodes in settings.proxy.all_sites().filter_map(|site| site.nodes.as_ref()) {
        if let Err(why) = kubernetes::check_build(nodes) {
            faults.other(why);
        }
    }
    for (key, error) in Server::check(&settings.proxy) {
        faults.other(format!("{key}: {error}"));
    }
    faults.into_result(settings).map_err(|faults| with_lines(name, text, &faults))
}

fn summary_of(found: &Found) -> Vec<(&'static str, String)> {
    match found {
        Found::Settings(settings) => {
            let mut lines = summary::of_settings(settings);
            let discovery = &settings.proxy.node_discovery;
            lines.extend(discovery.as_ref().map(|discovery| ("found now", found_nodes::now(discovery))));
            lines
        }
        Found::Journeys(workload) => summary::of_workload(workload),
        Found::Scenario(scenario) => summary::of_scenario(scenario),
    }
}

fn fault_json(fault: &Fault) -> Value {
    let message = fault.to_string();
    match fault {
        Fault::At { place, fault } => {
            let mut json = fault_json(fault);
            json["at"] = Value::from(place.as_str());
            json["message"] = Value::from(message);
            json
        }
        Fault::Value { key, seen, allowed } => {
            json!({ "key": key, "seen": seen, "allowed": allowed, "message": message })
        }
        Fault::Missing { key, wanted } => json!({ "key": key, "allowed": wanted, "message": message }),
        Fault::Other(_) => json!({ "message": message }),
    }
}

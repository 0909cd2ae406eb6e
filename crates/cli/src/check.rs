//! `suimon check`: everything that is wrong with a file, or what would be run from it. Opens no port.

use crate::args::Check;
use crate::exit::Exit;
use crate::file_kind::FileKind;
use crate::summary;
use serde_json::{Value, json};
use std::path::Path;
use suimon_settings::{Fault, Faults, Settings, journey, scenario};

/// What a file turned out to hold.
enum Found {
    Settings(Box<Settings>),
    Journeys(Box<suimon_workload::Workload>),
    Scenario(Box<suimon_sim::Scenario>),
}

/// Checks the file, says what was found on standard output, and returns 0 or 2.
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

/// Reads the file as what it holds.
fn read(path: &Path) -> Result<Found, Faults> {
    match FileKind::of(path) {
        FileKind::Settings => Settings::load(path).map(|settings| Found::Settings(Box::new(settings))),
        FileKind::Journeys => journey::load(path).map(|workload| Found::Journeys(Box::new(workload))),
        FileKind::Scenario => scenario::load(path).map(|scenario| Found::Scenario(Box::new(scenario))),
    }
}

fn summary_of(found: &Found) -> Vec<(&'static str, String)> {
    match found {
        Found::Settings(settings) => summary::of_settings(settings),
        Found::Journeys(workload) => summary::of_workload(workload),
        Found::Scenario(scenario) => summary::of_scenario(scenario),
    }
}

fn fault_json(fault: &Fault) -> Value {
    let message = fault.to_string();
    match fault {
        Fault::Value { key, seen, allowed } => {
            json!({ "key": key, "seen": seen, "allowed": allowed, "message": message })
        }
        Fault::Missing { key, wanted } => json!({ "key": key, "allowed": wanted, "message": message }),
        Fault::Other(_) => json!({ "message": message }),
    }
}

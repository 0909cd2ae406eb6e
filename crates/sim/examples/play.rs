//! Scratch.
use suimon_sim::{Laws, run};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let laws: Vec<String> = args
        .iter()
        .filter(|a| a.contains('+') || suimon_sim::ALIASES.iter().any(|x| x.0 == *a))
        .cloned()
        .collect();
    let seeds: Option<u64> = args.iter().find_map(|a| a.parse().ok());
    let files: Vec<&String> = args.iter().filter(|a| a.ends_with(".toml")).collect();
    let laws = if laws.is_empty() { vec!["suimon".to_string()] } else { laws };
    for file in files {
        let scenario = match suimon_settings::scenario::load(file.as_ref()) {
            Ok(s) => s,
            Err(f) => {
                println!("{f}");
                continue;
            }
        };
        for law in &laws {
            let choice = Laws::parse(law).unwrap();
            let seeds: Vec<u64> = seeds.map_or(scenario.seeds.clone(), |n| (1..=n).collect());
            let began = std::time::Instant::now();
            let outcomes: Vec<_> = seeds
                .iter()
                .filter_map(|s| match run(&scenario, *s, &choice) {
                    Ok(o) => Some(o),
                    Err(v) => {
                        println!("VIOLATION {v}");
                        None
                    }
                })
                .collect();
            let wall = began.elapsed().as_secs_f64() / seeds.len() as f64;
            let col = |f: &dyn Fn(&suimon_sim::Outcome) -> String| {
                outcomes.iter().map(f).collect::<Vec<_>>().join(" ")
            };
            println!(
                "{:22} {law:16} share {} | s/s {} | mid {} | first {} | ref {} | settled {} | tr {} | wall {wall:.2}",
                scenario.name,
                col(&|o| format!("{:.2}", o.summary.goodput_share)),
                col(&|o| format!("{:.2}", o.summary.sessions_per_s)),
                col(&|o| o.summary.mid_session_failures.to_string()),
                col(&|o| o.summary.first_step_failures.to_string()),
                col(&|o| o.summary.refusals.to_string()),
                col(&|o| format!("{:?}", o.summary.settled_after_s.unwrap_or(-1.0))),
                col(&|o| o.trial_windows.to_string())
            );
            if std::env::var_os("BINS").is_some() {
                for o in &outcomes {
                    println!(
                        "    {}",
                        o.bins(30).iter().map(|b| format!("{b:.2}")).collect::<Vec<_>>().join(" ")
                    );
                }
            }
            if std::env::var_os("LIMITS").is_some() {
                for o in outcomes.iter().take(1) {
                    for s in o.series.iter().step_by(20) {
                        println!(
                            "    {:5.0} {:?} w {:?} int {:?} act {:?}",
                            s.at_s, s.limits, s.waiting, s.intervals, s.active
                        );
                    }
                }
            }
            if law == "suimon" {
                for o in &outcomes {
                    for b in &scenario.expect {
                        if let Some(m) = b.judge(o) {
                            println!("    MISS {m}");
                        }
                    }
                }
            }
        }
    }
}

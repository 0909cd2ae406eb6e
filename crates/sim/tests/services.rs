//! One declaration of services gives the same split on operating systems that would decide
//! otherwise: the jobs of the papers on four of them, thirty clients of the light one beside twenty
//! of the heavy one.

use std::fmt::Write as _;
use suimon_settings::scenario;
use suimon_sim::{Laws, RunResult, run};

/// Name, κ of the accept path, and processor seconds of the light job.
const SYSTEMS: &[(&str, &str, f64)] = &[
    ("Linux 2.6", "6200us", 0.001_45),
    ("Solaris 9", "220us", 0.003_16),
    ("FreeBSD 5.2", "1650us", 0.002_25),
    ("Windows 2003", "2850us", 0.002_22),
];
const HEAVY: f64 = 0.35;

/// A service in a scenario: its job, clients, processor seconds, and its keys.
struct Service<'a> {
    name: &'a str,
    users: u32,
    cpu: f64,
    keys: &'a str,
}

/// Returns the run of services beside each other on a system, after 30 s for 300 s.
fn play(kappa: &str, mode: &str, services: &[Service<'_>], seed: u64) -> RunResult {
    let mut text = format!(
        "warm_up = \"30s\"\nmeasure = \"300s\"\n\
         [arrivals.closed]\nstart_over = \"1s\"\nspacing = \"poisson\"\n\
         [visitor]\npatience = \"endless\"\nreturning = true\n\
         [server]\ncores = 2\nsharing = \"uneven\"\naccept_crowded = \"{kappa}\"\n\
         efficiency = {{ knee = 4, slope = 0.0065, floor = 0.15 }}\n\
         [[session]]\nkind = \"visit\"\nmode = \"off\"\n\
         [discovery]\nmode = \"observe\"\n[degradation]\nmode = \"{mode}\"\n"
    );
    for Service { name, users, cpu, keys } in services {
        let memory = if *cpu > 0.1 { 1.0 } else { 0.02 };
        let _ = write!(
            text,
            "[[journey]]\nname = \"{name}\"\nusers = {users}\nsteps = [{{ name = \"job\", path = \"/{name}\" }}]\n\
             [[server.route]]\nmatch = \"GET /{name}\"\ncpu = \"{}us\"\nmemory = {memory}\n\
             [[route]]\nmatch = \"GET /{name}\"\nmode = \"observe\"\n\
             [[service]]\nname = \"{name}\"\nroutes = [\"GET /{name}\"]\nalone = \"{}us\"\n{keys}\n",
            (cpu * 1e6).round(),
            (cpu * 1e6).round()
        );
    }
    let scenario = scenario::read("services.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
    run(&scenario, seed, &Laws::AS_SET).unwrap_or_else(|violation| panic!("{violation}"))
}

/// Returns response time ÷ processor time of each service.
fn slowdowns(result: &RunResult, services: &[Service<'_>]) -> Vec<f64> {
    let mean = |steps: &[suimon_workload::StepTally]| steps[0].time.mean().expect("some were answered");
    let times = result.steps.iter().map(|steps| mean(steps).as_secs_f64());
    times.zip(services).map(|(time, service)| time / service.cpu).collect()
}

#[test]
fn one_declaration_gives_the_same_split_on_four_systems() {
    let mut missed = String::new();
    for (system, kappa, light) in SYSTEMS {
        for ratio in [0.5, 1.0, 2.0, 4.0] {
            let keys = format!("slowdown = {ratio:?}");
            let services = [
                Service { name: "light", users: 30, cpu: *light, keys: "" },
                Service { name: "heavy", users: 20, cpu: HEAVY, keys: &keys },
            ];
            let result = play(kappa, "slowdown", &services, 1);
            let slowed = slowdowns(&result, &services);
            let reached = slowed[1] / slowed[0];
            println!(
                "{system}: {ratio} declared, {reached:.3} reached, slowed {:.1} and {:.1}",
                slowed[0], slowed[1]
            );
            if (reached / ratio - 1.0).abs() > 0.1 {
                let _ = writeln!(missed, "{system}: {ratio} declared, {reached:.3} reached");
            }
        }
    }
    assert!(missed.is_empty(), "{missed}");
}

#[test]
fn three_services_are_slowed_as_declared() {
    let mut missed = String::new();
    for (system, kappa, light) in SYSTEMS {
        let services = [
            Service { name: "light", users: 30, cpu: *light, keys: "" },
            Service { name: "middle", users: 10, cpu: 0.05, keys: "slowdown = 2.0" },
            Service { name: "heavy", users: 20, cpu: HEAVY, keys: "slowdown = 4.0" },
        ];
        let slowed = slowdowns(&play(kappa, "slowdown", &services, 1), &services);
        println!("{system}: slowed {slowed:.1?}");
        for (index, ratio) in [(1, 2.0), (2, 4.0)] {
            let reached = slowed[index] / slowed[0];
            if (reached / ratio - 1.0).abs() > 0.1 {
                let _ = writeln!(missed, "{system}: {ratio} declared, {reached:.3} reached");
            }
        }
    }
    assert!(missed.is_empty(), "{missed}");
}

//! Plays the scenarios of the laws' document and prints goodput as a share of the bound, by seed.
//!
//! ```sh
//! cargo run --release -p suimon-sim --example laws [NAME-PART]
//! ```

use suimon_control::{RouteLawKind, SeedRouteParams, SeedSessionParams, SessionLawKind};
use suimon_sim::{Change, Machine, Outcome, Page, Scenario, run};

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, scenario) in scenarios() {
        if !name.contains(&wanted) {
            continue;
        }
        let outcomes: Vec<Outcome> =
            (1..=5).map(|seed| run(&Scenario { seed, ..scenario.clone() })).collect();
        let column =
            |value: &dyn Fn(&Outcome) -> String| outcomes.iter().map(value).collect::<Vec<_>>().join(" ");
        println!(
            "{name:34} goodput {} | mid {} | first {} | refused {} | trials {} | limits {}",
            column(&|o| format!("{:.2}", o.goodput_share)),
            column(&|o| o.mid_session_failures.to_string()),
            column(&|o| o.first_step_failures.to_string()),
            column(&|o| o.refusals.to_string()),
            column(&|o| o.trial_windows.to_string()),
            column(&|o| format!("{:?}", o.limits)),
        );
        if std::env::var_os("BINS").is_some() {
            println!(
                "    {}",
                outcomes[0].bins.iter().map(|b| format!("{b:.2}")).collect::<Vec<_>>().join(" ")
            );
        }
    }
}

fn scenarios() -> Vec<(&'static str, Scenario)> {
    let base = Scenario::default;
    let with = |law: SessionLawKind, routes: RouteLawKind| {
        let mut scenario = base();
        scenario.gate.session_law = law;
        scenario.gate.route_law = routes;
        scenario
    };
    let seed_routes = RouteLawKind::Seed(SeedRouteParams { initial: 2, ..SeedRouteParams::default() });
    let half = Machine { speed: 0.5, ..Machine::default() };
    let mut two_heavy = base();
    two_heavy.pages[2] = Page::HEAVY;
    two_heavy.routes = vec![0, 1, 2, 1, 3, 4, 5];
    let scaled = |clients: usize| {
        let mut scenario = Scenario {
            machine: Machine { cores: 1.0, ..Machine::default() },
            clients,
            think: 0.75,
            patience: vec![15.0],
            patience_declared: false,
            warm_up: 20.0,
            measure: 45.0,
            ..base()
        };
        scenario.pages.iter_mut().for_each(|page| page.demand /= 4.0);
        scenario
    };
    let mut io = base();
    io.pages[2].elsewhere = 2.0;
    io.routes = vec![0, 1, 5, 1, 2, 3, 4];
    let mut none = with(SessionLawKind::Open, RouteLawKind::Paired);
    none.route_gates_off = true;
    none.clients = 100;
    vec![
        ("A closed 400", base()),
        ("A patience not declared", Scenario { patience_declared: false, ..base() }),
        ("B patience 30", Scenario { patience: vec![30.0], ..base() }),
        ("B patience 30 not declared", Scenario { patience: vec![30.0], patience_declared: false, ..base() }),
        (
            "C mixed, exponential think",
            Scenario { patience: vec![30.0, 60.0], think_exponential: true, ..base() },
        ),
        ("D think 1", Scenario { think: 1.0, ..base() }),
        ("E open 2.0 B", Scenario { arrivals_per_s: 2.0 * base().bound(), ..base() }),
        ("E open 0.95 B", Scenario { arrivals_per_s: 0.95 * base().bound(), ..base() }),
        ("E open 0.6 B", Scenario { arrivals_per_s: 0.6 * base().bound(), ..base() }),
        ("F patience 10", Scenario { patience: vec![10.0], ..base() }),
        ("G 70 % browse", Scenario { browse_only: 0.7, ..base() }),
        ("H 5 % leave", Scenario { leave: 0.05, ..base() }),
        (
            "I capacity halved and back",
            Scenario {
                changes: vec![
                    Change { at: 300.0, machine: half },
                    Change { at: 600.0, machine: Machine::default() },
                ],
                measure: 780.0,
                ..base()
            },
        ),
        ("J two heavy pages", two_heavy),
        ("K 2 s elsewhere", io),
        ("L variation 1", Scenario { variation: 1.0, ..base() }),
        ("burst 400", Scenario { burst: true, ..base() }),
        ("burst 100", Scenario { burst: true, clients: 100, ..base() }),
        ("closed 100", Scenario { clients: 100, ..base() }),
        ("closed 50", Scenario { clients: 50, ..base() }),
        ("closed 25", Scenario { clients: 25, ..base() }),
        ("one core", Scenario { machine: Machine { cores: 1.0, ..Machine::default() }, ..base() }),
        ("scaled by 4, one core, 25", scaled(25)),
        ("scaled by 4, one core, 50", scaled(50)),
        ("scaled by 4, one core, 100", scaled(100)),
        ("scaled by 4, one core, 200", scaled(200)),
        ("scaled by 4, one core, 400", scaled(400)),
        ("rival: none 100", none),
        ("rival: routes only", with(SessionLawKind::Open, RouteLawKind::Paired)),
        ("rival: the paper's rules", with(SessionLawKind::Seed(SeedSessionParams::default()), seed_routes)),
        (
            "rival: static 35, routes ours",
            with(SessionLawKind::Static { sessions: 35 }, RouteLawKind::Paired),
        ),
        ("rival: our sessions, paper's routes", with(SessionLawKind::Flow, seed_routes)),
    ]
}

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use suimon_sim::Scenario;
use suimon_workload::Patience;

use crate::common::experiments;

use super::data::{Data, Range};
use super::make::{Effort, Maker, SEEDS};
use super::measured::{FILE, Measured};
use super::method::{Constants, Control, Method};
use super::play::{AS_IT_IS, Job, Player};
use super::readme::{self, TOLD, Told};
use super::table::{FIGURES, Figure, Shows};
use super::view::View;
use super::worlds::{self, Site, World};
use super::{NAME, one};

fn own_folder() -> std::path::PathBuf {
    experiments().join(NAME)
}

fn figure(name: &str) -> &'static Figure {
    FIGURES.iter().find(|figure| figure.name == name).unwrap()
}

fn quick(figure: &Figure, measured: Option<&Measured>, folder: &Path, player: &mut Player) -> Data {
    one(figure, &Effort::quick(), measured, folder, player).unwrap()
}

#[test]
fn every_figure_of_the_evaluation_and_its_table_is_in_the_table() {
    let names: BTreeSet<String> = FIGURES.iter().map(|figure| figure.name.to_owned()).collect();
    let wanted = (4..=16).map(|number| format!("{number:02}")).chain(["table-1".to_owned()]);
    assert_eq!(names, wanted.collect());
    assert_eq!(names.len(), FIGURES.len(), "no figure is there twice");
    let measured = FIGURES.iter().filter(|figure| figure.is_measured).map(|figure| figure.name);
    let issue = ["04", "05", "08", "table-1", "09", "10"];
    assert_eq!(measured.collect::<BTreeSet<_>>(), BTreeSet::from(issue));
}

#[test]
fn every_world_is_a_scenario_and_the_paper_s_bound_is_that_of_its_costs() {
    for world in [World::NoTimeout, World::Timeout60, World::Timeout30, World::Think1, World::Mixed] {
        let scenario = worlds::load(Site::Paper, world).unwrap();
        let bound = scenario.bound(suimon_model::Duration::ZERO);
        assert!((bound - 2.0 / 0.58).abs() < 1e-9, "{}: {bound}", world.name());
    }
    for world in [World::NoTimeout, World::Timeout60] {
        worlds::load(Site::Tomcat, world).unwrap();
    }
}

#[test]
fn a_quick_run_draws_every_figure_and_leaves_the_committed_ones_alone() {
    let committed = |figure: &Figure| fs::read(own_folder().join(format!("{}.svg", figure.name))).unwrap();
    let before: Vec<_> = FIGURES.iter().map(committed).collect();
    let place = tempfile::tempdir().unwrap();
    let mut player = Player::default();
    let told: Vec<Told> = FIGURES
        .iter()
        .map(|figure| Told::new(figure, &quick(figure, None, place.path(), &mut player)))
        .collect();
    for figure in FIGURES {
        let drawn = fs::read_to_string(place.path().join(format!("{}.svg", figure.name))).unwrap();
        assert!(drawn.starts_with("<svg") && !drawn.contains("measured"), "{}", figure.name);
    }
    let first = readme::text("", &told, &[]);
    let again = readme::text(&format!("# Title\n\n{first}\nBelow.\n"), &told, &[]);
    assert_eq!(again, format!("# Title\n\n{first}\nBelow.\n"), "only the table is written anew");
    assert_eq!(FIGURES.iter().map(committed).collect::<Vec<_>>(), before);
}

#[test]
fn measurements_are_drawn_below_the_simulation_with_their_model() {
    let place = tempfile::tempdir().unwrap();
    let measured = Measured::load(&own_folder()).unwrap().expect("the shop was measured");
    let data = quick(figure("05"), Some(&measured), place.path(), &mut Player::default());
    let drawn = fs::read_to_string(place.path().join("05.svg")).unwrap();
    assert!(drawn.contains("measured on the Tomcat shop"), "{drawn}");
    assert!(data.calibrated.is_some(), "the model is played beside it");
    for figure in FIGURES {
        assert_eq!(measured.content(figure).is_some(), figure.is_measured, "{}", figure.name);
    }
}

#[test]
fn what_was_measured_is_written_as_it_was_read() {
    let measured = Measured::load(&own_folder()).unwrap().expect("the shop was measured");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(FILE);
    crate::data::save(&path, &measured).unwrap();
    assert_eq!(Measured::load(place.path()).unwrap(), Some(measured));
    assert_eq!(fs::read(&path).unwrap(), fs::read(own_folder().join(FILE)).unwrap());
}

/// Without Suimon's laws and without settings to try: these two depend on the simulator alone.
#[test]
fn the_table_tells_what_the_simulator_says_today() {
    let text = fs::read_to_string(own_folder().join("README.md")).unwrap();
    let effort = Effort { sizes: TOLD.to_vec(), ..Effort::full(SEEDS) };
    let controls = [Control::None, Control::PageOnly(Constants::usual())];
    let mut player = Player::default();
    for figure in FIGURES {
        let name = figure.name;
        let row = text.lines().find(|line| line.starts_with(&format!("| [{name}]({name}.svg) |")));
        let row = row.unwrap_or_else(|| panic!("{name} has no row"));
        if matches!(figure.shows, Shows::Interval | Shows::Limits) {
            continue;
        }
        let content = Maker { player: &mut player, effort: &effort, shop: None }.content(figure, &controls);
        let data = Data {
            dead_after_s: 1800.0,
            content: content.unwrap(),
            scan: Vec::new(),
            at_sixty: None,
            calibrated: None,
        };
        let view = View { data: &data, world: figure.world };
        for method in [Method::None, Method::PageOnly] {
            let cell = format!("| {} |", readme::cell(figure, &view, method));
            assert!(row.contains(&cell), "{name}: write it anew with ./experiments/run sqs: {cell} in {row}");
        }
    }
}

#[test]
fn the_same_run_is_the_same_and_a_client_alone_takes_six_thinks_and_seven_pages() {
    let job = |control| {
        let (site, world) = (Site::Paper, World::Timeout60);
        Job { site, world, control, clients: 1, seed: 3, speed: AS_IT_IS }
    };
    for control in [Control::None, Control::PageOnly(Constants::usual()), Control::SqsAsSet, Control::Suimon]
    {
        let first = Player::default().play(&[job(control)]).unwrap();
        let mut player = Player::default();
        assert_eq!(player.play(&[job(control), job(control)]).unwrap()[1], first[0]);
        let took_s = 1.0 / first[0].sessions_per_s;
        // The client begins within the first second.
        assert!((18.4..19.9).contains(&took_s), "{control:?}: {took_s} s");
    }
}

#[test]
fn a_client_who_left_keeps_his_place_with_the_paper_s_methods_only() {
    let scenario = worlds::load(Site::Paper, World::Timeout60).unwrap();
    let is_unaware = |control: Control| {
        let mut scenario = scenario.clone();
        control.stand_before(&mut scenario, Some(60.0), Site::Paper);
        scenario.gate.unaware
    };
    assert!(is_unaware(Control::PageOnly(Constants::usual())));
    assert!(!is_unaware(Control::Suimon));
}

#[test]
fn work_for_clients_who_left_costs_those_who_stayed() {
    let mut scenario = worlds::with_clients(worlds::load(Site::Paper, World::Timeout60).unwrap(), 200);
    let patience = Patience::Constant(suimon_model::Duration::from_secs(5));
    Arc::make_mut(&mut scenario.workload.kinds[0]).patience = patience;
    scenario.measure = suimon_model::Duration::from_secs(120);
    let laws = Control::PageOnly(Constants::usual()).stand_before(&mut scenario, Some(5.0), Site::Paper);
    let completed = |scenario: &Scenario| {
        let outcome = suimon_sim::run(scenario, 1, &laws).unwrap_or_else(|violation| panic!("{violation}"));
        assert!(outcome.counts.timeouts > 0, "nobody left");
        outcome.counts.sessions_completed
    };
    let unnoticed = completed(&scenario);
    scenario.gate.unaware = false;
    let noticed = completed(&scenario);
    assert!(unnoticed < noticed, "{unnoticed} where nobody notices, {noticed} where somebody does");
}

#[test]
fn a_range_is_of_all_seeds_and_every_method_has_a_name_of_its_own() {
    assert_eq!(Range::of(&[3.0, 1.0, 2.0], 0), Range(1.0, 2.0, 3.0));
    assert_eq!(Range::around_first(&[2.26, 1.0, 3.0], 1), Range(1.0, 2.3, 3.0));
    assert_eq!(Range::of(&[], 0), Range(0.0, 0.0, 0.0));
    let names: BTreeSet<&str> = Method::ALL.iter().map(|method| method.name()).collect();
    assert_eq!(names.len(), Method::ALL.len());
}

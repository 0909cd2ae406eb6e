use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suimon_sim::Scenario;
use suimon_workload::Patience;

use crate::common::experiments;
use crate::machine::Machine;

use super::data::{Content, Data, Range, Shop};
use super::method::{Constants, Control, Method};
use super::play::{AS_IT_IS, Job, Player};
use super::table::FIGURES;
use super::worlds::{self, Site, World};
use super::{Options, data, folder, one, readme};

fn options(quick: bool, out: Option<&Path>) -> Options {
    Options { seeds: 1, out: out.map(Path::to_path_buf), redraw: false, quick }
}

/// Every file below the folders of the paper's figures, with its text.
fn committed() -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for figure in FIGURES {
        let folder = experiments().join(figure.name);
        for name in ["README.md", "figure.svg", "data/simulated.json"] {
            let path = folder.join(name);
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            files.push((path, bytes));
        }
    }
    files
}

#[test]
fn every_figure_of_the_evaluation_and_its_table_is_in_the_table() {
    let names: BTreeSet<String> = FIGURES.iter().map(|figure| figure.name.to_owned()).collect();
    let wanted = (4..=16).map(|number| format!("sqs-{number:02}")).chain(["sqs-table-1".to_owned()]);
    assert_eq!(names, wanted.collect());
    assert_eq!(names.len(), FIGURES.len(), "no figure is there twice");
    let measured = FIGURES.iter().filter(|figure| figure.is_measured).map(|figure| figure.name);
    let issue = ["sqs-04", "sqs-05", "sqs-08", "sqs-table-1", "sqs-09", "sqs-10"];
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
fn a_quick_run_leaves_what_is_committed_as_it_is() {
    let before = committed();
    let figure = &FIGURES[0];
    let quick = options(true, None);
    let place = folder(figure, &quick).unwrap().canonicalize();
    one(figure, &quick, &mut Player::default()).unwrap();
    assert!(committed() == before, "a quick run changed what is committed");
    let place = place.or_else(|_| folder(figure, &quick).unwrap().canonicalize()).unwrap();
    assert!(!place.starts_with(experiments().canonicalize().unwrap()), "{}", place.display());
    assert!(place.join("figure.svg").is_file());
}

#[test]
fn all_kinds_of_data_are_read_back_as_they_were_written() {
    let place = tempfile::tempdir().unwrap();
    let mut player = Player::default();
    for figure in FIGURES.iter().take(8) {
        one(figure, &options(true, Some(place.path())), &mut player).unwrap();
        let path = place.path().join(figure.name).join("data/simulated.json");
        let read: Data = crate::data::load(&path).unwrap().unwrap();
        let again = place.path().join("again.json");
        data::save(&again, &read).unwrap();
        assert_eq!(crate::data::load::<Data>(&again).unwrap().unwrap(), read, "{}", figure.name);
        assert_eq!(fs::read(&again).unwrap(), fs::read(&path).unwrap(), "{}", figure.name);
    }
}

#[test]
fn measurements_are_drawn_below_the_simulation_with_their_model() {
    let place = tempfile::tempdir().unwrap();
    let figure = FIGURES.iter().find(|figure| figure.name == "sqs-05").unwrap();
    let quick = options(true, Some(place.path()));
    one(figure, &quick, &mut Player::default()).unwrap();
    let own = place.path().join("sqs-05");
    let drawn = || fs::read_to_string(own.join("figure.svg")).unwrap();
    assert!(!drawn().contains("measured"), "nothing was measured yet");

    let mut measured: Data = crate::data::load(&own.join("data/simulated.json")).unwrap().unwrap();
    measured.scan.clear();
    let machine = Machine::look(place.path());
    measured.shop = Some(Shop { machine, speed: 0.9, static_sessions: 20 });
    data::save(&own.join("data/measured.json"), &measured).unwrap();
    one(figure, &quick, &mut Player::default()).unwrap();
    assert!(drawn().contains("measured on the Tomcat shop"), "{}", drawn());
    let simulated: Data = crate::data::load(&own.join("data/simulated.json")).unwrap().unwrap();
    assert!(matches!(simulated.calibrated, Some(Content::Sweep(_))), "the model is played beside it");
    assert!(fs::read_to_string(own.join("README.md")).unwrap().contains("**Measured** on the Tomcat shop"));
}

#[test]
fn what_is_committed_tells_what_its_data_say() {
    for figure in FIGURES {
        let own = experiments().join(figure.name);
        let simulated: Data = crate::data::load(&own.join("data/simulated.json")).unwrap().unwrap();
        let measured: Option<Data> = crate::data::load(&own.join("data/measured.json")).unwrap();
        let text = fs::read_to_string(own.join("README.md")).unwrap();
        let wanted = readme::text(figure, &simulated, measured.as_ref());
        assert!(
            text == wanted,
            "{}: write it anew with ./experiments/run {} --redraw",
            figure.name,
            figure.name
        );
        assert_eq!(simulated.seeds, [1, 2, 3, 4, 5], "{}", figure.name);
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
        // He begins within the first second.
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

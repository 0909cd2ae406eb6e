//! `workers-faults`: what it costs visitors when resident workers die, hang, grow or are replaced,
//! and what the kernel kills where memory is short.
//!
//! Each case has a gateway of its own with php-cgi workers, which ask a PostgreSQL, under a steady
//! load of 0.6 of the capacity. In the midst of it something is done to the workers, or to what they
//! need. Afterwards everything that could be left is counted: slots, processes, missing workers.

mod draw;
mod fault;
mod load;
mod place;
mod room;
mod scene;
mod tell;

use std::fs;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::claims::{self, Claim};
use crate::common::{self, Common, CommonOptions};
use crate::crowd::Crowd;
use crate::data;
use crate::database::Database;
use crate::machine::Machine;
use crate::memory_group::MemoryGroup;
use crate::trouble::{Result, Trouble};
use crate::workers::{Language, Server, sources, versions};
use crate::workspace::Workspace;
use fault::Fault;
use place::Place;
use room::Room;
use scene::Case;

const NAME: &str = "workers-faults";
/// The word for what is no fault, but is measured beside them.
const MEMORY: &str = "memory";
/// Workers of php-fpm that the capacity is measured with: no fewer than complete the most pages.
const CALIBRATED: u32 = 50;
/// Seconds of that measurement before it counts, and that count.
const CALIBRATION_S: (u64, u64) = (3, 6);
/// What is asked for, as a share of the capacity.
const SHARE: f64 = 0.6;
/// What is asked for with `--quick`, pages per second.
const QUICK_PER_S: f64 = 30.0;
const QUICK: [Fault; 3] = [Fault::WorkerKilled, Fault::Database, Fault::Recycled];

/// What does it cost visitors when workers die, hang or grow, and when all are replaced?
///
/// php-cgi workers of a pool, with a PostgreSQL behind them, under 0.6 of their capacity: one is
/// killed, all are, pages hang, a worker is stopped, workers leak, their program is broken for a
/// while, the database goes away, the gateway is killed, all are recycled, and all are reloaded ten
/// times. Then workers of some 60 MB in a control group of 512 MB, beside php-fpm. It holds if
/// requests fail only in the dead workers, no slot and no process is left, none fails by recycling
/// and reloading, and the kernel kills none. Needs what ./scripts/setup --experiments installs, and
/// root for the control group.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run workers-faults                       about eight minutes
  ./experiments/run workers-faults --only all-killed,reloaded
  ./experiments/run workers-faults --redraw              tables and figure from the data that is there

With --only or --quick the results go under target/, unless --out names a folder.")]
pub(crate) struct Options {
    #[command(flatten)]
    common: CommonOptions,
    /// Only these cases: worker-killed, all-killed, hanging, stopped, leaking, broken, database,
    /// gateway, recycled, reloaded, memory.
    #[arg(long, value_name = "CASE", value_delimiter = ',', value_parser = only)]
    only: Vec<Only>,
    /// The capacity, pages per second [default: measured]
    #[arg(long, value_name = "N")]
    capacity: Option<f64>,
    /// Measures nothing: tables, claims and figure again from the data.
    #[arg(long, conflicts_with = "only")]
    redraw: bool,
}

/// A case; `None`: the one about memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Only(Option<Fault>);

fn only(word: &str) -> std::result::Result<Only, String> {
    if word == MEMORY {
        return Ok(Only(None));
    }
    Fault::from_str(word, false).map(|fault| Only(Some(fault))).map_err(|_| {
        let names = Fault::ALL.iter().filter_map(|it| it.to_possible_value());
        let names: Vec<String> = names.map(|it| it.get_name().to_string()).collect();
        format!("one of {}, {MEMORY}", names.join(", "))
    })
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    machine: Machine,
    seed: u64,
    versions: Vec<String>,
    work: u32,
    wait_ms: u32,
    /// What 50 workers of php-fpm complete that never rest, and what is asked for in each case.
    capacity_per_s: f64,
    offered_per_s: f64,
    cases: Vec<Case>,
    rooms: Vec<Room>,
    /// Why memory was not measured.
    no_rooms: Option<String>,
    claims: Vec<Claim>,
}

/// Runs it, and returns whether the claims hold.
pub(crate) fn run(mut options: Options) -> Result<bool> {
    if let Some(capacity) = options.capacity.filter(|it| !(1.0..=100_000.0).contains(it)) {
        return Err(Trouble::Usage(format!("--capacity {capacity}: must be from 1 to 100000")));
    }
    if !options.only.is_empty() && options.common.out.is_none() {
        options.common.out = Some(common::folder(NAME, None, true)?);
    }
    let common = options.common.prepare(NAME)?;
    let path = common.out.join("data/result.json");
    let mut data = data::measured(&path, NAME, options.redraw, || measure(&common, &options))?;
    data.claims = tell::judge(&data);
    data::save(&path, &data)?;
    draw::figure(&data, &common.out.join("figure.svg"))?;
    print!("{}{}", tell::tables(&data), claims::text(&data.claims));
    Ok(common.quick || claims::all_hold(&data.claims))
}

fn measure(common: &Common, options: &Options) -> Result<Data> {
    let began = Instant::now();
    let workspace = Workspace::open()?;
    let app = workspace.copy(&sources(), "app")?;
    let database = Database::open(&workspace, common.load_core, &app.join("schema.sql"))?;
    let mut place = Place { common, workspace: &workspace, database, app };
    place.write_program()?;
    let wanted = |case: Only| match options.only.is_empty() {
        true if common.quick => case.0.is_some_and(|fault| QUICK.contains(&fault)),
        true => true,
        false => options.only.contains(&case),
    };
    let capacity_per_s = match options.capacity {
        Some(capacity) => capacity,
        None if common.quick => QUICK_PER_S / SHARE,
        None => capacity(&place)?,
    };
    let mut data = Data {
        experiment: NAME.to_string(),
        machine: common.machine.clone(),
        seed: common.seed,
        versions: versions(&[("php-cgi", "-v"), ("nginx", "-v"), ("psql", "-V")]),
        work: place::WORK,
        wait_ms: place::WAIT.as_millis() as u32,
        capacity_per_s,
        offered_per_s: SHARE * capacity_per_s,
        cases: Vec::new(),
        rooms: Vec::new(),
        no_rooms: None,
        claims: Vec::new(),
    };
    let offered = data.offered_per_s;
    eprintln!("the capacity is {capacity_per_s:.1} pages/s; {offered:.1} are asked for");
    for fault in Fault::ALL.into_iter().filter(|fault| wanted(Only(Some(*fault)))) {
        let case = scene::play(&mut place, fault, offered)?;
        eprintln!("{:4.0} s  {}", began.elapsed().as_secs_f64(), tell::line(&case));
        data.cases.push(case);
    }
    if wanted(Only(None)) {
        rooms(&place, &mut data, began)?;
    }
    Ok(data)
}

fn rooms(place: &Place<'_>, data: &mut Data, began: Instant) -> Result<()> {
    // Whether there can be one is known before anything is started for it.
    if let Err(trouble) = MemoryGroup::make(place.workspace, "try", room::LIMIT) {
        eprintln!("no control group can be made here, so memory is not measured: {trouble}");
        data.no_rooms = Some(trouble.to_string());
        return Ok(());
    }
    for (pages, has) in room::ALL {
        let room = room::play(place, pages, has)?;
        eprintln!("{:4.0} s  {}", began.elapsed().as_secs_f64(), tell::room_line(&room));
        data.rooms.push(room);
    }
    Ok(())
}

/// Returns how many pages per second workers complete that never rest.
fn capacity(place: &Place<'_>) -> Result<f64> {
    let site = place.site("page.php", None);
    let open = site.open(Language::Php, Server::Fixed(CALIBRATED), "case")?;
    let common = place.common;
    let folder = common.scratch.join("capacity");
    fs::create_dir_all(&folder).map_err(|error| Trouble::Failed(format!("{}: {error}", folder.display())))?;
    let crowd = Crowd {
        suimon: &common.suimon,
        name: "crowd",
        folder: &folder,
        core: common.load_core,
        journey: load::always(common.seed),
        to: open.address(),
        warmup: Duration::from_secs(CALIBRATION_S.0),
        measure: Some(Duration::from_secs(CALIBRATION_S.1)),
    };
    Ok(crowd.play()?.sessions_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_chosen_by_its_name() {
        assert_eq!(only("memory"), Ok(Only(None)));
        assert_eq!(only("all-killed"), Ok(Only(Some(Fault::AllKilled))));
        let wrong = only("all").unwrap_err();
        assert!(wrong.contains("worker-killed") && wrong.ends_with("memory"), "{wrong}");
    }
}

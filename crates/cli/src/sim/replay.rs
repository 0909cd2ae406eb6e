//! `suimon sim --replay`: repeats the recorded decisions, or compares them with those of other
//! settings.

mod settings;
mod tell;

use super::Sim;
use crate::exit::Exit;
use crate::recording::{Files, Opened, play_file};
use crate::terminal;
use std::fs::File;
use std::path::Path;
use suimon_gate::Params;
use suimon_sim::replay::{Replay, WhatIf};
use tell::ReplayFindings;

/// Plays a recording, and prints the result.
pub(super) fn run(recording: &Path, args: &Sim) -> Exit {
    match play(recording, args) {
        Ok(exit) => exit,
        Err(why) => {
            eprintln!("{why}");
            Exit::Usage
        }
    }
}

fn play(recording: &Path, args: &Sim) -> Result<Exit, String> {
    let files = Files::find(recording)?;
    let mut recorded = if args.with.is_empty() { Replay::new() } else { Replay::for_what_if() };
    let mut cut = None;
    let mut params = None;
    for path in files.paths() {
        let opened = Opened::read(path)?;
        cut = play_file(&opened, args.partial, |segment| {
            params.get_or_insert_with(|| segment.header.params.clone());
            recorded.play(segment)
        })?;
    }
    let Some(params) = params else { return Err(format!("{}: it is empty", recording.display())) };
    let what_if = match args.with.is_empty() {
        true => None,
        false => Some(play_otherwise(args, &files, &params, &recorded)?),
    };
    let told = ReplayFindings {
        files: &files,
        with: &args.with,
        recorded: &recorded,
        what_if: what_if.as_ref(),
        cut,
    };
    let json = args.json.as_deref().map(|path| create(path).map(|file| (path, file))).transpose()?;
    print!("{}", terminal::paragraphs(&told.as_text(), terminal::columns()));
    if let Some((path, file)) = json
        && let Err(error) = told.write_json(file)
    {
        eprintln!("--json: {} could not be written: {error}", path.display());
        return Ok(Exit::Failed);
    }
    Ok(if recorded.divergence.is_some() { Exit::Failed } else { Exit::Done })
}

fn play_otherwise<'a>(
    args: &'a Sim,
    files: &Files,
    recorded_with: &Params,
    recorded: &'a Replay,
) -> Result<WhatIf<'a>, String> {
    settings::changed(recorded_with, &args.with)?;
    let mut what_if = WhatIf::new(|params| settings::changed(params, &args.with), recorded);
    for path in files.paths() {
        let opened = Opened::read(path)?;
        play_file(&opened, args.partial, |segment| what_if.play(segment))?;
    }
    Ok(what_if)
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("--json: {} cannot be written: {error}", path.display()))
}

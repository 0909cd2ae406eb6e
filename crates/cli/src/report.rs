//! `suimon report`: what a recorded gateway did, and why, as a page for the browser.
//!
//! The report replays the recording, so it shows the gate's decisions themselves and not notes
//! about them. Map: `figures` the charts; `page` the page; `numbers` the same for scripts.

mod figures;
mod numbers;
mod page;

use crate::args::Report;
use crate::exit::Exit;
use crate::recording::{Files, Opened, play_file};
use crate::terminal;
use crate::whole_file;
use suimon_record::Damage;
use suimon_sim::replay::{Replay, Timeline};

/// The result of a replay, and its files.
struct Found {
    files: Files,
    replay: Replay,
    /// Where the last file was cut, if `--partial` allows that.
    cut: Option<Damage>,
}

impl Found {
    fn timeline(&self) -> &Timeline {
        self.replay.timeline().expect("it was asked to keep one")
    }
}

/// Plays the recordings, and writes the requested files.
pub(crate) fn run(args: &Report) -> Exit {
    let outputs = [("--out", Some(&args.out)), ("--json", args.json.as_ref())];
    for (flag, path) in outputs {
        if let Some(path) = path
            && let Err(error) = whole_file::try_writing(path)
        {
            eprintln!("{flag}: {}: cannot be written: {error}", path.display());
            return Exit::Usage;
        }
    }
    let found = match play(args) {
        Ok(found) => found,
        Err(why) => {
            eprintln!("{why}");
            return Exit::Usage;
        }
    };
    let numbers = numbers::of(&found);
    let json = args.json.as_ref().map(|path| ("--json", path, format!("{numbers:#}\n")));
    let page = ("--out", &args.out, page::page(&found, &numbers));
    for (flag, path, text) in std::iter::once(page).chain(json) {
        if let Err(error) = whole_file::write(path, &text) {
            eprintln!("{flag}: {}: could not be written: {error}", path.display());
            return Exit::Failed;
        }
    }
    print!("{}", terminal::paragraphs(&page::verdict(&found).0, terminal::columns()));
    println!("Report: {}", args.out.display());
    if found.replay.divergence.is_some() { Exit::Failed } else { Exit::Done }
}

fn play(args: &Report) -> Result<Found, String> {
    let files = Files::find_all(&args.recordings)?;
    let mut replay = Replay::for_timeline();
    let mut cut = None;
    for path in files.paths() {
        let opened = Opened::read(path)?;
        // After a cut file comes another gateway's recording, or nothing.
        cut = play_file(&opened, args.partial, |segment| replay.play(segment))?.or(cut);
    }
    Ok(Found { files, replay, cut })
}

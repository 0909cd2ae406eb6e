//! Writes every state of the waiting page in every language, as files for a browser.

use crate::args::Preview;
use crate::exit::Exit;
use crate::whole_file;
use std::fs;
use suimon_settings::Settings;

pub(super) fn run(args: &Preview) -> Exit {
    let settings = match &args.config {
        None => Settings::default(),
        Some(path) => match Settings::load(path) {
            Ok(settings) => settings,
            Err(faults) => {
                eprintln!("{faults}");
                return Exit::Usage;
            }
        },
    };
    let pages = match suimon_waiting_room::preview(&settings.proxy.waiting_room) {
        Ok(pages) => pages,
        Err(error) => {
            eprintln!("{error}");
            return Exit::Usage;
        }
    };
    let written = fs::create_dir_all(&args.out).and_then(|()| {
        pages.iter().try_for_each(|(name, page)| whole_file::write(&args.out.join(name), page))
    });
    if let Err(error) = written {
        eprintln!("{}: cannot be written: {error}; name another folder with --out", args.out.display());
        return Exit::Failed;
    }
    println!("{} pages; open {}", pages.len() - 1, args.out.join("index.html").display());
    Exit::Done
}

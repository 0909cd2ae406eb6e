//! Completions and man pages, both made from the command line's own definition.

use crate::args::{Cli, Completions, Manual};
use crate::exit::Exit;
use clap::CommandFactory;
use std::fs;
use std::io;

/// Prints what completes the command in a shell.
pub(crate) fn complete(args: &Completions) -> Exit {
    clap_complete::generate(args.shell, &mut Cli::command(), "suimon", &mut io::stdout());
    Exit::Done
}

/// Writes `suimon.1` and a page for each command that is not hidden.
pub(crate) fn write(args: &Manual) -> Exit {
    let command = Cli::command().disable_help_flag(true);
    let written =
        fs::create_dir_all(&args.folder).and_then(|()| clap_mangen::generate_to(command, &args.folder));
    match written {
        Ok(()) => Exit::Done,
        Err(error) => {
            eprintln!("{}: the man pages cannot be written: {error}", args.folder.display());
            Exit::Failed
        }
    }
}

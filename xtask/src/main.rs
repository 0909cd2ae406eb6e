//! Workspace chores: `cargo xtask walls`, `cargo xtask bounds`, `cargo xtask docs [--check]` and
//! `cargo xtask figures [--live]`.
//!
//! - `walls`: who depends on whom, compared with what is allowed; each pure crate's own
//!   `clippy.toml`; and that files of a crate neither use each other in a circle nor are too long.
//! - `bounds`: every bound on what strangers send is in `docs/bounds.md`, with its value.
//! - `docs`: writes the files that are generated from the code: settings, reasons, metrics, the table of
//!   events in `docs/recording.md`, and the header of the C interface; `--check` only compares, and sees to it that every
//!   file and heading that a document points to is there.
//! - `figures`: simulates and draws anew every figure that needs no server; `--live` measures the
//!   others too.
//!
//! Exit codes: 0 it holds, 1 it does not, 2 wrong usage.

mod bounds;
mod docs;
mod figures;
mod files;
mod header;
mod paths;
mod walls;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask walls          who depends on whom, against what is allowed
       cargo xtask bounds         docs/bounds.md, against the bounds in the code
       cargo xtask docs           write what is generated: suimon.example.toml, docs/settings.md, reasons.md, metrics.md,
                                  crates/admin/openapi.json, crates/ffi/include/suimon.h and the table of events in
                                  docs/recording.md
       cargo xtask docs --check   compare them with what would be written; that every file and heading documents point to is there
       cargo xtask figures        simulate and draw anew the figures that need no server
       cargo xtask figures --live the same, and measure what needs real servers (hours, on a quiet machine)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let faults = match words.as_slice() {
        ["walls"] => check_walls(&root()),
        ["bounds"] => bounds::check(&root()),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => check_documents(&root()),
        ["figures"] => figures::draw(&root(), false),
        ["figures", "--live"] => figures::draw(&root(), true),
        ["--help" | "-h" | "help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match faults {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            for fault in &faults {
                eprintln!("{fault}");
            }
            eprintln!("{} to mend", faults.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn check_walls(root: &Path) -> Result<Vec<String>, String> {
    Ok([walls::check(root)?, files::check(root)?].concat())
}

fn check_documents(root: &Path) -> Result<Vec<String>, String> {
    Ok([docs::compare(root)?, paths::check(root)?].concat())
}

/// Returns the workspace's folder, which is the parent of this package's.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies inside the workspace").to_path_buf()
}

/// What `scripts/test` holds, as part of all tests: built for a command it would be built twice.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walls_stand_and_no_file_is_too_long() {
        assert_eq!(check_walls(&root()).unwrap(), [""; 0]);
    }

    #[test]
    fn each_bound_is_told_with_its_value() {
        assert_eq!(bounds::check(&root()).unwrap(), [""; 0]);
    }

    #[test]
    fn the_documents_are_those_of_the_code_and_point_to_what_is_there() {
        assert_eq!(check_documents(&root()).unwrap(), [""; 0]);
    }
}

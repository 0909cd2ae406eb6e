//! The subcommands: one for each figure, from the table, and one for all of them.

use clap::{ArgMatches, Args, Command as Clap, Error, FromArgMatches, Subcommand};

use super::Options;
use super::table::{FIGURES, Figure};

/// The command that draws all simulated figures, and plays what they share once.
pub(super) const ALL: &str = "sqs";

/// One figure, or all of them.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) options: Options,
}

fn describe(figure: &Figure) -> String {
    format!("{}: {}", figure.of_the_paper, figure.question)
}

impl FromArgMatches for Command {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let Some((name, matches)) = matches.subcommand() else {
            return Err(Error::new(clap::error::ErrorKind::MissingSubcommand));
        };
        Ok(Command { name: name.to_owned(), options: Options::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Command {
    fn augment_subcommands(command: Clap) -> Clap {
        let all =
            Clap::new(ALL).about("All simulated figures of the paper, sqs-04 to sqs-16 and sqs-table-1");
        let one = |figure: &Figure| {
            Clap::new(figure.name).about(format!("SQS, {}", figure.of_the_paper)).long_about(describe(figure))
        };
        let commands = FIGURES.iter().map(one).chain([all]);
        commands.fold(command, |command, one| command.subcommand(Options::augment_args(one)))
    }

    fn augment_subcommands_for_update(command: Clap) -> Clap {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == ALL || FIGURES.iter().any(|figure| figure.name == name)
    }
}

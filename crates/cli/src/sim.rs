//! `suimon sim`: the gate in virtual time.

mod replay;

use crate::args::Sim;
use crate::exit::Exit;

/// Plays a recording, and says what came of it.
pub(crate) fn run(args: &Sim) -> Exit {
    replay::run(args)
}

//! The pools of workers in the picture of a gateway.

use crate::numbers::{bytes, rough_time};
use crate::pool::last_move;
use crate::table::Table;
use crate::terminal::{Colour, Line};
use suimon_admin::{PoolState, State};
use suimon_statistics::table::Align::{Left, Right};

/// Returns a row for each pool.
pub(super) fn table(pools: &[PoolState]) -> Table {
    let columns = [
        ("pool", Left, 0),
        ("wanted", Right, 1),
        ("ready", Right, 2),
        ("idle", Right, 5),
        ("busy", Right, 3),
        ("starting", Right, 4),
        ("stopping", Right, 7),
        ("memory", Right, 6),
        ("start", Right, 8),
    ];
    let row = |pool: &PoolState| {
        let fixed = if pool.fixed.is_some() { " fixed" } else { "" };
        vec![
            pool.name.clone(),
            format!("{}{fixed}", pool.wanted),
            pool.ready.to_string(),
            pool.idle.to_string(),
            pool.busy.to_string(),
            pool.starting.to_string(),
            pool.stopping.to_string(),
            bytes(pool.memory_bytes),
            pool.start_seconds.map_or_else(|| "–".to_owned(), rough_time),
        ]
    };
    Table::of_numbers(&columns, pools.iter().map(row).collect())
}

/// Returns the pool's name where there are several.
fn name(state: &State, pool: &PoolState) -> String {
    if state.pools.len() > 1 { format!("  {}: ", pool.name) } else { "  ".to_owned() }
}

/// Returns what pools lack.
pub(super) fn unhealthy(state: &State) -> Vec<Line> {
    let line = |pool: &PoolState| {
        let line = Line::default().plain(&name(state, pool)).marked(Colour::Red, "UNHEALTHY");
        Some(line.plain(": ").plain(pool.unhealthy.as_ref()?))
    };
    state.pools.iter().filter_map(line).collect()
}

/// Returns the last move of each pool with the reason.
pub(super) fn last_moves(state: &State) -> Vec<Line> {
    let line = |pool: &PoolState| {
        let moved = pool.last_move.as_ref()?;
        Some(Line::default().faint(&format!("{}{}", name(state, pool), last_move(moved, state.now))))
    };
    state.pools.iter().filter_map(line).collect()
}

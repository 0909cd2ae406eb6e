//! The pools of workers in the picture of a gateway.

use crate::numbers::{bytes, rough_time};
use crate::pool::last_move;
use crate::terminal::{Colour, Line};
use suimon_admin::{PoolState, State};
use suimon_statistics::table::{Align, columns};

use Align::{Left, Right};

/// Returns a row for each pool.
pub(super) fn table(pools: &[PoolState]) -> String {
    if pools.is_empty() {
        return String::new();
    }
    let headings = ["pool", "wanted", "ready", "idle", "busy", "starting", "stopping", "memory", "start"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(pools.iter().map(|pool| {
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
    }));
    columns(&[Left, Right, Right, Right, Right, Right, Right, Right, Right], &rows)
}

/// Returns what a pool lacks, and its last move with the reason.
pub(super) fn details(state: &State) -> Vec<Line> {
    let mut lines = Vec::new();
    for pool in &state.pools {
        let name = if state.pools.len() > 1 { format!("{}: ", pool.name) } else { String::new() };
        if let Some(why) = &pool.unhealthy {
            lines.push(
                Line::default()
                    .plain("  ")
                    .plain(&name)
                    .coloured(Colour::Red, "UNHEALTHY")
                    .plain(": ")
                    .plain(why),
            );
        }
        if let Some(moved) = &pool.last_move {
            let text = format!("  {name}{}", last_move(moved, state.now));
            lines.push(Line::default().faint(&text));
        }
    }
    lines
}

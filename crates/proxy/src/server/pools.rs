//! The pools of workers as their operator sees and commands them.

use super::Observer;
use std::{error, fmt};
use suimon_model::PoolId;
use suimon_params::upstream::WorkersNodeParams;
use suimon_pool::{Pool, PoolChange, PoolStatus};

/// A pool, as its operator sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolReport {
    /// Which one it is.
    pub id: PoolId,
    /// How it stands.
    pub status: PoolStatus,
    /// What its workers speak: a word of `pool.kind`.
    pub kind: &'static str,
    /// How the number of its workers is found: a word of `pool.size_law`.
    pub law: &'static str,
    /// The number that an operator has fixed; `None`: the law finds it.
    pub fixed: Option<u32>,
    /// The most workers that it may have.
    pub most: u32,
    /// What has happened lately, oldest first.
    pub changes: Vec<PoolChange>,
}

/// What an operator may say to a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolCommand {
    /// Replace all workers, one after the other.
    Reload,
    /// Have so many workers, until told otherwise; `None`: as many as the law finds, which goes on
    /// from the number there is.
    Resize(Option<u32>),
}

/// Why a command to a pool failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolError {
    /// There is no pool of that name; those there are.
    NoSuch(Vec<String>),
    /// It may have from one to so many workers.
    Size(u32),
    /// No more than so many fit into the memory that they may take.
    Memory(usize),
}

impl Observer {
    /// Returns every pool as it stands, with what has happened since the change of this number, which
    /// is left out; they count up from 1, so that 0 leaves none out.
    pub fn pools(&self, since: u64) -> Vec<PoolReport> {
        let backend = self.backend();
        let report = |(id, pool, params): (PoolId, Pool, WorkersNodeParams)| PoolReport {
            id,
            status: pool.status(),
            kind: params.pool.kind.word(),
            law: params.size.law.word(),
            fixed: *backend.fixed_size(id).borrow(),
            most: params.size.most,
            changes: pool.trace(since),
        };
        self.all_pools().into_iter().map(report).collect()
    }

    /// Does what an operator says to the pool of this name, or to all. Where one of these cannot do
    /// it, none does.
    ///
    /// # Errors
    /// If there is no such pool, or it cannot have so many workers.
    pub fn command_pool(&self, name: Option<&str>, command: PoolCommand) -> Result<(), PoolError> {
        let (meant, others): (Vec<_>, Vec<_>) = self
            .all_pools()
            .into_iter()
            .partition(|(_, _, params)| name.is_none_or(|name| *name == *params.pool.name));
        if meant.is_empty() {
            let names = others.iter().map(|(_, _, params)| params.pool.name.to_string());
            return Err(PoolError::NoSuch(names.collect()));
        }
        if let PoolCommand::Resize(Some(workers)) = command {
            meant.iter().try_for_each(|(_, pool, params)| has_room(pool, params, workers))?;
        }
        let backend = self.backend();
        for (id, pool, _) in meant {
            match command {
                PoolCommand::Reload => pool.reload(),
                PoolCommand::Resize(workers) => {
                    let fixed = backend.fixed_size(id);
                    fixed.send_if_modified(|was| std::mem::replace(was, workers) != workers);
                }
            }
        }
        Ok(())
    }

    fn all_pools(&self) -> Vec<(PoolId, Pool, WorkersNodeParams)> {
        let core = self.gateway.core();
        let ways = core.backend().upstreams().zip(core.params().upstreams());
        ways.filter_map(|((id, upstream), params)| {
            Some((id, upstream.pool()?.clone(), params.workers.clone()?))
        })
        .collect()
    }
}

/// Returns whether a pool can have so many workers.
fn has_room(pool: &Pool, params: &WorkersNodeParams, workers: u32) -> Result<(), PoolError> {
    let most = params.size.most;
    if !(1..=most).contains(&workers) {
        return Err(PoolError::Size(most));
    }
    let status = pool.status();
    match status.fit {
        // Fewer than there are need no room.
        Some(fit) if workers as usize > fit.max(status.wanted) => Err(PoolError::Memory(fit)),
        _ => Ok(()),
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolError::NoSuch(others) if others.is_empty() => {
                f.write_str("this gateway has no pool of workers; see [[pool]] in the settings")
            }
            PoolError::NoSuch(others) => {
                write!(f, "there is no pool of that name; there are: {}", others.join(", "))
            }
            PoolError::Size(most) => write!(f, "a pool has from 1 to {most} workers (pool.max)"),
            PoolError::Memory(fit) => {
                write!(f, "no more than {fit} workers fit into the memory that they may take (pool.memory)")
            }
        }
    }
}

impl error::Error for PoolError {}

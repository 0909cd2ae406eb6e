//! The pools of workers as their operator sees and commands them.

use super::Observer;
use std::{error, fmt};
use suimon_params::upstream::WorkersNodeParams;
use suimon_pool::{Pool, PoolChange, PoolStatus};

/// A pool, as its operator sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolReport {
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
        let Some((pool, params)) = self.pool() else { return Vec::new() };
        vec![PoolReport {
            status: pool.status(),
            kind: params.pool.kind.word(),
            law: params.size.law.word(),
            fixed: *self.backend().fixed_size.borrow(),
            most: params.size.most,
            changes: pool.trace(since),
        }]
    }

    /// Does what an operator says to the pool of this name, or to all.
    ///
    /// # Errors
    /// If there is no such pool, or it cannot have so many workers.
    pub fn command_pool(&self, name: Option<&str>, command: PoolCommand) -> Result<(), PoolError> {
        let (pool, params) = self.pool().ok_or_else(|| PoolError::NoSuch(Vec::new()))?;
        let own = &params.pool.name;
        if name.is_some_and(|name| *name != **own) {
            return Err(PoolError::NoSuch(vec![own.to_string()]));
        }
        match command {
            PoolCommand::Reload => pool.reload(),
            PoolCommand::Resize(workers) => {
                let most = params.size.most;
                if workers.is_some_and(|workers| !(1..=most).contains(&workers)) {
                    return Err(PoolError::Size(most));
                }
                let status = pool.status();
                let has_room = |fit: &usize| workers.is_some_and(|workers| workers as usize > *fit);
                // Fewer than there are need no room.
                if let Some(fit) = status.fit.filter(has_room)
                    && workers.is_some_and(|workers| workers as usize > status.wanted)
                {
                    return Err(PoolError::Memory(fit));
                }
                self.backend().fixed_size.send_if_modified(|was| std::mem::replace(was, workers) != workers);
            }
        }
        Ok(())
    }

    fn pool(&self) -> Option<(Pool, WorkersNodeParams)> {
        let core = self.gateway.core();
        let params = core.params().upstream.workers.clone()?;
        Some((core.backend().upstream.pool()?.clone(), params))
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

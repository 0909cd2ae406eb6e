//! `suimon pool`: shows and commands the pools of workers of a running gateway.

mod picture;

pub(crate) use picture::last_move;

use crate::args::{Pool, PoolCommand, PoolOf, Workers};
use crate::exit::Exit;
use crate::fetch::{self, of_site};
use crate::terminal;
use hyper::body::Bytes;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;
use suimon_admin::{Auto, POOL_PATH, PoolAnswer, PoolDetails, PoolOrder, PoolRequest, PoolSize, PoolState};

/// Time between two looks of `--wait` and of `--follow`.
const EVERY: Duration = Duration::from_millis(500);
/// Failed starts after which `--wait` gives the new program up.
const FAILURES_MAX: u64 = 3;

/// Runs the subcommand.
pub(crate) async fn run(args: &Pool) -> Exit {
    let done = match &args.what {
        PoolCommand::Status(of) => status(of).await,
        PoolCommand::Reload { of, wait } => reload(of, *wait).await,
        PoolCommand::Resize { workers, of } => resize(of, *workers).await,
        PoolCommand::Trace { of, follow: false } => trace(of).await,
        PoolCommand::Trace { of, follow: true } => follow(of).await,
    };
    done.err().unwrap_or(Exit::Done)
}

/// What a gateway has answered: the pools that are asked about, and all as JSON.
struct Answer {
    now: f64,
    site: Option<String>,
    pools: Vec<PoolDetails>,
    json: Bytes,
}

async fn status(of: &PoolOf) -> Result<(), Exit> {
    let answer = look(of, 0).await?;
    tell(of, &answer, &picture::status(&answer.pools, answer.now, terminal::columns()));
    Ok(())
}

async fn reload(of: &PoolOf, waits: bool) -> Result<(), Exit> {
    let before = look(of, 0).await?;
    let told = command(of, PoolOrder::Reload).await?;
    let text = |pool: &PoolDetails| {
        let workers = pool.pool.wanted;
        format!("{}: {workers} workers are replaced, one after the other\n", pool.pool.name)
    };
    tell(of, &told, &told.pools.iter().map(text).collect::<String>());
    if waits { wait_for_reload(of, &before, &told).await } else { Ok(()) }
}

/// Waits until no worker of the old program is left. `told`: what the gateway answered to the command,
/// and `before` what was so then.
async fn wait_for_reload(of: &PoolOf, before: &Answer, told: &Answer) -> Result<(), Exit> {
    loop {
        tokio::time::sleep(EVERY).await;
        let now = look(of, 0).await?;
        if now.pools.iter().all(|pool| is_reloaded(pool, in_answer(told, pool).generation)) {
            return Ok(());
        }
        let fails = |pool: &&PoolDetails| {
            pool.pool.totals.failed_starts >= in_answer(before, pool).totals.failed_starts + FAILURES_MAX
        };
        if let Some(pool) = now.pools.iter().find(fails) {
            eprintln!("{}", picture::failure(pool));
            return Err(Exit::Failed);
        }
    }
}

/// Returns what an earlier answer says of this pool.
fn in_answer(answer: &Answer, pool: &PoolDetails) -> PoolState {
    let earlier = answer.pools.iter().find(|earlier| earlier.pool.name == pool.pool.name);
    earlier.map(|earlier| earlier.pool.clone()).unwrap_or_default()
}

fn is_reloaded(pool: &PoolDetails, generation: u64) -> bool {
    pool.pool.ready > 0
        && pool.workers.iter().all(|it| it.generation >= generation && !it.retiring && it.state != "starting")
}

async fn resize(of: &PoolOf, workers: Workers) -> Result<(), Exit> {
    let size = workers.0.map_or(PoolSize::Law(Auto::Auto), PoolSize::Workers);
    let told = command(of, PoolOrder::Resize(size)).await?;
    let text = |pool: &PoolDetails| {
        let (name, law, wanted) = (&pool.pool.name, &pool.pool.law, pool.pool.wanted);
        match workers.0 {
            Some(workers) => {
                format!(
                    "{name}: {workers} workers from now on; `suimon pool resize auto` lets the number be found\n"
                )
            }
            None => format!("{name}: pool.size_law = \"{law}\" says how many workers, from {wanted} on\n"),
        }
    };
    tell(of, &told, &told.pools.iter().map(text).collect::<String>());
    Ok(())
}

async fn trace(of: &PoolOf) -> Result<(), Exit> {
    let answer = look(of, 0).await?;
    tell(of, &answer, &picture::trace(&answer.pools, true, terminal::columns()));
    Ok(())
}

/// Shows changes until Ctrl-C, or until nobody reads standard output any more.
async fn follow(of: &PoolOf) -> Result<(), Exit> {
    let ended = tokio::signal::ctrl_c();
    tokio::pin!(ended);
    // Each pool counts its own.
    let (mut last, mut is_first) = (BTreeMap::<String, u64>::new(), true);
    loop {
        let since = last.values().min().copied().unwrap_or_default();
        let mut answer = look(of, since).await?;
        for pool in &mut answer.pools {
            let last = last.entry(pool.pool.name.clone()).or_default();
            pool.changes.retain(|change| change.id > *last);
            *last = pool.changes.iter().map(|change| change.id).fold(*last, u64::max);
        }
        let text = picture::trace(&answer.pools, std::mem::take(&mut is_first), terminal::columns());
        if io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()).is_err() {
            return Ok(());
        }
        tokio::select! {
            _ = &mut ended => return Ok(()),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

fn tell(of: &PoolOf, answer: &Answer, text: &str) {
    if of.at.json {
        println!("{}", String::from_utf8_lossy(&answer.json));
    } else {
        print!("{}{text}", of_site(answer.site.as_deref()));
    }
}

/// Looks at the pools, with what has happened since this change.
async fn look(of: &PoolOf, since: u64) -> Result<Answer, Exit> {
    let json = fetch::get(&of.at.at, &format!("{POOL_PATH}?since={since}")).await;
    read(of, json.map_err(|error| error.explain("--admin", &of.at.at.admin))?)
}

async fn command(of: &PoolOf, order: PoolOrder) -> Result<Answer, Exit> {
    let request = PoolRequest { pool: of.pool.clone(), order };
    let text = serde_json::to_string(&request).expect("it is made of texts and numbers");
    let json = fetch::post(&of.at.at, POOL_PATH, text).await;
    read(of, json.map_err(|error| error.explain("--admin", &of.at.at.admin))?)
}

fn read(of: &PoolOf, json: Bytes) -> Result<Answer, Exit> {
    let answer: PoolAnswer = serde_json::from_slice(&json).map_err(|error| {
        eprintln!("{} answers, but not as this version of suimon expects ({error})", of.at.at.admin);
        Exit::Failed
    })?;
    let (pools, others): (Vec<PoolDetails>, Vec<PoolDetails>) = answer
        .pools
        .into_iter()
        .partition(|pool| of.pool.as_ref().is_none_or(|name| *name == pool.pool.name));
    if pools.is_empty() {
        let names: Vec<&str> = others.iter().map(|pool| &*pool.pool.name).collect();
        eprintln!("{}", picture::nothing(&names));
        return Err(Exit::Failed);
    }
    Ok(Answer { now: answer.now, site: answer.site, pools, json })
}

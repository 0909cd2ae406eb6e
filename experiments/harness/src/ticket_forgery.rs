//! `ticket-forgery`: true tickets, leases and invitations are edited in every way there is, and
//! shown to the gateway's own code.
//!
//! One work is one stream of random numbers, so the same seed makes the same forgeries on any
//! machine, whatever its cores.

mod edits;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_identity::keys::Keys;
use suimon_identity::mint::{Mint, SignedItem};
use suimon_model::Rng;
use suimon_statistics::table::numbers;

use crate::claims::{self, Claim};
use crate::common::folder;
use crate::data;
use crate::parallel;
use crate::trouble::{Result, Trouble, While, failed};
use edits::{Way, bytes_of};

const NAME: &str = "ticket-forgery";
/// With --quick.
const TRIES_QUICK: u64 = 100_000;
/// Forgeries of one work.
const TRIES_EACH: u64 = 50_000;
/// True ones of a sort, half of each kind of session.
const TRUE_ONES: usize = 2000;
const KINDS: [&str; 2] = ["visit", "shopping"];
/// Numbers of true ones are below this.
const NUMBERS: usize = 1 << 40;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TAG: usize = 2;
/// A way is given up for another where all it does so often is to bring forth a true one.
const UNCHANGED_MAX: usize = 64;

/// Is anything ever taken for a place, a session or an invitation that the gateway did not write?
///
/// True tickets, leases and invitations are edited, and the gateway's own code reads them. It holds
/// if all that are true are taken, and none of the others.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run ticket-forgery                    some 10 seconds on two cores
  ./experiments/run ticket-forgery --tries 1000000000 --seed 2")]
pub(crate) struct Options {
    /// Forgeries, all sorts and all ways together.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    tries: u64,
    /// Seed of everything random, the keys too.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Folder for data and table [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// A few, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    seed: u64,
    tries: u64,
    /// True ones that were shown, and how many of them were taken.
    true_ones: u64,
    true_ones_taken: u64,
    /// By sort and way.
    forged: Vec<Forged>,
    claims: Vec<Claim>,
}

/// What became of one sort, forged in one way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Forged {
    kept: String,
    way: String,
    tries: u64,
    taken: u64,
    /// Edits that brought forth a true one and were done anew.
    unchanged: u64,
    /// The first that were taken.
    examples: Vec<String>,
}

fn name(kept: SignedItem) -> &'static str {
    match kept {
        SignedItem::Ticket => "ticket",
        SignedItem::Lease => "lease",
        SignedItem::Invitation => "invitation",
    }
}

/// True ones, of all sorts.
struct Bench {
    mint: Mint,
    /// Of a gateway whose keys have the same ids.
    others: Mint,
    /// By sort.
    true_ones: Vec<Vec<String>>,
    known: Vec<HashSet<String>>,
    tags: Vec<[u8; 2]>,
}

/// Runs it, and returns whether what was to hold holds.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let out = folder(NAME, options.out.clone(), options.quick)?;
    fs::create_dir_all(out.join("data")).trouble(out.display())?;
    let tries = if options.quick { options.tries.min(TRIES_QUICK) } else { options.tries };
    let bench = Bench::new(options.seed, &out)?;
    let data = forge(&bench, options.seed, tries)?;
    data::save(&out.join("data/result.json"), &data)?;
    let table = tell(&data);
    data::write(&out.join("table.md"), &markdown(&data))?;
    print!("{table}{}", claims::text(&data.claims));
    Ok(claims::all_hold(&data.claims))
}

impl Bench {
    fn new(seed: u64, folder: &Path) -> Result<Bench> {
        let mut rng = Rng::stream(seed, 0);
        // Rotated once: two keys are taken, and the second of them signs nothing any more.
        let mint = gateway(&mut rng, folder)?;
        let others = gateway(&mut rng, folder)?;
        let mut true_ones = Vec::new();
        for kept in SignedItem::ALL {
            let make = |at: usize| mint.make(kept, at % KINDS.len(), rng.below(NUMBERS) as u64);
            true_ones.push((0..TRUE_ONES).map(make).collect::<Vec<_>>());
        }
        let tags = true_ones[0][..KINDS.len()].iter().map(|text| {
            let bytes = bytes_of(text);
            [bytes[TAG], bytes[TAG + 1]]
        });
        let tags = tags.collect();
        let known = true_ones.iter().map(|texts| texts.iter().cloned().collect()).collect();
        Ok(Bench { mint, others, true_ones, known, tags })
    }

    /// Returns how many true ones there are, and how many of them are taken.
    fn shown(&self) -> (u64, u64) {
        let all = || SignedItem::ALL.into_iter().zip(&self.true_ones);
        let all = all().flat_map(|(kept, texts)| texts.iter().map(move |text| (kept, text)));
        all.fold((0, 0), |(shown, taken), (kept, text)| {
            (shown + 1, taken + u64::from(self.mint.takes(kept, text.as_bytes())))
        })
    }

    fn pick<'a>(&'a self, rng: &mut Rng, kept: SignedItem) -> &'a str {
        let all = &self.true_ones[kept as usize];
        &all[rng.below(all.len())]
    }

    /// Returns a forgery that is no true one, and how often one came of it before.
    fn forged(&self, rng: &mut Rng, kept: SignedItem, way: Way) -> Option<(String, u64)> {
        for unchanged in 0..UNCHANGED_MAX {
            let text = self.edited(rng, kept, way);
            if !self.known[kept as usize].contains(&text) {
                return Some((text, unchanged as u64));
            }
        }
        None
    }
}

/// Returns the mint of a gateway with fresh keys, whose ids are those of every other.
fn gateway(rng: &mut Rng, folder: &Path) -> Result<Mint> {
    let lines: String = [1, 0].map(|id| format!("{id} {}\n", secret(rng))).concat();
    mint_with(&lines, folder)
}

fn secret(rng: &mut Rng) -> String {
    (0..4).map(|_| format!("{:016x}", rng.bits())).collect()
}

/// Returns the mint of a gateway whose file of keys has these lines.
fn mint_with(lines: &str, folder: &Path) -> Result<Mint> {
    let path = folder.join("data/keys.new");
    fs::write(&path, lines).trouble(path.display())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).trouble(path.display())?;
    let keys = Keys::open(&path).trouble("the keys");
    fs::remove_file(&path).trouble(path.display())?;
    Mint::new(&keys?, &KINDS).map_err(|_| Trouble::Failed("two kinds have one tag".to_string()))
}

/// So many forgeries of one sort in one way, from one stream of random numbers.
#[derive(Clone, Copy)]
struct Work {
    kept: SignedItem,
    way: Way,
    tries: u64,
    stream: u64,
}

/// Shares the tries out over sorts and ways, equally.
fn works(tries: u64) -> Vec<Work> {
    let parts: Vec<(SignedItem, Way)> =
        SignedItem::ALL.into_iter().flat_map(|kept| Way::ALL.map(|way| (kept, way))).collect();
    let mut works = Vec::new();
    for (at, (kept, way)) in (0..).zip(&parts) {
        let count = parts.len() as u64;
        let mut left = tries / count + u64::from(at < tries % count);
        while left > 0 {
            let own = left.min(TRIES_EACH);
            works.push(Work { kept: *kept, way: *way, tries: own, stream: 1 + works.len() as u64 });
            left -= own;
        }
    }
    works
}

fn forge(bench: &Bench, seed: u64, tries: u64) -> Result<Data> {
    let works = works(tries);
    let done = parallel::map(&works, |work| done(bench, seed, *work));
    let mut forged: Vec<Forged> = Vec::new();
    for part in done {
        let Some(part) = part else { return failed("an edit brings forth nothing but true ones") };
        match forged.last_mut().filter(|last| (&last.kept, &last.way) == (&part.kept, &part.way)) {
            Some(last) => {
                last.tries += part.tries;
                last.taken += part.taken;
                last.unchanged += part.unchanged;
                last.examples.extend(part.examples);
                last.examples.truncate(3);
            }
            None => forged.push(part),
        }
    }
    let (true_ones, true_ones_taken) = bench.shown();
    let shown: u64 = forged.iter().map(|part| part.tries).sum();
    let taken: u64 = forged.iter().map(|part| part.taken).sum();
    let claims = vec![
        Claim::new(format!("of {shown} forgeries none is taken: {taken}"), taken == 0 && shown == tries),
        Claim::new(
            format!("of {true_ones} true ones all are taken: {true_ones_taken}"),
            true_ones == true_ones_taken,
        ),
    ];
    Ok(Data { experiment: NAME.to_string(), seed, tries, true_ones, true_ones_taken, forged, claims })
}

fn done(bench: &Bench, seed: u64, work: Work) -> Option<Forged> {
    let Work { kept, way, tries, stream } = work;
    let mut rng = Rng::stream(seed, stream);
    let mut out = Forged {
        kept: name(kept).to_string(),
        way: way.text().to_string(),
        tries,
        taken: 0,
        unchanged: 0,
        examples: vec![],
    };
    for _ in 0..tries {
        let (text, unchanged) = bench.forged(&mut rng, kept, way)?;
        out.unchanged += unchanged;
        if bench.mint.takes(kept, text.as_bytes()) {
            out.taken += 1;
            out.examples.push(text);
        }
    }
    Some(out)
}

fn rows(data: &Data) -> Vec<Vec<String>> {
    let of = |way: Way, kept: SignedItem| {
        data.forged.iter().find(|part| part.way == way.text() && part.kept == name(kept))
    };
    let row = |way: Way| {
        let parts = SignedItem::ALL.map(|kept| of(way, kept));
        let sum = |count: fn(&Forged) -> u64| parts.iter().flatten().map(|part| count(part)).sum::<u64>();
        let tries = parts.map(|part| part.map_or(0, |part| part.tries).to_string());
        let mut row = vec![way.text().to_string()];
        row.extend(tries);
        row.extend([sum(|part| part.taken).to_string(), sum(|part| part.unchanged).to_string()]);
        row
    };
    Way::ALL.map(row).to_vec()
}

const HEADINGS: [&str; 6] = ["forged", "tickets", "leases", "invitations", "taken", "done anew"];

fn tell(data: &Data) -> String {
    format!("\nForgeries by what was done\n{}", numbers(&HEADINGS, &rows(data)))
}

fn markdown(data: &Data) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heading = HEADINGS.map(str::to_string);
    let mut out = line(&heading) + "|---|---:|---:|---:|---:|---:|\n";
    out.extend(rows(data).iter().map(|row| line(row)));
    out + "\n" + &claims::list(&data.claims)
}

#[cfg(test)]
mod tests;

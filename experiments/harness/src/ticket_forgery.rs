//! `ticket-forgery`: valid tickets, leases and invitations are edited in every way, and the
//! gateway's own code checks them.
//!
//! Each unit of work has its own random stream, so the same seed makes the same forgeries on any
//! machine, with any number of cores.

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
/// Forgeries with --quick.
const TRIES_QUICK: u64 = 100_000;
/// Forgeries in one unit of work.
const TRIES_EACH: u64 = 50_000;
/// Valid items of each sort, half for each kind of session.
const TRUE_ONES: usize = 2000;
const KINDS: [&str; 2] = ["visit", "shopping"];
/// The numbers in valid items are below this.
const NUMBERS: usize = 1 << 40;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TAG: usize = 2;
/// After this many edits in a row that gave a valid item, the way of forging is given up.
const UNCHANGED_MAX: usize = 64;

/// Does the gateway ever accept a ticket, a lease or an invitation that it did not write?
///
/// Valid tickets, leases and invitations are edited, and the gateway's own code reads them. It
/// holds if it accepts all valid ones, and none of the others.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  ./experiments/run ticket-forgery                    some 10 seconds on two cores
  ./experiments/run ticket-forgery --tries 1000000000 --seed 2")]
pub(crate) struct Options {
    /// Forgeries, of all sorts and in all ways together.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    tries: u64,
    /// Seed of everything random, the keys too.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Folder for data and table [default: the experiment's own; with --quick one under target/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// A few forgeries, to see whether everything runs.
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Data {
    experiment: String,
    seed: u64,
    tries: u64,
    /// Valid items that were checked, and how many were accepted.
    true_ones: u64,
    true_ones_taken: u64,
    /// By sort and way.
    forged: Vec<Forged>,
    claims: Vec<Claim>,
}

/// The results of one sort, forged in one way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Forged {
    kept: String,
    way: String,
    tries: u64,
    taken: u64,
    /// Edits that gave a valid item and were repeated.
    unchanged: u64,
    /// The first that were accepted.
    examples: Vec<String>,
}

fn name(kept: SignedItem) -> &'static str {
    match kept {
        SignedItem::Ticket => "ticket",
        SignedItem::Lease => "lease",
        SignedItem::Invitation => "invitation",
    }
}

/// Valid items of all sorts.
struct Bench {
    mint: Mint,
    /// The mint of another gateway, whose keys have the same ids.
    others: Mint,
    /// By sort.
    true_ones: Vec<Vec<String>>,
    known: Vec<HashSet<String>>,
    tags: Vec<[u8; 2]>,
}

/// Runs it, and returns whether the claims hold.
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
        // Keys were rotated once: two are accepted, and the second no longer signs.
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

    /// Returns how many valid items there are, and how many of them are accepted.
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

    /// Returns a forgery that is not a valid item, and how many edits before it gave one.
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

/// Returns the mint of a gateway with fresh keys; every such gateway has the same key ids.
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

/// A number of forgeries of one sort in one way, from one random stream.
#[derive(Clone, Copy)]
struct Work {
    kept: SignedItem,
    way: Way,
    tries: u64,
    stream: u64,
}

/// Distributes the tries equally over sorts and ways.
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

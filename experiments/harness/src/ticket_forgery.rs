//! `ticket-forgery`: true tickets, leases and invitations are edited in every way there is, and shown to the gateway's own code.
//!
//! One work is one stream of random numbers, so the same seed makes the same forgeries on any machine, whatever its cores.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_identity::keys::Keys;
use suimon_identity::mint::{Kept, Mint};
use suimon_model::Rng;
use suimon_statistics::table::numbers;

use crate::claims::{self, Claim};
use crate::common::folder;
use crate::data;
use crate::parallel;
use crate::trouble::{Result, Trouble, While, failed};

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
/// Bytes of the signature, at the end of each.
const MAC: usize = 16;
/// Where the version, the key's id and the kind's tag stand in each.
const VERSION: usize = 0;
const KEY: usize = 1;
const TAG: usize = 2;
/// A way is given up for another where all it does so often is to bring forth a true one.
const UNCHANGED_MAX: usize = 64;

/// Is anything ever taken for a place, a session or an invitation that the gateway did not write?
///
/// True tickets, leases and invitations are edited, and the gateway's own code reads them. It holds if all that are true are taken, and none of the others.
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

/// A way to forge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Bits,
    Letters,
    Swapped,
    Fields,
    Sewn,
    Length,
    Alphabet,
    Purpose,
    Names,
    OtherKeys,
    MadeUp,
}

impl Way {
    const ALL: [Way; 11] = [
        Way::Bits,
        Way::Letters,
        Way::Swapped,
        Way::Fields,
        Way::Sewn,
        Way::Length,
        Way::Alphabet,
        Way::Purpose,
        Way::Names,
        Way::OtherKeys,
        Way::MadeUp,
    ];

    fn text(self) -> &'static str {
        match self {
            Way::Bits => "one to eight bits turned over",
            Way::Letters => "one to four letters replaced",
            Way::Swapped => "bytes, or runs of them, that change places",
            Way::Fields => "fields of another true one",
            Way::Sewn => "two true ones cut at one place and sewn together",
            Way::Length => "cut, lengthened, or two in one",
            Way::Alphabet => "the same bytes in another spelling",
            Way::Purpose => "a true one of another sort",
            Way::Names => "another version, key or kind named in it",
            Way::OtherKeys => "signed rightly, with keys that are not ours",
            Way::MadeUp => "made up, with the right beginning",
        }
    }
}

/// Returns where the fields of a sort end, the signature included; the first begins at 0.
fn fields(kept: Kept) -> &'static [usize] {
    match kept {
        Kept::Ticket => &[1, 2, 4, 5, 9, 11, 17, 21, 25, 27, 31, 35, 37, 53],
        Kept::Lease => &[1, 2, 4, 12, 16, 32],
        Kept::Invitation => &[1, 2, 4, 8, 16, 32],
    }
}

fn name(kept: Kept) -> &'static str {
    match kept {
        Kept::Ticket => "ticket",
        Kept::Lease => "lease",
        Kept::Invitation => "invitation",
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
        for kept in Kept::ALL {
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
        let all = || Kept::ALL.into_iter().zip(&self.true_ones);
        let all = all().flat_map(|(kept, texts)| texts.iter().map(move |text| (kept, text)));
        all.fold((0, 0), |(shown, taken), (kept, text)| {
            (shown + 1, taken + u64::from(self.mint.takes(kept, text.as_bytes())))
        })
    }

    fn pick<'a>(&'a self, rng: &mut Rng, kept: Kept) -> &'a str {
        let all = &self.true_ones[kept as usize];
        &all[rng.below(all.len())]
    }

    /// Returns a forgery that is no true one, and how often one came of it before.
    fn forged(&self, rng: &mut Rng, kept: Kept, way: Way) -> Option<(String, u64)> {
        for unchanged in 0..UNCHANGED_MAX {
            let text = self.edited(rng, kept, way);
            if !self.known[kept as usize].contains(&text) {
                return Some((text, unchanged as u64));
            }
        }
        None
    }

    fn edited(&self, rng: &mut Rng, kept: Kept, way: Way) -> String {
        let text = self.pick(rng, kept);
        match way {
            Way::Bits => {
                let mut bytes = bytes_of(text);
                for _ in 0..=rng.below(8) {
                    let bit = rng.below(bytes.len() * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                text_of(&bytes)
            }
            Way::Letters => {
                let mut letters = text.as_bytes().to_vec();
                for _ in 0..=rng.below(4) {
                    let at = rng.below(letters.len());
                    letters[at] = ALPHABET[rng.below(64)];
                }
                String::from_utf8(letters).expect("letters of the alphabet")
            }
            Way::Swapped => {
                let mut bytes = bytes_of(text);
                let length = 1 + rng.below(8);
                let places = bytes.len() - length + 1;
                let (one, other) = (rng.below(places), rng.below(places));
                (0..length).for_each(|at| bytes.swap(one + at, other + at));
                text_of(&bytes)
            }
            Way::Fields => {
                let (mut bytes, other) = (bytes_of(text), bytes_of(self.pick(rng, kept)));
                let ends = fields(kept);
                for _ in 0..=rng.below(3) {
                    let field = rng.below(ends.len());
                    let begin = if field == 0 { 0 } else { ends[field - 1] };
                    bytes[begin..ends[field]].copy_from_slice(&other[begin..ends[field]]);
                }
                text_of(&bytes)
            }
            Way::Sewn => {
                let other = self.pick(rng, kept);
                let at = rng.below(text.len() + 1);
                format!("{}{}", &text[..at], &other[at..])
            }
            Way::Length => self.of_other_length(rng, kept, text),
            Way::Alphabet => respelt(rng, text),
            Way::Purpose => {
                let others: Vec<Kept> = Kept::ALL.into_iter().filter(|other| *other != kept).collect();
                let other = others[rng.below(others.len())];
                let other = bytes_of(self.pick(rng, other));
                let mut bytes = bytes_of(text);
                // As long as one of this sort, where it is not; the signature stays at the end.
                let shared = bytes.len().min(other.len()) - MAC;
                let end = bytes.len() - MAC;
                bytes[..shared].copy_from_slice(&other[..shared]);
                bytes[end..].copy_from_slice(&other[other.len() - MAC..]);
                text_of(&bytes)
            }
            Way::Names => {
                let mut bytes = bytes_of(text);
                for _ in 0..=rng.below(2) {
                    match rng.below(3) {
                        0 => bytes[VERSION] = rng.below(256) as u8,
                        1 => bytes[KEY] = rng.below(3) as u8,
                        _ => bytes[TAG..TAG + 2].copy_from_slice(&self.tags[rng.below(self.tags.len())]),
                    }
                }
                text_of(&bytes)
            }
            Way::OtherKeys => self.others.make(kept, rng.below(KINDS.len()), rng.below(NUMBERS) as u64),
            Way::MadeUp => {
                let mut bytes = bytes_of(text);
                let from = TAG + 2 + rng.below(bytes.len() - MAC - TAG - 1);
                bytes[from..].iter_mut().for_each(|byte| *byte = rng.bits() as u8);
                text_of(&bytes)
            }
        }
    }

    fn of_other_length(&self, rng: &mut Rng, kept: Kept, text: &str) -> String {
        let mut bytes = bytes_of(text);
        match rng.below(6) {
            0 => text[..rng.below(text.len())].to_string(),
            1 => text[1 + rng.below(text.len() - 1)..].to_string(),
            2 => {
                let more: Vec<u8> = (0..=rng.below(40)).map(|_| ALPHABET[rng.below(64)]).collect();
                format!("{text}{}", String::from_utf8(more).expect("letters of the alphabet"))
            }
            3 => format!("{text}{}", self.pick(rng, kept)),
            4 => {
                bytes.remove(rng.below(bytes.len()));
                text_of(&bytes)
            }
            _ => {
                let at = rng.below(bytes.len() + 1);
                bytes.insert(at, rng.bits() as u8);
                text_of(&bytes)
            }
        }
    }
}

/// Returns another spelling of the same.
fn respelt(rng: &mut Rng, text: &str) -> String {
    let bytes = bytes_of(text);
    match rng.below(8) {
        0 => STANDARD.encode(&bytes),
        1 => format!("{text}{}", "=".repeat(1 + rng.below(3))),
        2 => {
            // The last letter has bits left over: two of 71 letters, four of 43.
            let (rest, last) = text.split_at(text.len() - 1);
            let place = ALPHABET.iter().position(|letter| *letter == last.as_bytes()[0]).unwrap_or_default();
            let spare = if bytes.len() % 3 == 1 { 16 } else { 4 };
            format!("{rest}{}", char::from(ALPHABET[place - place % spare + 1 + rng.below(spare - 1)]))
        }
        3 => text.replace('-', "+").replace('_', "/") + if text.contains(['-', '_']) { "" } else { "=" },
        4 => {
            let at = rng.below(text.len());
            format!("{}%{:02X}{}", &text[..at], text.as_bytes()[at], &text[at + 1..])
        }
        5 => {
            let blank = [" ", "\t", "\n", "\r\n", "\"", "\0", ".", ","][rng.below(8)];
            let at = rng.below(text.len() + 1);
            format!("{}{blank}{}", &text[..at], &text[at..])
        }
        6 => {
            let turned = text.bytes().map(|letter| if rng.chance(0.5) { turned(letter) } else { letter });
            String::from_utf8(turned.collect()).expect("ASCII")
        }
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Returns a capital for a small letter and the other way round.
fn turned(letter: u8) -> u8 {
    if letter.is_ascii_alphabetic() { letter ^ 0x20 } else { letter }
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

fn bytes_of(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).expect("true ones are base64url")
}

fn text_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// So many forgeries of one sort in one way, from one stream of random numbers.
#[derive(Clone, Copy)]
struct Work {
    kept: Kept,
    way: Way,
    tries: u64,
    stream: u64,
}

/// Shares the tries out over sorts and ways, equally.
fn works(tries: u64) -> Vec<Work> {
    let parts: Vec<(Kept, Way)> =
        Kept::ALL.into_iter().flat_map(|kept| Way::ALL.map(|way| (kept, way))).collect();
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
    let of = |way: Way, kept: Kept| {
        data.forged.iter().find(|part| part.way == way.text() && part.kept == name(kept))
    };
    let row = |way: Way| {
        let parts = Kept::ALL.map(|kept| of(way, kept));
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
mod tests {
    use super::*;

    fn bench(seed: u64) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        Bench::new(seed, folder.path()).unwrap()
    }

    #[test]
    fn tries_are_shared_out_to_the_last_one() {
        for tries in [1, 33, 1000, 12_345_678] {
            let works = works(tries);
            assert_eq!(works.iter().map(|work| work.tries).sum::<u64>(), tries);
            assert!(works.windows(2).all(|pair| pair[0].stream + 1 == pair[1].stream));
        }
    }

    #[test]
    fn each_way_makes_something_that_is_no_true_one_and_each_time_another() {
        let bench = bench(1);
        assert_eq!(bench.shown(), (3 * TRUE_ONES as u64, 3 * TRUE_ONES as u64));
        for kept in Kept::ALL {
            for way in Way::ALL {
                let mut rng = Rng::new(5);
                let texts: HashSet<String> =
                    (0..200).map(|_| bench.forged(&mut rng, kept, way).expect("an edit").0).collect();
                assert!(texts.len() > 150, "{kept:?} {way:?}: {}", texts.len());
                assert!(texts.iter().all(|text| !bench.known[kept as usize].contains(text)));
            }
        }
    }

    #[test]
    fn a_gateway_that_takes_what_others_have_signed_is_found_out() {
        let mut bench = bench(1);
        let data = forge(&bench, 1, 3300).unwrap();
        assert!(claims::all_hold(&data.claims), "{:?}", data.claims);
        assert_eq!(data, forge(&bench, 1, 3300).unwrap(), "the same seed, the same forgeries");
        // Others who have our keys.
        bench.others = self::bench(1).mint;
        let data = forge(&bench, 1, 3300).unwrap();
        assert!(!data.claims[0].holds, "{:?}", data.claims);
        let taken = data.forged.iter().filter(|part| part.taken > 0);
        let taken: Vec<_> = taken.map(|part| (part.way.as_str(), part.taken, part.tries)).collect();
        assert_eq!(taken, [(Way::OtherKeys.text(), 100, 100); 3]);
    }

    #[test]
    fn fields_end_where_the_text_does() {
        let bench = bench(2);
        for kept in Kept::ALL {
            let length = bytes_of(&bench.true_ones[kept as usize][0]).len();
            let ends = fields(kept);
            assert_eq!(ends.last(), Some(&length));
            assert!(ends.is_sorted() && ends.contains(&(length - MAC)) && ends.contains(&(TAG + 2)));
        }
    }
}

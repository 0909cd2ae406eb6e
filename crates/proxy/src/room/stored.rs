//! What of the lines survives a restart: a small file, written each second that something changed, whole or not at all.
//!
//! Numbers may be drawn between the last writing and a crash. So the file names more numbers than were drawn, and whoever starts from it goes on behind
//! them: no number is drawn twice, and nobody loses theirs.

use super::LineOf;
use crate::whole_file;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::{error, fmt};
use suimon_gate::line::{LANES, Lottery, Reached, Saved, State};
use suimon_model::{Instant, seconds};

/// What the file says it is.
const WHAT: &str = "suimon waiting room, 1";
/// The longest file that is read.
const BYTES_MAX: u64 = 1 << 20;

/// The lines in the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) lines: Vec<StoredLine>,
}

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredLine {
    pub(crate) kind: String,
    pub(crate) of: LineOf,
    pub(crate) saved: Saved,
    /// So many numbers may have been drawn since it was written.
    pub(crate) skipped: u64,
    /// What the operator has said to all who wait, if anything, in place of what the settings say.
    pub(crate) said: Option<String>,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub enum StoredError {
    /// It cannot be read.
    Io(PathBuf, io::Error),
    /// It is not ours, and what is wrong with it.
    Foreign(PathBuf, &'static str),
}

impl Stored {
    /// Returns what the file says; nothing, if there is none. `now`: the time, since 1970 and by the gate's clock.
    pub(crate) fn read(path: &Path, now: (u32, Instant)) -> Result<Stored, StoredError> {
        let io = |error| StoredError::Io(path.to_owned(), error);
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::default()),
            Err(error) => return Err(io(error)),
            Ok(there) if there.len() > BYTES_MAX => {
                return Err(StoredError::Foreign(path.to_owned(), "it is too long"));
            }
            Ok(_) => {}
        }
        let text = fs::read(path).map_err(io)?;
        Stored::parse(&text, now).map_err(|what| StoredError::Foreign(path.to_owned(), what))
    }

    fn parse(text: &[u8], now: (u32, Instant)) -> Result<Stored, &'static str> {
        let file: Value = serde_json::from_slice(text).map_err(|_| "it is no JSON")?;
        if file["what"] != WHAT {
            return Err("it is no waiting room's, or another version's");
        }
        let lines = file["lines"].as_array().ok_or("it names no lines")?;
        let lines = lines.iter().map(|line| StoredLine::parse(line, now).ok_or("a line in it is incomplete"));
        Ok(Stored { lines: lines.collect::<Result<_, _>>()? })
    }

    /// Returns the file's text. `now`: the time, since 1970 and by the gate's clock.
    pub(crate) fn text(&self, now: (u32, Instant)) -> String {
        let lines: Vec<Value> = self.lines.iter().map(|line| line.json(now)).collect();
        format!("{:#}\n", json!({ "what": WHAT, "lines": lines }))
    }

    /// Writes it to the file, whole or not at all.
    pub(crate) fn write(&self, path: &Path, now: (u32, Instant)) -> io::Result<()> {
        whole_file::write(path, self.text(now).as_bytes())
    }
}

impl StoredLine {
    fn parse(line: &Value, (unix, instant): (u32, Instant)) -> Option<StoredLine> {
        let numbers = |name: &str| -> Option<[u64; LANES]> {
            let list = line[name].as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()?;
            list.try_into().ok()
        };
        let (next, called) = (numbers("next")?, numbers("called")?);
        let coming =
            |lane: &Value| -> Option<Vec<u64>> { lane.as_array()?.iter().map(Value::as_u64).collect() };
        let coming: Vec<Vec<u64>> = line["coming"].as_array()?.iter().map(coming).collect::<Option<_>>()?;
        let coming: [Vec<u64>; LANES] = coming.try_into().ok()?;
        let state = match line["state"].as_str()? {
            "moving" => State::Moving,
            "paused" => State::Paused,
            "closed" => State::Closed,
            "opening" => {
                let left = line["opens_at"].as_f64()? - f64::from(unix);
                State::Opening(instant + seconds(left.max(0.0)))
            }
            _ => return None,
        };
        let lottery = |lottery: &Value| -> Option<Lottery> {
            Some(Lottery::new(seed(&lottery["seed"])?, lottery["from"].as_u64()?, lottery["to"].as_u64()?))
        };
        let lotteries: Vec<Lottery> =
            line["lotteries"].as_array()?.iter().map(lottery).collect::<Option<_>>()?;
        let in_order = |pair: &[Lottery]| pair[0].range().1 <= pair[1].range().0;
        if lotteries.len() > Saved::LOTTERIES_MAX || !lotteries.windows(2).all(in_order) {
            return None;
        }
        let lots = match &line["lots"] {
            Value::Null => None,
            lots => Some(seed(lots)?),
        };
        Some(StoredLine {
            kind: line["kind"].as_str()?.to_owned(),
            of: LineOf {
                epoch: u32::try_from(line["epoch"].as_u64()?).ok()?,
                start: u16::try_from(line["start"].as_u64()?).ok()?,
            },
            saved: Saved {
                lanes: std::array::from_fn(|lane| Reached {
                    next: next[lane],
                    called: called[lane].min(next[lane]),
                    coming: coming[lane].clone(),
                }),
                leaving_per_second: line["leaving_per_second"]
                    .as_f64()
                    .filter(|rate| (0.0..1.0).contains(rate))?,
                lots,
                lotteries,
                state,
            },
            skipped: line["skipped"].as_u64()?,
            said: line["said"].as_str().map(str::to_owned),
        })
    }

    fn json(&self, (unix, instant): (u32, Instant)) -> Value {
        let Saved { lanes, leaving_per_second, lots, lotteries, state } = &self.saved;
        let (name, opens_at) = match state {
            State::Moving => ("moving", None),
            State::Paused => ("paused", None),
            State::Closed => ("closed", None),
            State::Opening(at) => ("opening", Some(f64::from(unix) + at.secs_since(instant))),
        };
        json!({
            "kind": self.kind,
            "epoch": self.of.epoch,
            "start": self.of.start,
            "next": lanes.each_ref().map(|lane| lane.next),
            "called": lanes.each_ref().map(|lane| lane.called),
            "coming": lanes.each_ref().map(|lane| &lane.coming),
            "skipped": self.skipped,
            "said": self.said,
            "leaving_per_second": leaving_per_second,
            "state": name,
            "opens_at": opens_at,
            "lots": lots.map(hex),
            "lotteries": lotteries.iter().map(|lottery| {
                let (from, to) = lottery.range();
                json!({ "seed": hex(lottery.seed()), "from": from, "to": to })
            }).collect::<Vec<Value>>(),
        })
    }
}

/// Returns a seed as it is published, hexadecimal.
pub(super) fn hex(seed: [u64; 2]) -> String {
    format!("{:016x}{:016x}", seed[0], seed[1])
}

fn seed(text: &Value) -> Option<[u64; 2]> {
    let text = text.as_str().filter(|text| text.len() == 32 && text.is_ascii())?;
    let half = |digits: &str| u64::from_str_radix(digits, 16).ok();
    Some([half(&text[..16])?, half(&text[16..])?])
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredError::Io(path, error) => write!(f, "{}: cannot be read: {error}", path.display()),
            StoredError::Foreign(path, what) => write!(
                f,
                "{}: {what}; the places of those who wait are in it: bring back the file, or remove it to begin a new line (whoever waited comes first in it)",
                path.display()
            ),
        }
    }
}

impl error::Error for StoredError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(state: State) -> Stored {
        let saved = Saved {
            lanes: [(0, 0, vec![]), (3, 1, vec![]), (1_000_000, 999, vec![990, 997]), (0, 0, vec![])]
                .map(|(next, called, coming)| Reached { next, called, coming }),
            leaving_per_second: 0.0003,
            lots: Some([1, u64::MAX]),
            lotteries: vec![Lottery::new([7, 8], 5, 900), Lottery::new([9, 8], 900, 999)],
            state,
        };
        Stored {
            lines: vec![StoredLine {
                kind: "visit".to_owned(),
                of: LineOf { epoch: 77, start: 3 },
                saved,
                skipped: 40,
                said: Some("Back at 15:10.".to_owned()),
            }],
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let at = |n: f64| Instant::ORIGIN + seconds(n);
        for state in [State::Moving, State::Paused, State::Closed] {
            let text = stored(state).text((1000, at(5.0)));
            assert_eq!(Stored::parse(text.as_bytes(), (2000, at(0.0))), Ok(stored(state)));
        }
        let text = stored(State::Opening(at(65.0))).text((1000, at(5.0)));
        let read = Stored::parse(text.as_bytes(), (1010, at(2.0))).unwrap();
        assert_eq!(read.lines[0].saved.state, State::Opening(at(52.0)), "another process, another origin");
    }

    #[test]
    fn a_file_that_is_not_ours_is_told_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("room.json");
        let now = (1000, Instant::ORIGIN);
        assert_eq!(Stored::read(&path, now).unwrap(), Stored::default());
        for text in [
            "",
            "{}",
            "[1]",
            "{\"what\":\"suimon waiting room, 1\"}",
            "{\"what\":\"suimon waiting room, 1\",\"lines\":[{}]}",
        ] {
            fs::write(&path, text).unwrap();
            let error = Stored::read(&path, now).unwrap_err().to_string();
            assert!(error.contains("room.json") && error.contains("remove it"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        stored(State::Moving).write(&path, now).unwrap();
        assert_eq!(Stored::read(&path, now).unwrap(), stored(State::Moving));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left there");
    }
}

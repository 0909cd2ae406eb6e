//! What of the lines survives a restart: a small file, written every second in which something
//! changed, whole or not at all.
//!
//! Numbers may be drawn between the last write and a crash. So the file says how many those may be,
//! and a line that starts from it goes on behind them: no number is drawn twice, and nobody loses
//! theirs. They belong to nobody until a visitor comes with one. After a clean shutdown there are
//! none.

use crate::whole_file::{self, SetAside};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::{error, fmt};
use suimon_line::{LANES, LineStatus, Lottery, SavedLane, SavedLine};
use suimon_model::{Instant, seconds};

/// The file's identification.
const WHAT: &str = "suimon waiting room, 1";
/// The longest file that is read, and written: a longer one is written without the visitors
/// present.
const BYTES_MAX: u64 = 64 << 20;

/// The lines in the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stored {
    /// In no particular order, one a kind.
    pub lines: Vec<StoredLine>,
}

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredLine {
    /// The name of its kind of session.
    pub kind: String,
    /// Which line it is.
    pub of: LineEpoch,
    /// The state of the line.
    pub saved: SavedLine,
    /// The maximum of numbers drawn since it was written.
    pub skipped: u64,
    /// The operator's message to all waiting visitors, if any, in place of the one in the settings.
    pub said: Option<String>,
    /// Until when leases were ended by its opening, seconds since 1970; 0: none were.
    pub leases_ended: u32,
}

/// One line, as its tickets know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineEpoch {
    /// Another line has another.
    pub epoch: u32,
    /// Counts the starts of the gateway in this epoch.
    pub start: u16,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub enum StoredError {
    /// It cannot be read.
    Io(PathBuf, io::Error),
    /// It cannot be used: what is wrong with it, and why it cannot be set aside.
    InTheWay(PathBuf, &'static str, io::Error),
}

impl Stored {
    /// Returns the content of the file; nothing, if there is none, or none that can be used: that
    /// is set aside, to be kept there once the start has not failed. `now`: the time, since 1970 and by the
    /// gate's clock.
    pub fn read(path: &Path, now: (u32, Instant)) -> Result<(Stored, Option<SetAside>), StoredError> {
        let io = |error| StoredError::Io(path.to_owned(), error);
        let mut text = Vec::new();
        // One byte more than is allowed shows that it is too long.
        match File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Stored::default(), None)),
            Err(error) => return Err(io(error)),
            Ok(_) => {}
        }
        let what = match Stored::parse(&text, now) {
            Ok(stored) => return Ok((stored, None)),
            Err(what) => what,
        };
        let aside = whole_file::set_aside(path)
            .map_err(|error| StoredError::InTheWay(path.to_owned(), what, error))?;
        tracing::warn!(
            "{}: {what}; it is set aside as {}, and the lines begin anew: visitors who waited keep their tickets and come before newcomers, in the order in \
             which they ask; a pause, a closing or an opening that was ordered is forgotten and must be ordered again; to use the file, put a whole one back under \
             the old name while the gateway is stopped",
            path.display(),
            aside.aside().display()
        );
        Ok((Stored::default(), Some(aside)))
    }

    /// Returns what a text says. `now`: as of [`Stored::read`].
    ///
    /// # Errors
    /// Why it is no file of lines.
    pub fn parse(text: &[u8], now: (u32, Instant)) -> Result<Stored, &'static str> {
        if text.len() as u64 > BYTES_MAX {
            return Err("it is too long");
        }
        if text.is_empty() {
            return Err("it is empty");
        }
        let file: Value = serde_json::from_slice(text).map_err(|_| "it is no JSON, or was cut")?;
        if file["what"] != WHAT {
            return Err("it is no waiting room's, or another version's");
        }
        let lines = file["lines"].as_array().ok_or("it names no lines")?;
        let lines = lines.iter().map(|line| StoredLine::parse(line, now).ok_or("a line in it is incomplete"));
        Ok(Stored { lines: lines.collect::<Result<_, _>>()? })
    }

    /// Returns the file's text. `now`: the time, since 1970 and by the gate's clock.
    pub fn text(&self, now: (u32, Instant)) -> String {
        let lines: Vec<Value> = self.lines.iter().map(|line| line.json(now)).collect();
        let text = format!("{}\n", json!({ "what": WHAT, "lines": lines }));
        if text.len() as u64 <= BYTES_MAX {
            return text;
        }
        // Visitors who are present poll within a minute all the same.
        let bare: Vec<Value> = self.lines.iter().map(|line| line.bare().json(now)).collect();
        format!("{}\n", json!({ "what": WHAT, "lines": bare }))
    }

    /// Writes it to the file, whole or not at all.
    pub fn write(&self, path: &Path, now: (u32, Instant)) -> io::Result<()> {
        whole_file::write(path, self.text(now).as_bytes())
    }
}

impl StoredLine {
    /// Returns it without the visitors present.
    fn bare(&self) -> StoredLine {
        let mut bare = self.clone();
        for lane in &mut bare.saved.lanes {
            (lane.coming, lane.there) = (Vec::new(), Vec::new());
        }
        bare
    }

    fn parse(line: &Value, (unix, instant): (u32, Instant)) -> Option<StoredLine> {
        let numbers = |name: &str| -> Option<[u64; LANES]> {
            let list = line[name].as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()?;
            list.try_into().ok()
        };
        let lists = |name: &str| -> Option<[Vec<u64>; LANES]> {
            let list =
                |lane: &Value| lane.as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>();
            let lists = line[name].as_array()?.iter().map(list).collect::<Option<Vec<_>>>()?;
            lists.try_into().ok()
        };
        let runs = |name: &str| -> Option<[Vec<(u64, u64)>; LANES]> {
            let run = |run: &Value| Some((run.get(0)?.as_u64()?, run.get(1)?.as_u64()?));
            let list = |lane: &Value| lane.as_array()?.iter().map(run).collect::<Option<Vec<(u64, u64)>>>();
            let lists = line[name].as_array()?.iter().map(list).collect::<Option<Vec<_>>>()?;
            lists.try_into().ok()
        };
        let (next, called, settled) = (numbers("next")?, numbers("called")?, numbers("settled")?);
        let nobodys_called = numbers("nobodys_called")?;
        let (mut coming, mut there, mut nobodys) = (lists("coming")?, runs("there")?, runs("nobodys")?);
        let lanes = std::array::from_fn(|lane| SavedLane {
            next: next[lane],
            called: called[lane],
            coming: std::mem::take(&mut coming[lane]),
            there: std::mem::take(&mut there[lane]),
            settled: settled[lane],
            nobodys: std::mem::take(&mut nobodys[lane]),
            nobodys_called: nobodys_called[lane],
        });
        if !lanes.iter().all(SavedLane::is_sound) {
            return None;
        }
        let state = match line["state"].as_str()? {
            "moving" => LineStatus::Moving,
            "paused" => LineStatus::Paused,
            "closed" => LineStatus::Closed,
            "opening" => {
                let left = line["opens_at"].as_f64()? - f64::from(unix);
                LineStatus::Opening(instant + seconds(left.max(0.0)))
            }
            _ => return None,
        };
        let lottery = |lottery: &Value| -> Option<Lottery> {
            Some(Lottery::new(seed(&lottery["seed"])?, lottery["from"].as_u64()?, lottery["to"].as_u64()?))
        };
        let lotteries: Vec<Lottery> =
            line["lotteries"].as_array()?.iter().map(lottery).collect::<Option<_>>()?;
        let in_order = |pair: &[Lottery]| pair[0].range().1 <= pair[1].range().0;
        if lotteries.len() > SavedLine::LOTTERIES_MAX || !lotteries.windows(2).all(in_order) {
            return None;
        }
        let lots = match &line["lots"] {
            Value::Null => None,
            lots => Some(seed(lots)?),
        };
        Some(StoredLine {
            kind: line["kind"].as_str()?.to_owned(),
            of: LineEpoch {
                epoch: u32::try_from(line["epoch"].as_u64()?).ok()?,
                start: u16::try_from(line["start"].as_u64()?).ok()?,
            },
            saved: SavedLine {
                lanes,
                leaving_per_second: line["leaving_per_second"]
                    .as_f64()
                    .filter(|rate| (0.0..1.0).contains(rate))?,
                lots,
                lotteries,
                state,
            },
            skipped: line["skipped"].as_u64().filter(|skipped| *skipped <= SavedLane::SPAN_MAX)?,
            said: line["said"].as_str().map(str::to_owned),
            leases_ended: line["leases_ended"].as_u64().and_then(|at| u32::try_from(at).ok()).unwrap_or(0),
        })
    }

    fn json(&self, (unix, instant): (u32, Instant)) -> Value {
        let SavedLine { lanes, leaving_per_second, lots, lotteries, state } = &self.saved;
        let (name, opens_at) = match state {
            LineStatus::Moving => ("moving", None),
            LineStatus::Paused => ("paused", None),
            LineStatus::Closed => ("closed", None),
            LineStatus::Opening(at) => ("opening", Some(f64::from(unix) + at.secs_since(instant))),
        };
        json!({
            "kind": self.kind,
            "epoch": self.of.epoch,
            "start": self.of.start,
            "next": lanes.each_ref().map(|lane| lane.next),
            "called": lanes.each_ref().map(|lane| lane.called),
            "coming": lanes.each_ref().map(|lane| &lane.coming),
            "there": lanes.each_ref().map(|lane| &lane.there),
            "settled": lanes.each_ref().map(|lane| lane.settled),
            "nobodys": lanes.each_ref().map(|lane| &lane.nobodys),
            "nobodys_called": lanes.each_ref().map(|lane| lane.nobodys_called),
            "skipped": self.skipped,
            "said": self.said,
            "leases_ended": self.leases_ended,
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
pub fn hex(seed: [u64; 2]) -> String {
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
            StoredError::InTheWay(path, what, error) => write!(
                f,
                "{}: {what}, and it cannot be set aside ({error}): make its folder writable for this user, or name another file with waiting_room.state",
                path.display()
            ),
        }
    }
}

impl error::Error for StoredError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn stored(state: LineStatus) -> Stored {
        let saved = SavedLine {
            lanes: [(0, 0, vec![]), (3, 1, vec![]), (1_000_000, 999, vec![990, 997]), (0, 0, vec![])].map(
                |(next, called, coming)| SavedLane {
                    next,
                    called,
                    coming,
                    there: if next > 4 { vec![(1000, 1200), (5000, next)] } else { vec![] },
                    settled: next.saturating_sub(3),
                    nobodys: if next > 4 { vec![(1200, 2000)] } else { vec![] },
                    nobodys_called: called / 2,
                },
            ),
            leaving_per_second: 0.0003,
            lots: Some([1, u64::MAX]),
            lotteries: vec![Lottery::new([7, 8], 5, 900), Lottery::new([9, 8], 900, 999)],
            state,
        };
        Stored {
            lines: vec![StoredLine {
                kind: "visit".to_owned(),
                of: LineEpoch { epoch: 77, start: 3 },
                saved,
                skipped: 40,
                said: Some("Back at 15:10.".to_owned()),
                leases_ended: 990,
            }],
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let at = |n: f64| Instant::ORIGIN + seconds(n);
        for state in [LineStatus::Moving, LineStatus::Paused, LineStatus::Closed] {
            let text = stored(state).text((1000, at(5.0)));
            assert_eq!(Stored::parse(text.as_bytes(), (2000, at(0.0))), Ok(stored(state)));
        }
        let text = stored(LineStatus::Opening(at(65.0))).text((1000, at(5.0)));
        let read = Stored::parse(text.as_bytes(), (1010, at(2.0))).unwrap();
        assert_eq!(
            read.lines[0].saved.state,
            LineStatus::Opening(at(52.0)),
            "another process, another origin"
        );
    }

    #[test]
    fn a_file_that_cannot_be_used_is_set_aside_and_the_start_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("room.json");
        let now = (1000, Instant::ORIGIN);
        let read = || {
            let (stored, aside) = Stored::read(&path, now).unwrap();
            aside.into_iter().for_each(SetAside::keep);
            stored
        };
        assert_eq!(read(), Stored::default());
        let whole = stored(LineStatus::Moving).text(now);
        let (cut, huge) = (&whole[..whole.len() / 2], whole.replace("1000000", "9000000000000000000"));
        for text in [
            "",
            "{}",
            "[1]",
            "\u{0}\u{1}\u{7f}",
            "{\"what\":\"suimon waiting room, 1\"}",
            "{\"what\":\"suimon waiting room, 1\",\"lines\":[{}]}",
            cut,
            &huge,
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(), Stored::default(), "{text}");
            assert!(!path.exists(), "{text}");
        }
        let is_aside =
            |entry: fs::DirEntry| entry.file_name().to_str().unwrap().starts_with("room.json.broken");
        let kept: Vec<fs::DirEntry> = fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
        assert_eq!(kept.len(), whole_file::BROKEN_MAX);
        assert!(kept.into_iter().all(is_aside));
    }

    #[test]
    fn what_is_written_can_be_read_however_many_lines_there_are_and_however_long() {
        let now = (1000, Instant::ORIGIN);
        // Numbers of nineteen digits would not be sound: these are the longest that are.
        let first = 1_000_000_000_000_000_000;
        let lane = || SavedLane {
            next: first + SavedLane::SPAN_MAX,
            called: first + 20_000,
            coming: (first..first + SavedLane::COMING_MAX as u64).collect(),
            there: (0..SavedLane::THERE_MAX as u64)
                .map(|run| (first + 30_000 + 9 * run, first + 30_003 + 9 * run))
                .collect(),
            settled: first,
            nobodys: vec![],
            nobodys_called: 0,
        };
        let mut long = stored(LineStatus::Moving).lines.remove(0);
        long.saved.lanes = std::array::from_fn(|_| lane());
        let kinds = suimon_params::KINDS_MAX;
        let all = Stored { lines: (0..kinds).map(|_| long.clone()).collect() };
        let text = all.text(now);
        assert!(text.len() as u64 <= BYTES_MAX, "{}", text.len());
        let read = Stored::parse(text.as_bytes(), now).unwrap();
        assert_eq!(read.lines.len(), kinds);
        assert!(read.lines.iter().all(|line| line.saved.lanes[0].next == first + SavedLane::SPAN_MAX));
    }
}

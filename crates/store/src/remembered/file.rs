//! The learned file: a line that says what it is, and the text.
//!
//! ```text
//! suimon learned VERSION STARTED LENGTH CHECKSUM\n       STARTED: of the gateway that wrote it, nanoseconds since 1970
//! text                                                 LENGTH bytes; CHECKSUM is the BLAKE3 hash of the line before it, and of them
//! ```
//!
//! The first line's beginning up to STARTED is the same in every version, so that an older program
//! never writes over what a newer one has learned.

use super::Remembered;
use crate::whole_file::{self, SetAside, with_ending};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const WHAT: &str = "suimon learned";
const VERSION: u64 = 1;
/// The longest file that is read or written.
const BYTES_MAX: u64 = 16 << 20;
/// The longest first line.
const LINE_MAX: u64 = 256;
/// What the names of files that cannot be used end in.
pub(super) const KEPT_ASIDE: [&str; 3] = ["damaged", "newer", "foreign"];

/// What is found at the start.
#[derive(Debug)]
pub enum LoadResult {
    /// No file.
    Nothing,
    /// What a gateway of the same site has learned.
    Ours(Box<Remembered>),
    /// A file that cannot be used. It has been moved away, to be kept there once the start has not failed.
    SetAside {
        /// What is wrong, as a sentence.
        why: String,
        /// Where it is now.
        aside: SetAside,
    },
    /// A file that cannot be used, and cannot be moved either.
    InTheWay {
        /// What is wrong, as a sentence.
        why: String,
    },
}

/// The result of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WriteResult {
    /// It is on the disk.
    #[default]
    Done,
    /// The file belongs to a gateway that started later, or that is of a newer version.
    BelongsToANewer,
}

/// Why a file cannot be used.
pub(super) struct Unusable {
    why: String,
    ending: &'static str,
}

/// What the first line says.
struct FirstLine {
    version: u64,
    started: u64,
    /// The rest; its meaning depends on the version.
    rest: String,
}

/// Looks for what a gateway of the site with these nodes has learned. What cannot be used is set
/// aside.
pub fn find(path: &Path, nodes: &[String]) -> LoadResult {
    let content = match read(path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return LoadResult::Nothing,
        Err(error) => return LoadResult::InTheWay { why: format!("it cannot be read ({error})") },
    };
    let Unusable { why, ending } = match parse(&content) {
        Ok(remembered) if remembered.is_of(nodes) => return LoadResult::Ours(Box::new(remembered)),
        Ok(remembered) => Unusable {
            why: format!(
                "it is of another application ({}; this one is {})",
                some_of(&remembered.nodes),
                some_of(nodes)
            ),
            ending: KEPT_ASIDE[2],
        },
        Err(unusable) => unusable,
    };
    match SetAside::new(path, with_ending(path, ending)) {
        Ok(aside) => LoadResult::SetAside { why, aside },
        Err(error) => LoadResult::InTheWay { why: format!("{why}, and it cannot be renamed ({error})") },
    }
}

/// Writes what a gateway has learned, unless the file is a newer one's.
pub fn write(path: &Path, remembered: &Remembered) -> io::Result<WriteResult> {
    let belongs_to_newer = |there: FirstLine| there.version > VERSION || there.started > remembered.started;
    if first_line_of(path).is_some_and(belongs_to_newer) {
        return Ok(WriteResult::BelongsToANewer);
    }
    let content = content(remembered);
    if content.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it would be longer than {BYTES_MAX} bytes")));
    }
    whole_file::write(path, &content).map(|()| WriteResult::Done)
}

/// Returns the file's content.
pub(super) fn content(remembered: &Remembered) -> Vec<u8> {
    let started = remembered.started;
    let text = remembered.text();
    let said = format!("{WHAT} {VERSION} {started} {}", text.len());
    format!("{said} {}\n{text}", checksum(&said, text.as_bytes())).into_bytes()
}

/// Returns the checksum of what the first line says before it, and of the text.
fn checksum(said: &str, text: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(said.as_bytes()).update(b"\n").update(text);
    hasher.finalize().to_hex().to_string()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = vec![];
    // One byte more than is allowed shows that it is too long.
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn first_line_of(path: &Path) -> Option<FirstLine> {
    let mut beginning = vec![];
    File::open(path).ok()?.take(LINE_MAX).read_to_end(&mut beginning).ok()?;
    FirstLine::of(&beginning).map(|(line, _)| line)
}

/// Returns the content of a file, if every byte of it is as it was written.
pub(super) fn parse(content: &[u8]) -> Result<Remembered, Unusable> {
    let damaged = |why: &str| Unusable { why: why.to_owned(), ending: KEPT_ASIDE[0] };
    if content.len() as u64 > BYTES_MAX {
        return Err(damaged("it is too long"));
    }
    let (line, text) = FirstLine::of(content).ok_or_else(|| damaged("it is no learned file"))?;
    if line.version > VERSION {
        let why = format!(
            "it is of version {} of the format, and this program reads up to {VERSION}",
            line.version
        );
        return Err(Unusable { why, ending: KEPT_ASIDE[1] });
    }
    let said = format!("{WHAT} {} {} {}", line.version, line.started, text.len());
    if line.rest != format!("{} {}", text.len(), checksum(&said, text)) {
        return Err(damaged("its checksum does not hold: it was cut or changed"));
    }
    let remembered = Remembered::parse(text).map_err(damaged)?;
    Ok(Remembered { started: line.started, ..remembered })
}

impl FirstLine {
    /// Returns the first line of a content, and what follows it.
    fn of(content: &[u8]) -> Option<(FirstLine, &[u8])> {
        let within = &content[..content.len().min(LINE_MAX as usize)];
        let end = memchr::memchr(b'\n', within)?;
        let line = std::str::from_utf8(&content[..end]).ok()?.strip_prefix(WHAT)?.strip_prefix(' ')?;
        let mut words = line.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (version, started) = (number()?, number()?);
        let rest = words.next().unwrap_or_default().to_owned();
        Some((FirstLine { version, started, rest }, &content[end + 1..]))
    }
}

/// Returns the first names of a list.
fn some_of(names: &[String]) -> String {
    match names {
        [] => "no node".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

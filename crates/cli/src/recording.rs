//! Finds and plays the files of a recording.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use suimon_record::{BLOCK_BYTES_MAX, Damage, Header, Segment, What, is_recording};
use suimon_sim::replay::ReplayError;

/// The largest file that is read, bytes. No file of a recording is longer.
const BYTES_MAX: u64 = 300 << 20;

/// The files of a recording, the oldest first.
#[derive(Debug)]
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    /// Number of files of other runs in the same folder.
    pub(crate) earlier: usize,
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

impl Files {
    /// Finds the earlier files of the run that `path` belongs to. Damage in `path` itself is
    /// reported when it is played.
    pub(crate) fn find(path: &Path) -> Result<Self, String> {
        let beginning = beginning(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut files = Files { paths: Vec::new(), earlier: 0 };
        if let Some((run, segment)) = Header::place_of(&beginning) {
            let mut before = Vec::new();
            for (number, aside) in set_aside(path).map_err(|error| format!("{}: {error}", path.display()))? {
                match self::beginning(&aside).ok().and_then(|beginning| Header::place_of(&beginning)) {
                    Some((other, place)) if other == run && place == number && place < segment => {
                        before.push((number, aside));
                    }
                    Some((other, _)) if other != run => files.earlier += 1,
                    _ => {}
                }
            }
            before.sort_unstable();
            files.paths = before.into_iter().map(|(_, path)| path).collect();
        }
        files.paths.push(path.to_path_buf());
        Ok(files)
    }

    /// Finds the files of several recordings: each file once, the oldest run first. Files of other
    /// runs in the same folders count as earlier ones only if they were not named.
    pub(crate) fn find_all(named: &[PathBuf]) -> Result<Self, String> {
        let mut placed = Vec::new();
        let mut earlier = 0;
        for path in named {
            let found = Files::find(path)?;
            earlier = found.earlier.max(earlier);
            for path in found.paths {
                let place = beginning(&path).ok().and_then(|beginning| Header::place_of(&beginning));
                let whole = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                placed.push((place, whole, path));
            }
        }
        placed.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        placed.dedup_by(|a, b| a.1 == b.1);
        let earlier = if named.len() > 1 { 0 } else { earlier };
        Ok(Files { paths: placed.into_iter().map(|(_, _, path)| path).collect(), earlier })
    }

    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

impl Opened {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let told = |error: io::Error| format!("{}: {error}", path.display());
        let mut file = File::open(path).map_err(told)?;
        let mut magic = Vec::new();
        (&mut file).take(BLOCK_BYTES_MAX as u64).read_to_end(&mut magic).map_err(told)?;
        let bytes = if is_recording(&magic) {
            let length = file.metadata().map_err(told)?.len();
            if length > BYTES_MAX {
                return Err(format!("{}: it is longer than any file of a recording", path.display()));
            }
            let mut bytes = magic;
            file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(told)?;
            bytes
        } else {
            magic
        };
        Ok(Opened { path: path.to_path_buf(), bytes })
    }
}

/// Plays one file. Returns where it was cut, if it was cut and `partial` allows that.
pub(crate) fn play_file(
    opened: &Opened,
    partial: bool,
    mut play: impl FnMut(&Segment<'_>) -> Result<(), ReplayError>,
) -> Result<Option<Damage>, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", opened.path.display());
    let segment = Segment::read(&opened.bytes).map_err(|damage| told(&damage))?;
    match play(&segment) {
        Ok(()) => Ok(None),
        Err(ReplayError::Damage(damage @ Damage { what: What::CutOff, .. })) if partial => Ok(Some(damage)),
        Err(ReplayError::Damage(damage @ Damage { what: What::CutOff, .. })) => {
            Err(format!("{}; --partial plays what is whole", told(&damage)))
        }
        Err(error) => Err(told(&error)),
    }
}

fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut beginning = Vec::new();
    File::open(path)?.take(BLOCK_BYTES_MAX as u64).read_to_end(&mut beginning)?;
    Ok(beginning)
}

/// Returns the files named like `path` with a number appended, and the numbers.
fn set_aside(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let digits = name.strip_prefix(&own).and_then(|rest| rest.strip_prefix('.')).unwrap_or("");
        if digits.len() >= 6
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && let Ok(number) = digits.parse()
        {
            found.push((number, entry.path()));
        }
    }
    Ok(found)
}

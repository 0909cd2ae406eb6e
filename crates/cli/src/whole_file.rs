//! Files that are written completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Checks whether a file can be written at `path`, and changes nothing. Commands check before a
/// run, so that no run is lost because its file cannot be written.
pub(crate) fn try_writing(path: &Path) -> io::Result<()> {
    if path.exists() {
        OpenOptions::new().append(true).open(path)?;
        return if is_special(path) { Ok(()) } else { try_creating(&beside(&fs::canonicalize(path)?)) };
    }
    try_creating(path)
}

/// Checks it for the files of these options.
///
/// # Errors
/// Returns what to say of the first that cannot be written.
pub(crate) fn try_writing_all(files: &[(&str, &Option<PathBuf>)]) -> Result<(), String> {
    let mut given = files.iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
    given.try_for_each(|(flag, path)| {
        try_writing(path).map_err(|error| format!("{flag}: {}: cannot be written: {error}", path.display()))
    })
}

/// Writes the text to a temporary name first and then renames it, so that a reader sees either the
/// old file or the new one.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    if is_special(path) {
        // A pipe or a terminal has no old content, and must not be replaced.
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    // A link stays a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let partial = beside(&path);
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&partial, &path)).inspect_err(|_| {
        // The error is already reported; removing a file that was never created may fail.
        let _ = fs::remove_file(&partial);
    })
}

fn try_creating(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?;
    fs::remove_file(path)
}

fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file())
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.partial", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_gives_way_to_the_new_one_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.json");
        for text in ["old and longer", "new"] {
            try_writing(&path).unwrap();
            write(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link_and_a_folder_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
        assert!(try_writing(folder.path()).is_err());
        assert!(try_writing(&folder.path().join("nowhere/file")).is_err());
    }
}

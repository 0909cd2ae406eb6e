//! Data files: written whole or not at all.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::trouble::{Result, Trouble, While};

/// Writes `data` to `path`; whoever reads meanwhile sees the old file or the new one.
pub(crate) fn save(path: &Path, data: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(data).trouble("the data cannot be written as JSON")?;
    write(path, &(text + "\n"))
}

/// Writes `text` to `path`, likewise.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).trouble(path.display())
}

/// Returns what was saved there, if anything was.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).trouble(path.display())?;
    serde_json::from_str(&text)
        .map(Some)
        .trouble(format!("{}: not the data of this experiment", path.display()))
}

/// Returns what experiment `name` has saved at `path` if it is only to be told anew (`redraw`), and else what `measure` returns, saved there.
pub(crate) fn measured<T: Serialize + DeserializeOwned>(
    path: &Path,
    name: &str,
    redraw: bool,
    measure: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if redraw {
        let missing = || Trouble::Usage(format!("{} is missing: ./experiments/run {name}", path.display()));
        return load(path)?.ok_or_else(missing);
    }
    let data = measure()?;
    save(path, &data)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_loaded_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        assert_eq!(load::<Vec<u32>>(&path).unwrap(), None);
        save(&path, &vec![1, 2]).unwrap();
        save(&path, &vec![3]).unwrap();
        assert_eq!(load::<Vec<u32>>(&path).unwrap(), Some(vec![3]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let told = |redraw| measured(&path, "some", redraw, || Ok(vec![4]));
        assert_eq!(
            (told(true).unwrap(), told(false).unwrap(), told(true).unwrap()),
            (vec![3], vec![4], vec![4])
        );
        fs::write(&path, "{").unwrap();
        assert!(load::<Vec<u32>>(&path).unwrap_err().to_string().contains("result.json"));
        fs::remove_file(&path).unwrap();
        let missing = told(true).unwrap_err().to_string();
        assert!(missing.contains("./experiments/run some"), "{missing}");
    }
}

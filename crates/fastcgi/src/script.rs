//! Which program answers a path.

use std::borrow::Cow;
use std::fmt;

/// The longest path that is mapped to a program, in bytes.
pub const PATH_MAX: usize = 4096;
/// The most files that are looked for to answer one path, beside a folder's index.
pub const LOOKS_MAX: usize = 4;

/// How paths lead to programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mapping {
    /// One program answers every path, as with WSGI and other application servers.
    Program {
        /// Its file, as the worker sees it.
        file: String,
        /// The folder of the site, as the worker sees it.
        root: String,
    },
    /// The programs are files of a folder, as with PHP.
    Folder {
        /// The folder, as the worker sees it, without a slash at its end.
        root: String,
        /// What their names end in: `.php`.
        suffix: String,
        /// The program that answers for a folder: `index.php`.
        index: String,
        /// The program that answers for paths without one of their own, its path below the folder:
        /// `/index.php`. `None`: they are not found.
        fallback: Option<String>,
    },
}

/// A program, and the part of the path that is for it to interpret: bytes, as paths need not be
/// UTF-8.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script<'a> {
    /// Its path below the folder, with a slash in front; empty: it answers every path.
    pub name: Cow<'a, [u8]>,
    /// What follows its name in the path, with a slash in front, or nothing.
    pub path_info: Cow<'a, [u8]>,
}

/// Why no program answers a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoScript {
    /// The path is malformed: why.
    Bad(&'static str),
    /// There is no program for it.
    NotFound,
}

impl fmt::Display for NoScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoScript::Bad(why) => write!(f, "the path {why}"),
            NoScript::NotFound => f.write_str("no program answers this path"),
        }
    }
}

impl std::error::Error for NoScript {}

impl Mapping {
    /// Returns the program for `path`, as it stands in a request, without its query. `is_file`:
    /// whether a path below the folder is a file; asked at most [`LOOKS_MAX`] times and once more.
    ///
    /// Only files are run: of `/uploads/cat.jpg/x.php`, which is none, nothing, while PHP itself
    /// may go back to `cat.jpg` and run that.
    ///
    /// # Errors
    /// A malformed path, one that leads out of the folder, or one that no program answers.
    pub fn script(&self, path: &str, is_file: impl Fn(&[u8]) -> bool) -> Result<Script<'_>, NoScript> {
        let clean = clean(path)?;
        let (suffix, index, fallback) = match self {
            Mapping::Program { .. } => {
                return Ok(Script { name: Cow::default(), path_info: clean.into() });
            }
            Mapping::Folder { suffix, index, fallback, .. } => (suffix.as_bytes(), index, fallback),
        };
        let ends = (1..=clean.len()).filter(|end| clean.get(*end).is_none_or(|next| *next == b'/'));
        let names = ends.filter(|end| {
            let own = clean[..*end].rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            own.len() > suffix.len() && own.ends_with(suffix)
        });
        if let Some(end) = names.take(LOOKS_MAX).find(|end| is_file(&clean[..*end])) {
            let (name, path_info) = clean.split_at(end);
            return Ok(Script { name: name.to_vec().into(), path_info: path_info.to_vec().into() });
        }
        if clean.ends_with(b"/") {
            let name = [&clean, index.as_bytes()].concat();
            if is_file(&name) {
                return Ok(Script { name: name.into(), path_info: Cow::default() });
            }
        }
        let fallback = fallback.as_ref().ok_or(NoScript::NotFound)?;
        Ok(Script { name: fallback.as_bytes().into(), path_info: Cow::default() })
    }

    /// Returns the file of a program, as the worker sees it, in parts to be joined.
    pub fn file<'a>(&'a self, script: &'a Script<'_>) -> [&'a [u8]; 2] {
        match self {
            Mapping::Program { file, .. } => [file.as_bytes(), b""],
            Mapping::Folder { root, .. } => [root.as_bytes(), &script.name],
        }
    }

    /// Returns the folder of the site, as the worker sees it.
    pub fn root(&self) -> &str {
        let (Mapping::Program { root, .. } | Mapping::Folder { root, .. }) = self;
        root
    }
}

/// Returns `path` decoded, without `.`, `..` and empty parts, with a slash in front.
///
/// # Errors
/// A path that leads out of the folder or cannot be a file's.
pub fn clean(path: &str) -> Result<Vec<u8>, NoScript> {
    if path.len() > PATH_MAX {
        return Err(NoScript::Bad("is longer than 4096 bytes"));
    }
    let decoded = decode(path)?;
    if decoded.contains(&0) {
        return Err(NoScript::Bad("has a zero byte"));
    }
    let (mut parts, mut is_folder): (Vec<&[u8]>, bool) = (vec![], true);
    for part in decoded.split(|byte| *byte == b'/') {
        is_folder = matches!(part, b"" | b"." | b"..");
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop().ok_or(NoScript::Bad("leads out of the folder"))?;
            }
            part => parts.push(part),
        }
    }
    let mut clean: Vec<u8> = parts.iter().flat_map(|part| [&b"/"[..], part].concat()).collect();
    if is_folder {
        clean.push(b'/');
    }
    Ok(clean)
}

fn decode(path: &str) -> Result<Vec<u8>, NoScript> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(NoScript::Bad("has a percent sign without two hexadecimal digits"));
        };
        bytes.push(u8::try_from(16 * high + low).expect("two hexadecimal digits are a byte"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    fn php(fallback: Option<&str>) -> Mapping {
        Mapping::Folder {
            root: "/srv".into(),
            suffix: ".php".into(),
            index: "index.php".into(),
            fallback: fallback.map(str::to_owned),
        }
    }

    fn answered(mapping: &Mapping, path: &str) -> Result<(String, String), NoScript> {
        let files = ["/index.php", "/a/b.php", "/a/index.php", "/old.php/new.php"];
        let script = mapping.script(path, |file| files.iter().any(|known| known.as_bytes() == file))?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Ok((text(&script.name), text(&script.path_info)))
    }

    #[test]
    fn a_program_answers_its_file_its_folder_and_what_follows_its_name() {
        for (path, name, path_info) in [
            ("/", "/index.php", ""),
            ("/index.php", "/index.php", ""),
            ("/a/", "/a/index.php", ""),
            ("/a/b.php/chairs/7", "/a/b.php", "/chairs/7"),
            ("/a/b.php/", "/a/b.php", "/"),
            ("//a/./c/../b%2Ephp", "/a/b.php", ""),
            ("/old.php/new.php/x", "/old.php/new.php", "/x"),
        ] {
            assert_eq!(answered(&php(None), path), Ok((name.into(), path_info.into())), "{path}");
        }
    }

    #[test]
    fn what_is_no_program_is_never_run() {
        for path in ["/a/cat.jpg/x.php", "/a/x.php", "/a", "/.php", "/a/b.phps", "/b/"] {
            assert_eq!(answered(&php(None), path), Err(NoScript::NotFound), "{path}");
            let fallback = Ok(("/index.php".into(), String::new()));
            assert_eq!(answered(&php(Some("/index.php")), path), fallback, "{path}");
        }
    }

    #[test]
    fn a_path_that_leads_out_is_refused_with_why() {
        for (path, why) in [
            ("/../etc/passwd", "leads out of the folder"),
            ("/a/%2e%2e/%2E./b.php", "leads out of the folder"),
            ("/a%00.php", "has a zero byte"),
            ("/%4", "has a percent sign without two hexadecimal digits"),
            ("/%zz", "has a percent sign without two hexadecimal digits"),
            (&"/a".repeat(PATH_MAX), "is longer than 4096 bytes"),
        ] {
            assert_eq!(answered(&php(None), path), Err(NoScript::Bad(why)), "{path}");
        }
    }

    #[test]
    fn one_program_answers_every_path() {
        let mapping = Mapping::Program { file: "/srv/app.fcgi".into(), root: "/srv".into() };
        assert_eq!(answered(&mapping, "/a/b%20c"), Ok((String::new(), "/a/b c".into())));
        assert_eq!(&mapping.script("/caf%E9", |_| false).unwrap().path_info[..], b"/caf\xE9");
        assert_eq!(mapping.root(), "/srv");
    }

    #[test]
    fn few_files_are_looked_for_however_long_the_path() {
        let looks = Cell::new(0);
        let count = |_: &[u8]| {
            looks.set(looks.get() + 1);
            false
        };
        assert_eq!(php(None).script(&"/a.php".repeat(600), count), Err(NoScript::NotFound));
        assert_eq!(looks.get(), LOOKS_MAX);
    }

    proptest! {
        #[test]
        fn a_clean_path_stays_in_the_folder(path in "[/.%25aE]{0,40}") {
            if let Ok(clean) = clean(&path) {
                prop_assert!(clean.starts_with(b"/"));
                prop_assert!(clean.split(|byte| *byte == b'/').all(|part| part != b".." && part != b"."));
                prop_assert!(!clean.windows(2).any(|two| two == b"//"));
            }
        }
    }
}

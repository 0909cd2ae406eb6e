//! How the files of one crate stand to each other, and how long they are.
//!
//! A file *uses* another when a path in it leads to something that is defined there, through
//! whatever re-exports. A parent that only re-exports what its children have does not use them, and
//! a child that uses its parent is a part of it: it was taken out of its file, and sees what is
//! private there. The root of a crate has files, and no parts. Files that use each other in a circle can only be understood together, so each circle is undone
//! or has its reason in [`CIRCLES`]; each file with much code has its reason in [`LONG`]. A reason
//! that is not needed any more is a fault, too. Tests are left out. What stands inside the call of
//! a macro is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// Lines of code a file may have without a reason.
const CODE_MAX: usize = 500;
/// Re-exports that are followed one after the other.
const REEXPORTS_MAX: usize = 8;

/// Circles of files that stay, and why; named by crate and files.
const CIRCLES: &[(&str, &[&str], &str)] = &[
    (
        "crates/admin",
        &["state.rs", "verdict.rs"],
        "the state holds the verdict, which is a sentence about the state's other parts",
    ),
    (
        "crates/sim",
        &["expect.rs", "outcome.rs", "scenario.rs"],
        "a scenario says what is expected of its outcome, and an outcome is one of a scenario",
    ),
    (
        "crates/upstream",
        &["body.rs", "guard.rs", "lib.rs", "send.rs"],
        "lib.rs has the client; sending and the body of a response hold a place in its nodes",
    ),
    (
        "crates/waiting-room",
        &["answer.rs", "endpoint.rs", "error.rs", "lib.rs", "look.rs", "page.rs", "requests.rs"],
        "lib.rs has the waiting room, and each of these files what it does with one kind of request",
    ),
];

/// Files with more than [`CODE_MAX`] lines of code that stay, and why.
const LONG: &[(&str, &str)] = &[
    ("crates/gate/src/gate.rs", "the one machine of the gate: what happens to it, and what it answers"),
    (
        "crates/proxy/src/gatekeeper.rs",
        "all that is done under the gate's lock, so that it can be read at once",
    ),
    ("crates/settings/src/settings.rs", "every setting, as read, to the parameter it becomes"),
    ("xtask/src/walls.rs", "one table of who may know whom; every crate adds lines to it"),
];

/// A module, as a path from its crate's root.
type Name = Vec<String>;

/// A file of a crate.
struct Source {
    /// From the workspace's root.
    path: PathBuf,
    module: Name,
    /// Items that are defined here.
    defined: BTreeSet<String>,
    /// What `use` brings in, by its name here.
    brought: BTreeMap<String, Name>,
    /// Modules all of whose items are brought in.
    globs: Vec<Name>,
    /// Paths that lead out of here.
    mentioned: Vec<Name>,
    children: Vec<String>,
}

/// Returns a sentence for each circle and each long file without a reason, and for each reason that
/// is not needed.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    let mut circles = BTreeSet::new();
    let mut long = BTreeSet::new();
    let mut count = 0;
    for folder in crates(root)? {
        for start in ["src/lib.rs", "src/main.rs"] {
            let start = folder.join(start);
            if !root.join(&start).is_file() {
                continue;
            }
            let sources = sources(root, &start)?;
            count += sources.len();
            for circle in circles_in(&edges(&sources)) {
                let files: Vec<String> =
                    circle.iter().map(|index| shown(&folder, &sources[*index].path)).collect();
                circles.insert((folder.display().to_string(), files));
            }
            for source in &sources {
                let lines = lines_of_code(&read(root, &source.path)?);
                if lines > CODE_MAX {
                    long.insert((source.path.display().to_string(), lines));
                }
            }
        }
    }
    for (folder, files) in &circles {
        if !CIRCLES.iter().any(|(of, known, _)| of == folder && known == files) {
            faults.push(format!("{folder}: {} use each other in a circle", files.join(", ")));
        }
    }
    for (folder, files, _) in CIRCLES {
        if !circles.iter().any(|(of, found)| of == folder && files == found) {
            faults
                .push(format!("{folder}: {} are no circle any more: take out its reason", files.join(", ")));
        }
    }
    for (path, lines) in &long {
        if !LONG.iter().any(|(known, _)| known == path) {
            faults.push(format!(
                "{path}: {lines} lines of code, more than {CODE_MAX}: split it, or say why not"
            ));
        }
    }
    for (path, _) in LONG {
        if !long.iter().any(|(found, _)| found == path) {
            faults.push(format!("{path}: not so long any more: take out its reason"));
        }
    }
    if faults.is_empty() {
        println!(
            "{count} files, {} circles and {} long ones, all with their reason",
            circles.len(),
            long.len()
        );
    }
    Ok(faults)
}

/// Returns the folders of the workspace's crates.
fn crates(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut folders = Vec::new();
    for parent in ["crates", "experiments"] {
        let entries = fs::read_dir(root.join(parent)).map_err(|error| format!("{parent}: {error}"))?;
        let names = entries.filter_map(|entry| Some(Path::new(parent).join(entry.ok()?.file_name())));
        folders.extend(names.filter(|folder| root.join(folder).join("Cargo.toml").is_file()));
    }
    folders.push("xtask".into());
    folders.sort();
    Ok(folders)
}

fn shown(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder.join("src")).unwrap_or(path).display().to_string()
}

fn read(root: &Path, path: &Path) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the file and all that it and its modules declare, tests apart.
fn sources(root: &Path, start: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    let mut wanted = vec![(start.to_path_buf(), Name::new())];
    while let Some((path, module)) = wanted.pop() {
        let file =
            syn::parse_file(&read(root, &path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        let source = Source::of(path.clone(), module.clone(), &file);
        for child in &source.children {
            let name: Name = module.iter().chain([child]).cloned().collect();
            let stem = if path == start || path.ends_with("mod.rs") {
                PathBuf::new()
            } else {
                path.file_stem().unwrap_or_default().into()
            };
            let folder = path.parent().unwrap_or(Path::new("")).join(stem);
            let places = [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
            let place = places.into_iter().find(|place| root.join(place).is_file());
            wanted.push((place.ok_or_else(|| format!("{}: where is {child}?", path.display()))?, name));
        }
        sources.push(source);
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

impl Source {
    fn of(path: PathBuf, module: Name, file: &syn::File) -> Source {
        let mut source = Source {
            path,
            module,
            defined: BTreeSet::new(),
            brought: BTreeMap::new(),
            globs: Vec::new(),
            mentioned: Vec::new(),
            children: Vec::new(),
        };
        let items = || file.items.iter().filter(|item| !is_for_tests(item));
        // Children first: paths may begin with one.
        for item in items() {
            if let Item::Mod(child) = item
                && child.content.is_none()
            {
                source.children.push(child.ident.to_string());
            }
            source.defined.extend(name_of(item));
        }
        items().for_each(|item| source.visit_item(item));
        source
    }

    /// Returns the path from the crate's root, if it does not lead to another crate or a local name.
    fn absolute(&self, path: &[String]) -> Option<Name> {
        let supers = path.iter().take_while(|word| *word == "super").count();
        let within = |up: usize| self.module[..self.module.len() - up.min(self.module.len())].iter();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some(within(0).chain(&path[1..]).cloned().collect()),
            "super" => Some(within(supers).chain(&path[supers..]).cloned().collect()),
            first if self.children.iter().any(|child| child == first) => {
                Some(within(0).chain(path).cloned().collect())
            }
            _ => None,
        }
    }

    fn bring(&mut self, tree: &UseTree, before: &[String], public: bool) {
        let with = |word: &syn::Ident| before.iter().cloned().chain([word.to_string()]).collect::<Name>();
        let (path, name) = match tree {
            UseTree::Path(tree) => return self.bring(&tree.tree, &with(&tree.ident), public),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.bring(tree, before, public));
            }
            UseTree::Glob(_) => (before.to_vec(), None),
            UseTree::Name(tree) if tree.ident == "self" => (before.to_vec(), before.last().cloned()),
            UseTree::Name(tree) => (with(&tree.ident), Some(tree.ident.to_string())),
            UseTree::Rename(tree) => (with(&tree.ident), Some(tree.rename.to_string())),
        };
        let Some(path) = self.absolute(&path) else { return };
        // What is only passed on is not used.
        if !(public && path.starts_with(&self.module)) {
            self.mentioned.push(path.clone());
        }
        match name {
            Some(name) => drop(self.brought.insert(name, path)),
            None => self.globs.push(path),
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.bring(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Name = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if words.len() > 1 {
            self.mentioned.extend(self.absolute(&words));
        }
        visit::visit_path(self, path);
    }
}

fn is_for_tests(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    };
    let of = |attribute: &Attribute, word: &str| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == word)
    };
    attributes.iter().any(|attribute| of(attribute, "test") || of(attribute, "fuzzing"))
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Mod(item) if item.content.is_some() => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Returns for each file which others it uses.
fn edges(sources: &[Source]) -> Vec<BTreeSet<usize>> {
    let by_module: BTreeMap<&[String], usize> =
        sources.iter().enumerate().map(|(index, source)| (&*source.module, index)).collect();
    let of = |(from, source): (usize, &Source)| {
        let to = source.mentioned.iter().map(|path| home(sources, &by_module, path, REEXPORTS_MAX));
        to.filter(|to| *to != from && !is_part_of(source, &sources[*to])).collect()
    };
    sources.iter().enumerate().map(of).collect()
}

/// Returns whether `part` is a child of `whole`, at whatever depth; of a crate all are only files.
fn is_part_of(part: &Source, whole: &Source) -> bool {
    !whole.module.is_empty() && part.module.starts_with(&whole.module)
}

/// Returns the file that defines what the path leads to.
fn home(sources: &[Source], by_module: &BTreeMap<&[String], usize>, path: &[String], left: usize) -> usize {
    let depth = (0..=path.len()).rev().find(|depth| by_module.contains_key(&path[..*depth])).unwrap_or(0);
    let index = by_module[&path[..depth]];
    let Some(name) = path.get(depth) else { return index };
    let source = &sources[index];
    if left == 0 || source.defined.contains(name) {
        return index;
    }
    if let Some(target) = source.brought.get(name) {
        let whole: Name = target.iter().chain(&path[depth + 1..]).cloned().collect();
        return home(sources, by_module, &whole, left - 1);
    }
    let defines =
        |glob: &&Name| by_module.get(&***glob).is_some_and(|to| sources[*to].defined.contains(name));
    source.globs.iter().find(defines).map_or(index, |glob| by_module[&**glob])
}

/// Returns the sets of files each of which leads to each other one.
fn circles_in(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..edges.len()).map(|from| reachable(edges, from)).collect();
    let mut circles = BTreeSet::new();
    for from in 0..edges.len() {
        if reach[from].contains(&from) {
            circles.insert(
                (0..edges.len())
                    .filter(|to| reach[from].contains(to) && reach[*to].contains(&from))
                    .collect(),
            );
        }
    }
    circles.into_iter().collect()
}

fn reachable(edges: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut next: Vec<usize> = edges[from].iter().copied().collect();
    while let Some(index) = next.pop() {
        if found.insert(index) {
            next.extend(&edges[index]);
        }
    }
    found
}

/// Returns the lines that are neither blank, nor a comment, nor of a module of tests.
fn lines_of_code(text: &str) -> usize {
    let (mut count, mut before, mut in_tests) = (0, "", false);
    for line in text.lines() {
        in_tests |= before == "#[cfg(test)]" && line.contains("mod tests {");
        count += usize::from(!in_tests && !line.is_empty() && !line.trim_start().starts_with("//"));
        in_tests &= line != "}";
        before = line;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, module: &[&str], text: &str) -> Source {
        let module = module.iter().map(ToString::to_string).collect();
        Source::of(path.into(), module, &syn::parse_file(text).unwrap())
    }

    #[test]
    fn every_circle_and_every_long_file_of_this_workspace_has_its_reason() {
        assert_eq!(check(&crate::root()), Ok(Vec::new()));
    }

    #[test]
    fn two_files_that_use_each_other_through_a_reexport_are_a_circle() {
        let sources = [
            source("lib.rs", &[], "mod a; mod b; pub use a::A; pub use b::*;"),
            source("a.rs", &["a"], "pub struct A; fn f() -> crate::B { todo() }"),
            source("b.rs", &["b"], "use crate::A; pub struct B(A);"),
        ];
        assert_eq!(circles_in(&edges(&sources)), [[1, 2]]);
    }

    #[test]
    fn a_root_that_passes_on_what_a_file_has_is_no_circle_but_one_that_uses_it_is() {
        let child = || source("a.rs", &["a"], "use super::Shared; pub struct A(Shared);");
        let passes = source("lib.rs", &[], "mod a; pub use a::A; pub struct Shared;");
        assert!(circles_in(&edges(&[passes, child()])).is_empty());
        let uses = source("lib.rs", &[], "mod a; use a::A; pub struct Shared; fn f(a: A) {}");
        assert_eq!(circles_in(&edges(&[uses, child()])), [[0, 1]]);
    }

    #[test]
    fn a_child_is_a_part_of_its_parent_and_its_sisters_are_not() {
        let parent = || source("a.rs", &["a"], "mod b; mod c; use b::B; pub struct Shared;");
        let child = |text| source("a/b.rs", &["a", "b"], text);
        let sister = || source("a/c.rs", &["a", "c"], "use super::b::B; pub struct C(B);");
        let alone = [parent(), child("use super::Shared; pub struct B(Shared);"), sister()];
        assert!(circles_in(&edges(&alone)).is_empty());
        let circle = [parent(), child("use super::c::C; pub struct B(Box<C>);"), sister()];
        assert_eq!(circles_in(&edges(&circle)), [[1, 2]]);
    }

    #[test]
    fn tests_make_no_circle_and_are_no_code() {
        let text = "pub struct A;\n// why\n\n#[cfg(test)]\nmod tests {\n use crate::b::B;\n}\nfn f() {}\n";
        // The attribute counts; whoever writes tests at the end of a file loses one line.
        assert_eq!(lines_of_code(text), 3);
        let sources = [source("a.rs", &["a"], text), source("b.rs", &["b"], "use crate::a::A;")];
        assert!(circles_in(&edges(&sources)).is_empty());
    }
}

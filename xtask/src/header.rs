//! The header of the C interface, written from the functions and types of `crates/ffi`.

use cbindgen::{Config, DocumentationStyle, Language, Style};
use std::path::Path;

/// Where it is.
pub(crate) const FILE: &str = "crates/ffi/include/suimon.h";

/// The files with what C sees, in the order in which it stands in the header.
const SOURCES: [&str; 6] =
    ["c.rs", "output.rs", "recording.rs", "c/server.rs", "c/gate.rs", "c/recording.rs"];

/// What types are called in C.
const NAMES: [(&str, &str); 7] = [
    ("Buffer", "suimon_buffer"),
    ("ServerHandle", "suimon_server"),
    ("GateHandle", "suimon_gate"),
    ("GateArrival", "suimon_arrival"),
    ("GateOutput", "suimon_output"),
    ("RecordingHandle", "suimon_recording"),
    ("RecordingPart", "suimon_recording_part"),
];

/// What stands above everything.
const HEAD: &str = "\
/* Suimon in a process that works on requests itself; docs/embedding-c.md shows a way in.
 * Written from crates/ffi by `cargo xtask docs`; do not edit.
 *
 * Functions return SUIMON_OK (0), another result (above 0) or a fault (below 0). Bytes are given with their
 * length and read during the call alone; NULL is allowed where the length is 0. A buffer may be uninitialised,
 * is not kept, and shares no bytes with what is given beside it. Any thread may call any function, several at a time. Nothing here throws or longjmps.
 */";

/// What Rust says of safety is said once, above.
const SAFETY: &str = "\n # Safety\n As the module says.\n";

/// Returns the header of the workspace at `root`.
///
/// # Errors
/// If a source cannot be read.
pub(crate) fn text(root: &Path) -> Result<String, String> {
    let mut config = Config {
        language: Language::C,
        header: Some(HEAD.to_owned()),
        include_guard: Some("SUIMON_H".to_owned()),
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        cpp_compat: true,
        style: Style::Type,
        usize_is_size_t: true,
        line_length: 110,
        documentation_style: DocumentationStyle::C,
        ..Config::default()
    };
    config.export.rename = NAMES.map(|(rust, c)| (rust.to_owned(), c.to_owned())).into();
    let source = root.join("crates/ffi/src");
    let builder = SOURCES.iter().fold(cbindgen::Builder::new().with_config(config), |builder, file| {
        builder.with_src(source.join(file))
    });
    let bindings = builder.generate().map_err(|error| format!("{FILE}: {error}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|error| format!("{FILE}: {error}"))?;
    Ok(text.replace(SAFETY, ""))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    #[test]
    fn the_header_says_nothing_of_a_module_of_rust() {
        let text = super::text(&crate::root()).unwrap();
        assert!(!text.contains("Safety") && !text.contains("the module"), "{text}");
    }

    #[test]
    fn the_header_is_one_of_c_and_of_cpp() {
        let folder = tempfile::tempdir().unwrap();
        for (name, arguments) in [
            ("a.c", &["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"][..]),
            ("a.cpp", &["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"][..]),
        ] {
            let file = folder.path().join(name);
            let code = "#include \"suimon.h\"\nint main(void) { return suimon_server_end(0, 1) == SUIMON_INVALID; }\n";
            std::fs::write(&file, code).unwrap();
            let include = crate::root().join("crates/ffi/include");
            let compiled =
                Command::new("cc").args(arguments).arg("-I").arg(include).arg(&file).output().unwrap();
            assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        }
    }
}

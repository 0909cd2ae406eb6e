//! Who may know whom.
//!
//! The table below is the architecture; cargo's own account of the workspace is compared with it. A
//! crate or an edge that is not in the table is a fault with a name. Pure crates know no
//! third-party crate at all, except for their tests, and carry a complete `clippy.toml`, because
//! clippy reads a crate's own file *instead of* the workspace's.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What one crate of the workspace may depend on.
struct Crate {
    name: &'static str,
    /// Crates of the workspace it may know, in code and tests alike.
    knows: &'static [&'static str],
    /// Crates of the workspace only its tests may know.
    tests_know: &'static [&'static str],
    others: Others,
}

/// Which crates from outside the workspace a crate may use.
enum Others {
    /// None but these: a pure crate. Its tests may use [`TEST_TOOLS`].
    Only(&'static [&'static str]),
    /// Any but these.
    AnyBut(&'static [&'static str]),
}

/// What the tests and benches of a pure crate may use.
const TEST_TOOLS: &[&str] = &["criterion", "proptest", "suimon-testing"];

/// A tool that draws pages or parses files has no place on the path of a request.
const NOT_ON_THE_REQUEST_PATH: &[&str] =
    &["axum", "tower", "clap", "toml", "reqwest", "hyper-rustls", "openssl"];

/// What decides about a request, or answers it in words, sees no socket and no runtime.
const NO_SOCKETS: &[&str] =
    &["tokio", "hyper", "hyper-util", "rustls", "tokio-rustls", "socket2", "axum", "clap", "toml"];

/// Settings are checked without touching the network.
const NOT_IN_SETTINGS: &[&str] = &["tokio", "hyper", "axum", "clap", "socket2"];

/// Virtual time has no sockets.
const NOT_SIMULATED: &[&str] = &["tokio", "hyper", "axum"];

const PURE: Others = Others::Only(&[]);
/// How wide a character is on a terminal is a table of Unicode's.
const WIDTHS: Others = Others::Only(&["unicode-width"]);

const CRATES: &[Crate] = &[
    // Pure crates: told the time, return what should happen. libm: the same logarithm on every
    // machine.
    Crate { name: "suimon-model", knows: &[], tests_know: &[], others: Others::Only(&["libm"]) },
    Crate { name: "suimon-control", knows: &["suimon-model"], tests_know: &[], others: PURE },
    Crate { name: "suimon-line", knows: &["suimon-model", "suimon-sharing"], tests_know: &[], others: PURE },
    Crate { name: "suimon-sharing", knows: &["suimon-model"], tests_know: &[], others: PURE },
    Crate {
        name: "suimon-gate",
        knows: &["suimon-control", "suimon-line", "suimon-model", "suimon-sharing"],
        tests_know: &[],
        others: PURE,
    },
    Crate { name: "suimon-fleet", knows: &["suimon-model"], tests_know: &[], others: PURE },
    // What it stands on computes alone: a MAC, base64, JSON.
    Crate {
        name: "suimon-agent",
        knows: &["suimon-model"],
        tests_know: &["suimon-testing"],
        others: Others::Only(&["base64", "blake3", "serde", "serde_json"]),
    },
    Crate {
        name: "suimon-record",
        knows: &["suimon-gate", "suimon-line", "suimon-model"],
        tests_know: &["suimon-testing"],
        others: PURE,
    },
    Crate { name: "suimon-statistics", knows: &["suimon-model"], tests_know: &[], others: WIDTHS },
    Crate {
        name: "suimon-workload",
        knows: &["suimon-model", "suimon-statistics"],
        tests_know: &[],
        others: PURE,
    },
    // What a request meets, each without a socket.
    Crate {
        name: "suimon-routes",
        knows: &["suimon-gate", "suimon-model"],
        tests_know: &[],
        others: Others::AnyBut(NO_SOCKETS),
    },
    Crate {
        name: "suimon-params",
        knows: &[
            "suimon-control",
            "suimon-fastcgi",
            "suimon-fleet",
            "suimon-gate",
            "suimon-line",
            "suimon-model",
            "suimon-routes",
        ],
        tests_know: &[],
        others: Others::AnyBut(NO_SOCKETS),
    },
    Crate {
        name: "suimon-fastcgi",
        knows: &[],
        tests_know: &["suimon-testing"],
        others: Others::AnyBut(NO_SOCKETS),
    },
    Crate {
        name: "suimon-message",
        knows: &["suimon-gate", "suimon-line", "suimon-params"],
        tests_know: &["suimon-testing"],
        others: Others::AnyBut(NO_SOCKETS),
    },
    Crate {
        name: "suimon-store",
        knows: &["suimon-gate", "suimon-line", "suimon-model", "suimon-params", "suimon-record"],
        tests_know: &["suimon-control", "suimon-testing"],
        others: Others::AnyBut(NO_SOCKETS),
    },
    Crate {
        name: "suimon-identity",
        knows: &[
            "suimon-gate",
            "suimon-line",
            "suimon-message",
            "suimon-model",
            "suimon-params",
            "suimon-routes",
            "suimon-store",
        ],
        tests_know: &["suimon-testing"],
        others: Others::AnyBut(NO_SOCKETS),
    },
    Crate {
        name: "suimon-waiting-room",
        knows: &[
            "suimon-gate",
            "suimon-identity",
            "suimon-line",
            "suimon-message",
            "suimon-model",
            "suimon-params",
            "suimon-store",
        ],
        tests_know: &["suimon-testing"],
        others: Others::AnyBut(NO_SOCKETS),
    },
    // Shells: own clocks, sockets, processes. The two sides of the gateway do not know each other,
    // nor the gate.
    Crate {
        name: "suimon-downstream",
        knows: &["suimon-message", "suimon-model", "suimon-params"],
        tests_know: &["suimon-testing"],
        others: Others::AnyBut(NOT_ON_THE_REQUEST_PATH),
    },
    Crate {
        name: "suimon-upstream",
        knows: &[
            "suimon-agent",
            "suimon-fastcgi",
            "suimon-fleet",
            "suimon-message",
            "suimon-model",
            "suimon-params",
            "suimon-pool",
        ],
        tests_know: &["suimon-testing"],
        others: Others::AnyBut(NOT_ON_THE_REQUEST_PATH),
    },
    Crate {
        name: "suimon-engine",
        knows: &["suimon-model", "suimon-sharing"],
        tests_know: &["suimon-testing"],
        others: Others::AnyBut(NOT_ON_THE_REQUEST_PATH),
    },
    Crate {
        name: "suimon-proxy",
        knows: &[
            "suimon-agent",
            "suimon-cluster",
            "suimon-control",
            "suimon-downstream",
            "suimon-engine",
            "suimon-fleet",
            "suimon-gate",
            "suimon-identity",
            "suimon-line",
            "suimon-message",
            "suimon-model",
            "suimon-params",
            "suimon-pool",
            "suimon-record",
            "suimon-routes",
            "suimon-sharing",
            "suimon-statistics",
            "suimon-store",
            "suimon-upstream",
            "suimon-waiting-room",
        ],
        tests_know: &[],
        others: Others::AnyBut(NOT_ON_THE_REQUEST_PATH),
    },
    Crate {
        name: "suimon-crowd",
        knows: &["suimon-model", "suimon-statistics", "suimon-workload"],
        tests_know: &["suimon-settings", "suimon-shop"],
        others: Others::AnyBut(&["axum", "clap", "toml"]),
    },
    Crate {
        name: "suimon-sim",
        knows: &[
            "suimon-control",
            "suimon-fleet",
            "suimon-gate",
            "suimon-line",
            "suimon-model",
            "suimon-record",
            "suimon-sharing",
            "suimon-statistics",
            "suimon-workload",
        ],
        tests_know: &["suimon-settings"],
        others: Others::AnyBut(NOT_SIMULATED),
    },
    Crate {
        name: "suimon-shop",
        knows: &["suimon-model"],
        tests_know: &[],
        others: Others::AnyBut(&["tokio", "axum"]),
    },
    Crate {
        name: "suimon-pool",
        knows: &["suimon-fleet", "suimon-model", "suimon-params", "suimon-process"],
        tests_know: &[],
        others: Others::AnyBut(&["hyper", "axum", "clap"]),
    },
    Crate {
        name: "suimon-cluster",
        knows: &["suimon-fleet", "suimon-kubernetes", "suimon-model", "suimon-params", "suimon-process"],
        tests_know: &[],
        others: Others::AnyBut(&["hyper", "axum", "clap"]),
    },
    Crate {
        name: "suimon-kubernetes",
        knows: &["suimon-model", "suimon-params"],
        tests_know: &[],
        others: Others::AnyBut(&["axum", "clap", "toml"]),
    },
    Crate {
        name: "suimon-process",
        knows: &[],
        tests_know: &[],
        others: Others::AnyBut(&["tokio", "hyper", "axum", "clap"]),
    },
    // Edges.
    Crate {
        name: "suimon-chart",
        knows: &[],
        tests_know: &[],
        others: Others::AnyBut(&["tokio", "hyper", "axum", "clap"]),
    },
    Crate {
        name: "suimon-settings",
        knows: &[
            "suimon-control",
            "suimon-gate",
            "suimon-line",
            "suimon-model",
            "suimon-params",
            "suimon-process",
            "suimon-sim",
            "suimon-workload",
        ],
        tests_know: &[],
        others: Others::AnyBut(NOT_IN_SETTINGS),
    },
    Crate {
        name: "suimon-admin",
        knows: &[
            "suimon-fleet",
            "suimon-gate",
            "suimon-line",
            "suimon-model",
            "suimon-params",
            "suimon-proxy",
        ],
        tests_know: &[],
        others: Others::AnyBut(&["toml", "clap"]),
    },
    Crate {
        name: "suimon-ffi",
        knows: &[
            "suimon-admin",
            "suimon-gate",
            "suimon-identity",
            "suimon-line",
            "suimon-message",
            "suimon-model",
            "suimon-proxy",
            "suimon-record",
            "suimon-settings",
        ],
        tests_know: &["suimon-sim", "suimon-testing"],
        others: Others::AnyBut(&["axum", "clap"]),
    },
    Crate {
        name: "suimon-cli",
        knows: &[
            "suimon-admin",
            "suimon-agent",
            "suimon-chart",
            "suimon-cluster",
            "suimon-control",
            "suimon-crowd",
            "suimon-gate",
            "suimon-identity",
            "suimon-model",
            "suimon-params",
            "suimon-process",
            "suimon-proxy",
            "suimon-record",
            "suimon-settings",
            "suimon-shop",
            "suimon-sim",
            "suimon-statistics",
            "suimon-waiting-room",
            "suimon-workload",
        ],
        tests_know: &["suimon-store", "suimon-testing"],
        others: Others::AnyBut(&[]),
    },
    Crate {
        name: "suimon-tower",
        knows: &["suimon-gate", "suimon-params", "suimon-proxy", "suimon-settings"],
        tests_know: &["suimon-statistics"],
        others: Others::AnyBut(&["clap"]),
    },
    // Beside the product.
    Crate { name: "suimon-testing", knows: &[], tests_know: &[], others: Others::AnyBut(NO_SOCKETS) },
    Crate {
        name: "suimon-rivals",
        knows: &["suimon-control", "suimon-line", "suimon-model", "suimon-sim"],
        tests_know: &[],
        others: Others::AnyBut(NOT_SIMULATED),
    },
    Crate {
        name: "suimon-sites",
        knows: &["suimon-gate", "suimon-model", "suimon-sim", "suimon-workload"],
        tests_know: &[],
        others: Others::AnyBut(NOT_SIMULATED),
    },
    Crate {
        name: "suimon-experiments",
        knows: &[
            "suimon-admin",
            "suimon-agent",
            "suimon-chart",
            "suimon-cli",
            "suimon-control",
            "suimon-crowd",
            "suimon-gate",
            "suimon-identity",
            "suimon-model",
            "suimon-process",
            "suimon-rivals",
            "suimon-settings",
            "suimon-sim",
            "suimon-sites",
            "suimon-statistics",
            "suimon-workload",
        ],
        tests_know: &[],
        others: Others::AnyBut(&[]),
    },
    Crate {
        name: "xtask",
        // What it generates documents from.
        knows: &["suimon-admin", "suimon-model", "suimon-record", "suimon-settings"],
        tests_know: &[],
        others: Others::AnyBut(&["tokio", "hyper"]),
    },
];

/// What each pure crate's `clippy.toml` must ban: the world outside, in the forms it usually comes
/// in.
const BANS: &[(&str, &[&str])] = &[
    (
        "disallowed-types",
        &[
            "std::time::Instant",
            "std::time::SystemTime",
            "std::collections::HashMap",
            "std::collections::HashSet",
            "std::sync::Mutex",
            "std::net::TcpStream",
            "std::fs::File",
        ],
    ),
    (
        "disallowed-methods",
        &[
            "std::thread::spawn",
            "std::thread::sleep",
            "std::env::var",
            "std::env::args",
            "std::process::exit",
            "std::fs::read_to_string",
            "f64::ln",
            "f64::exp",
            "f64::cos",
            "f64::powf",
        ],
    ),
    ("disallowed-macros", &["std::println", "std::eprintln"]),
];

/// One dependency as cargo tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Edge {
    from: String,
    to: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Normal,
    Test,
    Build,
}

/// Returns every edge and every pure crate's lint file that is not as the table says.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let metadata = metadata(root)?;
    let (members, edges) = account(&metadata)?;
    let mut faults = judge(&members, &edges);
    for row in CRATES.iter().filter(|row| matches!(row.others, Others::Only(_))) {
        let folder = row.name.trim_start_matches("suimon-");
        let path = format!("crates/{folder}/clippy.toml");
        match fs::read_to_string(root.join(&path)) {
            Ok(text) => faults.extend(judge_lints(&path, &text)),
            Err(error) => {
                faults.push(format!("{path}: a pure crate carries its own complete lint file: {error}"));
            }
        }
    }
    if faults.is_empty() {
        println!("{} crates, {} edges, all allowed", members.len(), edges.len());
    }
    Ok(faults)
}

/// Runs `cargo metadata` without resolving anything, so that it needs no network and no lock.
fn metadata(root: &Path) -> Result<Value, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata answered something odd: {error}"))
}

/// Returns the workspace's crates and the dependencies they declare.
fn account(metadata: &Value) -> Result<(Vec<String>, Vec<Edge>), String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let (mut members, mut edges) = (Vec::new(), Vec::new());
    for package in packages {
        let from = package["name"].as_str().ok_or("a package without a name")?;
        members.push(from.to_string());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().ok_or("a dependency without a name")?;
            let kind = match dependency["kind"].as_str() {
                Some("dev") => Kind::Test,
                Some("build") => Kind::Build,
                _ => Kind::Normal,
            };
            edges.push(Edge { from: from.to_string(), to: to.to_string(), kind });
        }
    }
    Ok((members, edges))
}

/// Returns a sentence for each crate and each edge that the table does not allow.
fn judge(members: &[String], edges: &[Edge]) -> Vec<String> {
    let mut faults = Vec::new();
    let known: BTreeSet<&str> = CRATES.iter().map(|row| row.name).collect();
    for member in members {
        if !known.contains(member.as_str()) {
            faults.push(format!(
                "{member}: not in the table of crates; say in xtask/src/walls.rs what it may know"
            ));
        }
    }
    for row in CRATES {
        if !members.iter().any(|member| member == row.name) {
            faults.push(format!("{}: in the table of crates, but not in the workspace", row.name));
        }
        for edge in edges.iter().filter(|edge| edge.from == row.name) {
            let allowed = if known.contains(edge.to.as_str()) {
                member_allowed(row, edge)
            } else {
                other_allowed(row, edge)
            };
            if let Err(why) = allowed {
                let kind = match edge.kind {
                    Kind::Normal => "",
                    Kind::Test => " (for tests)",
                    Kind::Build => " (to build)",
                };
                faults.push(format!("{} -> {}{kind}: {why}", edge.from, edge.to));
            }
        }
    }
    faults
}

fn member_allowed(row: &Crate, edge: &Edge) -> Result<(), String> {
    let to = edge.to.as_str();
    if row.knows.contains(&to) || (edge.kind == Kind::Test && row.tests_know.contains(&to)) {
        return Ok(());
    }
    if row.knows.is_empty() {
        return Err("this crate knows no other of the workspace".to_string());
    }
    Err(format!("this crate may know only {}", row.knows.join(", ")))
}

fn other_allowed(row: &Crate, edge: &Edge) -> Result<(), String> {
    let to = edge.to.as_str();
    match row.others {
        Others::Only(allowed) if allowed.contains(&to) => Ok(()),
        Others::Only(_) if edge.kind == Kind::Test && TEST_TOOLS.contains(&to) => Ok(()),
        Others::Only(_) => Err(format!(
            "a pure crate stands on the standard library alone (its tests may use {})",
            TEST_TOOLS.join(", ")
        )),
        Others::AnyBut(banned) if edge.kind == Kind::Normal && banned.contains(&to) => {
            Err("it has no place in this crate; see xtask/src/walls.rs".to_string())
        }
        Others::AnyBut(_) => Ok(()),
    }
}

/// Returns a sentence for each ban that a pure crate's lint file lacks, or gives without a reason.
fn judge_lints(path: &str, text: &str) -> Vec<String> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return vec![format!("{path}: {error}")],
    };
    let mut faults = Vec::new();
    for (list, wanted) in BANS {
        let entries = table.get(*list).and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
        for ban in *wanted {
            let entry =
                entries.iter().find(|entry| entry.get("path").and_then(toml::Value::as_str) == Some(ban));
            let reason =
                entry.and_then(|entry| entry.get("reason")).and_then(toml::Value::as_str).unwrap_or("");
            if entry.is_none() {
                faults.push(format!("{path}: {list} lacks {ban}"));
            } else if reason.trim().is_empty() {
                faults.push(format!("{path}: {ban} is banned without a reason"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Vec<String> {
        CRATES.iter().map(|row| row.name.to_string()).collect()
    }

    fn edge(from: &str, to: &str, kind: Kind) -> Edge {
        Edge { from: from.to_string(), to: to.to_string(), kind }
    }

    #[test]
    fn this_workspace_keeps_its_walls() {
        assert_eq!(check(&crate::root()), Ok(Vec::new()));
    }

    #[test]
    fn a_pure_crate_that_takes_in_a_crate_is_named_with_it() {
        let faults = judge(&members(), &[edge("suimon-gate", "serde", Kind::Normal)]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("suimon-gate -> serde: a pure crate"), "{faults:?}");
    }

    #[test]
    fn the_tests_of_a_pure_crate_may_use_the_test_tools_and_nothing_else() {
        assert!(judge(&members(), &[edge("suimon-control", "proptest", Kind::Test)]).is_empty());
        assert_eq!(judge(&members(), &[edge("suimon-control", "proptest", Kind::Normal)]).len(), 1);
        assert_eq!(judge(&members(), &[edge("suimon-control", "tokio", Kind::Test)]).len(), 1);
    }

    #[test]
    fn a_crate_does_not_look_up_or_across() {
        for (from, to) in [
            ("suimon-model", "suimon-control"),
            ("suimon-control", "suimon-gate"),
            ("suimon-proxy", "suimon-crowd"),
            ("suimon-proxy", "suimon-sim"),
            ("suimon-sim", "suimon-proxy"),
            ("suimon-crowd", "suimon-proxy"),
        ] {
            let faults = judge(&members(), &[edge(from, to, Kind::Normal)]);
            assert_eq!(faults.len(), 1, "{from} -> {to}");
            assert!(faults[0].contains(&format!("{from} -> {to}")), "{faults:?}");
        }
    }

    #[test]
    fn what_only_tests_may_know_is_refused_in_code() {
        assert!(judge(&members(), &[edge("suimon-crowd", "suimon-shop", Kind::Test)]).is_empty());
        assert_eq!(judge(&members(), &[edge("suimon-crowd", "suimon-shop", Kind::Normal)]).len(), 1);
    }

    #[test]
    fn axum_stays_off_the_request_path() {
        assert_eq!(judge(&members(), &[edge("suimon-proxy", "axum", Kind::Normal)]).len(), 1);
        assert!(judge(&members(), &[edge("suimon-admin", "axum", Kind::Normal)]).is_empty());
    }

    #[test]
    fn a_crate_nobody_placed_is_asked_for() {
        let mut members = members();
        members.push("suimon-stray".to_string());
        let faults = judge(&members, &[]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("suimon-stray: not in the table"), "{faults:?}");
    }

    #[test]
    fn a_lint_file_with_a_hole_is_named_with_the_hole() {
        let whole = fs::read_to_string(crate::root().join("crates/gate/clippy.toml")).unwrap();
        assert!(judge_lints("x", &whole).is_empty());

        let holed: String =
            whole.lines().filter(|line| !line.contains("SystemTime")).collect::<Vec<_>>().join("\n");
        assert_eq!(judge_lints("x", &holed), ["x: disallowed-types lacks std::time::SystemTime"]);

        let bare = "disallowed-macros = [{ path = \"std::println\", reason = \" \" }]";
        assert!(judge_lints("x", bare).contains(&"x: std::println is banned without a reason".to_string()));
    }
}

//! What protects the shop, and how each is set up.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use suimon_chart::Hue;

use super::Options;
use crate::apps::{Filter, OpenShop, ShopOptions};
use crate::common::{Common, experiments};
use crate::gateways::{Control, Gateway, PaperSettings, start_suimon};
use crate::journey::Journey;
use crate::trouble::{Result, Trouble, While};

/// What protects the shop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Method {
    /// Nothing.
    None,
    /// Tomcat's own limits of requests and connections.
    Tomcat,
    /// Netflix' limits of concurrency.
    Netflix,
    /// Sentinel.
    Sentinel,
    /// The first paper's two rules in a gateway in front, as sessions-under-overload chose them.
    Paper,
    /// The second paper's pauses around each search, in a gateway in front.
    Pauses,
    /// Suimon in front, without settings.
    Gateway,
    /// Suimon inside, without settings.
    Filter,
}

impl Method {
    pub(super) const ALL: [Method; 8] = [
        Method::None,
        Method::Tomcat,
        Method::Netflix,
        Method::Sentinel,
        Method::Paper,
        Method::Pauses,
        Method::Gateway,
        Method::Filter,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Tomcat => "Tomcat",
            Method::Netflix => "Netflix",
            Method::Sentinel => "Sentinel",
            Method::Paper => "paper",
            Method::Pauses => "pauses",
            Method::Gateway => "in front",
            Method::Filter => "inside",
        }
    }

    pub(super) const fn hue(self) -> Hue {
        match self {
            Method::None => Hue::Vermilion,
            Method::Tomcat => Hue::Grey,
            Method::Netflix => Hue::Purple,
            Method::Sentinel => Hue::Green,
            // One of the two is dashed.
            Method::Paper | Method::Pauses => Hue::Amber,
            // So is one of these.
            Method::Gateway | Method::Filter => Hue::Blue,
        }
    }

    pub(super) const fn is_dashed(self) -> bool {
        matches!(self, Method::Pauses | Method::Gateway)
    }

    /// Returns the settings to try; one where there is nothing to choose. Those of Tomcat are `maxThreads`,
    /// `maxConnections` and `acceptCount`, the last of which counts for nothing before connections reach the second.
    pub(super) const fn settings(self) -> &'static [&'static str] {
        match self {
            Method::Tomcat => &[
                "2/8192/100",
                "4/8192/100",
                "8/8192/100",
                "16/8192/100",
                "32/8192/100",
                "8/20/100",
                "8/40/100",
                "8/80/100",
                "8/20/10",
                "8/40/10",
                "8/80/10",
            ],
            Method::Netflix => &["vegas", "gradient2", "aimd"],
            Method::Sentinel => &["load=1", "load=2.5", "threads=2", "threads=4"],
            Method::Pauses => &["200ms", "500ms", "1s", "2s"],
            Method::None | Method::Paper | Method::Gateway | Method::Filter => &[""],
        }
    }

    pub(super) const fn is_ours(self) -> bool {
        matches!(self, Method::Gateway | Method::Filter)
    }

    /// Returns how the shop is started.
    pub(super) fn shop(self, setting: &str, options: &ShopOptions) -> Result<ShopOptions> {
        let mut options = options.clone();
        if self == Method::Tomcat {
            let numbers: Vec<u32> =
                setting.split('/').map(str::parse).collect::<std::result::Result<_, _>>().trouble(setting)?;
            [options.threads, options.max_connections, options.accept_count] =
                numbers.try_into().map_err(|_| Trouble::Usage(format!("{setting}: three numbers")))?;
        }
        Ok(options)
    }

    /// Starts what is in front of the shop, if anything is.
    pub(super) fn in_front(
        self,
        common: &Common,
        folder: &Path,
        opened: &OpenShop,
        (setting, journey, admin): (&str, &Journey, SocketAddr),
    ) -> Result<Gateway> {
        let start = |control: Control| {
            control.start(common, folder, opened.address, journey.patience_s(), journey.scale)
        };
        let none = |admin| Ok(Gateway { process: None, address: opened.address, admin });
        match self {
            Method::Paper => start(Control::Paper(PaperSettings { initial: 2, threshold: 1.0, step_ms: 12 })),
            Method::Pauses => {
                start_suimon(common, folder, opened.address, Some(&pauses(setting)), common.load_core)
            }
            Method::Gateway => start(Control::Suimon),
            Method::Filter => none(Some(admin)),
            Method::None | Method::Tomcat | Method::Netflix | Method::Sentinel => none(None),
        }
    }

    /// Returns what the shop has before its pages.
    pub(super) fn filter(
        self,
        options: &Options,
        setting: &str,
        folder: &Path,
        admin: SocketAddr,
    ) -> Result<Option<Filter>> {
        let others = || existing(experiments().join("inside-tomcat/filters/target/filters.jar"));
        let filter = match self {
            Method::None | Method::Tomcat | Method::Paper | Method::Pauses | Method::Gateway => {
                return Ok(None);
            }
            Method::Netflix => Filter {
                class: "org.suimon.filters.NetflixFilter",
                jar: others()?,
                properties: vec![format!("-Dlimit={setting}")],
            },
            Method::Sentinel => Filter {
                class: "org.suimon.filters.SentinelFilter",
                jar: others()?,
                properties: vec![
                    format!("-D{setting}"),
                    format!("-Dcsp.sentinel.log.dir={}", folder.display()),
                ],
            },
            Method::Filter => {
                let built = experiments().join("../java/filter/jakarta/target/suimon-filter.jar");
                let path = folder.join("suimon.toml");
                // As the gateway in front: refused visitors come back, and nothing is kept.
                let settings = format!(
                    "[[session]]\nkind = \"visit\"\nwaiting_room = false\n\n[admin]\nlisten = \"{admin}\"\n\n\
                     [lease]\nkeys = \"none\"\n\n[learned]\nstate = \"none\"\n"
                );
                fs::write(&path, settings).trouble(path.display())?;
                Filter {
                    class: "org.suimon.filter.SuimonFilter",
                    jar: existing(options.filter.clone().unwrap_or(built))?,
                    properties: vec![format!("-Dsuimon.config={}", path.display())],
                }
            }
        };
        Ok(Some(filter))
    }
}

/// Holds each search for so long before it goes on, and nothing else.
fn pauses(time: &str) -> String {
    format!(
        "[gate]\nsession_law = \"open\"\n\n[discovery]\nmode = \"off\"\n\n\
         [[route]]\nmatch = \"GET /search\"\nmode = \"off\"\n\n\
         [[service]]\nname = \"search\"\nroutes = [\"GET /search\"]\npause = \"{time}\"\n\n\
         [degradation]\nmode = \"off\"\n"
    )
}

fn existing(jar: PathBuf) -> Result<PathBuf> {
    if jar.is_file() {
        return Ok(jar);
    }
    Err(Trouble::Usage(format!("{} is not built: ./experiments/run inside-tomcat does it", jar.display())))
}

//! A gateway of this process as the listener shows it: what its observer sees, and what stands beside it.

use crate::{Config, ConfigAnswer, ConfigState, LogCounts, Site, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use suimon_params::SiteMatch;
use suimon_proxy::{LearnedView, LineCommand, LineError, LineReport, LoadReportCounts, Observer, View};
use suimon_proxy::{NodesReport, PoolCommand, PoolError, PoolReport, UpstreamNodeView};
use suimon_proxy::{Override, OverrideError, OverrideOrder};

/// What stands beside a gateway in its process, for all of its sites. The defaults are those of a process
/// that has none of it.
pub trait Beside: Send + Sync + 'static {
    /// As [`Source::logs`].
    fn logs(&self) -> LogCounts {
        LogCounts::default()
    }
    /// As [`Source::config`].
    fn config(&self) -> Option<Config> {
        None
    }
    /// As [`Source::config_state`].
    fn config_state(&self) -> Option<ConfigState> {
        self.config().map(|config| config.state)
    }
    /// As [`Source::adopt_config`].
    fn adopt_config(&self, text: &str, dry_run: bool) -> ConfigAnswer {
        let _ = text;
        ConfigAnswer { dry_run, ..ConfigAnswer::default() }
    }
}

/// Nothing stands beside it.
impl Beside for () {}

/// One site of a gateway of this process.
struct Observed {
    observer: Observer,
    draining: Arc<AtomicBool>,
    beside: Arc<dyn Beside>,
}

/// Returns all sites of a gateway of this process; the first is that of `observer`, which is called
/// `main_name`. `draining`: whether the gateway is shutting down.
pub fn sites_of(
    observer: &Observer,
    main_name: &str,
    draining: &Arc<AtomicBool>,
    beside: &Arc<dyn Beside>,
) -> Vec<Site> {
    let of = |(index, observer): (usize, Observer)| {
        let name = observer.site().unwrap_or_else(|| main_name.to_owned());
        let looks = observer.clone();
        let takes = move || index.checked_sub(1).and_then(|index| looks.takes().get(index).map(places));
        let serves = Arc::new(move || takes().unwrap_or_default());
        let (draining, beside) = (Arc::clone(draining), Arc::clone(beside));
        Site { name, serves, source: Arc::new(Observed { observer, draining, beside }) }
    };
    observer.sites().into_iter().enumerate().map(of).collect()
}

/// Returns what a site takes, as people write it.
fn places(SiteMatch { hosts, paths }: &SiteMatch) -> Vec<String> {
    let any = |texts: &[String]| if texts.is_empty() { vec![String::new()] } else { texts.to_vec() };
    let (hosts, paths) = (any(hosts), any(paths));
    hosts.iter().flat_map(|host| paths.iter().map(move |path| format!("{host}{path}"))).collect()
}

impl Source for Observed {
    fn view(&self) -> View {
        self.observer.view()
    }

    fn learned(&self) -> LearnedView {
        self.observer.learned()
    }

    fn nodes(&self) -> Vec<UpstreamNodeView> {
        self.observer.upstream()
    }

    fn logs(&self) -> LogCounts {
        self.beside.logs()
    }

    fn load_reports(&self) -> LoadReportCounts {
        self.observer.load_report_counts()
    }

    fn lines(&self) -> Vec<LineReport> {
        self.observer.lines()
    }

    fn command_line(&self, kind: Option<&str>, command: &LineCommand) -> Result<(), LineError> {
        self.observer.command_line(kind, command)
    }

    fn invite(&self, kind: Option<&str>, count: usize, life: Duration) -> Result<Vec<String>, LineError> {
        self.observer.invite(kind, count, life)
    }

    fn pools(&self, since: u64) -> Vec<PoolReport> {
        self.observer.pools(since)
    }

    fn command_pool(&self, name: Option<&str>, command: PoolCommand) -> Result<(), PoolError> {
        self.observer.command_pool(name, command)
    }

    fn overrides(&self) -> Vec<Override> {
        self.observer.overrides()
    }

    fn override_with(&self, order: OverrideOrder) -> Result<(), OverrideError> {
        self.observer.override_with(order)
    }

    fn release(&self, id: u64, who: &str) -> Result<(), OverrideError> {
        self.observer.release(id, who)
    }

    fn config(&self) -> Option<Config> {
        self.beside.config()
    }

    fn config_state(&self) -> Option<ConfigState> {
        self.beside.config_state()
    }

    fn adopt_config(&self, text: &str, dry_run: bool) -> ConfigAnswer {
        self.beside.adopt_config(text, dry_run)
    }

    fn scaling(&self) -> Option<NodesReport> {
        self.observer.nodes()
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }
}

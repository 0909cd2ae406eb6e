//! What the admin listener shows and commands: the gateway, by site.

use super::reload::Adopter;
use super::telemetry::Told;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use suimon_admin::{Config, ConfigAnswer, ConfigState, Site, Source};
use suimon_params::SiteMatch;
use suimon_proxy::{LearnedView, LineCommand, LineError, LineReport, Observer, View};
use suimon_proxy::{LoadReportCounts, UpstreamNodeView};
use suimon_proxy::{NodesReport, PoolCommand, PoolError, PoolReport};
use suimon_proxy::{Override, OverrideError, OverrideOrder};
use suimon_settings::MAIN_SITE;

/// One site of a gateway as the admin listener sees it.
#[derive(Clone)]
pub(super) struct Gateway {
    pub(super) observer: Observer,
    pub(super) draining: Arc<AtomicBool>,
    pub(super) adopter: Adopter,
    pub(super) told: Arc<Told>,
}

/// Returns all sites of the gateway as the admin listener sees them; `main` is the first.
pub(super) fn sites(main: &Gateway) -> Vec<Site> {
    let of = |(index, observer): (usize, Observer)| {
        let name = observer.site().unwrap_or(MAIN_SITE.to_owned());
        let looks = observer.clone();
        let takes = move || index.checked_sub(1).and_then(|index| looks.takes().get(index).map(places));
        let serves = Arc::new(move || takes().unwrap_or_default());
        Site { name, serves, source: Arc::new(Gateway { observer, ..main.clone() }) }
    };
    main.observer.sites().into_iter().enumerate().map(of).collect()
}

/// Returns what a site takes, as people write it.
fn places(SiteMatch { hosts, paths }: &SiteMatch) -> Vec<String> {
    let any = |texts: &[String]| if texts.is_empty() { vec![String::new()] } else { texts.to_vec() };
    let (hosts, paths) = (any(hosts), any(paths));
    hosts.iter().flat_map(|host| paths.iter().map(move |path| format!("{host}{path}"))).collect()
}

impl Source for Gateway {
    fn view(&self) -> View {
        self.observer.view()
    }

    fn learned(&self) -> LearnedView {
        self.observer.learned()
    }

    fn nodes(&self) -> Vec<UpstreamNodeView> {
        self.observer.upstream()
    }

    fn logs(&self) -> suimon_admin::LogCounts {
        self.told.counts()
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
        Some(self.adopter.config())
    }

    fn config_state(&self) -> Option<ConfigState> {
        Some(self.adopter.state())
    }

    fn adopt_config(&self, text: &str, dry_run: bool) -> ConfigAnswer {
        self.adopter.post(text, dry_run)
    }

    fn scaling(&self) -> Option<NodesReport> {
        self.observer.nodes()
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }
}

//! The sites behind a gateway, and what is said of each in one line.

use crate::state::Glance;
use crate::{Source, Verdict};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One of the sites behind the gateway.
#[derive(Clone)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Hosts and paths as an operator reads them, such as `shop.example, *.shop.example/tickets`; empty
    /// for the first, which serves what no other takes.
    pub serves: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// The source of its numbers.
    pub source: Arc<dyn Source>,
}

/// What `/api/sites` answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SitesAnswer {
    /// The sites, the main one first.
    pub sites: Vec<SiteState>,
}

/// A site in one line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteState {
    /// Its name.
    pub name: String,
    /// Hosts and paths that it serves; empty: what no other site takes.
    pub serves: Vec<String>,
    /// Its verdict.
    pub verdict: Verdict,
    /// Visitors who wait, in line or held at the session gate.
    pub waiting: u64,
    /// Requests in the application.
    pub in_flight: usize,
    /// Whether new visitors of this site should be sent here.
    pub ready: bool,
    /// Why not, if not.
    pub not_ready_because: Option<String>,
}

impl SiteState {
    pub(crate) fn of(site: &Site, glance: Glance) -> Self {
        SiteState {
            name: site.name.clone(),
            serves: (site.serves)(),
            waiting: glance.totals.in_line,
            in_flight: glance.totals.in_flight,
            ready: glance.not_ready.is_none(),
            not_ready_because: glance.not_ready,
            verdict: glance.verdict,
        }
    }
}

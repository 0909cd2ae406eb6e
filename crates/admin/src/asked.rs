//! Which site a request is about, and the watch over all of them.

use crate::shown::Shown;
use crate::sites::{Site, SiteState};
use crate::state::{self, Glance};
use crate::windows::EVERY_S;
use crate::{Access, Source};
use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Every site, as the answers see it. The first is the main one.
#[derive(Clone)]
pub(crate) struct Sites {
    /// The same, as they were handed over.
    pub(crate) all: Arc<[Site]>,
    shown: Arc<[Shown]>,
    pub(crate) version: Arc<str>,
    pub(crate) access: Arc<Access>,
}

/// Which site is asked about.
#[derive(Deserialize)]
pub(crate) struct SiteQuery {
    pub(crate) site: Option<String>,
}

impl Sites {
    /// Returns the sites, of which there is at least one.
    pub(crate) fn new(all: Vec<Site>, version: &str, access: Arc<Access>) -> Self {
        let are_several = all.len() > 1;
        let version: Arc<str> = version.into();
        let shown = all.iter().map(|site| {
            let name = are_several.then(|| site.name.as_str().into());
            Shown::new(name, Arc::clone(&site.source), Arc::clone(&version))
        });
        Sites { shown: shown.collect(), all: all.into(), version, access }
    }

    /// Takes note of all sites, each second.
    pub(crate) async fn watch(self) {
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(EVERY_S));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let noted: Vec<(u64, Glance)> = self.shown.iter().map(Shown::note).collect();
            if !self.shown.iter().any(|shown| shown.stage.is_heard()) {
                continue;
            }
            let (seen, glances): (Vec<u64>, Vec<Glance>) = noted.into_iter().unzip();
            let sites = if self.are_several() { self.states_of(glances) } else { Vec::new() };
            for (shown, seen) in self.shown.iter().zip(seen).filter(|(shown, _)| shown.stage.is_heard()) {
                shown.stage.tell(&shown.live(seen, sites.clone()), seen);
            }
        }
    }

    /// Ends all live streams.
    pub(crate) fn end(&self) {
        self.shown.iter().for_each(|shown| shown.stage.end());
    }

    /// Returns the site that serves what no other takes, and stands for the gateway.
    pub(crate) fn main(&self) -> &Shown {
        &self.shown[0]
    }

    /// Returns all of them in one line each.
    pub(crate) fn states(&self) -> Vec<SiteState> {
        self.states_of(self.shown.iter().map(Shown::glance).collect())
    }

    /// Returns the same, to be said beside one of several; where there is only one, nothing is.
    pub(crate) fn beside(&self) -> Vec<SiteState> {
        if self.are_several() { self.states() } else { Vec::new() }
    }

    fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    fn states_of(&self, glances: Vec<Glance>) -> Vec<SiteState> {
        self.all.iter().zip(glances).map(|(site, glance)| SiteState::of(site, glance)).collect()
    }

    /// Returns the site of this name; without one, the main one.
    fn named(&self, name: Option<&str>) -> Result<&Shown, String> {
        let Some(name) = name else { return Ok(self.main()) };
        let place = self.all.iter().position(|site| site.name == name);
        place.and_then(|place| self.shown.get(place)).ok_or_else(|| {
            let names: Vec<&str> = self.all.iter().map(|site| &*site.name).collect();
            format!("there is no site of that name; there are: {}\n", names.join(", "))
        })
    }

    /// Returns what `/readyz` answers of the site of this name; without one, of the gateway: it is ready
    /// if any site is, and of those that are not it says why.
    pub(crate) fn readiness(&self, name: Option<&str>) -> (StatusCode, String) {
        let why_not = |source: &dyn Source| state::not_ready_because(source.is_draining(), &source.nodes());
        if name.is_some() || !self.are_several() {
            return match self.named(name).map(|shown| why_not(&*shown.source)) {
                Ok(None) => (StatusCode::OK, "ready\n".to_owned()),
                Ok(Some(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
                Err(why) => (StatusCode::NOT_FOUND, why),
            };
        }
        let each = self.all.iter().filter_map(|site| Some((&site.name, why_not(&*site.source)?)));
        let unready: Vec<String> = each.map(|(name, why)| format!("{name} is not ready: {why}\n")).collect();
        let (status, word) = if unready.len() < self.all.len() {
            (StatusCode::OK, "ready")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready")
        };
        (status, format!("{word}\n{}", unready.concat()))
    }
}

/// The site that a request names with `?site=`, else the main one.
impl FromRequestParts<Sites> for Shown {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, sites: &Sites) -> Result<Shown, Response> {
        let Query(SiteQuery { site }) =
            Query::try_from_uri(&parts.uri).map_err(IntoResponse::into_response)?;
        let named = sites.named(site.as_deref());
        named.cloned().map_err(|why| (StatusCode::NOT_FOUND, why).into_response())
    }
}

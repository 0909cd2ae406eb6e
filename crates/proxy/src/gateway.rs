//! One site of the gateway: the settings in force, behind one swap.
//!
//! A request is served to its end by the settings it came under; a connection keeps its time-outs
//! and what HTTP/2 has agreed on. What the gate, the routes, the visitors' cookies and the lines
//! hold is shared by all settings that follow one another, so that adopting others forgets nothing.

use crate::kept_overrides::KeptOverrides;
use crate::overrides::{Overridden, Override, OverrideError, OverrideOrder, Overrides};
use crate::pipeline::Core;
use crate::server::StartError;
use crate::server::has_nodes;
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use suimon_params::{DeclaredRoute, Params};
use suimon_waiting_room::{Pages, read_template};

/// See the module.
#[derive(Debug)]
pub(crate) struct Gateway {
    core: ArcSwap<Core>,
    /// What an operator has overridden. Locked while anything is adopted: one after another.
    overrides: Mutex<KeptOverrides>,
}

/// Settings that can be put in force: whatever could be wrong with them was looked at.
#[derive(Debug)]
pub(crate) struct Prepared {
    params: Params,
    pages: Pages,
}

/// How often it is looked whether the time of an override is over.
const TEND_EVERY: Duration = Duration::from_millis(250);

impl Gateway {
    /// Returns a gateway that serves by these settings.
    pub(crate) fn new(core: Core) -> Arc<Self> {
        let kept = KeptOverrides::open(core.params().overrides_file.clone());
        let gateway = Gateway { core: ArcSwap::from_pointee(core), overrides: Mutex::new(kept) };
        let kept = gateway.lock();
        if !kept.all().is_empty() {
            gateway.put_in_force(&kept);
            for it in kept.all() {
                tracing::info!(
                    id = it.id,
                    who = it.who,
                    "still overridden, from before the start: {}",
                    it.what
                );
            }
        }
        drop(kept);
        Arc::new(gateway)
    }

    /// Returns what a request that comes now is served by.
    pub(crate) fn core(&self) -> Arc<Core> {
        self.core.load_full()
    }

    /// Returns other settings, ready to be put in force. What is bound, opened or counted on from the
    /// start stays as it was.
    pub(crate) fn prepare(&self, wanted: Params) -> Result<Prepared, StartError> {
        let before = self.core();
        check_same(before.params(), &wanted)?;
        let params = before.params().adopting(wanted);
        let template = read_template(&params.waiting_room).map_err(StartError::Params)?;
        let pages = Pages::of(&params.waiting_room, template, before.waiting_room().is_some());
        Ok(Prepared { params, pages })
    }

    /// Puts other settings in force. Overrides stay, but for those of things that these settings change.
    pub(crate) fn adopt(&self, Prepared { params, pages }: Prepared) {
        let mut overrides = self.lock();
        let before = self.core();
        let over = overrides.take_out(|it| is_changed(&it.what, before.params(), &params));
        let after = Arc::new(before.adopting(params, Arc::new(pages)));
        self.core.store(Arc::clone(&after));
        after.backend().keeper.override_with(overrides.modes(), overrides.opens_gate());
        after.backend().keeper.adopt(after.params());
        if !over.is_empty() {
            overrides.keep();
        }
        for ended in over {
            log_end(&ended, "the settings that were adopted change the same");
        }
    }

    /// Returns whether other settings could be put in force.
    pub(crate) fn may_adopt(&self, wanted: &Params) -> Result<(), StartError> {
        check_same(self.core().params(), wanted)?;
        read_template(&wanted.waiting_room).map(drop).map_err(StartError::Params)
    }

    /// Returns the overrides in force.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        self.lock().all().to_vec()
    }

    /// Puts an override in force.
    pub(crate) fn override_with(&self, order: OverrideOrder) -> Result<(), OverrideError> {
        let mut overrides = self.lock();
        overrides.are_ours()?;
        let (own, earlier) = overrides.set(Instant::now(), SystemTime::now(), order)?;
        self.put_in_force(&overrides);
        overrides.keep();
        if let Some(earlier) = earlier {
            log_end(&earlier, "another one takes its place");
        }
        tracing::info!(
            id = own.id,
            who = own.who,
            why = own.why.as_deref().unwrap_or("not said"),
            "overridden for {}: {}",
            humantime::format_duration(Duration::from_secs((own.until_unix - own.since_unix).round() as u64)),
            own.what
        );
        Ok(())
    }

    /// Ends an override, because `who` says so.
    pub(crate) fn release(&self, id: u64, who: &str) -> Result<(), OverrideError> {
        let mut overrides = self.lock();
        overrides.are_ours()?;
        let ended = overrides.release(id)?;
        self.put_in_force(&overrides);
        overrides.keep();
        log_end(&ended, &format!("released by {who}"));
        Ok(())
    }

    /// Leaves overrides to another process: none is taken or kept from here on.
    pub(crate) fn hand_over_overrides(&self) {
        self.lock().hand_over();
    }

    /// Takes and keeps overrides again, as another process does not.
    pub(crate) fn take_overrides_back(&self) {
        self.lock().take_back();
    }

    /// Makes the file of overrides that of this process, which is the gateway now.
    pub(crate) fn own_overrides(&self) {
        let mut overrides = self.lock();
        overrides.own();
        self.free_last_nodes(&mut overrides);
    }

    /// Ends overrides when their time is over. Never returns.
    pub(crate) async fn tend_overrides(&self) {
        let mut ticks = tokio::time::interval(TEND_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let mut overrides = self.lock();
            if overrides.all().is_empty() {
                continue;
            }
            let ended = overrides.expire(Instant::now());
            if ended.is_empty() {
                // A node may have come back under its address.
                self.hold_nodes_back(&overrides);
                self.free_last_nodes(&mut overrides);
                continue;
            }
            self.put_in_force(&overrides);
            overrides.keep();
            ended.iter().for_each(|ended| log_end(ended, "its time is over"));
        }
    }

    fn put_in_force(&self, overrides: &Overrides) {
        let core = self.core();
        let keeper = &core.backend().keeper;
        if keeper.override_with(overrides.modes(), overrides.opens_gate()) {
            keeper.adopt(core.params());
        }
        self.hold_nodes_back(overrides);
    }

    fn hold_nodes_back(&self, overrides: &Overrides) {
        let (core, nodes) = (self.core(), overrides.nodes());
        for (_, upstream) in core.backend().upstreams().filter(|(_, it)| has_nodes(it)) {
            upstream.hold_back(|address| nodes.iter().any(|node| node == address));
        }
    }

    /// Lets nodes serve again that are held back, where no other node is left: that was no operator's
    /// wish.
    fn free_last_nodes(&self, overrides: &mut KeptOverrides) {
        let held = overrides.nodes();
        if held.is_empty() {
            return;
        }
        let core = self.core();
        let upstreams = core.backend().upstreams().filter(|(_, it)| has_nodes(it));
        let stranded: Vec<String> = upstreams
            .map(|(_, upstream)| upstream.view())
            .filter(|nodes| nodes.iter().all(|node| node.status == "draining"))
            .flatten()
            .map(|node| node.address)
            .filter(|address| held.contains(address))
            .collect();
        if stranded.is_empty() {
            return;
        }
        let is_stranded =
            |it: &Override| matches!(&it.what, Overridden::Node { address } if stranded.contains(address));
        let ended = overrides.take_out(is_stranded);
        self.hold_nodes_back(overrides);
        overrides.keep();
        ended.iter().for_each(|ended| log_end(ended, "no other node is left"));
    }

    fn lock(&self) -> MutexGuard<'_, KeptOverrides> {
        self.overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the settings of `after` say something else than those of `before` of what is
/// overridden.
fn is_changed(what: &Overridden, before: &Params, after: &Params) -> bool {
    match what {
        Overridden::Route { name, .. } => {
            let mode = |params: &Params| {
                let declared =
                    params.routes.declared.iter().find(|route| DeclaredRoute::name(route) == *name);
                declared.map_or(params.routes.discovered_mode, |route| route.mode)
            };
            mode(before) != mode(after)
        }
        Overridden::Gate => {
            let modes = |params: &Params| params.sessions.kinds.iter().map(|kind| kind.gate.mode).collect();
            let (before, after): (Vec<_>, Vec<_>) = (modes(before), modes(after));
            before != after
        }
        // Nodes take a restart.
        Overridden::Node { .. } => false,
    }
}

fn log_end(ended: &Override, why: &str) {
    tracing::info!(id = ended.id, who = ended.who, "no longer overridden ({why}): {}", ended.what);
}

/// Succeeds if both have the same kinds of session and the same declared routes: what is known of
/// them is known by their places.
fn check_same(before: &Params, wanted: &Params) -> Result<(), StartError> {
    let kinds = |params: &Params| -> Vec<(String, bool)> {
        params.sessions.kinds.iter().map(|kind| (kind.name.clone(), kind.gate.line.is_some())).collect()
    };
    let routes = |params: &Params| -> Vec<String> {
        params.routes.declared.iter().map(suimon_params::DeclaredRoute::name).collect()
    };
    let services = |params: &Params| -> Vec<(String, Vec<usize>)> {
        let services = &params.services.services;
        services.iter().map(|service| (service.name.clone(), service.routes.clone())).collect()
    };
    let differs = match () {
        () if kinds(before) != kinds(wanted) => "kinds of session or waiting rooms",
        () if routes(before) != routes(wanted) => "declared routes",
        () if services(before) != services(wanted) => "services or routes of them",
        () => return Ok(()),
    };
    Err(StartError::Params(format!("other {differs} take a restart")))
}

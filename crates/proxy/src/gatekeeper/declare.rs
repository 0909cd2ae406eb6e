//! What the gate is told of routes, kinds of session and settings.

use super::{Gatekeeper, Inner};
use suimon_gate::{Adoption, KindMode, KindParams, RouteMode, Services, WorkerLoad};
use suimon_model::{Duration, Instant, KindId, PoolId, RouteId};
use suimon_params::Params;
use suimon_record::{Event, name_cut};
use suimon_routes::SHARES;

impl Gatekeeper {
    /// Declares a route, whose name is a method and a path template.
    pub(crate) fn declare_route(&self, name: &str, mode: RouteMode, pool: PoolId) -> RouteId {
        self.add_route(name, Some(mode), false, pool)
    }

    /// Declares a route that was found from traffic.
    pub(crate) fn declare_found(&self, name: &str, pool: PoolId) -> RouteId {
        self.add_route(name, None, false, pool)
    }

    /// Declares a route shared by whatever has none of its own.
    pub(crate) fn declare_other(&self, name: &str, pool: PoolId) -> RouteId {
        self.add_route(name, None, true, pool)
    }

    fn add_route(&self, name: &str, mode: Option<RouteMode>, is_mixed: bool, pool: PoolId) -> RouteId {
        let now = self.clock.now();
        let mut inner = self.lock();
        let mode = inner.overriding(name).unwrap_or(mode.unwrap_or(inner.found_mode));
        inner.names.routes.push(name_cut(name).to_owned());
        inner.note(now, || Event::Route { is_mixed, mode, name: name.to_owned() });
        let route = if is_mixed {
            inner.gate.declare_mixed_route(now, mode)
        } else {
            inner.gate.declare_route(now, mode)
        };
        inner.give_to_pool(now, route, pool);
        route
    }

    /// Gives the number of `route` to another one that was found, and returns whether that could be
    /// done: nobody is there.
    pub(crate) fn renew_route(&self, route: RouteId, name: &str, pool: PoolId) -> bool {
        let now = self.clock.now();
        let mut inner = self.lock();
        if !inner.gate.is_deserted(route) {
            return false;
        }
        let mode = inner.overriding(name).unwrap_or(inner.found_mode);
        name_cut(name).clone_into(&mut inner.names.routes[route.index()]);
        inner.note(now, || Event::Renewed { route, mode, name: name.to_owned() });
        inner.gate.renew_route(now, route, mode);
        inner.give_to_pool(now, route, pool);
        true
    }

    /// Lets a route that was just found begin with the limit of the share of `other` at which its
    /// requests were until now.
    pub(crate) fn begin_with_limit_of(&self, route: RouteId, share: RouteId) {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.note(now, || Event::LimitOf { route, other: share });
        inner.gate.begin_with_limit_of(route, share);
    }

    /// Declares a kind of session.
    pub(crate) fn declare_kind(&self, name: &str, params: KindParams) -> KindId {
        let now = self.clock.now();
        let mut inner = self.lock();
        inner.names.kinds.push(name_cut(name).to_owned());
        inner.note(now, || Event::Kind { params: params.clone(), name: name.to_owned() });
        inner.gate.declare_kind(now, params)
    }

    /// Declares the services, all of them.
    pub(crate) fn declare_services(&self, params: &Params) {
        let services = params.services.for_gate(SHARES);
        if !services.services.is_empty() {
            self.with_gate(|inner, now| inner.declare_services(now, services));
        }
    }

    /// Takes note of how long the application took to take in a request without any work, beyond
    /// what it takes alone.
    pub(crate) fn lag(&self, lag: Duration) {
        self.with_gate(|inner, now| {
            inner.note(now, || Event::Lag(lag));
            inner.gate.handle_lag(lag);
        });
    }

    /// Says how many nodes the application has before anything is known of it. With none, the settings are
    /// taken to be those of one: so many there will be first.
    pub(crate) fn begin_with_nodes(&self, nodes: u32) {
        self.lock().nodes = nodes.max(1);
    }

    /// Takes note that the application has so many nodes now.
    pub(crate) fn nodes(&self, now_there: u32) {
        self.with_gate(|inner, now| {
            let before = inner.nodes;
            // Nodes that are all gone are what they were once they come back.
            if now_there == 0 || now_there == before {
                return;
            }
            inner.nodes = now_there;
            inner.note(now, || Event::Nodes(before, now_there));
            inner.gate.handle_nodes(now, before, now_there);
        });
    }

    /// Takes note of how many workers of a pool are ready; `None`: nobody is to wait for one.
    pub(crate) fn workers(&self, pool: PoolId, ready: Option<u32>) {
        self.with_gate(|inner, now| {
            inner.note(now, || Event::Workers(pool, ready));
            inner.gate.handle_workers(now, pool, ready);
        });
    }

    /// Returns what the workers of a pool did since this was asked last, and whether they were enough.
    pub(crate) fn worker_load(&self, pool: PoolId) -> WorkerLoad {
        self.lock().gate.take_worker_load(self.clock.now(), pool)
    }

    /// Says what the gate is to do on routes of these names, and whether nobody is to be held at the
    /// session gate, whatever the settings say; in force from the next [`Gatekeeper::adopt`] on.
    /// Returns whether that is anything else than before.
    pub(crate) fn override_with(&self, routes: Vec<(String, RouteMode)>, opens_gate: bool) -> bool {
        let overridden = (routes, opens_gate);
        let mut inner = self.lock();
        std::mem::replace(&mut inner.overridden, overridden.clone()) != overridden
    }

    /// Puts other settings in force; the kinds of session and the declared routes are the same.
    pub(crate) fn adopt(&self, params: &Params) {
        self.with_gate(|inner, now| {
            inner.found_mode = params.routes.discovered_mode;
            let declared = |id: RouteId| params.routes.declared.get(id.index().checked_sub(SHARES)?);
            let own = |id| declared(id).map_or(params.routes.discovered_mode, |route| route.mode);
            let name = |id: RouteId| inner.names.routes.get(id.index()).map_or("", String::as_str);
            let wanted = |id| inner.overriding(name(id)).unwrap_or_else(|| own(id));
            let is_open = inner.overridden.1;
            let kind = |kind: &KindParams| match kind.mode {
                KindMode::Enforce if is_open => KindParams { mode: KindMode::Observe, ..kind.clone() },
                _ => kind.clone(),
            };
            let modes = inner.gate.modes().map(|(id, mode)| (id, mode, wanted(id)));
            let adoption = Adoption {
                params: params.gate.clone(),
                routes: modes
                    .filter(|(_, now, wanted)| now != wanted)
                    .map(|(id, _, mode)| (id, mode))
                    .collect(),
                kinds: (0..)
                    .map(KindId)
                    .zip(params.sessions.kinds.iter().map(|own| kind(&own.gate)))
                    .collect(),
            };
            inner.note(now, || Event::Adopt(Box::new(adoption.clone())));
            inner.gate.adopt(now, &adoption);
            inner.declare_services(now, params.services.for_gate(SHARES));
        });
    }
}

impl Inner {
    /// Returns what an operator wants of the gate on the route of this name, if anything.
    fn overriding(&self, name: &str) -> Option<RouteMode> {
        let mut routes = self.overridden.0.iter();
        routes.find(|(own, _)| name_cut(own) == name_cut(name)).map(|(_, mode)| *mode)
    }

    fn give_to_pool(&mut self, now: Instant, route: RouteId, pool: PoolId) {
        if self.gate.pool_of(route) != pool {
            self.note(now, || Event::PoolOf(route, pool));
            self.gate.give_to_pool(now, route, pool);
        }
    }

    fn declare_services(&mut self, now: Instant, services: Services) {
        self.note(now, || Event::Services(Box::new(services.clone())));
        self.gate.declare_services(now, services);
    }
}

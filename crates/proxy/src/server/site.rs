//! One site of a gateway before it runs: made of its parameters, then begun once the sockets are there.

use super::begun::BegunSession;
use super::kept::restore_lines;
use super::learned::{StartedWith, recall};
use super::{StartError, found, sharing};
use crate::backend::Backend;
use crate::gatekeeper::Gatekeeper;
use crate::gateway::Gateway;
use crate::https::ListenerPorts;
use crate::pipeline::{Core, Parts};
use crate::telemetry::Telemetry;
use std::hash::RandomState;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use suimon_downstream::watch::Watcher;
use suimon_identity::identify::Identifier;
use suimon_identity::keys::{self, Keys};
use suimon_identity::lease::Leases;
use suimon_identity::session_tags::SessionTags;
use suimon_model::{KindId, PoolId, SessionId};
use suimon_params::{KINDS_MAX, Params};
use suimon_routes::{SHARES, Table};
use suimon_store::recorder::Recorder;
use suimon_store::whole_file::SetAside;
use suimon_upstream::{Upstream, report_keys};
use suimon_waiting_room::{Pages, WaitingRoom, read_template};

/// What all sites of a gateway share from the start.
#[derive(Debug)]
pub(super) struct Common {
    keys: Keys,
    /// What cookies of applications are remembered by, ...
    secret: [u8; 32],
    /// ... and clients without one: the same at all sites, which share connections.
    clients: RandomState,
    pub(super) watcher: Arc<Watcher>,
    /// Of its listeners, once there are any.
    pub(super) ports: ListenerPorts,
}

impl Common {
    /// Opens and makes what there is once for all sites.
    pub(super) fn new(params: &Params) -> Result<Self, StartError> {
        let keys = match &params.lease.keys_file {
            Some(path) => Keys::open(path),
            None => Keys::fresh(),
        };
        let keys = keys.map_err(StartError::Keys)?;
        let mut secret = [0; 32];
        keys::fill_random(&mut secret).map_err(StartError::Keys)?;
        let address = params.listen.plain.or(params.listen.tls.as_ref().map(|tls| tls.address));
        // It fails where sockets would: when descriptors or memory run out.
        let watcher = Watcher::new()
            .map_err(|error| StartError::Listen(address.expect("some address was checked for"), error))?;
        let (clients, ports) = (RandomState::new(), ListenerPorts::default());
        Ok(Common { keys, secret, clients, watcher: Arc::new(watcher), ports })
    }

    /// Returns the keys of one site: what is signed at one says nothing at another.
    fn keys_of(&self, params: &Params) -> Keys {
        match &params.site {
            None => self.keys.clone(),
            Some(name) => self.keys.derived(&format!("suimon 2026 keys of the site {name}")),
        }
    }
}

/// Returns everything for which a site with these parameters cannot begin, each with the key of the
/// setting it is about. Binds, makes and changes nothing.
pub(super) fn check(params: &Params) -> Vec<(&'static str, StartError)> {
    let mut refused: Vec<(&'static str, StartError)> = Vec::new();
    let mut note =
        |key, checked: Result<(), StartError>| refused.extend(checked.err().map(|error| (key, error)));
    if params.sessions.kinds.len() > KINDS_MAX {
        let why = "too many kinds of session: at most 64 are allowed".to_owned();
        note("session", Err(StartError::Params(why)));
    }
    if let Some(sharing) = &params.sharing {
        for (key, why) in sharing::check(sharing) {
            note(key, Err(StartError::Params(why)));
        }
    }
    if let Some((_, keys)) = load_reports(params) {
        let keys = report_keys::open(keys);
        note("upstream.load_reports.keys", keys.map(drop).map_err(StartError::LoadReportKeys));
    }
    let fresh = Keys::fresh().map_err(StartError::Keys);
    note("session", fresh.and_then(|keys| leases(keys, params).map(drop)));
    note("waiting_room.template", read_template(&params.waiting_room).map(drop).map_err(StartError::Params));
    let has_several = params.upstreams().filter(|upstream| upstream.workers.is_some()).count() > 1;
    for upstream in params.upstreams() {
        for pool in upstream.workers.iter().map(|workers| &workers.pool) {
            let name = if has_several { format!("{}: ", pool.name) } else { String::new() };
            for fault in suimon_pool::check(pool) {
                note("pool", Err(StartError::Params(format!("{name}{fault}"))));
            }
        }
        note("upstream", Upstream::new(upstream.clone()).map(drop).map_err(StartError::Params));
    }
    note("upstream.nodes_file", found::check(params).map_err(StartError::Params));
    refused
}

/// Notes two kinds of session, of whatever sites, whose cookies would have the same name.
pub(super) fn check_tags(params: &Params) -> Result<(), StartError> {
    let mut taken: Vec<([u8; 2], String)> = Vec::new();
    for params in params.all_sites() {
        let tags = leases(Keys::fresh().map_err(StartError::Keys)?, params)?.tags();
        for (tag, kind) in tags.into_iter().zip(&params.sessions.kinds) {
            let name = format!("{}/{}", params.site.as_deref().unwrap_or("main"), kind.name);
            if let Some((_, other)) = taken.iter().find(|(other, _)| *other == tag) {
                return Err(StartError::Params(format!(
                    "session kinds {other:?} and {name:?} cannot be told apart in cookies; rename one"
                )));
            }
            taken.push((tag, name));
        }
    }
    Ok(())
}

/// A site that is made, but has taken nothing that another process may have: no socket and no file of
/// state beside that of its lines.
#[derive(Debug)]
pub(super) struct SiteDraft {
    site: usize,
    params: Params,
    keeper: Arc<Gatekeeper>,
    table: Table,
    identifier: Identifier,
    waiting_room: Option<WaitingRoom>,
    pages: Arc<Pages>,
    telemetry: Arc<Telemetry>,
    session_tags: SessionTags,
    upstreams: Vec<Upstream>,
    /// The file of its lines, if it was set aside.
    set_aside: Option<SetAside>,
}

impl SiteDraft {
    /// Makes the site with this number. `begun`: the sessions of a gateway that hands over, if one does.
    pub(super) fn new(
        site: usize,
        mut params: Params,
        common: &Common,
        begun: Option<&[BegunSession]>,
    ) -> Result<Self, StartError> {
        let keys = common.keys_of(&params);
        let session_tags = SessionTags::of(&keys);
        let leases = leases(keys.clone(), &params)?;
        let tags = leases.tags();
        let (secret, clients) = (common.secret, common.clients.clone());
        let identifier =
            Identifier::new(&params.sessions, leases, params.limits.session_cookies, secret, clients);

        if params.sharing.is_some() || begun.is_some() {
            // Two gateways with one seed would give two visitors the same session.
            let mut seed = [0; 8];
            keys::fill_random(&mut seed).map_err(StartError::Keys)?;
            params.gate.seed = u64::from_le_bytes(seed);
        }
        let keeper = Gatekeeper::new(params.gate.clone(), params.routes.discovered_mode);
        let pass_page = params.waiting_room.pass.as_ref().map(|pass| pass.page.clone());
        let table = Table::new(&params.routes).with_pass_page(pass_page);
        let kinds = params.sessions.kinds.iter().map(|kind| kind.name.clone()).collect();
        let telemetry = Arc::new(Telemetry::new(table.capacity(), kinds));
        for kind in &params.sessions.kinds {
            keeper.declare_kind(&kind.name, kind.gate.clone());
        }
        if params.sharing.is_some() {
            keeper.share();
        }
        let template = read_template(&params.waiting_room).map_err(StartError::Params)?;
        let (lines, set_aside) = restore_lines(&params, &keeper, begun.is_some())?;
        let has_room = lines.iter().any(Option::is_some);
        let pages = Arc::new(Pages::of(&params.waiting_room, template, has_room));
        let waiting_room = has_room.then(|| {
            let of = lines.iter().map(|line| line.as_ref().map(|line| line.of)).collect();
            let waiting_room = WaitingRoom::new(&params.waiting_room, Arc::clone(&pages), &keys, tags, of);
            for (index, line) in lines.into_iter().enumerate() {
                let (Some(line), kind) = (line, KindId(index as u32)) else { continue };
                identifier.leases().end_all(kind, line.leases_ended);
                if let Some(said) = line.said {
                    waiting_room.say(kind, &said);
                }
            }
            for (index, _) in params.sessions.kinds.iter().enumerate() {
                let kind = KindId(index as u32);
                let saved = keeper.saved_line(kind);
                let seed = saved
                    .and_then(|saved| saved.lots.or(saved.lotteries.last().map(|lottery| lottery.seed())));
                waiting_room.commit(kind, seed);
            }
            waiting_room
        });
        declare_routes(&params, &keeper, &telemetry);

        let origin = keeper.clock().origin();
        let upstreams = params.upstreams().map(|upstream| Upstream::since(origin, upstream.clone()));
        let upstreams = upstreams.collect::<Result<Vec<_>, _>>().map_err(StartError::Params)?;
        keeper.begin_with_nodes(upstreams.first().map_or(0, |first| *first.watch_up_count().borrow()));
        Ok(SiteDraft {
            site,
            params,
            keeper,
            table,
            identifier,
            waiting_room,
            pages,
            telemetry,
            session_tags,
            upstreams,
            set_aside,
        })
    }

    /// Takes the socket for load reports, the sessions that have begun elsewhere and the learned state. `main`: the main site, unless this is it.
    pub(super) fn begin(
        self,
        common: &Common,
        reports: Option<UdpSocket>,
        main: Option<&Core>,
        begun: Option<&[BegunSession]>,
    ) -> Result<(Arc<Gateway>, StartedWith), StartError> {
        let SiteDraft { site, params, keeper, table, identifier, waiting_room, pages, telemetry, .. } = self;
        let (upstreams, session_tags, set_aside) = (self.upstreams, self.session_tags, self.set_aside);
        if let Some((address, keys)) = load_reports(&params) {
            let keys = report_keys::open(keys).map_err(StartError::LoadReportKeys)?;
            let bound = upstreams.first().map(|upstream| match reports {
                Some(socket) => upstream.listen_for_reports_by(socket, keys),
                None => upstream.listen_for_reports(address, keys),
            });
            bound.transpose().map_err(|error| StartError::LoadReports(address, error))?;
        }
        let kind_of = |name: &str| params.sessions.kinds.iter().position(|kind| kind.name == name);
        let of_site = begun.into_iter().flatten().filter(|begun| begun.site == params.site);
        keeper.reopen(
            of_site
                .filter_map(|begun| Some((KindId(kind_of(&begun.kind)? as u32), SessionId(begun.session)))),
        );
        let mut begun = recall(&params, &keeper, &table, &telemetry);
        begun.add_set_aside(set_aside);
        let main = main.map(|main| &**main.backend());
        let backend = Backend::new(&params, keeper, upstreams, telemetry, session_tags, main);
        let (watcher, ports) = (Arc::clone(&common.watcher), common.ports);
        let parts = Parts { site, table, identifier, waiting_room, pages, backend, watcher, ports };
        Ok((Gateway::new(Core::new(params, parts)), begun))
    }
}

/// Begins the recordings of all sites: last of what can fail, and none where it can be seen that one cannot begin, as
/// what a recording sets aside is not put back.
pub(super) fn begin_recordings(gateways: &[Arc<Gateway>]) -> Result<(), StartError> {
    let cores: Vec<_> = gateways.iter().map(|gateway| gateway.core()).collect();
    let recordings = || cores.iter().filter_map(|core| Some((core, core.params().record.as_ref()?)));
    for (_, recording) in recordings() {
        Recorder::check(recording).map_err(StartError::Record)?;
    }
    for (core, recording) in recordings() {
        core.backend().keeper.begin_recording(recording).map_err(StartError::Record)?;
    }
    Ok(())
}

fn declare_routes(params: &Params, keeper: &Gatekeeper, telemetry: &Telemetry) {
    let others: [_; SHARES] = std::array::from_fn(|_| keeper.declare_other("other", PoolId(0)));
    telemetry.name_route("other", others[0]);
    for route in &params.routes.declared {
        let (name, pool) = (route.name(), params.routes.pool_of(route));
        telemetry.name_route(&name, keeper.declare_route(&name, route.mode, pool));
    }
    for (pool, routes) in (1..).map(PoolId).zip(&params.routes.pools) {
        let name = routes.other();
        telemetry.name_route(&name, keeper.declare_other(&name, pool));
    }
    keeper.declare_services(params);
}

/// Returns where nodes report their load, and the file of the keys that is needed for it.
fn load_reports(params: &Params) -> Option<(SocketAddr, &Path)> {
    let reports = &params.upstream.load_reports;
    reports.listen.zip(reports.keys_file.as_deref())
}

fn leases(keys: Keys, params: &Params) -> Result<Leases, StartError> {
    let life = u32::try_from(params.lease.life.as_secs()).unwrap_or(u32::MAX).max(1);
    let kinds = params.sessions.kinds.iter().map(|kind| kind.name.as_str());
    Leases::new(keys, life, params.site.as_deref(), kinds).map_err(|(one, other)| {
        StartError::Params(format!(
            "session kinds {one:?} and {other:?} cannot be told apart in leases; rename one"
        ))
    })
}

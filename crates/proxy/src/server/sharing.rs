//! Shares amounts with other gateways: once per period, off the path of requests.

use crate::backend::Backend;
use crate::sharing_view::SharingView;
use crate::wall_clock::now_unix;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use suimon_engine::{Ask, Breaker, Engine, EngineParams, EngineUrl, Reply};
use suimon_identity::keys;
use suimon_line::Lane;
use suimon_model::{Instant, KindId, RouteId};
use suimon_params::SharingParams;
use suimon_routes::SHARES;
use suimon_sharing::{Allotment, GatewayId, Numbers, Params, Phase, Record, Sharing, key_of};
use tokio::sync::watch;

/// The first exchange takes at most this long before the gateway serves: then it begins with its safe
/// share.
const JOIN_TIMEOUT: Duration = Duration::from_millis(100);
/// How much later than its share expires a gateway looks again: timers go by milliseconds.
const GRAIN: Duration = Duration::from_millis(1);

/// Returns what is wrong with the parameters, each with the key of its setting.
pub(super) fn check(params: &SharingParams) -> Vec<(&'static str, String)> {
    match EngineUrl::parse(&params.engine) {
        Err(why) => vec![("sharing.engine", why)],
        Ok(url) => {
            let params = EngineParams { url, group: params.group.clone(), me: GatewayId(0) };
            Engine::new(&params).err().map(|why| ("sharing.group", why)).into_iter().collect()
        }
    }
}

/// Shares for one gateway.
#[derive(Debug)]
pub(super) struct Sharer {
    backend: Arc<Backend>,
    engine: Engine,
    url: EngineUrl,
    breaker: Breaker,
    sharing: Sharing,
    me: GatewayId,
    period: Duration,
    /// By kind and lane.
    numbers: BTreeMap<(u64, u32), Numbers>,
    view: SharingView,
}

impl Sharer {
    /// Returns one for the gate of `backend`.
    ///
    /// # Errors
    /// Returns what is wrong with the parameters.
    pub(super) fn new(params: &SharingParams, backend: &Arc<Backend>) -> Result<Self, String> {
        let mut random = [0; 16];
        keys::fill_random(&mut random).map_err(|error| error.to_string())?;
        let (one, other) = random.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        // Fifty-three bits: every reader of JSON reads it as it is.
        let me = GatewayId((number(one) >> 11).max(1));
        let life = number(other);
        let url = EngineUrl::parse(&params.engine)?;
        Ok(Sharer {
            backend: Arc::clone(backend),
            engine: Engine::new(&EngineParams { url: url.clone(), group: params.group.clone(), me })?,
            url,
            breaker: Breaker::new(life),
            sharing: Sharing::new(Params { me, life, period: params.period, gateways: params.gateways }),
            me,
            period: params.period,
            numbers: BTreeMap::new(),
            view: SharingView { gateway: me.0, ..SharingView::default() },
        })
    }

    /// Exchanges for the first time, for a bounded moment, so that whoever comes first finds a share.
    pub(super) async fn join(mut self) -> Self {
        tracing::info!(gateway = self.me.0, engine = %self.url, "sharing limits with other gateways");
        self.exchange().await;
        self
    }

    /// Shares until it is told to stop; then takes its record away.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut every = tokio::time::interval(self.period);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = every.tick() => self.exchange().await,
                // Its sender may be gone: that is an end, too.
                _ = stop.changed() => break,
            }
        }
        let now = self.backend.keeper.clock().now();
        if let Err(error) = self.engine.leave(now).await {
            tracing::info!("the record of this gateway stays until it expires: {error}");
        }
    }

    async fn exchange(&mut self) {
        let keeper = Arc::clone(&self.backend.keeper);
        let names = self.backend.telemetry.route_names();
        let kinds = self.backend.telemetry.kind_names();
        let mut key_of_route: BTreeMap<RouteId, u64> =
            (0..SHARES as u32).map(|share| (RouteId(share), key_of(&format!("other {share}")))).collect();
        // Of the routes of all that have none of their own, only the first has a name.
        key_of_route.extend(names.iter().skip(1).map(|(name, id)| (*id, key_of(name))));
        let key_of_kind: Vec<u64> = kinds.iter().map(|name| key_of(name)).collect();
        let begun = keeper.clock().now();
        let report = keeper.report(
            begun,
            |route| key_of_route.get(&route).copied().unwrap_or(0),
            |kind| key_of_kind.get(kind.index()).copied().unwrap_or(0),
        );
        let record = self.sharing.handle_report(begun, report);
        let (asks, lanes) = self.asks(begun, &record);
        let reply = match self.breaker.lets_through(begun) {
            true => Some(self.ask(begun, &record, &asks).await),
            false => None,
        };
        let now = keeper.clock().now();
        self.take(now, begun, reply, &lanes);
        let members = self.sharing.members();
        let part = self.sharing.part(now);
        let unix = u64::from(now_unix());
        let allotment = |((kind, lane), numbers): (&(u64, u32), &Numbers)| {
            let kind = key_of_kind.iter().position(|key| key == kind)?;
            let lane = *Lane::ALL.get(*lane as usize)?;
            Some((KindId(kind as u32), lane, numbers.allotment(now, unix, self.me, &members)))
        };
        let allotments: Vec<(KindId, Lane, Allotment)> = self.numbers.iter().filter_map(allotment).collect();
        let routes: BTreeMap<u64, RouteId> = key_of_route.iter().map(|(id, key)| (*key, *id)).collect();
        keeper.handle_part(
            now,
            &part,
            &allotments,
            |key| routes.get(&key).copied(),
            |key| key_of_kind.iter().position(|own| *own == key).map(|kind| KindId(kind as u32)),
        );
        self.tell(now);
    }

    /// Asks the engine, for no longer than what this gateway has is good.
    async fn ask(&mut self, begun: Instant, record: &Record, asks: &[Ask]) -> Result<Reply, String> {
        let exchange = self.engine.exchange(begun, record, asks);
        let longest = match self.sharing.phase(begun) {
            Phase::Joining => Some(JOIN_TIMEOUT),
            Phase::Shared | Phase::LastShare => self.sharing.expires_in(begun).map(|left| left + GRAIN),
            // It waits for a connection with its safe share in force.
            Phase::SafeShare => None,
        };
        match longest {
            Some(longest) => match tokio::time::timeout(longest, exchange).await {
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no connection within {} ms", longest.as_millis())),
            },
            None => exchange.await.map_err(|error| error.to_string()),
        }
    }

    /// Returns what numbers to ask for, and of which lanes they are.
    fn asks(&mut self, now: Instant, record: &Record) -> (Vec<Ask>, Vec<(u64, u32)>) {
        let (mut asks, mut lanes) = (vec![], vec![]);
        let unix = u64::from(now_unix());
        for kind in &record.kinds {
            let key = kind.report.key;
            for own in &kind.report.lanes {
                let numbers = self.numbers.entry((key, own.lane)).or_default();
                let others = self.sharing.lanes_elsewhere(key).filter(|other| other.lane == own.lane);
                if let Some(wanted) = numbers.wanted(own, others, now, unix) {
                    asks.push(Ask { lane: format!("{key:x}.{}", own.lane), wanted });
                    lanes.push((key, own.lane));
                }
            }
        }
        (asks, lanes)
    }

    /// Takes in the outcome of an exchange; `None`: none was tried.
    fn take(
        &mut self,
        now: Instant,
        begun: Instant,
        reply: Option<Result<Reply, String>>,
        lanes: &[(u64, u32)],
    ) {
        match reply {
            Some(Ok(reply)) => {
                self.breaker.succeeded();
                self.view.exchanges += 1;
                self.view.exchange_seconds = now.secs_since(begun);
                self.view.unreadable = reply.unreadable;
                self.view.error = None;
                for (lane, block) in lanes.iter().zip(reply.blocks) {
                    self.numbers.entry(*lane).or_default().handle_block(block);
                }
                self.sharing.handle_exchange(begun, reply.exchange);
            }
            failed => {
                if let Some(Err(why)) = failed {
                    self.breaker.failed(now);
                    self.view.error = Some(why);
                }
                self.view.failures += 1;
                self.sharing.handle_failure();
                if self.sharing.phase(now) == Phase::SafeShare {
                    let (members, unix) = (self.sharing.members(), u64::from(now_unix()));
                    for numbers in self.numbers.values_mut() {
                        numbers.handle_loss(now, unix, self.me, &members);
                    }
                }
            }
        }
    }

    /// Shows how it shares, and says so where that changes.
    fn tell(&mut self, now: Instant) {
        let (phase, gateways) = (self.sharing.phase(now), self.sharing.members().len());
        let gateways_max = self.sharing.membership();
        if phase.name() != self.view.phase {
            let why = self.view.error.as_deref().unwrap_or("");
            match phase {
                Phase::Joining => {}
                Phase::Shared => tracing::info!(gateways, "limits are shared by {}", counted(gateways)),
                Phase::LastShare => {
                    tracing::warn!("engine {}: {why}; this gateway keeps its last share", self.url);
                }
                Phase::SafeShare => tracing::warn!(
                    "engine {}: {why}; this gateway takes 1/{gateways_max} of each limit until it answers again",
                    self.url
                ),
            }
        } else if phase == Phase::Shared && gateways != self.view.gateways {
            tracing::info!(gateways, "limits are shared by {}", counted(gateways));
        }
        (self.view.phase, self.view.gateways) = (phase.name(), gateways);
        (self.view.gateways_max, self.view.learns) = (gateways_max, self.sharing.learns());
        self.backend.telemetry.show_sharing(self.view.clone());
    }
}

fn counted(gateways: usize) -> String {
    match gateways {
        1 => "one gateway".to_owned(),
        _ => format!("{gateways} gateways"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gateway_is_said_to_be_one() {
        assert_eq!((counted(1).as_str(), counted(2).as_str()), ("one gateway", "2 gateways"));
    }
}

//! One gateway among those that share: what it publishes, and what its part is.

use crate::hash::limit_learner;
use crate::member::Member;
use crate::split::{self, Claim};
use crate::unseen::Unseen;
use crate::{
    EXPIRY_PERIODS, Ended, GATEWAYS_MAX, GatewayId, KindRecord, LaneRecord, MEMBERSHIP_SECONDS, Record,
    Report, RouteRecord, RouteReport, learner,
};
use std::collections::{BTreeMap, VecDeque};
use suimon_model::{Duration, Instant};

/// Memberships remembered: one per second is enough.
const MEMBERSHIPS_MAX: usize = 64;

/// Traffic by which learners are chosen is averaged over this many seconds.
const RATE_SECONDS: f64 = 10.0;

/// What a gateway is told before it shares.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Who it is.
    pub me: GatewayId,
    /// Differs from process to process.
    pub life: u64,
    /// How often records are exchanged.
    pub period: Duration,
    /// How many gateways there are usually: the safe share is 1 ÷ this where none was ever seen.
    pub gateways: u32,
}

/// How a gateway shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It has published nothing yet, and has nothing.
    Joining,
    /// Records are exchanged; its share is computed from them.
    Shared,
    /// The last exchanges failed: it keeps its last share until that expires.
    LastShare,
    /// That has expired, or there never was one: it has the limit ÷ the largest membership seen.
    SafeShare,
}

impl Phase {
    /// Returns its name, which never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Joining => "joining",
            Phase::Shared => "shared",
            Phase::LastShare => "last_share",
            Phase::SafeShare => "safe_share",
        }
    }
}

/// The record of one gateway, as the engine has it.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    /// Whose.
    pub member: GatewayId,
    /// How long ago it was published, by the engine's clock.
    pub age: Duration,
    /// What it says.
    pub record: Record,
}

/// What an exchange brings back: the records of all, this gateway's among them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Exchange {
    /// In any order; of two of one gateway the newer counts.
    pub seen: Vec<Seen>,
}

/// What this gateway may do until the next exchange.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Part {
    /// How many gateways share, this one included; at least 1.
    pub gateways: u32,
    /// By route, in the order of the report.
    pub routes: Vec<RoutePart>,
    /// By kind, in the order of the report.
    pub kinds: Vec<KindPart>,
}

/// Its part of one route.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RoutePart {
    /// Which.
    pub key: u64,
    /// The limit of all gateways together; 0: none is held.
    pub limit: u32,
    /// The slots of this gateway.
    pub slots: u32,
    /// Whether one more may start here while [`split::lent`].
    pub may_borrow: bool,
    /// Whether this gateway learns the limit; the others follow.
    pub is_learner: bool,
    /// Whether the learner says that the limit is settled.
    pub is_settled: bool,
    /// Whether it is part of the safe share: the limit stands still, settled or not.
    pub stands_still: bool,
    /// Completions per second it can do, as the learner says; 0: unknown.
    pub capacity: f64,
    /// In the application from the other gateways, ...
    pub in_flight_elsewhere: u32,
    /// ... waiting at them, ...
    pub waiting_elsewhere: u32,
    /// ... ended at them since the last part, ...
    pub ended_elsewhere: Ended,
    /// ... and visits their sessions still have to make.
    pub remaining_elsewhere: f64,
}

/// Its part of one kind of session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KindPart {
    /// Which.
    pub key: u64,
    /// The portion of what begins that may begin here, 0 to 1.
    pub portion: f64,
    /// Sessions per second and at once, all gateways together, as another gateway learned; `None`:
    /// this one learns.
    pub pace: Option<(f64, f64)>,
    /// Newcomers per second at the other gateways, ...
    pub came_elsewhere: f64,
    /// ... sessions begun per second, ...
    pub begun_elsewhere: f64,
    /// ... newcomers who wait there, ...
    pub waiting_elsewhere: u32,
    /// ... and sessions under way there.
    pub active_elsewhere: u32,
    /// The line's lanes at the other gateways, ...
    pub lanes_elsewhere: Vec<LaneRecord>,
    /// ... and as they last were at those that were heard of recently and are not now.
    pub lanes_unseen: Vec<LaneRecord>,
    /// The share of those to be called that this gateway sees to: 1, or what it is alone.
    pub calls: f64,
}

/// What is in force here of one route.
#[derive(Clone, Copy, Debug, Default)]
struct OwnRoute {
    /// In force, ...
    slots: u32,
    /// ... and as published with the next record: what is raised is used only once all can know it.
    claim: u32,
    starved_since: Option<Instant>,
    /// What had ended here when the last part was computed.
    ended: Ended,
    /// The last limit of all gateways together, ...
    limit: u32,
    /// ... and whether it was heard what the others know of it.
    is_heard: bool,
    /// Progress per second, and up to when and what it was counted.
    rate: f64,
    counted: Option<(Instant, u64)>,
}

impl OwnRoute {
    fn count(&mut self, now: Instant, progressed: u64) {
        if let Some((at, before)) = self.counted {
            let passed = now.secs_since(at);
            if passed <= 0.0 {
                return;
            }
            let weight = passed / (passed + RATE_SECONDS);
            self.rate += weight * (progressed.saturating_sub(before) as f64 / passed - self.rate);
        }
        self.counted = Some((now, progressed));
    }
}

/// One gateway among those that share.
#[derive(Clone, Debug)]
pub struct Sharing {
    params: Params,
    number: u64,
    /// Whether it learns the limits.
    learns: bool,
    report: Report,
    routes: BTreeMap<u64, OwnRoute>,
    portions: BTreeMap<u64, f64>,
    /// The live ones, this gateway included.
    members: BTreeMap<GatewayId, Member>,
    /// Those that were, until recently.
    unseen: Unseen,
    /// What ended elsewhere since the last part.
    ended: BTreeMap<u64, Ended>,
    exchanged: Option<Instant>,
    has_failed: bool,
    memberships: VecDeque<(Instant, u32)>,
}

impl Sharing {
    /// Returns a gateway that has not joined yet.
    pub fn new(params: Params) -> Self {
        Sharing {
            params,
            number: 0,
            learns: false,
            report: Report::default(),
            routes: BTreeMap::new(),
            portions: BTreeMap::new(),
            members: BTreeMap::new(),
            unseen: Unseen::default(),
            ended: BTreeMap::new(),
            exchanged: None,
            has_failed: false,
            memberships: VecDeque::new(),
        }
    }

    /// Takes in what the gate reports, and returns the record to publish now.
    pub fn handle_report(&mut self, now: Instant, report: Report) -> Record {
        self.number += 1;
        let mut kept = BTreeMap::new();
        let mut routes = Vec::with_capacity(report.routes.len());
        for route in &report.routes {
            let mut own = self.routes.remove(&route.key).unwrap_or(OwnRoute {
                ended: route.ended,
                limit: route.limit,
                ..OwnRoute::default()
            });
            let starves = route.waiting > 0 && route.in_flight == 0;
            own.starved_since = own.starved_since.filter(|_| starves).or(starves.then_some(now));
            let starved = own.starved_since.map_or(Duration::ZERO, |since| now.since(since));
            own.count(now, route.ended.progressed);
            // A limit that nobody has learned is no news: whoever follows it begins anew.
            let limit = if own.is_heard { route.limit } else { 0 };
            routes.push(RouteRecord {
                report: RouteReport { limit, ..*route },
                slots: own.claim,
                rate: own.rate,
                starved_ms: u64::try_from(starved.as_millis()).unwrap_or(u64::MAX),
            });
            kept.insert(route.key, own);
        }
        self.routes = kept;
        let portion = |key: u64| self.portions.get(&key).copied().unwrap_or(0.0);
        let kinds = report
            .kinds
            .iter()
            .map(|kind| KindRecord { portion: portion(kind.key), report: kind.clone() })
            .collect();
        self.report = report;
        Record { number: self.number, life: self.params.life, learns: self.learns, routes, kinds }
    }

    /// Takes in what an exchange brought back that began at `now`: what it confirms was true then.
    pub fn handle_exchange(&mut self, now: Instant, exchange: Exchange) {
        let after_gap = self.phase(now) != Phase::Shared && self.phase(now) != Phase::LastShare;
        let expiry = self.expiry();
        let mut live = BTreeMap::new();
        let mut seen = exchange.seen;
        seen.sort_by_key(|seen| (seen.member, std::cmp::Reverse(seen.age)));
        for Seen { member, age, record } in seen {
            if age > expiry || (live.len() >= GATEWAYS_MAX && !live.contains_key(&member)) {
                continue;
            }
            // Of two records of one gateway the older comes first.
            let mut known: Member =
                live.remove(&member).or_else(|| self.members.remove(&member)).unwrap_or_default();
            for (key, ended) in known.take(record, after_gap) {
                if member != self.params.me {
                    self.ended.entry(key).or_default().add(&ended);
                }
            }
            live.insert(member, known);
        }
        let gone = self.members.iter().filter(|(id, _)| **id != self.params.me);
        let gone = gone.map(|(id, member)| (*id, &member.record));
        self.unseen.handle_exchange(now, after_gap, gone, |id| live.contains_key(&id));
        self.members = live;
        self.exchanged = Some(now);
        self.has_failed = false;
        let count = self.members.len().max(1) as u32;
        while self.memberships.front().is_some_and(|(at, _)| now.secs_since(*at) > MEMBERSHIP_SECONDS) {
            self.memberships.pop_front();
        }
        match self.memberships.back_mut() {
            Some((at, most)) if now.secs_since(*at) < 1.0 => *most = count.max(*most),
            _ => {
                if self.memberships.len() == MEMBERSHIPS_MAX {
                    self.memberships.pop_front();
                }
                self.memberships.push_back((now, count));
            }
        }
    }

    /// Takes note that an exchange failed, or was not tried as the last ones had.
    pub fn handle_failure(&mut self) {
        self.has_failed = true;
    }

    /// Returns how it shares at `now`.
    pub fn phase(&self, now: Instant) -> Phase {
        match self.exchanged {
            None if self.has_failed => Phase::SafeShare,
            None => Phase::Joining,
            Some(at) if now.since(at) > self.expiry() => Phase::SafeShare,
            Some(_) if self.has_failed => Phase::LastShare,
            Some(_) => Phase::Shared,
        }
    }

    fn expiry(&self) -> Duration {
        self.params.period * EXPIRY_PERIODS
    }

    /// Returns for how long the share in force is still good, if it is one that expires: whoever waits
    /// for the next exchange for longer takes the safe share then.
    pub fn expires_in(&self, now: Instant) -> Option<Duration> {
        let passed = self.exchanged.map(|at| now.since(at))?;
        (passed <= self.expiry()).then(|| self.expiry() - passed)
    }

    /// Returns those whose records are exchanged, in order, this gateway among them once it has
    /// joined.
    pub fn members(&self) -> Vec<GatewayId> {
        self.members.keys().copied().collect()
    }

    /// Returns whether this gateway learns the limits.
    pub fn learns(&self) -> bool {
        self.learns
    }

    /// Returns the largest membership seen in the last minute before records were lost; where none
    /// was seen, what it was told.
    pub fn membership(&self) -> u32 {
        self.memberships.iter().map(|(_, count)| *count).max().unwrap_or(self.params.gateways).max(1)
    }

    /// Returns the lanes of the kind `key` at the other gateways.
    pub fn lanes_elsewhere(&self, key: u64) -> impl Iterator<Item = &LaneRecord> {
        self.others().filter_map(move |member| member.record.kind(key)).flat_map(|kind| &kind.report.lanes)
    }

    fn others(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|(id, _)| **id != self.params.me).map(|(_, member)| member)
    }

    /// Returns its part from `now` on, and puts it in force.
    pub fn part(&mut self, now: Instant) -> Part {
        let report = std::mem::take(&mut self.report);
        let phase = self.phase(now);
        let all = self.members.iter().map(|(id, member)| (*id, &member.record));
        self.learns = phase != Phase::SafeShare && limit_learner(&all) == Some(self.params.me);
        let part = match phase {
            Phase::SafeShare => self.safe_part(&report),
            Phase::Joining | Phase::Shared | Phase::LastShare => self.shared_part(now, &report),
        };
        self.report = report;
        self.ended.clear();
        part
    }

    fn shared_part(&mut self, now: Instant, report: &Report) -> Part {
        let routes = report.routes.iter().map(|route| self.shared_route(now, route)).collect();
        let kinds = report.kinds.iter().map(|kind| self.shared_kind(kind.key)).collect();
        Part { gateways: self.members.len().max(1) as u32, routes, kinds }
    }

    fn shared_route(&mut self, now: Instant, report: &RouteReport) -> RoutePart {
        let (key, me) = (report.key, self.params.me);
        let there = || self.members.iter().filter_map(|(id, member)| Some((*id, member.record.route(key)?)));
        let all = self.members.iter().map(|(id, member)| (*id, &member.record));
        // Where it does not know the route, or its limit, one of those who do.
        let knows_any = there().any(|(_, route)| route.report.limit > 0);
        let who_know = || there().filter(|(_, route)| route.report.limit > 0 || !knows_any).map(|(id, _)| id);
        let learner = limit_learner(&all)
            .filter(|id| who_know().any(|other| other == *id))
            .or_else(|| learner(key, who_know()));
        let learned = there().find(|(id, _)| Some(*id) == learner).map(|(_, route)| route.report);
        let mut own = self.routes.get(&key).copied().unwrap_or_default();
        // One that holds no limit, as its settings are not yet those of the others, knows none.
        let limit = learned.map(|learned| learned.limit).filter(|limit| *limit > 0).unwrap_or(own.limit);
        let claims: Vec<Claim> = there()
            .map(|(member, route)| {
                // What this gateway is about to publish, and not its last record.
                let slots = if member == me { own.claim } else { route.slots };
                Claim {
                    member,
                    wants: route.wants(),
                    slots,
                    holds: slots.max(route.report.in_flight),
                    starved_ms: route.starved_ms,
                }
            })
            .collect();
        let published = there().find(|(id, _)| *id == me).map_or(0, |(_, route)| route.slots);
        let targets = split::slots(key, limit, &claims);
        let claim = split::granted(limit, &claims, &targets, me);
        // Of two who raised into the same room, the one who published later finds it taken. Nothing
        // is computed from records that may have changed since.
        let (slots, claim) = match self.has_failed {
            true => (own.slots, own.claim.max(own.slots)),
            false => (claim.min(published).min(split::left(limit, &claims, me)), claim),
        };
        let elsewhere = || there().filter(|(id, _)| *id != me).map(|(_, route)| route.report);
        // Where requests wait, a slot that is just free is taken in the same moment.
        let used = there().filter(|(id, _)| *id != me).map(|(_, route)| match route.report.waiting {
            0 => route.report.in_flight,
            _ => route.holds(),
        });
        let part = RoutePart {
            key,
            limit,
            slots,
            may_borrow: self.exchanged.is_some() && limit > 0 && elsewhere().all(|route| route.waiting == 0),
            is_learner: learner == Some(me),
            is_settled: learned.is_some_and(|learned| learned.is_settled),
            stands_still: false,
            capacity: learned.map_or(0.0, |learned| learned.capacity),
            in_flight_elsewhere: used.fold(0, u32::saturating_add),
            waiting_elsewhere: elsewhere().fold(0, |sum, route| sum.saturating_add(route.waiting)),
            ended_elsewhere: self.ended.get(&key).copied().unwrap_or_default(),
            remaining_elsewhere: elsewhere().map(|route| route.remaining).sum(),
        };
        (own.slots, own.claim, own.limit, own.ended) = (slots, claim, limit, report.ended);
        own.is_heard |= self.phase(now) == Phase::Shared;
        self.routes.insert(key, own);
        part
    }

    fn shared_kind(&mut self, key: u64) -> KindPart {
        let me = self.params.me;
        let there: Vec<(GatewayId, &KindRecord)> =
            self.members.iter().filter_map(|(id, member)| Some((*id, member.record.kind(key)?))).collect();
        // The guess of one that has just started is for those who have nothing better.
        let is_warm = |(_, kind): &&(GatewayId, &KindRecord)| !kind.report.is_cold;
        let learner = learner(key, there.iter().filter(is_warm).map(|(id, _)| *id))
            .or_else(|| learner(key, there.iter().map(|(id, _)| *id)));
        let learned = there.iter().find(|(id, _)| Some(*id) == learner && *id != me);
        let pace =
            learned.map(|(_, kind)| (kind.report.rate, kind.report.depth)).filter(|(rate, _)| *rate > 0.0);
        let own = self.portions.get(&key).copied().unwrap_or(0.0);
        let wants: Vec<f64> = there.iter().map(|(_, kind)| kind.report.wants).collect();
        let held: Vec<f64> =
            there.iter().map(|(id, kind)| if *id == me { own } else { kind.portion }).collect();
        let mine = there.iter().position(|(id, _)| *id == me);
        let portion = match mine {
            Some(mine) if !self.has_failed => split::granted_portion(&held, &split::portions(&wants), mine),
            _ => own,
        };
        let elsewhere = || there.iter().filter(|(id, _)| *id != me).map(|(_, kind)| &kind.report);
        let part = KindPart {
            key,
            portion,
            pace,
            came_elsewhere: elsewhere().map(|kind| kind.came).sum(),
            begun_elsewhere: elsewhere().map(|kind| kind.begun).sum(),
            waiting_elsewhere: elsewhere().fold(0, |sum, kind| sum.saturating_add(kind.waiting)),
            active_elsewhere: elsewhere().fold(0, |sum, kind| sum.saturating_add(kind.active)),
            lanes_elsewhere: elsewhere().flat_map(|kind| kind.lanes.clone()).collect(),
            lanes_unseen: self.unseen.lanes(key).cloned().collect(),
            calls: 1.0,
        };
        self.portions.insert(key, portion);
        part
    }

    /// Nothing is heard of the others: they are taken to be as this gateway is, and limits stand
    /// still.
    fn safe_part(&mut self, report: &Report) -> Part {
        let gateways = self.membership();
        let others = gateways - 1;
        let routes = report.routes.iter().map(|route| {
            let own = self.routes.entry(route.key).or_default();
            if own.limit == 0 {
                own.limit = route.limit;
            }
            let since = route.ended.since(&own.ended);
            own.ended = route.ended;
            own.slots = (own.limit / gateways).max(1);
            own.claim = own.slots;
            RoutePart {
                key: route.key,
                limit: own.limit,
                slots: own.slots,
                may_borrow: false,
                is_learner: false,
                is_settled: false,
                stands_still: true,
                capacity: route.capacity,
                in_flight_elsewhere: route.in_flight.saturating_mul(others),
                waiting_elsewhere: route.waiting.saturating_mul(others),
                ended_elsewhere: since.times(u64::from(others)),
                remaining_elsewhere: route.remaining * f64::from(others),
            }
        });
        let routes = routes.collect();
        let kinds = report.kinds.iter().map(|kind| {
            let portion = 1.0 / f64::from(gateways);
            self.portions.insert(kind.key, portion);
            KindPart {
                key: kind.key,
                portion,
                // The last pace of another may be that of one bad moment, and would last.
                pace: None,
                came_elsewhere: kind.came * f64::from(others),
                begun_elsewhere: kind.begun * f64::from(others),
                waiting_elsewhere: kind.waiting.saturating_mul(others),
                active_elsewhere: kind.active.saturating_mul(others),
                lanes_elsewhere: vec![],
                lanes_unseen: self
                    .lanes_elsewhere(kind.key)
                    .chain(self.unseen.lanes(kind.key))
                    .cloned()
                    .collect(),
                calls: portion,
            }
        });
        let kinds = kinds.collect();
        Part { gateways, routes, kinds }
    }
}

#[cfg(test)]
mod tests;

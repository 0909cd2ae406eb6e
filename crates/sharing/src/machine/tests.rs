use super::*;
use crate::KindReport;
use proptest::prelude::*;
use suimon_model::seconds;

const PERIOD: Duration = Duration::from_millis(100);
const ROUTE: u64 = 7;

/// Gateways over an engine that holds their last records, and requests that each has in the
/// application.
struct World {
    gateways: Vec<Sharing>,
    /// By gateway: in the application, waiting, and the slots it may use.
    busy: Vec<u32>,
    waiting: Vec<u32>,
    parts: Vec<Part>,
    engine: BTreeMap<GatewayId, (Instant, Record)>,
    now: Instant,
    limit: u32,
}

impl World {
    fn new(count: u64, limit: u32) -> World {
        let gateway = |number| {
            let me = GatewayId(number);
            Sharing::new(Params { me, life: number, period: PERIOD, gateways: 2 })
        };
        World {
            gateways: (1..=count).map(gateway).collect(),
            busy: vec![0; count as usize],
            waiting: vec![0; count as usize],
            parts: vec![Part::default(); count as usize],
            engine: BTreeMap::new(),
            now: Instant::ORIGIN + seconds(1.0),
            limit,
        }
    }

    fn report(&self, index: usize) -> Report {
        let route = RouteReport {
            key: ROUTE,
            in_flight: self.busy[index],
            waiting: self.waiting[index],
            limit: self.limit,
            ..RouteReport::default()
        };
        let wants = f64::from(self.busy[index] + self.waiting[index]);
        let kind = KindReport { key: ROUTE, wants, ..KindReport::default() };
        Report { routes: vec![route], kinds: vec![kind] }
    }

    fn seen(&self) -> Exchange {
        let seen = self.engine.iter().map(|(member, (at, record))| Seen {
            member: *member,
            age: self.now.since(*at),
            record: record.clone(),
        });
        Exchange { seen: seen.collect() }
    }

    /// One exchange of one gateway. `reaches`: whether its record arrives; `returns`: whether the
    /// answer does.
    fn exchange(&mut self, index: usize, reaches: bool, returns: bool) {
        let report = self.report(index);
        let record = self.gateways[index].handle_report(self.now, report);
        let record = Record::of_bytes(&record.to_bytes()).expect("a record is read as it was written");
        if reaches {
            self.engine.insert(GatewayId(index as u64 + 1), (self.now, record));
        }
        let exchange = self.seen();
        match reaches && returns {
            true => self.gateways[index].handle_exchange(self.now, exchange),
            false => self.gateways[index].handle_failure(),
        }
        self.parts[index] = self.gateways[index].part(self.now);
        self.start(index);
    }

    /// Starts what may start.
    fn start(&mut self, index: usize) {
        let Some(part) = self.parts[index].routes.first().copied() else { return };
        while self.waiting[index] > 0 {
            let used = u64::from(self.busy[index]) + u64::from(part.in_flight_elsewhere);
            let borrows = part.may_borrow && self.busy[index] == part.slots && split::lent(part.limit, used);
            if self.busy[index] >= part.slots && !borrows {
                return;
            }
            self.waiting[index] -= 1;
            self.busy[index] += 1;
        }
    }

    fn all(&mut self) {
        self.now += PERIOD;
        (0..self.gateways.len()).for_each(|index| self.exchange(index, true, true));
    }

    fn slots(&self) -> Vec<u32> {
        self.parts.iter().map(|part| part.routes[0].slots).collect()
    }
}

#[test]
fn all_get_their_share_within_a_second() {
    let mut world = World::new(4, 12);
    world.waiting = vec![100, 50, 50, 0];
    (0..10).for_each(|_| world.all());
    let busy: u32 = world.busy.iter().sum();
    assert!((12..=16).contains(&busy), "each has its slots, and may have borrowed one: {busy}");
    assert!(world.busy[0] > world.busy[1] && world.busy[3] == 0, "{:?}", world.busy);
}

#[test]
fn one_that_joins_begins_with_nothing_and_takes_nothing() {
    let mut world = World::new(2, 4);
    world.waiting = vec![50, 50];
    world.exchange(0, true, true);
    world.exchange(0, true, true);
    assert_eq!(world.busy[0], 4);
    world.exchange(1, true, true);
    assert_eq!(world.parts[1].routes[0].slots, 0, "the first has all of them in the application");
    world.all();
    world.all();
    assert_eq!(world.busy, [4, 0], "and nothing is taken from it");
    world.busy[0] = 2;
    (0..4).for_each(|_| world.all());
    assert_eq!(world.busy, [2, 2]);
}

#[test]
fn the_last_share_is_kept_for_three_periods_and_then_the_safe_one() {
    let mut world = World::new(3, 12);
    world.waiting = vec![9, 1, 1];
    (0..10).for_each(|_| world.all());
    let last = world.slots()[0];
    assert!(last > 4, "{last}");
    for _ in 0..3 {
        world.now += PERIOD;
        world.exchange(0, false, false);
        assert_eq!((world.slots()[0], world.gateways[0].phase(world.now)), (last, Phase::LastShare));
    }
    world.now += PERIOD;
    world.exchange(0, false, false);
    assert_eq!((world.slots()[0], world.gateways[0].phase(world.now)), (4, Phase::SafeShare));
    assert!((world.parts[0].kinds[0].portion - 1.0 / 3.0).abs() < 1e-9);
    world.all();
    assert_eq!(world.gateways[0].phase(world.now), Phase::Shared);
}

#[test]
fn one_that_never_reached_the_engine_has_a_safe_share_at_once() {
    let mut world = World::new(1, 12);
    world.exchange(0, false, false);
    assert_eq!((world.slots()[0], world.gateways[0].phase(world.now)), (6, Phase::SafeShare));
}

#[test]
fn a_survivor_grows_once_the_record_of_the_dead_has_expired() {
    let mut world = World::new(2, 8);
    world.waiting = vec![50, 50];
    for _ in 0..10 {
        world.all();
        world.busy = vec![4, 4];
    }
    assert_eq!(world.slots(), [4, 4]);
    for period in 1..=5 {
        world.now += PERIOD;
        world.exchange(0, true, true);
        let expected = if period <= 4 { 4 } else { 8 };
        assert_eq!(world.slots()[0], expected, "{period} periods after the last record");
    }
    assert_eq!(world.gateways[0].membership(), 2, "and is careful for a minute");
}

#[test]
fn what_ended_elsewhere_is_counted_once_however_often_it_is_told() {
    let mut world = World::new(2, 8);
    (0..3).for_each(|_| world.all());
    let mut record = world.engine[&GatewayId(2)].1.clone();
    for (number, progressed, expected) in [(10, 5, 5), (10, 6, 0), (9, 3, 0), (14, 25, 20)] {
        record.number = number;
        record.routes[0].report.ended.progressed = progressed;
        world.engine.insert(GatewayId(2), (world.now, record.clone()));
        world.exchange(0, true, true);
        assert_eq!(world.parts[0].routes[0].ended_elsewhere.progressed, expected, "record {number}");
    }
    record.life = 99;
    record.routes[0].report.ended.progressed = 1;
    world.engine.insert(GatewayId(2), (world.now, record));
    world.exchange(0, true, true);
    assert_eq!(world.parts[0].routes[0].ended_elsewhere.progressed, 0, "another process began anew");
}

#[test]
fn one_learns_and_the_others_follow() {
    let mut world = World::new(3, 8);
    (0..5).for_each(|_| world.all());
    let learners = world.parts.iter().filter(|part| part.routes[0].is_learner).count();
    assert_eq!(learners, 1);
    assert!(world.parts.iter().all(|part| part.gateways == 3));
}

/// A gateway that has this limit, if it knows the route, and this rate exchanges once.
fn exchange_as(world: &mut World, index: usize, limit: Option<u32>, rate: f64, is_cold: bool) -> Part {
    let mut report = world.report(index);
    report.routes.retain(|_| limit.is_some());
    report.routes.iter_mut().for_each(|route| route.limit = limit.unwrap_or(0));
    (report.kinds[0].rate, report.kinds[0].depth, report.kinds[0].is_cold) = (rate, 4.0, is_cold);
    let record = world.gateways[index].handle_report(world.now, report);
    let record = Record::of_bytes(&record.to_bytes()).expect("a record is read as it was written");
    world.engine.insert(GatewayId(index as u64 + 1), (world.now, record));
    let seen = world.seen();
    world.gateways[index].handle_exchange(world.now, seen);
    world.gateways[index].part(world.now)
}

/// The gateway that would learn by its number alone, and another.
fn chosen_and_other() -> (usize, usize) {
    let chosen = learner(ROUTE, (1..=2).map(GatewayId)).map_or(0, |GatewayId(number)| number as usize - 1);
    (chosen, 1 - chosen)
}

#[test]
fn the_rate_of_one_that_has_just_started_is_followed_only_where_nobody_knows_better() {
    let (cold, warm) = chosen_and_other();
    let mut world = World::new(2, 8);
    // (whether the other is cold, what it is to follow, what the chosen one is to follow)
    for (is_cold, others, own) in
        [(true, Some((1.0, 4.0)), None), (false, None, Some((20.0, 4.0))), (true, Some((1.0, 4.0)), None)]
    {
        let mut paces = (None, None);
        for _ in 0..3 {
            world.now += PERIOD;
            paces.0 = exchange_as(&mut world, warm, None, 20.0, is_cold).kinds[0].pace;
            paces.1 = exchange_as(&mut world, cold, None, 1.0, true).kinds[0].pace;
        }
        assert_eq!(paces, (others, own), "the other is cold: {is_cold}");
    }
    // Once it knows, it learns.
    (0..3).for_each(|_| _ = exchange_as(&mut world, cold, None, 19.0, false));
    assert_eq!(exchange_as(&mut world, warm, None, 20.0, false).kinds[0].pace, Some((19.0, 4.0)));
}

#[test]
fn one_that_comes_to_a_route_follows_the_limit_that_others_have_learned() {
    let mut world = World::new(2, 8);
    let limit_of = |part: &Part| (part.routes[0].limit, part.routes[0].is_learner);
    // The first learns the limits of all routes, and has had no request for this one.
    (0..2).for_each(|_| _ = exchange_as(&mut world, 0, None, 0.0, false));
    (0..2).for_each(|_| _ = exchange_as(&mut world, 1, Some(12), 0.0, false));
    exchange_as(&mut world, 0, None, 0.0, false);
    assert!(world.gateways[0].learns());
    // Its own limit is that of a slow start until it hears of the other.
    let part = exchange_as(&mut world, 0, Some(2), 0.0, false);
    assert_eq!(limit_of(&part), (12, false));
    assert_eq!(limit_of(&exchange_as(&mut world, 1, Some(12), 0.0, false)), (12, true));
    // From then on it learns from there.
    assert_eq!(limit_of(&exchange_as(&mut world, 0, Some(12), 0.0, false)), (12, true));
    assert_eq!(limit_of(&exchange_as(&mut world, 1, Some(12), 0.0, false)), (12, false));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Lost, late and partitioned: what the application gets stays within the bound of the crate's
    /// documentation. `steps`: who exchanges next, what of it is lost, what ends and arrives, ms.
    #[test]
    fn over_admission_stays_within_its_bound(
        count in 2u64..6,
        limit in 1u32..20,
        steps in prop::collection::vec((0usize..6, 0u8..10, 0u32..6, 0u32..12, 0u64..80), 1..200),
    ) {
        let mut world = World::new(count, limit);
        // Until when what a silent gateway had, or began by its safe share, may be there beside what
        // the others have: all have to hear of it, and what is too much has to end.
        let mut silent_until = vec![Instant::ORIGIN; count as usize];
        for (who, loss, ends, arrives, millis) in steps {
            let index = who % count as usize;
            world.now += Duration::from_millis(millis);
            world.busy[index] = world.busy[index].saturating_sub(ends);
            world.waiting[index] += arrives;
            (0..count as usize).for_each(|other| world.expire(other));
            world.exchange(index, loss != 0, loss != 1);
            let inside: u32 = world.busy.iter().sum();
            for (other, until) in silent_until.iter_mut().enumerate() {
                if world.is_silent(other) || (*until > world.now && inside > limit) {
                    *until = world.now + PERIOD * (EXPIRY_PERIODS + 1);
                }
            }
            let gone = silent_until.iter().filter(|until| **until > world.now).count() as u32;
            let bound = limit + count as u32 + gone * limit.max(1);
            prop_assert!(inside <= bound, "{inside} inside, bound {bound}, limit {limit}");
            prop_assert!(world.slots_of(index) <= limit, "never unlimited");
        }
    }

    #[test]
    fn records_are_read_as_they_were_written_and_anything_else_is_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(record) = Record::of_bytes(&bytes) {
            let again = Record::of_bytes(&record.to_bytes());
            prop_assert_eq!(again.map(|again| again.number), Ok(record.number));
        }
    }
}

impl World {
    fn slots_of(&self, index: usize) -> u32 {
        self.parts[index].routes[0].slots
    }

    /// What its shell does where no exchange succeeds.
    fn expire(&mut self, index: usize) {
        if self.gateways[index].phase(self.now) == Phase::SafeShare {
            self.parts[index] = self.gateways[index].part(self.now);
        }
    }

    fn is_silent(&self, index: usize) -> bool {
        let written = self.engine.get(&GatewayId(index as u64 + 1));
        written.is_none_or(|(at, _)| self.now.since(*at) > PERIOD * EXPIRY_PERIODS)
            || self.gateways[index].phase(self.now) == Phase::SafeShare
    }
}

impl World {
    /// One exchange of a gateway where this many people wait in line.
    fn exchange_line(&mut self, index: usize, people: u64, reaches: bool) -> KindPart {
        let lane = LaneRecord { lane: 2, next: 1000, called: 0, expected: 0.0, people: vec![(1000, people)] };
        let mut report = self.report(index);
        report.kinds[0].lanes = vec![lane];
        let record = self.gateways[index].handle_report(self.now, report);
        if reaches {
            self.engine.insert(GatewayId(index as u64 + 1), (self.now, record));
            let seen = self.seen();
            self.gateways[index].handle_exchange(self.now, seen);
        } else {
            self.gateways[index].handle_failure();
        }
        self.gateways[index].part(self.now).kinds[0].clone()
    }
}

#[test]
fn whoever_waits_at_a_gateway_that_is_not_heard_of_is_not_forgotten_for_a_minute() {
    let mut world = World::new(2, 8);
    let people = |part: &KindPart| {
        part.lanes_unseen.iter().flat_map(|lane| &lane.people).map(|(_, people)| people).sum::<u64>()
    };
    for index in [0, 1, 0] {
        world.exchange_line(index, 500, true);
    }
    // Neither reaches the engine for longer than a minute; it comes back empty.
    let mut part = KindPart::default();
    for _ in 0..800 {
        world.now += PERIOD;
        part = world.exchange_line(0, 3, false);
    }
    assert_eq!((people(&part), part.lanes_elsewhere.len()), (500, 0));
    assert!((part.calls - 0.5).abs() < 1e-9, "half of those to be called are its own");
    world.engine.clear();
    part = world.exchange_line(0, 3, true);
    assert_eq!(people(&part), 500, "the other is not back yet");
    world.exchange_line(1, 400, true);
    part = world.exchange_line(0, 3, true);
    assert_eq!((people(&part), part.lanes_elsewhere.len()), (0, 1), "and now it is");
    // It dies: its people come here within a minute.
    for _ in 0..10 {
        world.now += PERIOD;
        part = world.exchange_line(0, 3, true);
    }
    assert_eq!(people(&part), 400);
    (0..600).for_each(|_| {
        world.now += PERIOD;
        part = world.exchange_line(0, 3, true);
    });
    assert_eq!(people(&part), 0);
}

#[test]
fn a_share_expires_by_when_the_exchange_began_that_confirmed_it() {
    let mut world = World::new(2, 8);
    (0..6).for_each(|_| {
        (0..2).for_each(|index| world.exchange(index, true, true));
        world.now += PERIOD;
    });
    let began = world.now;
    let report = world.report(0);
    let gateway = &mut world.gateways[0];
    gateway.handle_report(began, report);
    assert_eq!(gateway.expires_in(began), Some(PERIOD * (EXPIRY_PERIODS - 1)), "of the exchange before");
    // The answer to the next one took a period, and nothing comes after it.
    let exchange = Exchange { seen: vec![] };
    gateway.handle_exchange(began, exchange);
    gateway.handle_failure();
    let left = gateway.expires_in(began + PERIOD);
    assert_eq!(left, Some(PERIOD * (EXPIRY_PERIODS - 1)));
    let end = began + PERIOD * EXPIRY_PERIODS;
    assert_eq!((gateway.phase(end), gateway.expires_in(end)), (Phase::LastShare, Some(Duration::ZERO)));
    let after = end + Duration::from_millis(1);
    assert_eq!((gateway.phase(after), gateway.expires_in(after)), (Phase::SafeShare, None));
}

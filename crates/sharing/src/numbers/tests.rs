use super::*;
use crate::EXPIRY_PERIODS;
use proptest::prelude::*;
use suimon_model::{Duration, seconds};

const SECOND: Duration = Duration::from_secs(1);

fn lane(next: u64) -> LaneRecord {
    LaneRecord { next, ..LaneRecord::default() }
}

/// Gateways over an engine that counts, in the order of the gateway's exchanges: each asks by what
/// it read the last time, publishes, gets its block, and reads.
struct World {
    numbers: Vec<Numbers>,
    next: Vec<u64>,
    counter: u64,
    published: Vec<u64>,
    read: Vec<Vec<u64>>,
    /// Exchanges in a row that failed.
    failed: Vec<u32>,
    /// Time, gateway and number of each draw.
    drawn: Vec<(Instant, usize, u64)>,
    now: Instant,
}

impl World {
    fn new(count: usize) -> World {
        World {
            numbers: vec![Numbers::default(); count],
            next: vec![0; count],
            counter: 0,
            published: vec![0; count],
            read: vec![vec![0; count]; count],
            failed: vec![0; count],
            drawn: vec![],
            now: Instant::ORIGIN,
        }
    }

    fn unix(&self) -> u64 {
        BEGIN + 200_000_000 + self.now.secs_since(Instant::ORIGIN) as u64
    }

    fn exchange(&mut self, index: usize, is_up: bool) {
        let unix = self.unix();
        let lanes: Vec<LaneRecord> = self.read[index].iter().map(|next| lane(*next)).collect();
        let others = lanes.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, lane)| lane);
        let wanted = self.numbers[index].wanted(&lane(self.next[index]), others, self.now, unix);
        if !is_up {
            self.failed[index] += 1;
            if self.failed[index] >= EXPIRY_PERIODS {
                let members: Vec<GatewayId> = (0..self.next.len() as u64).map(GatewayId).collect();
                self.numbers[index].handle_loss(self.now, unix, GatewayId(index as u64), &members);
            }
            return;
        }
        self.failed[index] = 0;
        self.published[index] = self.next[index];
        if let Some(wanted) = wanted {
            let block = wanted.block(self.counter);
            self.counter = block.to;
            self.numbers[index].handle_block(block);
        }
        self.read[index].clone_from(&self.published);
    }

    /// The engine is back with nothing.
    fn lose_all(&mut self) {
        self.counter = 0;
        self.published.fill(0);
    }

    fn draw(&mut self, index: usize) {
        let members: Vec<GatewayId> = (0..self.next.len() as u64).map(GatewayId).collect();
        let allotment =
            self.numbers[index].allotment(self.now, self.unix(), GatewayId(index as u64), &members);
        let number = allotment.number(self.next[index]).expect("there are cells");
        self.drawn.push((self.now, index, number));
        self.next[index] = number + 1;
    }

    fn worst_inversion(&self) -> f64 {
        let mut worst: f64 = 0.0;
        for (at, _, number) in &self.drawn {
            for (later, _, _) in self.drawn.iter().filter(|(_, _, other)| other < number) {
                worst = worst.max(later.secs_since(*at));
            }
        }
        worst
    }

    fn no_number_was_drawn_twice(&self) -> bool {
        let mut numbers: Vec<u64> = self.drawn.iter().map(|(_, _, number)| *number).collect();
        numbers.sort_unstable();
        numbers.windows(2).all(|pair| pair[0] < pair[1])
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// `draws`: by period of 100 ms, how many at each gateway.
    #[test]
    fn a_number_drawn_three_periods_later_is_a_higher_one(
        draws in prop::collection::vec(prop::collection::vec(0usize..6, 3), 1..60),
    ) {
        let mut world = World::new(3);
        for period in draws {
            for (index, count) in period.into_iter().enumerate() {
                world.now += Duration::from_millis(33);
                // Some come just before an exchange, some just after it.
                (0..count / 2).for_each(|_| world.draw(index));
                world.exchange(index, true);
                (count / 2..count).for_each(|_| world.draw(index));
            }
        }
        prop_assert!(world.no_number_was_drawn_twice());
        prop_assert!(world.worst_inversion() <= 0.3, "{} s", world.worst_inversion());
    }

    /// It loses what it knew, and is back before its loss is noticed: `gone` exchanges in a row fail.
    #[test]
    fn an_engine_that_is_back_with_nothing_at_once_hands_out_no_number_again(
        draws in prop::collection::vec(prop::collection::vec(0usize..40, 3), 10..60),
        lost in prop::collection::vec((0usize..40, 0usize..9), 1..4),
    ) {
        let mut world = World::new(3);
        let (mut exchanges, mut apart) = (0, 0);
        // Not again before all have heard of the last time.
        let lost: Vec<(usize, usize)> = lost.into_iter().map(|(after, gone)| {
            apart += after + 20;
            (apart, gone.min(6))
        }).collect();
        for period in draws {
            for (index, count) in period.into_iter().enumerate() {
                world.now += Duration::from_millis(33);
                // At most two exchanges of each in a row.
                let is_gone = lost.iter().any(|(at, gone)| (*at..at + gone).contains(&exchanges));
                if lost.iter().any(|(at, gone)| at + gone == exchanges) {
                    world.lose_all();
                }
                exchanges += 1;
                (0..count / 2).for_each(|_| world.draw(index));
                world.exchange(index, !is_gone);
                (count / 2..count).for_each(|_| world.draw(index));
            }
        }
        prop_assert!(world.no_number_was_drawn_twice());
    }

    /// The engine goes and comes back; each gateway notices it in its own exchange.
    #[test]
    fn without_the_engine_the_order_is_that_of_seconds(
        draws in prop::collection::vec(prop::collection::vec(0usize..6, 3), 20..80),
        gone in 5usize..15,
    ) {
        let mut world = World::new(3);
        for (number, period) in draws.into_iter().enumerate() {
            for (index, count) in period.into_iter().enumerate() {
                world.now += Duration::from_millis(33);
                world.exchange(index, number < gone || number > 50);
                (0..count).for_each(|_| world.draw(index));
            }
        }
        prop_assert!(world.no_number_was_drawn_twice());
        prop_assert!(world.worst_inversion() <= 2.0, "{} s", world.worst_inversion());
    }
}

#[test]
fn one_that_draws_more_than_its_cell_goes_on_in_the_next_second() {
    let mut world = World::new(2);
    world.exchange(0, true);
    (0..EXPIRY_PERIODS).for_each(|_| world.exchange(0, false));
    (0..3 * CELL).for_each(|_| world.draw(0));
    assert_eq!(world.drawn.len() as u64, 3 * CELL, "nobody is turned away");
    assert!(world.no_number_was_drawn_twice());
    world.now += seconds(10.0);
    world.draw(0);
    let numbers: Vec<u64> = world.drawn.iter().map(|(_, _, number)| *number).collect();
    assert!(numbers.is_sorted());
}

/// The gateways of a group never reach the engine, and know nobody.
#[test]
fn gateways_that_know_nobody_draw_no_number_twice_and_in_one_order() {
    let mut world = World::new(4);
    let mut drawn = vec![];
    for second in 0..200 {
        world.now += seconds(1.0);
        for index in 0..4 {
            let me = GatewayId(1000 + index as u64);
            let (now, unix) = (world.now, world.unix());
            world.numbers[index].handle_loss(now, unix, me, &[]);
            let allotment = world.numbers[index].allotment(now, unix, me, &[]);
            let number = allotment.number(world.next[index]).expect("there are cells");
            world.next[index] = number + 1;
            drawn.push((number, second));
        }
    }
    drawn.sort_unstable();
    assert!(drawn.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1 + 2));
    assert!(drawn.last().is_some_and(|(number, _)| *number < 1 << 48), "a ticket has room for them");
}

#[test]
fn an_engine_that_lost_all_hands_out_no_number_again() {
    let mut world = World::new(2);
    world.exchange(0, true);
    (0..10).for_each(|_| world.draw(0));
    (world.counter, world.numbers[1]) = (0, Numbers::default());
    world.now += seconds(30.0);
    world.exchange(1, true);
    world.draw(1);
    assert!(world.no_number_was_drawn_twice() && world.worst_inversion() < 0.001);
}

#[test]
fn two_of_the_same_cell_who_know_each_other_have_two() {
    let same = (2..1 << 20).map(GatewayId).find(|other| cell_of(*other, &[]) == cell_of(GatewayId(1), &[]));
    let other = same.expect("there are fewer cells");
    let members = [GatewayId(1), other];
    assert_ne!(cell_of(GatewayId(1), &members), cell_of(other, &members));
}

#[test]
fn one_with_a_block_asks_an_engine_that_lost_its_count_for_what_is_beyond_all_blocks() {
    let mut a = Numbers::default();
    a.handle_block(Block { from: 1000, to: 1064 });
    // Another one has got 1064 to 1127, and has drawn six.
    let wanted =
        a.wanted(&lane(1010), [&lane(1070)].into_iter(), Instant::ORIGIN, BEGIN).expect("it is behind");
    assert_eq!(wanted.block(1128).from, 1128, "an engine that has lost nothing counts on");
    assert!(wanted.block(0).from >= 1128 && wanted.block(1069).from >= 1128, "{wanted:?}");
    // What it draws from its own cells, the engine never counted.
    let cells = 9_000_000;
    let wanted =
        a.wanted(&lane(cells), [&lane(1070)].into_iter(), Instant::ORIGIN, BEGIN).expect("its block is over");
    assert_eq!(wanted.block(1128).from, cells);
    a.handle_loss(Instant::ORIGIN, BEGIN, GatewayId(1), &[]);
    let wanted =
        a.wanted(&lane(cells), [&lane(1070)].into_iter(), Instant::ORIGIN, BEGIN).expect("it has no block");
    assert!(wanted.block(1128).from > cells, "behind all that others may have drawn meanwhile");
    assert!(wanted.block(0).from > cells, "another one goes on beyond");
}

#[test]
fn whoever_is_back_first_draws_behind_what_others_drew_meanwhile() {
    let (mut busy, mut idle) = (Numbers::default(), Numbers::default());
    busy.handle_block(Block { from: 1000, to: 1064 });
    idle.handle_block(Block { from: 1064, to: 1128 });
    for (numbers, me) in [(&mut busy, 1), (&mut idle, 2)] {
        numbers.handle_loss(Instant::ORIGIN, BEGIN, GatewayId(me), &[GatewayId(1), GatewayId(2)]);
    }
    let minutes = Instant::ORIGIN + Duration::from_secs(300);
    let cells = busy.allotment(minutes, BEGIN + 300, GatewayId(1), &[GatewayId(1), GatewayId(2)]);
    let last = cells.number(1010).expect("there are cells");
    // Nobody drew at the other one, and it is the first that reaches the engine again.
    let wanted = idle
        .wanted(&lane(1070), [].into_iter(), minutes + SECOND, BEGIN + 301)
        .expect("it has left its block");
    for counted in [1128, 0] {
        let block = wanted.block(counted);
        assert!(block.from > last, "{counted}: {block:?} is not behind {last}");
    }
}

#[test]
fn whatever_a_clock_or_a_record_says_a_ticket_holds_the_number() {
    let mut wrong = Numbers::default();
    let latest = u64::from(u32::MAX);
    let first = |numbers: &mut Numbers, now| {
        let wanted = numbers.wanted(&lane(0), [].into_iter(), now, latest).expect("it has none");
        let first = wanted.block(0);
        assert!(first.to + (1 << 33) < NUMBERS_END, "and there are enough to count on: {first:?}");
    };
    first(&mut wrong, Instant::ORIGIN);
    // The clock was wrong when the engine was lost, and is set right meanwhile.
    let mut set_right = Numbers::default();
    set_right.handle_loss(Instant::ORIGIN, 0, GatewayId(1), &[]);
    first(&mut set_right, Instant::ORIGIN + SECOND);
    let lost = wrong.allotment(Instant::ORIGIN, u64::from(u32::MAX), GatewayId(1), &[]);
    assert!(lost.number(0).is_some_and(|number| number < NUMBERS_END));
    assert_eq!(lost.number(NUMBERS_END), None, "there are no more");
    let told = |next| {
        let report = crate::KindReport { lanes: vec![lane(next)], ..crate::KindReport::default() };
        let kinds = vec![crate::KindRecord { report, portion: 0.0 }];
        crate::Record::of_bytes(&crate::Record { kinds, ..crate::Record::default() }.to_bytes())
    };
    assert!(told(NUMBERS_END).is_ok());
    assert!(told(NUMBERS_END + 1).is_err() && told(u64::MAX).is_err());
}

/// Two gateways without the engine, whose blocks are from `ahead` on, and which notice that one second apart: ten
/// seconds later the second one, which has drawn nothing, hears of it again.
fn block_after_ten_seconds(ahead: u64, lost_at: u64) -> (u64, Wanted) {
    let ids = [GatewayId(1), GatewayId(2)];
    let (mut busy, mut idle) = (Numbers::default(), Numbers::default());
    busy.handle_block(Block { from: ahead, to: ahead + 64 });
    idle.handle_block(Block { from: ahead + 64, to: ahead + 128 });
    busy.handle_loss(Instant::ORIGIN, lost_at, GatewayId(1), &ids);
    idle.handle_loss(Instant::ORIGIN + SECOND, lost_at + 1, GatewayId(2), &ids);
    let later = Instant::ORIGIN + Duration::from_secs(10);
    let last = busy.allotment(later, lost_at + 10, GatewayId(1), &ids).number(ahead + 10).expect("cells");
    (
        last,
        idle.wanted(&lane(ahead + 70), [].into_iter(), later, lost_at + 10).expect("it has left its block"),
    )
}

#[test]
fn who_is_back_draws_behind_others_also_where_numbers_were_ahead_of_the_clock() {
    // The engine had lost its count a moment before, ...
    let beyond = first_of(BEGIN + 100) + BEYOND;
    // ... or had come back in the same second.
    for ahead in [beyond, first_of(BEGIN + 102)] {
        let (last, wanted) = block_after_ten_seconds(ahead, BEGIN + 101);
        for counter in [ahead + 128, 0] {
            let block = wanted.block(counter);
            assert!(block.from > last, "{counter}: {block:?} is not behind {last}");
        }
    }
}

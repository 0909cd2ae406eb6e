use super::*;
use proptest::prelude::*;
use suimon_model::{Duration, seconds};

fn lane(next: u64) -> LaneRecord {
    LaneRecord { next, ..LaneRecord::default() }
}

/// Gateways over an engine that counts.
struct World {
    numbers: Vec<Numbers>,
    next: Vec<u64>,
    counter: u64,
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
            drawn: vec![],
            now: Instant::ORIGIN,
        }
    }

    fn unix(&self) -> u64 {
        BEGIN + 200_000_000 + self.now.secs_since(Instant::ORIGIN) as u64
    }

    fn exchange(&mut self, index: usize, is_up: bool) {
        let lanes: Vec<LaneRecord> = self.next.iter().map(|next| lane(*next)).collect();
        let others = lanes.iter().enumerate().filter(|(other, _)| is_up && *other != index);
        let others = others.map(|(_, lane)| lane);
        let unix = self.unix();
        let wanted = self.numbers[index].wanted(&lanes[index], others);
        let members: Vec<GatewayId> = (0..self.next.len() as u64).map(GatewayId).collect();
        match is_up {
            false => self.numbers[index].handle_loss(self.now, unix, GatewayId(index as u64), &members),
            true if wanted > 0 => {
                self.counter = self.numbers[index].at_least(self.counter, unix);
                let block = Block { from: self.counter, to: self.counter + wanted };
                self.counter += wanted;
                self.numbers[index].handle_block(block);
            }
            true => {}
        }
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
    fn a_number_drawn_two_periods_later_is_a_higher_one(
        draws in prop::collection::vec(prop::collection::vec(0usize..6, 3), 1..60),
    ) {
        let mut world = World::new(3);
        for period in draws {
            for (index, count) in period.into_iter().enumerate() {
                world.now += Duration::from_millis(33);
                world.exchange(index, true);
                (0..count).for_each(|_| world.draw(index));
            }
        }
        prop_assert!(world.no_number_was_drawn_twice());
        prop_assert!(world.worst_inversion() <= 0.2, "{} s", world.worst_inversion());
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
    world.exchange(0, false);
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

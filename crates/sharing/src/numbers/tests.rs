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

    fn exchange(&mut self, index: usize, is_up: bool) {
        let lanes: Vec<LaneRecord> = self.next.iter().map(|next| lane(*next)).collect();
        let others = lanes.iter().enumerate().filter(|(other, _)| is_up && *other != index);
        let others = others.map(|(_, lane)| lane);
        let wanted = self.numbers[index].wanted(&lanes[index], others);
        let members: Vec<GatewayId> = (0..self.next.len() as u64).map(GatewayId).collect();
        match is_up {
            false => self.numbers[index].handle_loss(self.now, GatewayId(index as u64), &members),
            true if wanted > 0 => {
                self.counter = self.numbers[index].at_least(self.counter);
                let block = Block { from: self.counter, to: self.counter + wanted };
                self.counter += wanted;
                self.numbers[index].handle_block(block);
            }
            true => {}
        }
    }

    fn draw(&mut self, index: usize) {
        let members: Vec<GatewayId> = (0..self.next.len() as u64).map(GatewayId).collect();
        let allotment = self.numbers[index].allotment(self.now, GatewayId(index as u64), &members);
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

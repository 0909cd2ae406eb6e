//! How a visitor farms: it gets tickets and polls their positions one at a time, over the user's
//! one connection.

use super::{POLL_PATIENCE, User};
use crate::jar::Jar;
use crate::line::{FarmedPosition, Farmer, NextInLine, NextOnFarm};
use crate::trouble::Trouble;
use crate::wire;
use std::mem::{swap, take};
use std::rc::Rc;
use suimon_workload::{InLine, Journey};

/// The result of a request for a ticket.
enum Drawn {
    Position,
    LetIn,
    Nothing,
}

impl User {
    /// Gets tickets and waits until one of them is called; false if the farmer gives up, or has no
    /// ticket to wait with.
    pub(super) async fn farm(&mut self, journey: &Journey, step: usize) -> bool {
        let shared = Rc::clone(&self.shared);
        let mut farmer = self.farmer.take().unwrap_or_else(|| {
            shared.books.borrow_mut().line.farm.farmers += 1;
            Farmer::begin(shared.clock.now(), &journey.in_line.farm)
        });
        // The ticket that the farmer arrived with: the first, or one that could not be admitted.
        self.keep_position(&mut farmer, journey);
        loop {
            match farmer.next() {
                NextOnFarm::Draw(at) => {
                    wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
                    match self.draw(&mut farmer, journey, step).await {
                        Drawn::LetIn if farmer.keeps_cookies() => {
                            self.farmer = Some(farmer);
                            return true;
                        }
                        Drawn::Position => self.keep_position(&mut farmer, journey),
                        Drawn::LetIn | Drawn::Nothing => self.jar = Jar::default(),
                    }
                }
                NextOnFarm::Position(index, NextInLine::Poll(at)) => {
                    wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
                    let position = farmer.position(index);
                    swap(&mut self.jar, &mut position.jar);
                    let answer = self.poll(&journey.steps[step], None).await;
                    swap(&mut self.jar, &mut position.jar);
                    position.next = position.waiting.answered(shared.clock.now(), answer.as_ref());
                }
                NextOnFarm::Position(index, NextInLine::Enter(at)) => {
                    wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
                    let position = farmer.take(index);
                    (self.jar, self.waiting) = (position.jar, Some(position.waiting));
                    self.farmer = Some(farmer);
                    return true;
                }
                NextOnFarm::Position(_, NextInLine::GiveUp(at)) => {
                    wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
                    self.farmer = Some(farmer);
                    return false;
                }
                NextOnFarm::Leave => {
                    self.farmer = Some(farmer);
                    return false;
                }
            }
        }
    }

    /// Requests the page as a newcomer, with an empty jar.
    async fn draw(&mut self, farmer: &mut Farmer, journey: &Journey, step: usize) -> Drawn {
        let shared = Rc::clone(&self.shared);
        let answered = self.ask(&journey.steps[step], shared.clock.now(), Some(POLL_PATIENCE)).await;
        let now = shared.clock.now();
        match answered {
            Err((Trouble::InLine, _)) => return Drawn::Position,
            Ok(()) => {
                farmer.drew(now);
                shared.books.borrow_mut().line.farm.let_in_at_once += 1;
                return Drawn::LetIn;
            }
            Err((Trouble::Refused | Trouble::Status(429 | 503), after)) => {
                let policy = &journey.on_refusal;
                let after = after.unwrap_or(policy.wait_default).min(policy.wait_max);
                farmer.was_put_off(now, after, policy.retries_max);
                shared.books.borrow_mut().line.farm.put_off += 1;
            }
            Err(_) => farmer.drew(now),
        }
        Drawn::Nothing
    }

    /// Keeps the ticket in the jar for waiting, or discards it. Leaves the jar empty.
    fn keep_position(&mut self, farmer: &mut Farmer, journey: &Journey) {
        let now = self.shared.clock.now();
        let mut waiting = match self.waiting.take() {
            Some(waiting) => waiting,
            None => {
                self.shared.books.borrow_mut().line.farm.numbers += 1;
                farmer.drew_number(now);
                if !farmer.has_room() {
                    self.jar = Jar::default();
                    return;
                }
                // Patience belongs to the farmer, not to each ticket: only the first ticket has it.
                let patience = journey.in_line.patience.filter(|_| farmer.is_new());
                self.begin_waiting(now, &InLine { patience, ..InLine::default() })
            }
        };
        let next = waiting.first(now, &mut self.rng);
        farmer.keep(FarmedPosition { jar: take(&mut self.jar), waiting, next });
    }
}

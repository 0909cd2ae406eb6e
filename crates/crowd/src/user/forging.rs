//! How a visitor forges: between two polls of the own position it sends edited tickets. With each
//! it polls, and asks for the page.

use super::{POLL_PATIENCE, User};
use crate::jar::Jar;
use crate::line::{self, Edit, Forger, PollResult, Waiting};
use crate::trouble::Trouble;
use crate::wire;
use std::mem::{replace, take};
use std::rc::Rc;
use suimon_model::Instant;
use suimon_workload::{Journey, Manner, Step};

/// Owner of tickets that nobody waits with.
const NOBODY: u32 = u32::MAX;

impl User {
    /// Notes that a wait begins, if the user forges.
    pub(super) fn begin_forging(&mut self, now: Instant, journey: &Journey) {
        if self.manner == Manner::Forges {
            self.shared.books.borrow_mut().line.forge.so_far.forgers += 1;
            self.forger = Some(Forger::begin(now, &journey.in_line.forge));
        }
    }

    /// Sends edited tickets until `until`.
    pub(super) async fn forge_until(&mut self, until: Instant, own: &Waiting, step: &Step) {
        let shared = Rc::clone(&self.shared);
        while let Some((at, sent)) = self.forger.as_ref().and_then(Forger::next)
            && at <= until
        {
            wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
            if let Some((edit, name, ticket)) = self.edited(sent, own) {
                *shared.books.borrow_mut().line.forge.so_far.tickets.entry(edit).or_default() += 1;
                self.send(&name, &ticket, step).await;
            }
            if let Some(forger) = &mut self.forger {
                forger.tried(shared.clock.now());
            }
        }
    }

    /// Returns the edit, the name of the ticket's cookie and the edited ticket. Takes the next
    /// possible edit in turn after `sent` tickets.
    fn edited(&mut self, sent: u32, own: &Waiting) -> Option<(Edit, String, String)> {
        let ticket = self.jar.ticket()?;
        let another = self.shared.books.borrow().line.forge.of_another(self.number);
        Edit::in_turn(sent).find_map(|edit| {
            let edited = edit.apply(ticket.value, own.position(), another.as_deref(), &mut self.rng)?;
            Some((edit, ticket.name.to_owned(), edited))
        })
    }

    /// Polls with an edited ticket, and asks for the page with it.
    async fn send(&mut self, name: &str, ticket: &str, step: &Step) {
        let shared = Rc::clone(&self.shared);
        let own = take(&mut self.jar);
        let answer = self.poll(step, Some(ticket)).await;
        if line::standing(answer.as_ref()) != PollResult::Unknown {
            shared.books.borrow_mut().line.forge.so_far.taken += 1;
        }
        self.jar = Jar::with(name, ticket);
        let asked = self.ask(step, shared.clock.now(), Some(POLL_PATIENCE)).await;
        let jar = replace(&mut self.jar, own);
        match asked {
            Ok(()) => {
                let answer = self.poll(step, None).await;
                if let Some(forger) = &mut self.forger {
                    forger.heard(shared.clock.now());
                }
                let is_forged = line::standing(answer.as_ref()) == PollResult::NotYet;
                let so_far = &mut shared.books.borrow_mut().line.forge.so_far;
                *(if is_forged { &mut so_far.entered } else { &mut so_far.let_in_without }) += 1;
            }
            Err((Trouble::InLine, _)) => {
                let books = &mut shared.books.borrow_mut().line.forge;
                books.so_far.numbers += 1;
                if let Some(drawn) = jar.ticket() {
                    books.seen(NOBODY, drawn.value);
                }
            }
            Err((Trouble::Refused, _)) => shared.books.borrow_mut().line.forge.so_far.put_off += 1,
            Err(_) => {}
        }
    }
}

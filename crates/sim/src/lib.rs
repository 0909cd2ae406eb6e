//! A discrete-event model of an application server and its visitors; drives the gate unchanged.
//!
//! First form: the paper's shop on one host, closed loop or a burst. It exists to get the laws right in virtual
//! time before anything is measured for real. What happens in ten virtual minutes of 400 visitors takes well under a second.

pub mod replay;
mod run;
mod server;
mod shop;

pub use run::{Outcome, run};
pub use server::{Job, Machine, Server};
pub use shop::{Change, Page, Scenario};

//! A minimal waiting room with signed tickets. On request it accepts any ticket.

use crate::support::{Reply, Seen, Server};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Mutex;
use std::time::Instant;

/// How the room behaves.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Tickets called per second.
    pub(crate) per_second: f64,
    /// Tickets issued at once; further visitors are told to come back after a second.
    pub(crate) numbers_max: u64,
    /// Whether the room accepts any signature.
    pub(crate) believes_all: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { per_second: 1.0, numbers_max: u64::MAX, believes_all: false }
    }
}

/// Tickets issued, and those admitted, in order.
#[derive(Default)]
struct Books {
    drawn: u64,
    put_off: Option<Instant>,
}

/// Starts a server behind such a room.
pub(crate) fn start(rules: Rules) -> Server {
    let (began, books) = (Instant::now(), Mutex::new(Books::default()));
    Server::start(move |request, _| {
        let called = (began.elapsed().as_secs_f64() * rules.per_second) as u64;
        let number = place(request, rules);
        if request.header("suimon-poll").is_some() {
            return number.map_or_else(stranger, |number| told(number, called, rules.per_second));
        }
        match number {
            Some(number) if number < called => Reply::Answer {
                status: 200,
                headers: vec![("Set-Cookie", "suimon-ticket-00ff=; Max-Age=0".into())],
                body: "Welcome".into(),
            },
            Some(number) => waiting_page(number),
            None => draw(rules, &mut books.lock().unwrap()),
        }
    })
}

fn draw(rules: Rules, books: &mut Books) -> Reply {
    let is_put_off = books.put_off.is_some_and(|at| at.elapsed().as_millis() < 900);
    if books.drawn == rules.numbers_max && books.put_off.is_none() || is_put_off {
        books.put_off.get_or_insert_with(Instant::now);
        return Reply::Answer {
            status: 503,
            headers: vec![("Retry-After", "1".into())],
            body: String::new(),
        };
    }
    books.drawn += 1;
    waiting_page(books.drawn - 1)
}

/// Returns the number in a request's ticket.
fn place(request: &Seen, rules: Rules) -> Option<u64> {
    let cookies = request.header("cookie").unwrap_or_default();
    let cookie = cookies.split("; ").find_map(|pair| pair.strip_prefix("suimon-ticket-00ff="));
    let text = request.header("suimon-ticket").or(cookie)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let number = bytes.get(..6)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    (rules.believes_all || text == ticket(number)).then_some(number)
}

/// Returns the ticket of a number: six bytes, and a signature that a client does not know how to
/// make.
fn ticket(number: u64) -> String {
    let signature = u128::from(number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    URL_SAFE_NO_PAD.encode([&number.to_be_bytes()[2..], &signature.to_be_bytes()].concat())
}

fn waiting_page(number: u64) -> Reply {
    let cookie = format!("suimon-ticket-00ff={}; Path=/", ticket(number));
    let headers = vec![("Set-Cookie", cookie), ("Retry-After", "2".into())];
    Reply::Answer { status: 503, headers, body: String::new() }
}

fn told(number: u64, called: u64, per_second: f64) -> Reply {
    let left = number.saturating_sub(called) as f64 / per_second;
    let (state, position) = (if number < called { "your_turn" } else { "waiting" }, number + 1);
    let body = format!(
        r#"{{"state":"{state}","position":{position},"poll_after_s":2,"eta_low_s":{left},"eta_high_s":{left}}}"#
    );
    Reply::Answer { status: 503, headers: vec![], body }
}

fn stranger() -> Reply {
    Reply::Answer { status: 429, headers: vec![("Retry-After", "60".into())], body: String::new() }
}

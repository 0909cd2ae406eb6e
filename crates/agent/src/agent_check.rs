//! The line that HAProxy's `agent-check` reads from a TCP port.
//!
//! Words between spaces, tabs and commas, in any order and case, up to the first `\r` or `\n`; of
//! two words of a kind the last one counts. `#` at the beginning of a word begins a description.
//!
//! | word | what |
//! |---|---|
//! | `75%` | weight, per cent of the configured one |
//! | `maxconn:30` | the most connections of one balancer |
//! | `ready`, `drain`, `maint` | the administrative state |
//! | `up`, `down`, `fail`, `stopped` | the operating state |
//!
//! *Source*: `agent-check` in HAProxy's configuration manual; where it leaves something open, what
//! HAProxy 2.6 does.

use std::fmt;

/// The longest line that is read, in bytes, its end included.
pub const LINE_MAX: usize = 1024;
/// The highest weight that is read, per cent: HAProxy's own is 256 times the least.
const WEIGHT_PERCENT_MAX: u32 = 25_600;

/// What an agent says of its server. What it does not say stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentReply {
    /// The operating state.
    pub health: Option<Health>,
    /// The administrative state.
    pub admin: Option<Admin>,
    /// The weight, per cent of the configured one; 0 drains.
    pub weight_percent: Option<u32>,
    /// The most connections of one balancer.
    pub maxconn: Option<u32>,
    /// Why; empty: nothing is said. It has no line end.
    pub description: String,
    /// The first word that means nothing. HAProxy reports it and heeds the others.
    pub unknown: Option<String>,
}

/// The operating state of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// It serves, if health checks say so too.
    Up,
    /// It does not serve.
    Down,
    /// It is there, and fails.
    Fail,
    /// It was stopped.
    Stopped,
}

/// The administrative state of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admin {
    /// In service.
    Ready,
    /// It gets nothing new.
    Drain,
    /// It gets nothing new and is not checked.
    Maint,
}

/// Why a line cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadLine {
    /// It has no end: more may come.
    Unfinished,
    /// It is longer than [`LINE_MAX`].
    TooLong,
    /// It is no text.
    NotText,
}

impl Health {
    const ALL: [(Health, &str); 4] =
        [(Health::Up, "up"), (Health::Down, "down"), (Health::Fail, "fail"), (Health::Stopped, "stopped")];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(health, _)| *health == self).map_or("", |(_, word)| word)
    }
}

impl Admin {
    const ALL: [(Admin, &str); 3] =
        [(Admin::Ready, "ready"), (Admin::Drain, "drain"), (Admin::Maint, "maint")];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(admin, _)| *admin == self).map_or("", |(_, word)| word)
    }
}

impl AgentReply {
    /// Returns what the first line of `bytes` says.
    ///
    /// # Errors
    /// [`BadLine`]; words that mean nothing are no error: see [`AgentReply::unknown`].
    pub fn parse(bytes: &[u8]) -> Result<AgentReply, BadLine> {
        let end = bytes.iter().take(LINE_MAX).position(|byte| matches!(byte, b'\r' | b'\n'));
        let end = match end {
            Some(end) => end,
            None if bytes.len() >= LINE_MAX => return Err(BadLine::TooLong),
            None => return Err(BadLine::Unfinished),
        };
        let mut rest = std::str::from_utf8(&bytes[..end]).map_err(|_| BadLine::NotText)?;
        let mut reply = AgentReply::default();
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if let Some(description) = rest.strip_prefix('#') {
                description.trim_start_matches([' ', '\t']).clone_into(&mut reply.description);
                return Ok(reply);
            }
            if rest.is_empty() {
                return Ok(reply);
            }
            let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            reply.take(word);
            rest = behind;
        }
    }

    fn take(&mut self, word: &str) {
        let health = Health::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(word));
        let admin = Admin::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(word));
        let weight = word.strip_suffix('%').and_then(number).filter(|weight| *weight <= WEIGHT_PERCENT_MAX);
        let maxconn = word
            .get(..MAXCONN.len())
            .filter(|head| head.eq_ignore_ascii_case(MAXCONN))
            .and_then(|_| number(&word[MAXCONN.len()..]));
        match (health, admin, weight, maxconn) {
            (Some((health, _)), ..) => self.health = Some(*health),
            (_, Some((admin, _)), ..) => self.admin = Some(*admin),
            (_, _, Some(weight), _) => self.weight_percent = Some(weight),
            (_, _, _, Some(maxconn)) => self.maxconn = Some(maxconn),
            _ => {
                self.unknown.get_or_insert_with(|| word.to_owned());
            }
        }
    }
}

const MAXCONN: &str = "maxconn:";

fn number(text: &str) -> Option<u32> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The line with its end, as an agent sends it.
impl fmt::Display for AgentReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.admin.map(|admin| admin.word().to_owned()));
        words.extend(self.health.map(|health| health.word().to_owned()));
        words.extend(self.weight_percent.map(|weight| format!("{weight}%")));
        words.extend(self.maxconn.map(|maxconn| format!("{MAXCONN}{maxconn}")));
        if !self.description.is_empty() {
            words.push(format!("#{}", self.description.replace(['\r', '\n'], " ")));
        }
        writeln!(f, "{}", words.join(" "))
    }
}

/// Returns the weight for a load, in tasks that run or could for each processor: the part of a
/// processor that a task gets, per cent, 1 to 100. An idle machine and one that is just busy both
/// have 100; one with four tasks for each processor has 25. It is never 0, which would drain.
pub fn weight_percent(tasks_per_processor: f64) -> u32 {
    // A conversion from float saturates, and NaN is 0.
    ((100.0 / tasks_per_processor.max(1.0)).round() as u32).clamp(1, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(line: &str) -> AgentReply {
        AgentReply::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn the_examples_of_the_manual_are_read() {
        assert_eq!(parse("75%\n"), AgentReply { weight_percent: Some(75), ..AgentReply::default() });
        assert_eq!(parse("maxconn:30\r\n"), AgentReply { maxconn: Some(30), ..AgentReply::default() });
        let reply = parse("ready\tUP,80% MaxConn:7 #because of rain\n");
        assert_eq!((reply.admin, reply.health), (Some(Admin::Ready), Some(Health::Up)));
        assert_eq!((reply.weight_percent, reply.maxconn), (Some(80), Some(7)));
        assert_eq!((&*reply.description, reply.unknown), ("because of rain", None));
        for (health, word) in Health::ALL {
            assert_eq!(parse(&format!("{word}\n")).health, Some(health));
        }
        for (admin, word) in Admin::ALL {
            assert_eq!(parse(&format!("{word}\n")).admin, Some(admin));
        }
    }

    #[test]
    fn the_last_word_of_a_kind_counts_and_the_first_line_alone() {
        let reply = parse("drain 10% up ready 20% down\nmaint 99%\n");
        assert_eq!((reply.admin, reply.health), (Some(Admin::Ready), Some(Health::Down)));
        assert_eq!(reply.weight_percent, Some(20));
    }

    #[test]
    fn words_that_mean_nothing_are_kept_for_whoever_looks() {
        for wrong in
            ["75%x", "-5%", "%", "maxconn:", "maxconn:x", "maxconn:-1", "upp", "99999999999%", "maxconn: 5"]
        {
            let reply = parse(&format!("ready {wrong} up\n"));
            assert_eq!((reply.admin, reply.health), (Some(Admin::Ready), Some(Health::Up)), "{wrong}");
            assert_eq!(reply.unknown.as_deref(), wrong.split(' ').next(), "{wrong}");
            assert_eq!((reply.weight_percent, reply.maxconn), (None, None), "{wrong}");
        }
    }

    #[test]
    fn a_line_has_an_end_and_a_length() {
        assert_eq!(AgentReply::parse(b"up"), Err(BadLine::Unfinished));
        assert_eq!(AgentReply::parse(b""), Err(BadLine::Unfinished));
        assert_eq!(AgentReply::parse(&[b' '; LINE_MAX]), Err(BadLine::TooLong));
        assert_eq!(AgentReply::parse(b"\xff\n"), Err(BadLine::NotText));
        assert_eq!(AgentReply::parse(b"\n"), Ok(AgentReply::default()));
    }

    #[test]
    fn a_weight_is_what_a_task_gets_of_a_processor() {
        let told = [0.0, 0.5, 1.0, 2.0, 4.0, 1000.0, f64::NAN, f64::INFINITY].map(weight_percent);
        assert_eq!(told, [100, 100, 100, 50, 25, 1, 100, 1]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            health in proptest::option::of(prop::sample::select(&Health::ALL)),
            admin in proptest::option::of(prop::sample::select(&Admin::ALL)),
            weight_percent in proptest::option::of(0..=WEIGHT_PERCENT_MAX),
            maxconn in proptest::option::of(any::<u32>()),
            description in "([!-~][ -~]{0,80})?",
        ) {
            let (health, admin) = (health.map(|(it, _)| it), admin.map(|(it, _)| it));
            let reply = AgentReply { health, admin, weight_percent, maxconn, description, unknown: None };
            prop_assert_eq!(AgentReply::parse(reply.to_string().as_bytes()), Ok(reply));
        }
    }
}

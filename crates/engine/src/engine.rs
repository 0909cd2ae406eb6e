//! The client: one connection, one script.

use crate::{CONNECT_TIMEOUT, TIMEOUT};
use redis::aio::MultiplexedConnection;
use redis::{Client, IntoConnectionInfo, RedisError, Script};
use std::fmt;
use std::time::Duration;
use suimon_model::Instant;
use suimon_sharing::{Block, Exchange, GATEWAYS_MAX, GatewayId, NUMBERS_END, Record, Seen, Wanted};

/// A gateway whose record is older is no longer there.
const RECORD_KEPT: Duration = Duration::from_secs(60);
/// Numbers outlive any line: after a week without a newcomer nobody holds an old one.
const NUMBERS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// A command that the server comes to this much later than expected is not carried out.
const LATE: Duration = Duration::from_millis(1000);
/// The longest record that is read.
const RECORD_BYTES_MAX: usize = 256 << 10;
/// The longest name of a group.
pub(crate) const GROUP_MAX: usize = 64;

/// What the engine's client is told.
#[derive(Clone, Debug)]
pub struct EngineParams {
    /// Where it is.
    pub url: EngineUrl,
    /// The gateways that share, by a name: letters, digits, `-`, `_` and `.`.
    pub group: String,
    /// Which of them this is.
    pub me: GatewayId,
}

/// The address of an engine. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineUrl {
    text: String,
}

impl EngineUrl {
    /// Returns the address that `text` is: `redis://`, `rediss://` or `unix://`.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let known = ["redis://", "rediss://", "valkey://", "valkeys://", "unix://"];
        if !known.iter().any(|scheme| text.starts_with(scheme)) {
            return Err("must begin with redis://, rediss:// (TLS) or unix://".to_owned());
        }
        // Its own messages may repeat the password.
        text.into_connection_info().map_err(|_| "is no address of a Redis or Valkey server".to_owned())?;
        Ok(EngineUrl { text: text.to_owned() })
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.text.split_once("://").unwrap_or(("", &self.text));
        let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
        write!(f, "{scheme}://{address}")
    }
}

impl fmt::Debug for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Numbers asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// The lane, by a name that it has at every gateway.
    pub lane: String,
    /// What is asked for.
    pub wanted: Wanted,
}

/// What an exchange brought.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reply {
    /// The records of all.
    pub exchange: Exchange,
    /// Numbers, in the order in which they were asked for.
    pub blocks: Vec<Block>,
    /// Records that could not be read: of another version, or of nobody.
    pub unreadable: usize,
}

/// Why an exchange failed. All are temporary: the next may succeed.
#[derive(Debug)]
pub enum EngineError {
    /// There was no answer in time.
    Timeout,
    /// The command came so late that it was not carried out.
    Late,
    /// As many gateways share already as may.
    Full,
    /// The server, or the connection to it, says this.
    Engine(RedisError),
    /// A line is at the last number that a ticket holds.
    NumbersEnd,
    /// The answer was none of the script's.
    Foreign,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Timeout => write!(f, "no answer within {} ms", TIMEOUT.as_millis()),
            EngineError::Late => write!(f, "it was held up for more than {} ms", LATE.as_millis()),
            EngineError::Full => write!(f, "{GATEWAYS_MAX} gateways share already"),
            EngineError::Engine(error) => write!(f, "{error}"),
            EngineError::NumbersEnd => write!(
                f,
                "the numbers of a line are used up; end all gateways, and remove its numbers from the engine"
            ),
            EngineError::Foreign => {
                write!(f, "its answer cannot be understood; is it Redis 5 or Valkey, or later?")
            }
        }
    }
}

impl std::error::Error for EngineError {}

/// The client of one gateway.
#[derive(Debug)]
pub struct Engine {
    client: Client,
    me: GatewayId,
    keys: [String; 2],
    script: Script,
    connection: Option<MultiplexedConnection>,
    /// The server's time in milliseconds at a moment here.
    clock: Option<(Instant, u64)>,
}

impl Engine {
    /// Returns a client that is not connected yet.
    ///
    /// # Errors
    /// Returns what is wrong with the parameters.
    pub fn new(params: &EngineParams) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let group = &params.group;
        if group.is_empty() || group.len() > GROUP_MAX || !group.bytes().all(is_plain) {
            return Err(format!("group must be 1 to {GROUP_MAX} letters, digits, \"-\", \"_\" or \".\""));
        }
        let client =
            Client::open(params.url.text.as_str()).map_err(|_| "no address of a server".to_owned())?;
        // In braces: both keys are on one node of a cluster.
        let key = |what| format!("suimon:1:{{{group}}}:{what}");
        Ok(Engine {
            client,
            me: params.me,
            keys: [key("gateways"), key("numbers")],
            script: Script::new(include_str!("exchange.lua")),
            connection: None,
            clock: None,
        })
    }

    /// Exchanges `record` for those of all gateways, and gets the numbers that are asked for.
    ///
    /// # Errors
    /// See [`EngineError`]. The connection is given up then.
    pub async fn exchange(
        &mut self,
        now: Instant,
        record: &Record,
        asks: &[Ask],
    ) -> Result<Reply, EngineError> {
        let (at, status, live, numbers) = self.run(now, &record.to_bytes(), asks).await?;
        match status.as_str() {
            "done" => {}
            "late" => {
                self.clock = Some((now, at));
                return Err(EngineError::Late);
            }
            "full" => return Err(EngineError::Full),
            _ => return Err(EngineError::Foreign),
        }
        self.clock = Some((now, at));
        let mut reply = Reply::default();
        reply.exchange.seen.push(Seen { member: self.me, age: Duration::ZERO, record: record.clone() });
        for (member, age, bytes) in live.chunks_exact(3).map(|part| (&part[0], &part[1], &part[2])) {
            let seen = (bytes.len() <= RECORD_BYTES_MAX).then(|| {
                let member = GatewayId(number(member)?);
                let age = Duration::from_millis(number(age)?);
                Some(Seen { member, age, record: Record::of_bytes(bytes).ok()? })
            });
            match seen.flatten() {
                Some(seen) => reply.exchange.seen.push(seen),
                None => reply.unreadable += 1,
            }
        }
        if numbers.len() != asks.len() {
            return Err(EngineError::Foreign);
        }
        for (from, ask) in numbers.iter().zip(asks) {
            let from = number(from.as_bytes()).ok_or(EngineError::Foreign)?;
            let to = from.saturating_add(ask.wanted.count);
            if to > NUMBERS_END {
                return Err(EngineError::NumbersEnd);
            }
            reply.blocks.push(Block { from, to });
        }
        Ok(reply)
    }

    /// Takes its record away: the others need not wait until it expires.
    ///
    /// # Errors
    /// As [`Engine::exchange`].
    pub async fn leave(&mut self, now: Instant) -> Result<(), EngineError> {
        self.run(now, b"", &[]).await.map(drop)
    }

    async fn run(
        &mut self,
        now: Instant,
        record: &[u8],
        asks: &[Ask],
    ) -> Result<(u64, String, Vec<Vec<u8>>, Vec<String>), EngineError> {
        // What fails leaves nothing behind that could be mistaken for the next answer.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connecting = self.client.get_multiplexed_async_connection();
                let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
                connected.map_err(|_| EngineError::Timeout)?.map_err(EngineError::Engine)?
            }
        };
        let expected = self.clock.map_or(0, |(then, at)| at + now.since(then).as_millis() as u64);
        let mut call = self.script.key(&self.keys[0]);
        call.key(&self.keys[1])
            .arg(self.me.0)
            .arg(record)
            .arg(RECORD_KEPT.as_millis() as u64)
            .arg(expected)
            .arg(LATE.as_millis() as u64)
            .arg(NUMBERS_KEPT.as_secs())
            .arg(GATEWAYS_MAX)
            .arg(NUMBERS_END);
        for ask in asks {
            let Wanted { count, heard, least } = ask.wanted;
            call.arg(&ask.lane).arg(heard).arg(least).arg(ask.wanted.beyond()).arg(count);
        }
        let answer = tokio::time::timeout(TIMEOUT, call.invoke_async(&mut connection)).await;
        let (at, status, live, numbers): (u64, String, Vec<Vec<u8>>, Vec<String>) =
            answer.map_err(|_| EngineError::Timeout)?.map_err(EngineError::Engine)?;
        self.connection = Some(connection);
        Ok((at, status, live, numbers))
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = EngineUrl::parse("redis://gate:s3cret@10.0.0.7:6379/2").expect("an address");
        assert_eq!(url.to_string(), "redis://10.0.0.7:6379/2");
        assert!(!format!("{url:?}").contains("s3cret"));
        assert!(EngineUrl::parse("http://10.0.0.7").is_err_and(|why| why.contains("redis://")));
        assert!(EngineUrl::parse("redis://:s3cret@").is_err_and(|why| !why.contains("s3cret")));
    }

    #[test]
    fn a_group_has_a_plain_name() {
        let url = EngineUrl::parse("redis://127.0.0.1").expect("an address");
        let of = |group: &str| {
            let params = EngineParams { url: url.clone(), group: group.to_owned(), me: GatewayId(1) };
            Engine::new(&params).map(drop)
        };
        assert!(of("shop-1.eu").is_ok());
        assert!(of("").is_err() && of("a}b").is_err() && of(&"x".repeat(65)).is_err());
    }
}

//! A load report as a datagram.
//!
//! All numbers are big-endian. A MAC over everything before it ends the datagram: BLAKE3 in keyed
//! mode, with a key that is derived for this purpose alone.
//!
//! | bytes | what | unit, range |
//! |---|---|---|
//! | 4 | `SuiL` | |
//! | 1 | version | 1 |
//! | 1 | number of the key | |
//! | 1 | flags: 1 pressure is known, 2 requests in flight are known | others are 0 |
//! | 1 | bytes of the name | 1 to 255 |
//! | 8 | boot: when the agent started, by its clock | µs since 1970, above 0 |
//! | 8 | sequence number | from 1 |
//! | 8 | time since the agent started, by a clock that never goes back | µs, at most 100 years |
//! | 8 | the agent's clock | µs since 1970 |
//! | 4 | period: the time to the next report | µs, 10 ms to 1 s |
//! | 4 | run queue now: tasks that run or could | 0 to 4 194 304 |
//! | 4 | its mean over the past 100 ms | thousandths of a task |
//! | 4 | its mean over the past second | thousandths of a task |
//! | 4 | requests in flight; 0 if not known | |
//! | 2 | pressure: share of time for which a task waited for a processor; 0 if not known | 1/100 % |
//! | 2 | processors | 1 to 65 535 |
//! | n | name of the node, as in `upstream.nodes` | printable ASCII |
//! | 32 | MAC | |
//!
//! A datagram has one spelling: what is decoded and encoded again is the same to the last bit.

use crate::keyring::Keyring;
use crate::refused::Refused;
use suimon_model::Duration;

/// The longest name of a node, in bytes.
pub const NAME_MAX: usize = u8::MAX as usize;
/// The longest datagram, in bytes.
pub const DATAGRAM_MAX: usize = HEADER + NAME_MAX + MAC;
/// The longest run queue that is reported: as many tasks as Linux can have.
pub const RUN_QUEUE_MAX: u32 = 1 << 22;
/// The shortest and the longest period.
pub const EVERY: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(1);

const MAGIC: [u8; 4] = *b"SuiL";
const VERSION: u8 = 1;
const HEADER: usize = 64;
const MAC: usize = 32;
const KNOWS_PRESSURE: u8 = 1;
const KNOWS_IN_FLIGHT: u8 = 2;
/// 100 years in microseconds.
const SINCE_US_MAX: u64 = 100 * 366 * 24 * 3600 * 1_000_000;

/// What a node says of itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The node, as it stands in `upstream.nodes`; printable ASCII, 1 to [`NAME_MAX`] bytes.
    pub name: String,
    /// When the agent started, by its clock: microseconds since 1970, above 0. It tells runs of an
    /// agent apart, and the later from the earlier.
    pub boot_us: u64,
    /// Counts the reports of this run for this node, from 1.
    pub sequence: u64,
    /// Time since the agent started, by a clock that never goes back; whole microseconds, at most
    /// 100 years.
    pub since_boot: Duration,
    /// The agent's clock: microseconds since 1970.
    pub clock_us: u64,
    /// What it reports.
    pub load: Load,
}

/// The load of a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Time to the next report; within [`EVERY`], whole microseconds.
    pub every: Duration,
    /// Tasks that run or could, now; at most [`RUN_QUEUE_MAX`].
    pub run_queue: u32,
    /// Their mean over the past 100 ms, in thousandths of a task.
    pub mean_100ms_milli: u32,
    /// Their mean over the past second, in thousandths of a task.
    pub mean_1s_milli: u32,
    /// Share of the past second for which some task waited for a processor, in hundredths of a per
    /// cent, 0 to 10 000; `None`: not known.
    pub pressure: Option<u16>,
    /// Requests that the application has; `None`: not known.
    pub in_flight: Option<u32>,
    /// Processors of the machine, at least 1.
    pub processors: u16,
}

impl Load {
    /// Returns the mean run queue of the past 100 ms, in tasks.
    pub fn mean_100ms(&self) -> f64 {
        f64::from(self.mean_100ms_milli) / 1000.0
    }

    /// Returns the mean run queue of the past second, in tasks.
    pub fn mean_1s(&self) -> f64 {
        f64::from(self.mean_1s_milli) / 1000.0
    }

    /// Returns the pressure, per cent.
    pub fn pressure_percent(&self) -> Option<f64> {
        self.pressure.map(|pressure| f64::from(pressure) / 100.0)
    }

    fn is_in_range(&self) -> bool {
        let milli_max = RUN_QUEUE_MAX * 1000;
        EVERY.contains(&self.every)
            && self.every.subsec_nanos().is_multiple_of(1000)
            && self.run_queue <= RUN_QUEUE_MAX
            && self.mean_100ms_milli <= milli_max
            && self.mean_1s_milli <= milli_max
            && self.pressure.is_none_or(|pressure| pressure <= 10_000)
            && self.processors > 0
    }
}

impl Report {
    /// Returns the datagram, sealed with the first key of the ring.
    ///
    /// # Errors
    /// [`Refused::BadValue`] if a value is outside of its range, so that nobody would believe it.
    pub fn encode(&self, keys: &Keyring) -> Result<Vec<u8>, Refused> {
        if !self.is_in_range() {
            return Err(Refused::BadValue);
        }
        let (id, key) = keys.sealing();
        let load = &self.load;
        let mut bytes = Vec::with_capacity(HEADER + self.name.len() + MAC);
        bytes.extend_from_slice(&MAGIC);
        let pressure = load.pressure.map_or(0, |_| KNOWS_PRESSURE);
        let in_flight = load.in_flight.map_or(0, |_| KNOWS_IN_FLIGHT);
        let name_length = u8::try_from(self.name.len()).map_err(|_| Refused::BadValue)?;
        bytes.extend_from_slice(&[VERSION, id, pressure | in_flight, name_length]);
        for number in [self.boot_us, self.sequence, micros(self.since_boot), self.clock_us] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        let every = u32::try_from(micros(load.every)).map_err(|_| Refused::BadValue)?;
        let in_flight = load.in_flight.unwrap_or_default();
        for number in [every, load.run_queue, load.mean_100ms_milli, load.mean_1s_milli, in_flight] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for number in [load.pressure.unwrap_or_default(), load.processors] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(self.name.as_bytes());
        let mac = blake3::keyed_hash(key, &bytes);
        bytes.extend_from_slice(mac.as_bytes());
        Ok(bytes)
    }

    /// Returns the report in a datagram that was sealed with a key of the ring. Nothing but its
    /// length, version and key is looked at before the MAC.
    ///
    /// # Errors
    /// What is wrong with it; only reasons of the format: see [`Refused`].
    pub fn decode(bytes: &[u8], keys: &Keyring) -> Result<Report, Refused> {
        if bytes.len() > DATAGRAM_MAX {
            return Err(Refused::TooLong);
        }
        if bytes.len() < HEADER + 1 + MAC {
            return Err(Refused::TooShort);
        }
        if bytes[..4] != MAGIC {
            return Err(Refused::BadMagic);
        }
        let [version, id, flags, name_length] = [bytes[4], bytes[5], bytes[6], bytes[7]];
        if version != VERSION {
            return Err(Refused::BadVersion);
        }
        let name_ends = HEADER + usize::from(name_length);
        match bytes.len().cmp(&(name_ends + MAC)) {
            std::cmp::Ordering::Less => return Err(Refused::TooShort),
            std::cmp::Ordering::Greater => return Err(Refused::TooLong),
            std::cmp::Ordering::Equal => {}
        }
        let key = keys.find(id).ok_or(Refused::UnknownKey)?;
        let (sealed, mac) = bytes.split_at(name_ends);
        let mac = <[u8; MAC]>::try_from(mac).map_err(|_| Refused::TooShort)?;
        // Compared in constant time.
        if blake3::keyed_hash(key, sealed) != blake3::Hash::from_bytes(mac) {
            return Err(Refused::BadMac);
        }
        let knows = |flag: u8, is_zero: bool| match (flags & flag != 0, is_zero) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            (false, false) => Err(Refused::BadValue),
        };
        if flags & !(KNOWS_PRESSURE | KNOWS_IN_FLIGHT) != 0 {
            return Err(Refused::BadValue);
        }
        let (in_flight, pressure) = (u32_at(sealed, 56), u16_at(sealed, 60));
        let report = Report {
            name: std::str::from_utf8(&sealed[HEADER..]).map_err(|_| Refused::BadValue)?.to_owned(),
            boot_us: u64_at(sealed, 8),
            sequence: u64_at(sealed, 16),
            since_boot: Duration::from_micros(u64_at(sealed, 24)),
            clock_us: u64_at(sealed, 32),
            load: Load {
                every: Duration::from_micros(u64::from(u32_at(sealed, 40))),
                run_queue: u32_at(sealed, 44),
                mean_100ms_milli: u32_at(sealed, 48),
                mean_1s_milli: u32_at(sealed, 52),
                pressure: knows(KNOWS_PRESSURE, pressure == 0)?.then_some(pressure),
                in_flight: knows(KNOWS_IN_FLIGHT, in_flight == 0)?.then_some(in_flight),
                processors: u16_at(sealed, 62),
            },
        };
        if report.is_in_range() { Ok(report) } else { Err(Refused::BadValue) }
    }

    fn is_in_range(&self) -> bool {
        is_name(&self.name)
            && self.boot_us > 0
            && self.sequence > 0
            && micros(self.since_boot) <= SINCE_US_MAX
            && self.since_boot.subsec_nanos().is_multiple_of(1000)
            && self.load.is_in_range()
    }
}

/// Returns whether this can be the name of a node in a report.
pub fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests;

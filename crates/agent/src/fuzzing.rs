//! What must hold for all code that reads bytes of strangers. `fuzz/` feeds these functions, and
//! the tests here replay what the fuzzer has found.

use crate::agent_check::AgentReply;
use crate::book::Book;
use crate::datagram::{DATAGRAM_MAX, Report};
use crate::keyring::Keyring;
use crate::orca::OrcaReport;
use crate::procfs;
use suimon_model::{Duration, Instant};

fn ring() -> Keyring {
    Keyring::new([(0, [7; 32])]).expect("there is a key")
}

/// Whatever a datagram says, as it is or sealed by somebody who has the key: it is refused, or is
/// the only spelling of what it says; and a book believes it once at most.
pub fn datagram(bytes: &[u8]) {
    let ring = ring();
    let (_, key) = ring.sealing();
    let mut sealed = bytes.to_vec();
    sealed.extend_from_slice(blake3::keyed_hash(key, bytes).as_bytes());
    for bytes in [bytes, &sealed] {
        let Ok(report) = Report::decode(bytes, &ring) else { continue };
        assert!(bytes.len() <= DATAGRAM_MAX);
        assert_eq!(report.encode(&ring).as_deref(), Ok(bytes));
        let mut book = Book::new(Duration::from_secs(10));
        book.name(0, Some(report.name.clone()));
        let now = Instant::ORIGIN + Duration::from_secs(1);
        assert!(book.handle_datagram(now, report.clock_us, bytes, &ring).is_ok());
        assert!(book.handle_datagram(now, report.clock_us, bytes, &ring).is_err());
    }
}

/// What can be read of a load report in a header is the same when it is written and read again.
pub fn orca(bytes: &[u8]) {
    for report in [OrcaReport::parse(bytes), OrcaReport::parse_bin(bytes)].into_iter().flatten() {
        let json = OrcaReport::parse(format!("JSON {}", report.to_json()).as_bytes());
        let bin = OrcaReport::parse_bin(report.to_bin().as_bytes());
        // Written out it may be longer than what is read.
        for again in [json, bin] {
            assert!(again == Ok(report.clone()) || again == Err(crate::orca::BadOrca::TooLong));
        }
        assert!(report.utilization().is_none_or(|share| share > 0.0 && share.is_finite()));
    }
}

/// The same of a line of HAProxy's agent-check, and of the kernel's texts.
pub fn agent_check(bytes: &[u8]) {
    if let Ok(reply) = AgentReply::parse(bytes) {
        let again = AgentReply::parse(reply.to_string().as_bytes());
        assert_eq!(again, Ok(AgentReply { unknown: None, ..reply }));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (procfs::run_queue(text), procfs::waited_us(text));
        assert!(procfs::processors(text).is_none_or(|count| count > 0));
        let _ = procfs::in_flight(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        corpus("datagram").iter().for_each(|bytes| datagram(bytes));
        corpus("orca").iter().for_each(|bytes| orca(bytes));
        corpus("agent_check").iter().for_each(|bytes| agent_check(bytes));
    }
}

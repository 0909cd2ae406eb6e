//! Management records: how a worker is asked whether it is there, without running a program.
//!
//! *Source*: FastCGI Specification 1.0, section 4. Workers answer between two requests, and only
//! once they take requests.

use crate::record::{HEADER, Header, Kind};

/// Bytes of an answer that tell what it is.
pub const ANSWER_LEAST: usize = HEADER;

/// A variable that all libraries know; its value does not matter.
const VARIABLE: &[u8] = b"FCGI_MPXS_CONNS";

/// An empty management record of a type that there is none of. The library that programs in C, C++ and
/// Perl use (libfcgi) reads the names of variables until another record begins, and so answers the
/// first record only once there is a second one. Others have answered before they read it.
const NEXT: [u8; HEADER] = [1, 12, 0, 0, 0, 0, 0, 0];

/// Returns the records that ask a worker for a variable.
pub fn ask() -> Vec<u8> {
    let content = [&[VARIABLE.len() as u8, 0][..], VARIABLE].concat();
    let header = Header { request: 0, ..Header::new(Kind::GetValues, content.len() as u16) };
    [&header.bytes()[..], &content, &NEXT].concat()
}

/// Returns whether a worker's first bytes are an answer to [`ask`].
pub fn is_answer(bytes: [u8; ANSWER_LEAST]) -> bool {
    Header::read(bytes).is_ok_and(|header| matches!(header.kind, Kind::Values | Kind::Unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_as_specified() {
        let expected =
            [&[1, 9, 0, 0, 0, 17, 0, 0, 15, 0][..], b"FCGI_MPXS_CONNS", &[1, 12], &[0; 6]].concat();
        assert_eq!(ask(), expected);
    }

    #[test]
    fn what_only_fastcgi_workers_say_is_an_answer() {
        assert!(is_answer([1, 10, 0, 0, 0, 18, 6, 0]));
        assert!(is_answer([1, 11, 0, 0, 0, 8, 0, 0]), "it knows no such record, and is there");
        assert!(!is_answer(*b"HTTP/1.1"));
        assert!(!is_answer(Header::new(Kind::Stdout, 8).bytes()));
    }
}

//! Records: the frames in which a gateway and a worker speak.
//!
//! A record is a header of 8 bytes, up to 65,535 bytes of content, and padding. *Source*: FastCGI
//! Specification 1.0, sections 3.3 and 8.

/// Bytes of a header.
pub const HEADER: usize = 8;
/// The most content of one record, in bytes.
pub const CONTENT_MAX: usize = u16::MAX as usize;
/// The ID of the only request on a connection.
pub const REQUEST: u16 = 1;

const VERSION: u8 = 1;

/// The type of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Begins a request.
    Begin = 1,
    /// Aborts a request.
    Abort = 2,
    /// Ends a request; from the worker.
    End = 3,
    /// A piece of the environment; an empty one ends it.
    Params = 4,
    /// A piece of the request's body; an empty one ends it.
    Stdin = 5,
    /// A piece of the response.
    Stdout = 6,
    /// A piece of an error message.
    Stderr = 7,
    /// Asks what the worker can do.
    GetValues = 9,
    /// What the worker can do.
    Values = 10,
    /// The worker does not know the type of a record.
    Unknown = 11,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Begin,
        Kind::Abort,
        Kind::End,
        Kind::Params,
        Kind::Stdin,
        Kind::Stdout,
        Kind::Stderr,
        Kind::GetValues,
        Kind::Values,
        Kind::Unknown,
    ];

    fn of(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// The header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The record's type.
    pub kind: Kind,
    /// The request it belongs to; 0: none.
    pub request: u16,
    /// Bytes of content.
    pub content: u16,
    /// Bytes of padding after the content.
    pub padding: u8,
}

impl Header {
    /// Returns the header of a record of the connection's request, without padding.
    pub const fn new(kind: Kind, content: u16) -> Self {
        Header { kind, request: REQUEST, content, padding: 0 }
    }

    /// Returns its bytes.
    pub const fn bytes(self) -> [u8; HEADER] {
        let [request_high, request_low] = self.request.to_be_bytes();
        let [content_high, content_low] = self.content.to_be_bytes();
        [VERSION, self.kind as u8, request_high, request_low, content_high, content_low, self.padding, 0]
    }

    /// Reads a header.
    ///
    /// # Errors
    /// A version other than 1, or an unknown type.
    pub fn read(bytes: [u8; HEADER]) -> Result<Self, BadHeader> {
        let [version, kind, request_high, request_low, content_high, content_low, padding, _] = bytes;
        if version != VERSION {
            return Err(BadHeader::Version(version));
        }
        Ok(Header {
            kind: Kind::of(kind).ok_or(BadHeader::Kind(kind))?,
            request: u16::from_be_bytes([request_high, request_low]),
            content: u16::from_be_bytes([content_high, content_low]),
            padding,
        })
    }
}

/// Why a header cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadHeader {
    /// This version is not 1.
    Version(u8),
    /// This type is unknown.
    Kind(u8),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back() {
        for kind in Kind::ALL {
            let header = Header { kind, request: 0x1234, content: 0xFEDC, padding: 7 };
            assert_eq!(Header::read(header.bytes()), Ok(header));
        }
    }

    #[test]
    fn a_header_has_the_specified_layout() {
        let header = Header { padding: 2, ..Header::new(Kind::Stdin, 0x0102) };
        assert_eq!(header.bytes(), [1, 5, 0, 1, 1, 2, 2, 0]);
        assert_eq!(Header::read([2, 5, 0, 1, 0, 0, 0, 0]), Err(BadHeader::Version(2)));
        assert_eq!(Header::read([1, 8, 0, 1, 0, 0, 0, 0]), Err(BadHeader::Kind(8)));
    }
}

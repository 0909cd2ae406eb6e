//! What is wrong with a body.

use std::error::{self, Error as _};
use std::{fmt, io};
use suimon_message::validate::RequestFault;

/// Why a request body broke off: the client's fault.
#[derive(Clone, Copy, Debug)]
pub struct BodyFault(pub RequestFault);

impl BodyFault {
    pub(super) fn of(error: &hyper::Error) -> Self {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                let is_malformed =
                    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData);
                return BodyFault(if is_malformed {
                    RequestFault::BadBody
                } else {
                    RequestFault::BrokenBody
                });
            }
            cause = error.source();
        }
        BodyFault(RequestFault::BrokenBody)
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            RequestFault::BodyTooLarge => "the request body is larger than is accepted",
            RequestFault::BodyTimeout => "the request body came too slowly",
            RequestFault::BrokenBody => "the request body broke off",
            _ => "the request body is malformed",
        })
    }
}

impl error::Error for BodyFault {}

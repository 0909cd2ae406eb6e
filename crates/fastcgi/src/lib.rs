//! FastCGI as a gateway speaks it: no socket, no clock, no file.
//!
//! - [`script`]: which program answers a path.
//! - [`environment`]: what the program is told of a request.
//! - [`request`]: the request as records.
//! - [`response`]: the records of the worker, however the network cuts them.
//! - [`management`]: whether a worker is there.
//! - [`php_status`]: what php-fpm says of its children.
//! - [`head`]: the head of the response, as the program writes it.
//!
//! One request is on a connection at a time. Workers do not multiplex: PHP's, Perl's and Python's
//! libraries refuse a second request, and a slot is one worker.
//!
//! *Source*: FastCGI Specification 1.0; RFC 3875 (CGI/1.1) for the environment and the head.

pub mod environment;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod head;
pub mod management;
pub mod php_status;
pub mod record;
pub mod request;
pub mod response;
pub mod script;

//! Heads of requests and responses: what they may contain, which claims are believed, and what is
//! passed on.
//!
//! | module | holds |
//! |---|---|
//! | [`validate`] | refuses a request that could be read in two ways |
//! | [`headers`] | what belongs to one connection stays on it; what only a proxy may claim is dropped |
//! | [`lists`] | headers that are lists, separated by commas |
//! | [`peer`] | who the client is, and what the application is told of it |
//! | [`accept`] | the form and the language of an answer that a client asks for |
//! | [`signals`] | what the application and the gateway say to each other in headers |

pub mod accept;
pub mod headers;
pub mod lists;
pub mod peer;
pub mod signals;
pub mod validate;

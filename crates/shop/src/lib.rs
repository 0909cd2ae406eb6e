//! The bundled shop: a web application to protect, so that the demo needs nothing else.
//!
//! It serves the same pages as `apps/tomcat-shop` and does the same kind of work, with a thread per
//! connection. Light pages render and fingerprint a table; the search parses a 650 KB XML catalogue
//! into trees and walks them. Costs are *counts* of work, measured once at start, so a page is the
//! same work on an idle and on a busy machine.
//!
//! It has no garbage collector; it collapses under overload as an application with a page cache
//! does. The parsed shelves of all searches share a bounded pool. A few searches at once find their
//! shelves there; more searches evict each other's shelves and parse them again and again (see
//! `pool`).
//!
//! ```no_run
//! let shop = suimon_shop::Shop::bind(&suimon_shop::Options { port: 0, scale: 4.0, ..Default::default() })?;
//! println!("listening on http://{}", shop.local_addr());
//! shop.serve();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Map: `server` threads and connections; `http` requests in, responses out; `pages` the routes;
//! `sessions` who is logged in; `search` and `light` the work; `catalogue`, `document`, `pool` what
//! it works on; `options` and `work` what it costs; `shop` all of it together. Beside it `node`: one of
//! several servers of a made-up application, which takes little of a processor.

mod catalogue;
mod document;
mod http;
mod light;
mod node;
mod options;
mod pages;
mod pool;
mod search;
mod server;
mod sessions;
mod shop;
mod work;

pub use node::{Node, NodeOptions};
pub use options::Options;
pub use shop::Shop;
pub use work::Work;

//! Suimon's gate as a layer: a service in Rust lets in as many sessions as will finish, keeps the rest in a
//! fair line, and finds the limit of each route by itself, without a gateway in front of it.
//!
//! With axum, whose `ConnectInfo` says [which client it is](#which-client-it-is):
//! `suimon-tower = { path = "…", features = ["axum"] }`.
//!
//! ```
//! use axum::{Router, routing::get};
//! use suimon_tower::Gate;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::open("")?;
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(gate.layer());
//! # let shutdown = async {};
//! let gate = tokio::spawn(gate.run(shutdown));
//! // axum::serve(listener, app.into_make_service_with_connect_info::<std::net::SocketAddr>()) …
//! # drop(app);
//! gate.await?;
//! # Ok(())
//! # }
//! ```
//!
//! What a request goes through is what it goes through in the gateway: it is told apart by route and
//! visitor, admitted, held, shown its place in line, or refused with the same pages; and the settings are
//! those of `suimon serve`, as far as they are not about sockets. A gateway or another service with the same
//! `lease.keys` knows this one's leases and tickets. A layer *behind* a gateway gets none to see, as a gateway
//! takes its cookies out of what it passes on: have `gate.session_law = "open"` there.
//!
//! # What it holds to
//!
//! - **Readiness.** [`Gated`] is always ready: whether a request may go on can only be said of that request.
//!   The service within is asked whether it is ready once the request is let in, so that nobody who waits
//!   holds a place in a buffer or a connection of a pool.
//! - **Cancellation.** A future that is dropped leaves the queue it waits in, or gives its slot back as
//!   abandoned; so does a body that is dropped before its end. What the service has spawned goes on without it.
//! - **The slot** is held while the service works: until it has made the last piece of the body, whether the
//!   client has taken it or not. It is given back while the client is waited for to send its body, after 250 ms, and
//!   for good before the end of the answer once a client was waited for 50 ms in all, 30 s
//!   after the head, and with the head of a stream that does not end by itself (server-sent events, gRPC, an
//!   upgrade).
//! - **Errors** of the service within are passed on, and count as failures; so do panics.
//! - **Words between gate and service** reach no client and come from none, in heads or in trailers. So the
//!   service within gets its request with a [`RequestBody`] around the client's.
//!
//! # Which client it is
//!
//! Clients without cookies are told apart by address and browser. The address is taken from an extension
//! of the request: [`Client`]; a [`SocketAddr`](std::net::SocketAddr); or, with the feature `axum`, axum's
//! `ConnectInfo<SocketAddr>`; or by [`GateLayer::with_client`] from any other. Without any of them all are one
//! network, which is only right in tests. Proxies in front are believed as `trusted_proxies` says.

mod body;
mod client;
mod gate;
mod held;
mod request_body;
mod service;

pub use body::GatedBody;
pub use client::Client;
pub use gate::{Gate, OpenError};
pub use request_body::RequestBody;
pub use service::{GateLayer, Gated};
/// What the gate shows of itself.
pub use suimon_gate::Counts;
pub use suimon_proxy::Observer;

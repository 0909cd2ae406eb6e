//! The proxy's front side over real sockets: clients on one side, a small application on the other.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod away;
mod bodies;
mod budget;
mod cold;
mod connections;
mod disconnects;
mod embedded;
mod endings;
mod error_pages;
mod grpc;
mod holders;
mod https;
mod learn;
mod learned;
mod life;
mod lifecycle;
mod lost;
mod malformed;
mod passage;
mod pauses;
mod requests;
mod sessions;
mod sites;
mod slot;
mod support;
mod unix;
mod waiting_room;
mod websocket;
mod who;

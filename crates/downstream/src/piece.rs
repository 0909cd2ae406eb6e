//! A piece of an answer in the hands of the client's connection.

use crate::budget::Budget;
use crate::streams::UnwrittenPiece;
use bytes::{Buf, Bytes};
use std::sync::Arc;

/// A piece of an answer in the hands of the client's connection, which keeps it until it is
/// written: over HTTP/2 until its client has opened a window for all of it, whether or not the rest
/// of the answer has been asked for meanwhile.
#[derive(Debug)]
pub struct Piece {
    pub(crate) bytes: Bytes,
    pub(crate) counted: Option<Counted>,
    pub(crate) _given: Option<UnwrittenPiece>,
}

/// Bytes of an answer in the budget.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) budget: Arc<Budget>,
    pub(crate) bytes: usize,
}

impl Counted {
    pub(crate) fn new(budget: &Arc<Budget>, bytes: usize) -> Self {
        budget.hold(bytes);
        Counted { budget: Arc::clone(budget), bytes }
    }

    /// Splits off `bytes` of the bytes, counted by themselves from now on.
    pub(crate) fn split(&mut self, bytes: usize) -> Counted {
        self.bytes -= bytes;
        Counted { budget: Arc::clone(&self.budget), bytes }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Self {
        Piece { bytes, counted: None, _given: None }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

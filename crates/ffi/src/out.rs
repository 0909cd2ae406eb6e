//! Where a caller wants bytes.

use std::mem::MaybeUninit;

/// The caller's room, of which nothing is read.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    room: &'a mut [MaybeUninit<u8>],
    length: &'a mut usize,
}

impl<'a> Out<'a> {
    /// Returns this room, in which nothing is written yet. `length` says what was, or would have been.
    pub(crate) fn new(room: &'a mut [MaybeUninit<u8>], length: &'a mut usize) -> Self {
        *length = 0;
        Out { room, length }
    }

    /// Writes all of `bytes` and returns true, or nothing where there is no room for them.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        *self.length = bytes.len();
        let Some(room) = self.room.get_mut(..bytes.len()) else { return false };
        room.write_copy_of_slice(bytes);
        true
    }

    /// Writes as much of `text` as there is room for.
    pub(crate) fn cut(&mut self, text: &str) {
        let written = text.floor_char_boundary(self.room.len());
        self.room[..written].write_copy_of_slice(&text.as_bytes()[..written]);
        *self.length = text.len();
    }
}

//! Notices that a client has closed its connection, whatever of its bytes nobody has read yet.
//!
//! The HTTP library reads on only while its buffer is empty and the request's body is finished, so
//! pipelined bytes or an unread body hide the end of the connection from it. So the kernel is asked
//! about the closing alone: sockets of requests that really wait are registered with an event queue
//! of our own, for the peer's shutdown and nothing else, so that data causes no wake-up. That takes
//! two system calls per watch, and no second descriptor: with thousands waiting, descriptors are
//! the scarcest resource. HTTP/2 has no need of it: its streams end by themselves.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Closings taken from the kernel at once.
const BATCH: usize = 64;

/// Watches over any number of connections.
#[derive(Debug)]
pub struct Watcher {
    queue: OwnedFd,
    slots: Mutex<Slots>,
}

/// The socket of one connection, and the watch over it, of which there is one at most.
#[derive(Debug)]
pub struct Socket {
    number: RawFd,
    watcher: Arc<Watcher>,
    watched: Mutex<Watched>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watched {
    No,
    /// With this slot of the watcher's.
    Slot(usize),
    /// No more: the number may be another socket's.
    Closed,
}

/// A watch over one connection: ready once the client has closed it, or its sending half of it.
#[derive(Debug)]
pub struct Watch<'a>(&'a Socket);

/// Bounded by the connections open at once: each has one watch at most.
#[derive(Default, Debug)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

#[derive(Default, Debug)]
struct Slot {
    /// Distinguishes an event for this watch from one for an earlier watch with the same slot.
    generation: u32,
    closed: bool,
    waker: Option<Waker>,
}

impl Watcher {
    /// Returns a watcher, of which [`Watcher::run`] must run for anything to be noticed.
    pub fn new() -> io::Result<Self> {
        Ok(Watcher { queue: epoll::create(CreateFlags::CLOEXEC)?, slots: Mutex::default() })
    }

    /// Passes on what the kernel reports. Returns only if it cannot be heard any more.
    #[expect(unsafe_code, reason = "the runtime registers by descriptor only")]
    pub async fn run(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, is ours alone, and stays the same for as long as `self`
        // is borrowed, which is longer than the registration lives.
        let registered = unsafe { AsyncFd::register_with_interest(self.queue.as_fd(), Interest::READABLE) };
        let queue = registered.map_err(io::Error::from)?;
        loop {
            let mut ready = queue.readable().await?;
            if self.pass_on()? {
                ready.clear_ready();
            }
        }
    }

    /// Wakes those whose clients have closed. Returns whether that were all there are for now.
    fn pass_on(&self) -> io::Result<bool> {
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; BATCH];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = epoll::wait(&self.queue, events.as_mut_slice(), Some(&at_once))?;
        for event in &events[..count] {
            let waker = self.lock().close(event.data.u64());
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        Ok(count < BATCH)
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Socket {
    /// Returns the socket of this number, open until [`Socket::close`].
    pub fn new(number: RawFd, watcher: Arc<Watcher>) -> Self {
        Socket { number, watcher, watched: Mutex::new(Watched::No) }
    }

    /// Returns a watch over it. Fails where it has closed, or there is a watch, or the kernel has
    /// no memory for one.
    pub fn watch(&self) -> io::Result<Watch<'_>> {
        let mut watched = self.lock();
        if *watched != Watched::No {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let (slot, key) = self.watcher.lock().take();
        let closing = EventFlags::RDHUP | EventFlags::ONESHOT;
        // SAFETY: it is open: `watched` says so, and `close` waits for it before the number is
        // given back.
        #[expect(
            unsafe_code,
            reason = "sockets live inside the HTTP library, which lends only their numbers"
        )]
        let socket = unsafe { BorrowedFd::borrow_raw(self.number) };
        if let Err(error) = epoll::add(&self.watcher.queue, socket, EventData::new_u64(key), closing) {
            self.watcher.lock().give_back(slot);
            return Err(error.into());
        }
        *watched = Watched::Slot(slot);
        Ok(Watch(self))
    }

    /// Ends any watch, for good. To be called before the socket is closed.
    pub fn close(&self) {
        self.unwatch(Watched::Closed);
    }

    fn unwatch(&self, then: Watched) {
        let mut watched = self.lock();
        if let Watched::Slot(slot) = *watched {
            // SAFETY: as in `watch`.
            #[expect(
                unsafe_code,
                reason = "sockets live inside the HTTP library, which lends only their numbers"
            )]
            let socket = unsafe { BorrowedFd::borrow_raw(self.number) };
            let _ = epoll::delete(&self.watcher.queue, socket);
            self.watcher.lock().give_back(slot);
        }
        if *watched != Watched::Closed {
            *watched = then;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Watch<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Watched::Slot(slot) = *self.0.lock() else { return Poll::Ready(()) };
        let mut slots = self.0.watcher.lock();
        let slot = &mut slots.slots[slot];
        if slot.closed {
            return Poll::Ready(());
        }
        match &mut slot.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.unwatch(Watched::No);
    }
}

impl Slots {
    /// Returns a slot and the key its events carry.
    fn take(&mut self) -> (usize, u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        (index, u64::from(self.slots[index].generation) << 32 | index as u64)
    }

    fn close(&mut self, key: u64) -> Option<Waker> {
        let (generation, index) = ((key >> 32) as u32, (key & u64::from(u32::MAX)) as usize);
        let slot = self.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        slot.closed = true;
        slot.waker.take()
    }

    fn give_back(&mut self, index: usize) {
        let generation = self.slots[index].generation.wrapping_add(1);
        self.slots[index] = Slot { generation, ..Slot::default() };
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    fn watcher() -> Arc<Watcher> {
        let watcher = Arc::new(Watcher::new().unwrap());
        let run = Arc::clone(&watcher);
        tokio::spawn(async move { run.run().await });
        watcher
    }

    async fn soon(watch: Watch<'_>) {
        tokio::time::timeout(Duration::from_secs(5), watch).await.unwrap();
    }

    #[tokio::test]
    async fn a_close_is_seen_behind_unread_bytes_and_bytes_alone_are_not() {
        let watcher = watcher();
        let (mut client, server) = pair().await;
        let socket = Socket::new(server.as_raw_fd(), watcher);
        let mut watch = socket.watch().unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(50), &mut watch).await;
        assert!(early.is_err(), "data alone is no close");
        drop(client);
        soon(watch).await;
    }

    #[tokio::test]
    async fn a_close_before_the_watch_is_seen_and_watches_follow_one_another() {
        let watcher = watcher();
        let (client, server) = pair().await;
        let socket = Socket::new(server.as_raw_fd(), Arc::clone(&watcher));
        for _ in 0..3 {
            drop(socket.watch().unwrap());
        }
        drop(client);
        for _ in 0..3 {
            soon(socket.watch().unwrap()).await;
        }
        assert_eq!(watcher.lock().slots.len(), 1);
    }

    #[tokio::test]
    async fn a_watch_that_outlives_its_socket_does_not_touch_the_next_one_of_its_number() {
        let watcher = watcher();
        let (_client, server) = pair().await;
        let number = server.as_raw_fd();
        let socket = Socket::new(number, Arc::clone(&watcher));
        let watch = socket.watch().unwrap();
        socket.close();
        let (mut client, next) = pair().await;
        // Closes the first one, and gives its number to the next.
        let mut taken = OwnedFd::from(server.into_std().unwrap());
        rustix::io::dup2(&next, &mut taken).unwrap();
        drop(next);
        let next = TcpStream::from_std(taken.into()).unwrap();
        assert_eq!(next.as_raw_fd(), number);
        let other = Socket::new(next.as_raw_fd(), Arc::clone(&watcher));
        let mut watched = other.watch().unwrap();
        soon(watch).await;
        assert!(socket.watch().is_err(), "it has closed");
        client.write_all(b"x").await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(50), &mut watched).await;
        assert!(early.is_err());
        drop(client);
        soon(watched).await;
    }

    #[test]
    fn an_event_for_a_watch_that_has_gone_wakes_nobody() {
        let mut slots = Slots::default();
        let (index, stale) = slots.take();
        slots.give_back(index);
        let (index, _) = slots.take();
        slots.close(stale);
        assert!(!slots.slots[index].closed);
    }
}

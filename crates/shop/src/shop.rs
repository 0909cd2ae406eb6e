//! The shop as a whole: its pages, served.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::http::{Request, Response};
use crate::options::Options;
use crate::pages::Pages;
use crate::server::{Server, Site};
use crate::work::Work;

/// The shop, bound to its port. A clone is the same shop.
#[derive(Clone)]
pub struct Shop {
    server: Server,
    work: Work,
}

impl Site for Pages {
    fn answer(&self, request: &Request) -> Response {
        Pages::answer(self, request)
    }
}

impl Shop {
    /// Binds to the port on 127.0.0.1 and prepares the work, which takes about half a second of CPU
    /// unless the options name the counts. Fails if an option is out of range (`InvalidInput`) or
    /// the port cannot be bound.
    pub fn bind(options: &Options) -> io::Result<Self> {
        options.check()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let pages = Pages::prepare(options);
        let work = pages.work;
        Ok(Shop { server: Server::new(listener, options.threads_max, Box::new(pages))?, work })
    }

    /// Returns the address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Returns the cost of a page as counts; passing them as options repeats the same work.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Serves until [`Shop::shutdown`]. Returns when the last request in progress is answered, or
    /// after waiting five seconds for that. A shop serves once; a second call returns at once.
    pub fn serve(&self) {
        self.server.serve();
    }

    /// Ends [`Shop::serve`]: it accepts no new connections and no further requests on open ones.
    pub fn shutdown(&self) {
        self.server.shutdown();
    }
}

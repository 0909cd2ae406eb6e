//! A real Redis or Valkey server for tests.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

/// A server on a free port of this machine. Dropped, it is killed.
#[derive(Debug)]
pub struct EngineServer {
    child: Child,
    port: u16,
}

impl EngineServer {
    /// Starts `valkey-server`, or else `redis-server`, and waits until it accepts connections.
    ///
    /// # Panics
    /// Where there is neither: `scripts/setup` installs one.
    pub fn start() -> EngineServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        EngineServer::start_at(port)
    }

    /// As [`EngineServer::start`], on this port: one that was killed comes back, with nothing.
    ///
    /// # Panics
    /// As [`EngineServer::start`].
    pub fn start_at(port: u16) -> EngineServer {
        let start = |program: &str| {
            Command::new(program)
                .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
                .args(["--save", "", "--appendonly", "no", "--dir", "/tmp"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
        };
        let child = start("valkey-server").or_else(|_| start("redis-server"));
        let mut child = child.unwrap_or_else(|error| {
            panic!("neither valkey-server nor redis-server starts ({error}); run scripts/setup")
        });
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let is_ready =
            |line: std::io::Result<String>| line.is_ok_and(|line| line.contains("Ready to accept"));
        let mut lines = lines;
        assert!(lines.by_ref().any(is_ready), "the server of port {port} ended before it was ready");
        // Its pipe is read on, so that it never fills.
        std::thread::spawn(move || lines.for_each(drop));
        EngineServer { child, port }
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Lets it stand still, and go on.
    ///
    /// # Panics
    /// Where the signal cannot be sent.
    pub fn pause(&self, pauses: bool) {
        let signal = if pauses { "-STOP" } else { "-CONT" };
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the server is there");
    }
}

impl Drop for EngineServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

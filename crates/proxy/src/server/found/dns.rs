//! Nodes at the addresses of names.

use super::{News, Source};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use suimon_params::upstream::{NODES_MAX, NodeAddress, NodeParams};
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The longest that one lookup may take.
const LOOKUP_WITHIN: Duration = Duration::from_secs(10);
/// From a lookup that failed to the next one, unless the next is due sooner.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// From a lookup to the next one, where a node has gone down meanwhile, at least; and for how long after that
/// names are looked up as after a failure. Who moves an application ends the old nodes.
const SOONEST: Duration = Duration::from_secs(1);
const SOON_FOR: Duration = Duration::from_secs(60);

/// What looks names up.
pub(super) trait Resolver: Send + Sync + 'static {
    /// Returns the addresses of a name.
    fn addresses(&self, host: &str, port: u16) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// The resolver of the system. It does not tell for how long an answer is good.
#[derive(Clone, Copy, Debug)]
pub(super) struct System;

impl Resolver for System {
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((host, port)).await?.collect())
    }
}

/// Names, with the addresses they had when they were last looked up with success.
pub(super) struct Names<R> {
    resolver: R,
    names: Vec<Name>,
    every: Duration,
    due: Instant,
    /// How many nodes are up, and were when this was looked at last.
    up: watch::Receiver<u32>,
    were_up: u32,
    looked: Option<Instant>,
    soon_until: Option<Instant>,
}

struct Name {
    node: NodeParams,
    addresses: Vec<SocketAddr>,
}

impl<R: Resolver> Names<R> {
    pub(super) fn new(
        resolver: R,
        names: Vec<NodeParams>,
        every: Duration,
        up: watch::Receiver<u32>,
    ) -> Self {
        let names = names.into_iter().map(|node| Name { node, addresses: Vec::new() }).collect();
        let due = Instant::now();
        Names { resolver, names, every, due, up, were_up: 0, looked: None, soon_until: None }
    }

    /// Makes the next lookup sooner where nodes have gone down.
    fn hurry(&mut self, now: Instant) {
        let up = *self.up.borrow_and_update();
        if up < self.were_up {
            self.soon_until = Some(now + SOON_FOR);
            self.due = self.due.min(self.looked.map_or(now, |looked| looked + SOONEST));
        }
        self.were_up = up;
    }
}

impl<R: Resolver> Source for Names<R> {
    async fn look(&mut self) -> Option<News> {
        let now = Instant::now();
        self.hurry(now);
        if now < self.due {
            return None;
        }
        self.looked = Some(now);
        let mut troubles = Vec::new();
        for name in &mut self.names {
            let NodeAddress::Tcp { host, port } = &name.node.address else { continue };
            let why = match timeout(LOOKUP_WITHIN, self.resolver.addresses(host, *port)).await {
                Ok(Ok(mut addresses)) if !addresses.is_empty() => {
                    // Resolvers turn them around, so that those who take the first one take turns.
                    addresses.sort_unstable();
                    addresses.dedup();
                    if addresses.len() > NODES_MAX {
                        troubles
                            .push(format!("{host} has {} addresses: {NODES_MAX} are used", addresses.len()));
                        addresses.truncate(NODES_MAX);
                    }
                    name.addresses = addresses;
                    continue;
                }
                Ok(Ok(_)) => "it has no address".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} s", LOOKUP_WITHIN.as_secs()),
            };
            troubles.push(format!("{host} cannot be looked up: {why}"));
        }
        let is_soon = !troubles.is_empty() || self.soon_until.is_some_and(|until| now < until);
        let pause = if is_soon { self.every.min(AGAIN_AFTER) } else { self.every };
        self.due = Instant::now() + pause;
        let at = |name: &Name| {
            let node = name.node.clone();
            name.addresses.clone().into_iter().map(move |address| node.found_at(address))
        };
        let nodes = self.names.iter().flat_map(at).collect();
        Some(News { nodes: Some(nodes), trouble: (!troubles.is_empty()).then(|| troubles.join("; ")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    /// Answers what it is told to; of a name that it is told nothing of, never.
    #[derive(Clone, Default)]
    struct Fake(Arc<Mutex<HashMap<String, Answer>>>);

    /// Last bytes of addresses, or why there are none.
    type Answer = Result<Vec<u8>, &'static str>;

    impl Fake {
        fn set(&self, host: &str, answer: Result<&[u8], &'static str>) {
            self.0.lock().unwrap().insert(host.to_owned(), answer.map(<[u8]>::to_vec));
        }
    }

    impl Resolver for Fake {
        async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            let answer = self.0.lock().unwrap().get(host).cloned();
            match answer {
                Some(Ok(last)) => {
                    Ok(last.into_iter().map(|last| SocketAddr::from(([10, 0, 0, last], port))).collect())
                }
                Some(Err(why)) => Err(io::Error::other(why)),
                None => std::future::pending().await,
            }
        }
    }

    fn names(fake: &Fake, hosts: &[&str]) -> Names<Fake> {
        names_and_up(fake, hosts).0
    }

    fn names_and_up(fake: &Fake, hosts: &[&str]) -> (Names<Fake>, watch::Sender<u32>) {
        let node = |host: &&str| NodeParams::parse(&format!("http://{host}:80")).unwrap();
        let (tell, up) = watch::channel(2);
        (Names::new(fake.clone(), hosts.iter().map(node).collect(), Duration::from_secs(30), up), tell)
    }

    fn found(news: &News) -> Vec<String> {
        news.nodes.iter().flatten().map(ToString::to_string).collect()
    }

    async fn later(names: &mut Names<Fake>, seconds: u64) -> Option<News> {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        names.look().await
    }

    #[tokio::test(start_paused = true)]
    async fn each_address_of_a_name_is_a_node() {
        let fake = Fake::default();
        fake.set("a", Ok(&[2, 1, 2]));
        fake.set("b", Ok(&[3]));
        let mut names = names(&fake, &["a", "b"]);
        let news = names.look().await.unwrap();
        assert_eq!(found(&news), ["http://10.0.0.1:80", "http://10.0.0.2:80", "http://10.0.0.3:80"]);
        assert_eq!(news.trouble, None);
        assert!(news.nodes.unwrap().iter().all(|node| ["a", "b"].contains(&node.host())));
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_looked_up_again_once_that_is_due() {
        let fake = Fake::default();
        fake.set("a", Ok(&[1]));
        let mut names = names(&fake, &["a"]);
        names.look().await.unwrap();
        fake.set("a", Ok(&[2]));
        assert_eq!(later(&mut names, 29).await, None);
        assert_eq!(found(&later(&mut names, 1).await.unwrap()), ["http://10.0.0.2:80"]);
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_looked_up_at_once_when_a_node_goes_down_and_soon_for_a_while() {
        let fake = Fake::default();
        fake.set("a", Ok(&[1, 2]));
        let (mut names, up) = names_and_up(&fake, &["a"]);
        names.look().await.unwrap();
        assert_eq!(later(&mut names, 10).await, None);
        up.send_replace(0);
        fake.set("a", Ok(&[3]));
        assert_eq!(found(&names.look().await.unwrap()), ["http://10.0.0.3:80"]);
        // That more are up is no reason; that a further one is down is, but not within a second.
        up.send_replace(1);
        assert_eq!(names.look().await, None);
        up.send_replace(0);
        assert_eq!(names.look().await, None);
        assert!(later(&mut names, 1).await.is_some());
        for _ in 0..11 {
            assert_eq!(later(&mut names, 4).await, None);
            assert!(later(&mut names, 1).await.is_some(), "as after a failure");
        }
        later(&mut names, 10).await;
        assert_eq!(later(&mut names, 29).await, None, "as before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_cannot_be_looked_up_has_the_addresses_it_had() {
        let fake = Fake::default();
        fake.set("a", Ok(&[1]));
        fake.set("b", Ok(&[2]));
        let mut names = names(&fake, &["a", "b"]);
        names.look().await.unwrap();
        fake.set("b", Ok(&[3]));
        for (answer, why) in [
            (Some(Err("no such name")), "a cannot be looked up: no such name"),
            (Some(Ok(&[] as &[u8])), "a cannot be looked up: it has no address"),
            (None, "a cannot be looked up: no answer within 10 s"),
        ] {
            match answer {
                Some(answer) => fake.set("a", answer),
                None => _ = fake.0.lock().unwrap().remove("a"),
            }
            let news = later(&mut names, 30).await.unwrap();
            assert_eq!(found(&news), ["http://10.0.0.1:80", "http://10.0.0.3:80"]);
            assert_eq!(news.trouble.unwrap(), why);
        }
        // It is asked again soon.
        fake.set("a", Ok(&[4]));
        let news = later(&mut names, 5).await.unwrap();
        assert_eq!((found(&news)[0].as_str(), news.trouble), ("http://10.0.0.4:80", None));
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_addresses_some_are_used() {
        let fake = Fake::default();
        let many: Vec<u8> = (0..=255).collect();
        fake.set("a", Ok(&many));
        let mut names = names(&fake, &["a"]);
        assert_eq!(names.look().await.unwrap().nodes.unwrap().len(), NODES_MAX);
    }
}

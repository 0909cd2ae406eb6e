//! Nodes that Kubernetes starts and ends.
//!
//! Which node goes when there are too many is for Kubernetes to say: its pod is told to end, and drains from then on for
//! as long as its workload gives it. So there is nothing to do with what the gateway says of nodes: one that has nothing
//! left ends by itself, and one that is lost is for its liveness probe.

use crate::{NodeEvent, Provided, Provider, ProviderView, Wires, begin};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
pub use suimon_kubernetes::check;
use suimon_kubernetes::{Event, run};
use suimon_params::kubernetes::{KubernetesParams, OrdersParams};
use suimon_params::upstream::{NodeAddress, NodeParams, Protocol, Scheme};
use tokio::sync::{mpsc, watch};

/// Orders whose nodes are not ready yet, and whose times are kept to learn from; those beyond are not.
const ORDERS_MAX: usize = 1000;
/// From a start that was refused to the next one.
const AGAIN: Duration = Duration::from_secs(10);
/// How much the newest start counts in their mean.
const NEWEST: f64 = 0.3;

/// Nodes of a Kubernetes Service.
#[derive(Debug)]
pub struct Kubernetes {
    params: KubernetesParams,
}

impl Kubernetes {
    /// Returns a provider of the nodes that these parameters are of.
    pub fn new(params: KubernetesParams) -> Self {
        Kubernetes { params }
    }
}

impl Provider for Kubernetes {
    fn name(&self) -> &'static str {
        match self.params.orders {
            OrdersParams::Scale(_) => "kubernetes",
            OrdersParams::Keda(_) => "keda",
        }
    }

    fn begin(self: Box<Self>, wanted: u32) -> Provided {
        begin(wanted, |wires| work(self.params, wires))
    }
}

async fn work(params: KubernetesParams, mut wires: Wires) {
    let protocol = params.protocol;
    let mut nodes = Nodes::of(*wires.wanted.borrow());
    let (order, ordered) = watch::channel(nodes.wanted);
    loop {
        let (tell, mut told) = mpsc::channel(crate::EVENTS_MAX);
        let mut running = std::pin::pin!(run(params.clone(), ordered.clone(), tell));
        let refusal = loop {
            tokio::select! {
                changed = wires.wanted.changed() => {
                    if changed.is_err() {
                        // So that the next gateway need not wait.
                        drop(order);
                        let _ = running.await;
                        return;
                    }
                    let wanted = *wires.wanted.borrow_and_update();
                    nodes.order(Instant::now(), wanted);
                    order.send_replace(wanted);
                }
                Some(event) = told.recv() => {
                    if nodes.take(&event, Instant::now(), &mut wires, protocol).await.is_err() {
                        return;
                    }
                }
                Some(_) = wires.words.recv() => {}
                ended = &mut running => match ended {
                    Ok(()) => return,
                    Err(refusal) => break refusal,
                },
            }
            wires.view.send_modify(|view| nodes.show(view));
        };
        tracing::error!(%refusal, "Kubernetes");
        wires.view.send_modify(|view| view.trouble = Some(refusal.to_string()));
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            changed = wires.wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                let wanted = *wires.wanted.borrow_and_update();
                nodes.order(Instant::now(), wanted);
                order.send_replace(wanted);
            }
        }
    }
}

/// What is known of the nodes, to be shown.
#[derive(Debug)]
struct Nodes {
    wanted: u32,
    ready: BTreeSet<SocketAddr>,
    /// When nodes were ordered that are not ready yet.
    orders: VecDeque<Instant>,
    start_s: Option<f64>,
}

impl Nodes {
    fn of(wanted: u32) -> Self {
        Nodes { wanted, ready: BTreeSet::new(), orders: VecDeque::new(), start_s: None }
    }

    /// Learns that so many are wanted from now on.
    fn order(&mut self, now: Instant, wanted: u32) {
        for _ in self.wanted..wanted {
            if self.orders.len() < ORDERS_MAX {
                self.orders.push_back(now);
            }
        }
        let fewer = self.wanted.saturating_sub(wanted) as usize;
        self.orders.truncate(self.orders.len().saturating_sub(fewer));
        self.wanted = wanted;
    }

    /// Learns that a node is ready.
    fn started(&mut self, now: Instant, address: SocketAddr) {
        if !self.ready.insert(address) {
            return;
        }
        if let Some(order) = self.orders.pop_front() {
            let took = now.saturating_duration_since(order).as_secs_f64();
            self.start_s = Some(self.start_s.map_or(took, |mean| mean + NEWEST * (took - mean)));
        }
    }

    /// Hands on what is said of nodes; an error: nobody takes it.
    async fn take(
        &mut self,
        event: &Event,
        now: Instant,
        wires: &mut Wires,
        protocol: Protocol,
    ) -> Result<(), mpsc::error::SendError<NodeEvent>> {
        let event = match event {
            Event::Ready { address } => {
                self.started(now, *address);
                NodeEvent::Ready(node(*address, protocol))
            }
            Event::Draining { address, .. } => {
                self.ready.remove(address);
                NodeEvent::Draining(node(*address, protocol))
            }
            Event::Gone { address } => {
                self.ready.remove(address);
                NodeEvent::Gone(node(*address, protocol))
            }
            Event::Found(count) => {
                wires.view.send_modify(|view| view.found = Some(*count));
                return Ok(());
            }
            Event::Trouble(trouble) => {
                tracing::warn!(%trouble, "Kubernetes");
                wires.view.send_modify(|view| view.trouble = Some(trouble.clone()));
                return Ok(());
            }
            Event::Well => {
                tracing::info!("Kubernetes: all is well again");
                wires.view.send_modify(|view| view.trouble = None);
                return Ok(());
            }
        };
        wires.events.send(event).await
    }

    fn show(&self, view: &mut ProviderView) {
        let ready = u32::try_from(self.ready.len()).unwrap_or(u32::MAX);
        view.starting = self.wanted.saturating_sub(ready);
        view.start_s = self.start_s;
    }
}

fn node(address: SocketAddr, protocol: Protocol) -> NodeParams {
    let address = NodeAddress::Tcp { host: address.ip().to_string(), port: address.port() };
    NodeParams { scheme: Scheme::Http, address, protocol }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], 8080))
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn nodes_that_were_ordered_and_are_not_ready_are_starting() {
        let start = Instant::now();
        let mut nodes = Nodes::of(1);
        let mut view = ProviderView::default();
        nodes.started(start, at(1));
        nodes.order(start, 3);
        nodes.show(&mut view);
        assert_eq!((view.starting, view.start_s), (2, None));
        nodes.started(start + seconds(4), at(2));
        nodes.show(&mut view);
        assert_eq!((view.starting, view.start_s), (1, Some(4.0)));
    }

    #[test]
    fn a_node_that_comes_back_was_not_started() {
        let start = Instant::now();
        let mut nodes = Nodes::of(1);
        nodes.started(start, at(1));
        nodes.order(start, 2);
        nodes.started(start + seconds(1), at(1));
        assert_eq!(nodes.start_s, None);
    }

    #[test]
    fn an_order_that_is_taken_back_is_not_learned_from() {
        let start = Instant::now();
        let mut nodes = Nodes::of(1);
        nodes.order(start, 4);
        nodes.order(start, 1);
        nodes.started(start + seconds(9), at(1));
        assert_eq!(nodes.start_s, None);
    }

    #[tokio::test]
    async fn without_a_way_to_an_api_server_it_says_so_and_ends_when_it_is_to() {
        let mut params = KubernetesParams::of("shop");
        params.kubeconfig = Some("/nowhere/kubeconfig".into());
        let mut provided = Box::new(Kubernetes::new(params)).begin(1);
        let hangs = seconds(30);
        let seen = tokio::time::timeout(hangs, provided.view.wait_for(|view| view.trouble.is_some()));
        let view = seen.await.expect("a view in time").expect("a provider at work").clone();
        assert!(view.trouble.expect("trouble").starts_with("kubeconfig /nowhere/kubeconfig: "));
        drop(provided.wanted);
        tokio::time::timeout(hangs, provided.task).await.expect("an end in time").expect("no panic");
    }

    #[test]
    fn orders_beyond_the_bound_are_not_kept() {
        let mut nodes = Nodes::of(0);
        nodes.order(Instant::now(), 100_000);
        assert_eq!(nodes.orders.len(), ORDERS_MAX);
    }
}

//! One run of a cluster: clients, back ends, and the rule for their number, in virtual time.

use super::back_end::{BackEnd, Stage};
use super::client::Client;
use super::{ClusterSetup, Dispatch, NodeRule};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;
use suimon_fleet::scaling::ScalingSample;
use suimon_model::{Duration, Instant, Rng, seconds};
use suimon_workload::Starts;

/// Separate random streams, so that more draws in one place never change another.
const CLIENTS: u64 = 0xC11E;
const NODES: u64 = 0x4E0D;
const PLACES: u64 = 0x91ACE;
const STARTS: u64 = 0x57A7;
/// How often a node looks at its run queue.
const TICK: Duration = Duration::from_millis(10);
/// How often a parent process looks after the processes of its node.
const PARENT_EVERY: Duration = Duration::from_secs(1);

/// What a run showed.
#[derive(Clone, Debug, Default)]
pub struct ClusterRun {
    /// How it stood at each whole second, from 0 on.
    pub seconds: Vec<ClusterSecond>,
    /// Page views that ended, in the order of their ends.
    pub views: Vec<View>,
    /// Nodes ordered and given back.
    pub orders: u32,
    /// Nodes given back.
    pub returns: u32,
}

/// What had happened by a moment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ClusterSecond {
    /// Files that were fetched.
    pub files: u64,
    /// Node-seconds of nodes that were there: starting and draining ones, too.
    pub node_seconds: f64,
    /// Node-seconds of work that were done.
    pub work: f64,
    /// Nodes that are there.
    pub nodes: u32,
}

/// A page view that ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct View {
    /// When it began.
    pub began: Instant,
    /// From there to its last file.
    pub took: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Begin,
    Node(usize),
    Started(usize, u64),
    Tick,
    Report,
    Parents,
    Decide,
    Second,
}

struct Run<'a> {
    setup: &'a ClusterSetup,
    seed: u64,
    rule: &'a mut dyn NodeRule,
    starts: Peekable<Starts>,
    clients: BTreeMap<u64, Client>,
    clients_begun: u64,
    nodes: Vec<Option<BackEnd>>,
    orders: u64,
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    events: u64,
    reports: u64,
    turn: usize,
    place_rng: Rng,
    start_rng: Rng,
    /// Up to when node-seconds are counted.
    counted: Instant,
    node_seconds: f64,
    files: u64,
    /// Work done by nodes that are gone.
    work_gone: f64,
    work_told: f64,
    begun: u64,
    ended: u64,
    told: (u64, u64),
    /// Files of ended page views.
    files_of_ended: u64,
    work_of_all: f64,
    files_of_all: u64,
    start_s: Option<f64>,
    result: ClusterRun,
}

/// Plays `setup` with `seed` and a rule, until everybody who came is served.
pub fn run_cluster(setup: &ClusterSetup, seed: u64, rule: &mut dyn NodeRule) -> ClusterRun {
    let mut run = Run {
        setup,
        seed,
        starts: Starts::new(&setup.arrivals, seed).peekable(),
        clients: BTreeMap::new(),
        clients_begun: 0,
        nodes: (0..setup.nodes_most).map(|_| None).collect(),
        orders: 0,
        heap: BinaryHeap::new(),
        events: 0,
        reports: 0,
        turn: 0,
        place_rng: Rng::stream(seed, PLACES),
        start_rng: Rng::stream(seed, STARTS),
        counted: Instant::ORIGIN,
        node_seconds: 0.0,
        files: 0,
        work_gone: 0.0,
        work_told: 0.0,
        begun: 0,
        ended: 0,
        told: (0, 0),
        files_of_ended: 0,
        work_of_all: 0.0,
        files_of_all: 0,
        start_s: None,
        rule,
        result: ClusterRun::default(),
    };
    run.play();
    run.result
}

impl Run<'_> {
    fn play(&mut self) {
        for _ in 0..self.setup.nodes_first {
            self.order(Instant::ORIGIN, Stage::Serving);
        }
        self.at(Instant::ORIGIN + TICK, Event::Tick);
        self.at(Instant::ORIGIN + self.setup.reports_every, Event::Report);
        self.at(Instant::ORIGIN + PARENT_EVERY, Event::Parents);
        let every = self.rule.every();
        self.at(Instant::ORIGIN + every, Event::Decide);
        self.at(Instant::ORIGIN, Event::Second);
        self.begin_next();
        while let Some(Reverse((now, _, event))) = self.heap.pop() {
            self.count_nodes(now);
            self.handle(now, event);
            if event == Event::Second && self.clients.is_empty() && self.starts.peek().is_none() {
                break;
            }
        }
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Begin => {
                self.starts.next();
                self.begin(now);
                self.begin_next();
            }
            Event::Node(index) => self.wake(now, index),
            Event::Started(index, order) => self.start(index, order),
            Event::Tick => {
                self.nodes.iter_mut().flatten().for_each(BackEnd::look_at_load);
                self.at(now + TICK, Event::Tick);
            }
            Event::Report => {
                self.reports += 1;
                for node in self.nodes.iter_mut().flatten() {
                    let load = node.runs() as f64;
                    node.told.handle_report(now, self.reports, load);
                }
                self.at(now + self.setup.reports_every, Event::Report);
            }
            Event::Parents => {
                for index in 0..self.nodes.len() {
                    if let Some(node) = &mut self.nodes[index] {
                        node.look_after_processes(now);
                        self.settle(now, index);
                    }
                }
                self.at(now + PARENT_EVERY, Event::Parents);
            }
            Event::Decide => {
                self.decide(now);
                self.at(now + self.rule.every(), Event::Decide);
            }
            Event::Second => {
                let work = self.work_done(now);
                let nodes = self.present();
                let (files, node_seconds) = (self.files, self.node_seconds);
                self.result.seconds.push(ClusterSecond { files, node_seconds, work, nodes });
                self.at(now + Duration::from_secs(1), Event::Second);
            }
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.events += 1;
        self.heap.push(Reverse((at, self.events, event)));
    }

    fn begin_next(&mut self) {
        if let Some(start) = self.starts.peek() {
            let at = start.at;
            self.at(at, Event::Begin);
        }
    }

    fn begin(&mut self, now: Instant) {
        let id = self.clients_begun;
        self.clients_begun += 1;
        self.begun += 1;
        let rng = Rng::stream(self.seed, CLIENTS ^ (id << 16));
        self.clients.insert(id, Client::new(now, &self.setup.views, rng));
        self.ask(now, id);
    }

    /// Lets a client ask for its next file.
    fn ask(&mut self, now: Instant, id: u64) {
        let node = match self.clients[&id].node {
            Some(node) => node,
            None => self.connect(now, id),
        };
        let cpu = self.clients.get_mut(&id).expect("it asks").next_file(&self.setup.views);
        self.work_of_all += cpu;
        self.files_of_all += 1;
        self.nodes[node].as_mut().expect("a node with connections is there").handle_arrival(now, id, cpu);
        self.settle(now, node);
    }

    /// Sends a connection to a node.
    fn connect(&mut self, now: Instant, id: u64) -> usize {
        let serving: Vec<usize> = (0..self.nodes.len())
            .filter(|index| self.nodes[*index].as_ref().is_some_and(|node| node.stage == Stage::Serving))
            .collect();
        let told = |index: usize, corrected: bool| {
            let told = &self.nodes[index].as_ref().expect("it serves").told;
            if corrected { told.load(now) } else { told.told(now) }.unwrap_or(f64::INFINITY)
        };
        let least = |among: &[usize], corrected: bool, rng: &mut Rng| {
            let load = among.iter().map(|index| told(*index, corrected)).fold(f64::INFINITY, f64::min);
            let best: Vec<usize> =
                among.iter().copied().filter(|index| told(*index, corrected) <= load).collect();
            best[rng.below(best.len())]
        };
        let mut rng = self.place_rng.clone();
        let node = match self.setup.dispatch {
            Dispatch::Told => least(&serving, false, &mut rng),
            Dispatch::Corrected => least(&serving, true, &mut rng),
            Dispatch::TwoTold => {
                let two = [rng.below(serving.len()), rng.below(serving.len())];
                least(&two.map(|at| serving[at]), false, &mut rng)
            }
            Dispatch::InTurn => serving[self.turn % serving.len()],
        };
        self.place_rng = rng;
        self.turn += 1;
        let back_end = self.nodes[node].as_mut().expect("it serves");
        back_end.connections += 1;
        back_end.told.handle_sent();
        self.clients.get_mut(&id).expect("it asks").node = Some(node);
        node
    }

    fn disconnect(&mut self, now: Instant, id: u64) {
        let Some(node) = self.clients.get_mut(&id).and_then(|client| client.node.take()) else { return };
        let back_end = self.nodes[node].as_mut().expect("a node with connections is there");
        back_end.connections -= 1;
        if back_end.stage == Stage::Draining && back_end.connections == 0 {
            self.remove(now, node);
        }
    }

    fn wake(&mut self, now: Instant, index: usize) {
        let Some(node) = self.nodes[index].as_mut().filter(|node| node.wakes == now) else { return };
        node.wakes = Instant::FAR_FUTURE;
        node.node.handle_timeout(now);
        self.settle(now, index);
    }

    /// Passes on what a node has served by now, and plans when it wakes next.
    fn settle(&mut self, now: Instant, index: usize) {
        let Some(node) = &mut self.nodes[index] else { return };
        let done: Vec<u64> = std::iter::from_fn(|| node.node.poll_ended()).collect();
        self.plan(index);
        for id in done {
            self.served(now, id);
        }
    }

    fn served(&mut self, now: Instant, id: u64) {
        self.files += 1;
        let client = self.clients.get_mut(&id).expect("it waits for its file");
        client.got += 1;
        let (is_over, keeps) = (client.left == 0, client.keeps);
        if is_over || !keeps {
            self.disconnect(now, id);
        }
        if !is_over {
            return self.ask(now, id);
        }
        let client = self.clients.remove(&id).expect("it was there a line ago");
        self.ended += 1;
        self.files_of_ended += u64::from(client.got);
        self.result.views.push(View { began: client.began, took: now.since(client.began) });
    }

    fn plan(&mut self, index: usize) {
        let Some(node) = &mut self.nodes[index] else { return };
        let due = node.node.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        if due < Instant::FAR_FUTURE && due != node.wakes {
            node.wakes = due;
            self.at(due, Event::Node(index));
        }
    }

    fn order(&mut self, now: Instant, stage: Stage) {
        let Some(index) = self.nodes.iter().position(Option::is_none) else { return };
        let order = self.orders;
        self.orders += 1;
        let rng = Rng::stream(self.seed, NODES + order);
        self.nodes[index] = Some(BackEnd::new((now, self.setup.reports_every), stage, order, rng));
        if stage == Stage::Starting {
            let (least, most) = self.setup.start;
            let takes = self.start_rng.between(least.as_secs_f64(), most.as_secs_f64());
            self.start_s = Some(self.start_s.map_or(takes, |longest: f64| longest.max(takes)));
            self.result.orders += 1;
            self.at(now + seconds(takes), Event::Started(index, order));
        }
    }

    fn start(&mut self, index: usize, order: u64) {
        if let Some(node) = self.nodes[index].as_mut().filter(|node| node.order == order) {
            // What was ordered and given back before it was there has been removed.
            node.stage = Stage::Serving;
        }
    }

    /// Gives back the newest node.
    fn give_back(&mut self, now: Instant) {
        let nodes = self.nodes.iter().enumerate().filter_map(|(index, node)| Some((index, node.as_ref()?)));
        let newest =
            nodes.filter(|(_, node)| node.stage != Stage::Draining).max_by_key(|(_, node)| node.order);
        let Some((index, _)) = newest else { return };
        self.result.returns += 1;
        let node = self.nodes[index].as_mut().expect("it was found");
        node.stage = Stage::Draining;
        if node.connections == 0 {
            self.remove(now, index);
        }
    }

    fn remove(&mut self, now: Instant, index: usize) {
        if let Some(mut node) = self.nodes[index].take() {
            self.work_gone += node.node.usage(now).work;
        }
    }

    fn count(&self, stage: Stage) -> u32 {
        self.nodes.iter().flatten().filter(|node| node.stage == stage).count() as u32
    }

    fn decide(&mut self, now: Instant) {
        let work = self.work_done(now);
        let serving: Vec<&BackEnd> =
            self.nodes.iter().flatten().filter(|node| node.stage == Stage::Serving).collect();
        let loads: Option<Vec<f64>> = serving.iter().map(|node| node.load()).collect();
        let load = loads.map(|loads| loads.iter().sum::<f64>() / loads.len().max(1) as f64);
        let sample = ScalingSample {
            serving: serving.len() as u32,
            requests: self.nodes.iter().flatten().map(|node| node.node.in_service() as u32).sum(),
            starting: self.count(Stage::Starting),
            load,
            begun: self.begun - self.told.0,
            ended: self.ended - self.told.1,
            answered: self.ended - self.told.1,
            work_s: work - self.work_told,
            to_come_s: self.to_come(),
            // Whoever comes is let in.
            by_fullness: false,
            is_held: false,
            start_s: self.start_s,
        };
        self.told = (self.begun, self.ended);
        self.work_told = work;
        let present = sample.serving + sample.starting;
        let wanted = self.rule.decide(now, &sample).clamp(self.setup.nodes_first, self.setup.nodes_most);
        for _ in present..wanted {
            self.order(now, Stage::Starting);
        }
        for _ in wanted..present {
            self.give_back(now);
        }
    }

    /// Returns the work that clients will still ask for, as far as a front end can tell: by the mean
    /// time of a file, and the mean number of files of those who are done.
    fn to_come(&self) -> f64 {
        if self.files_of_all == 0 || self.ended == 0 {
            return 0.0;
        }
        let each = self.work_of_all / self.files_of_all as f64;
        let files = self.files_of_ended as f64 / self.ended as f64;
        let left = self.clients.values().map(|client| (files - f64::from(client.got)).max(1.0));
        each * left.sum::<f64>()
    }

    fn work_done(&mut self, now: Instant) -> f64 {
        let there: f64 = self.nodes.iter_mut().flatten().map(|node| node.node.usage(now).work).sum();
        self.work_gone + there
    }

    fn present(&self) -> u32 {
        self.nodes.iter().flatten().count() as u32
    }

    /// Counts the nodes that were there until `now`.
    fn count_nodes(&mut self, now: Instant) {
        self.node_seconds += f64::from(self.present()) * now.secs_since(self.counted);
        self.counted = now;
    }
}

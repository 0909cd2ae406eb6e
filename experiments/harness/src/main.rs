//! The experiments: each is a command that measures, writes its data, draws its figure and says
//! whether its claims hold.
//!
//! - [`overload`]: `sessions-under-overload`, the figure the whole project is about.
//! - [`under_capacity`]: `under-capacity`, that visitors do not notice the gateway while nothing is
//!   wrong.
//! - [`proxy_cost`]: `proxy-cost`, processor time per request beside nginx and HAProxy.
//! - [`waiting_memory`]: `waiting-memory`, what a client that waits costs.
//! - [`flash_crowd`]: `flash-crowd`, ten times as many visitors as can be served, in line.
//! - [`waiting_cost`]: `waiting-cost`, what visitors in line cost.
//! - [`gateway_restart`]: `gateway-restart`, the gateway ends under load and is restarted.
//! - [`takeovers`]: `takeovers`, the gateway is taken over, and killed, again and again in a rush.
//! - [`sharing_live`]: `sharing-live`, several gateways before one application, one of them or their
//!   engine lost.
//! - [`sharing_simulated`]: `sharing-simulated`, the same on sites of several kinds, simulated.
//! - [`inside_tomcat`]: `inside-tomcat`, the gate as a filter of the application, beside others of its kind.
//! - [`wars`]: `wars`, the same filter in wars that nobody has changed, in each Tomcat and Java, beside the gateway.
//! - [`slow_answers`]: `slow-answers`, pages that mostly wait for other systems.
//! - [`kill_and_restart`]: `kill-and-restart`, the application dies under load and comes back.
//! - [`ticket_forgery`]: `ticket-forgery`, edited tickets, leases and invitations shown to the
//!   gateway.
//! - [`laws`]: `laws`, the gateway's laws and external ones, simulated.
//! - [`any_site`]: `any-site`, laws on sites of every kind and load, simulated.
//! - [`tomcat_model`]: `tomcat-model`, what pages of the Tomcat shop cost alone and concurrently.
//! - [`waiting_line`]: `waiting-line`, rules for a line whose people leave, simulated.
//! - [`degradation_papers`]: `degradation-papers`, a light job beside heavy ones on four operating
//!   systems, simulated beside the paper's own numbers.
//! - [`cluster_papers`]: `cluster-papers`, how many nodes serve through a rise, simulated.
//! - [`nodes_and_line`]: `nodes-and-line`, what the law of their number gains from the line, simulated.
//! - [`cluster_live`]: `cluster-live`, real nodes that come and go beside the simulator, and their faults.
//! - [`node_faults`]: `node-faults`, nodes that fail in every way that nodes do, and come back.
//! - [`workers_papers`]: `workers-papers`, how many resident workers are best, simulated.
//! - [`degradation_tomcat`]: `degradation-tomcat`, the papers' jobs on a real Tomcat under wishes,
//!   pauses and other gateways.
//! - [`pauses_inside`]: `pauses-inside`, declared ratios of pause and work around the heavy job and
//!   inside it.
//! - [`sqs`]: `sqs`, the figures of the paper, simulated at full size and measured on a real shop.
//! - [`workers_real`]: `workers-real`, how many resident workers PHP and Python need, and what
//!   servers make of it that choose the number.
//! - [`workers_faults`]: `workers-faults`, what dying, hanging and growing workers cost visitors.
//! - [`mediawiki`]: `mediawiki`, a wiki behind a pool of workers: whether it works, and whether
//!   sessions finish when too many people come.
//! - [`workers_cost`]: `workers-cost`, processor time per request before workers of PHP and Python,
//!   beside nginx.
//! - [`balancing_live`]: `balancing-live`, unequal nodes behind Suimon and HAProxy, and reports of
//!   different age.
//! - [`agent_cost`]: `agent-cost`, what load reports cost a gateway.
//! - [`sim`]: `sim`, `suimon sim` with external laws and generated sites.
//!
//! Beneath them, on `suimon-process`: `cpu`, `machine`, `apps`, `gateways`, `crowd`,
//! `journey`, `bound`, `observe`, `memory`, `memory_group`, `workspace`, `database`, `mariadb`,
//! `workers`, `lab_nodes`; and `data`, `figures`, `clock`,
//! `recovery`, `witness`.
//!
//! Exit codes: 0 done and it holds, 1 it does not or something failed while running, 2 wrong usage.

mod agent_cost;
mod any_site;
mod apps;
mod balancing_live;
mod bound;
mod claims;
mod clock;
mod cluster_live;
mod cluster_papers;
mod common;
mod cpu;
mod crowd;
mod data;
mod database;
mod degradation_papers;
mod degradation_tomcat;
mod figures;
mod flash_crowd;
mod gateway_restart;
mod gateways;
mod histograms;
mod http;
mod inside_tomcat;
mod journey;
mod kill_and_restart;
mod lab_nodes;
mod laws;
mod machine;
mod mariadb;
mod mediawiki;
mod memory;
mod memory_group;
mod node_faults;
mod nodes_and_line;
mod observe;
mod overload;
mod parallel;
mod pauses_inside;
mod proxy_cost;
mod recovery;
mod sharing_live;
mod sharing_simulated;
mod sim;
mod site;
mod slow_answers;
mod slow_clients;
mod smuggling;
mod sqs;
mod takeovers;
mod ticket_forgery;
mod tomcat_model;
mod trouble;
mod under_attack;
mod under_capacity;
mod waiting_cost;
mod waiting_line;
mod waiting_memory;
mod wars;
mod witness;
mod workers;
mod workers_cost;
mod workers_faults;
mod workers_papers;
mod workers_real;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use trouble::Trouble;

/// Runs the experiments, each with one command.
#[derive(Parser, Debug)]
#[command(
    name = "suimon-experiments",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Each has a folder under experiments/ with its question, data and figure. All of them run on two cores of this
machine over loopback only; let nothing else run meanwhile. Ctrl-C leaves no process behind.

Exit codes: 0 done and it holds; 1 it does not hold, or something failed while running; 2 wrong usage."
)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand, Debug)]
enum Experiment {
    #[command(name = "sessions-under-overload")]
    Overload(overload::Options),
    #[command(name = "under-capacity")]
    UnderCapacity(under_capacity::Options),
    #[command(name = "proxy-cost")]
    ProxyCost(proxy_cost::Options),
    #[command(name = "waiting-memory")]
    WaitingMemory(waiting_memory::Options),
    #[command(name = "kill-and-restart")]
    KillAndRestart(kill_and_restart::Options),
    #[command(name = "gateway-restart")]
    GatewayRestart(gateway_restart::Options),
    #[command(name = "takeovers")]
    Takeovers(takeovers::Options),
    #[command(name = "sharing-live")]
    SharingLive(sharing_live::Options),
    #[command(name = "inside-tomcat")]
    InsideTomcat(inside_tomcat::Options),
    #[command(name = "slow-answers")]
    SlowAnswers(slow_answers::Options),
    #[command(name = "sim")]
    Sim(Box<sim::Options>),
    #[command(name = "sqs")]
    Sqs(sqs::Options),
    #[command(name = "degradation-papers")]
    DegradationPapers(degradation_papers::Options),
    #[command(name = "cluster-papers")]
    ClusterPapers(cluster_papers::Options),
    #[command(name = "sharing-simulated")]
    SharingSimulated(sharing_simulated::Options),
    #[command(name = "nodes-and-line")]
    NodesAndLine(nodes_and_line::Options),
    #[command(name = "workers-papers")]
    WorkersPapers(workers_papers::Options),
    #[command(name = "pauses-inside")]
    PausesInside(pauses_inside::Options),
    #[command(name = "degradation-tomcat")]
    DegradationTomcat(degradation_tomcat::Options),
    #[command(name = "laws")]
    Laws(laws::Options),
    #[command(name = "any-site")]
    AnySite(any_site::Options),
    #[command(name = "flash-crowd")]
    FlashCrowd(flash_crowd::Options),
    #[command(name = "waiting-cost")]
    WaitingCost(waiting_cost::Options),
    #[command(name = "waiting-line")]
    WaitingLine(waiting_line::Options),
    #[command(name = "ticket-forgery")]
    TicketForgery(ticket_forgery::Options),
    #[command(name = "tomcat-model")]
    TomcatModel(tomcat_model::Options),
    #[command(name = "smuggling")]
    Smuggling(smuggling::Options),
    #[command(name = "slow-clients")]
    SlowClients(slow_clients::Options),
    #[command(name = "slow-clients-load", hide = true)]
    SlowClientsLoad(slow_clients::LoadOptions),
    #[command(name = "under-attack")]
    UnderAttack(under_attack::Options),
    #[command(name = "under-attack-attackers", hide = true)]
    Attackers(under_attack::AttackOptions),
    #[command(name = "workers-real")]
    WorkersReal(workers_real::Options),
    #[command(name = "mediawiki")]
    MediaWiki(mediawiki::Options),
    #[command(name = "workers-faults")]
    WorkersFaults(workers_faults::Options),
    #[command(name = "workers-cost")]
    WorkersCost(workers_cost::Options),
    #[command(name = "agent-cost")]
    AgentCost(agent_cost::Options),
    #[command(name = "cluster-live")]
    ClusterLive(cluster_live::Options),
    #[command(name = "node-faults")]
    NodeFaults(node_faults::Options),
    #[command(name = "balancing-live")]
    BalancingLive(balancing_live::Options),
    #[command(name = "wars")]
    Wars(wars::Options),
    #[command(name = "workers-guard", hide = true)]
    WorkersGuard(workspace::GuardOptions),
    #[command(name = "proxy-cost-backend", hide = true)]
    Backend(proxy_cost::BackendOptions),
    #[command(name = "proxy-cost-load", hide = true)]
    Load(proxy_cost::LoadOptions),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().experiment {
        Experiment::Overload(options) => overload::run(options),
        Experiment::UnderCapacity(options) => under_capacity::run(options),
        Experiment::ProxyCost(options) => proxy_cost::run(options),
        Experiment::Backend(options) => proxy_cost::run_backend(&options),
        Experiment::Load(options) => proxy_cost::run_load(&options),
        Experiment::WaitingMemory(options) => waiting_memory::run(options),
        Experiment::KillAndRestart(options) => kill_and_restart::run(options),
        Experiment::GatewayRestart(options) => gateway_restart::run(options),
        Experiment::Takeovers(options) => takeovers::run(options),
        Experiment::SharingLive(options) => sharing_live::run(&options),
        Experiment::InsideTomcat(options) => inside_tomcat::run(&options),
        Experiment::Wars(options) => wars::run(&options),
        Experiment::SlowAnswers(options) => slow_answers::run(&options),
        Experiment::DegradationPapers(options) => degradation_papers::run(&options),
        Experiment::ClusterPapers(options) => cluster_papers::run(&options),
        Experiment::SharingSimulated(options) => sharing_simulated::run_it(&options),
        Experiment::NodesAndLine(options) => nodes_and_line::run_it(&options),
        Experiment::WorkersPapers(options) => workers_papers::run(&options),
        Experiment::PausesInside(options) => pauses_inside::run(&options),
        Experiment::DegradationTomcat(options) => degradation_tomcat::run(&options),
        Experiment::Laws(options) => laws::run(&options),
        Experiment::AnySite(options) => any_site::run(&options),
        Experiment::FlashCrowd(options) => flash_crowd::run(&options),
        Experiment::WaitingCost(options) => waiting_cost::run(options),
        Experiment::WaitingLine(options) => waiting_line::run(&options),
        Experiment::TicketForgery(options) => ticket_forgery::run(&options),
        Experiment::TomcatModel(options) => tomcat_model::run(&options),
        Experiment::Smuggling(options) => smuggling::run(&options),
        Experiment::SlowClients(options) => slow_clients::run(&options),
        Experiment::SlowClientsLoad(options) => slow_clients::run_load(&options),
        Experiment::UnderAttack(options) => under_attack::run(&options),
        Experiment::Attackers(options) => under_attack::run_attackers(&options),
        Experiment::WorkersReal(options) => workers_real::run(&options),
        Experiment::MediaWiki(options) => mediawiki::run(&options),
        Experiment::WorkersFaults(options) => workers_faults::run(options),
        Experiment::WorkersCost(options) => workers_cost::run(options),
        Experiment::AgentCost(options) => agent_cost::run(&options),
        Experiment::ClusterLive(options) => cluster_live::run(&options),
        Experiment::NodeFaults(options) => node_faults::run(&options),
        Experiment::BalancingLive(options) => balancing_live::run(&options),
        Experiment::WorkersGuard(options) => workspace::guard(&options),
        Experiment::Sim(options) => return sim::run(&options),
        Experiment::Sqs(options) => sqs::run(options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(trouble) => {
            eprintln!("{trouble}");
            match trouble {
                Trouble::Usage(_) => ExitCode::from(2),
                Trouble::Failed(_) => ExitCode::FAILURE,
            }
        }
    }
}

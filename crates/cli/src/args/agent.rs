//! The command line of `suimon agent`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use suimon_agent::datagram::EVERY;
use suimon_settings::duration;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  suimon agent --new-key /etc/suimon/agent.keys                  once; then copy the file to the gateways and to every node
  suimon agent --node http://10.0.0.5:8080 --to 10.0.0.2:8002 --keys /etc/suimon/agent.keys
  suimon agent --node http://10.0.0.5:8080 --to gw1:8002 --to gw2:8002 --keys agent.keys --every 10ms
  suimon agent --agent-check 10.0.0.5:8003                       for HAProxy alone: no key is needed
  suimon agent --http 127.0.0.1:8004                             the same as JSON and as a header, for anybody who asks

The agent runs on a node of the application and tells how busy the machine is: its run queue, that is, how many tasks run or
could, now and on average over the past 100 ms and second, and its pressure, the share of time in which a task waited for a
processor. Three ways, each on its own or together:

  --to            UDP datagrams to gateways, sealed with a key; the gateway listens with [upstream.load_reports] and chooses
                  nodes by them with upstream.balance = \"reported\" (docs/agent.md). --node is the name of this node there.
  --agent-check   a TCP port for HAProxy's agent-check. The answer is a weight, such as 50%: what a further task gets of a
                  processor. HAProxy: server a 10.0.0.5:8080 check weight 100 agent-check agent-port 8003
  --http          GET /load: the load as JSON (the fields of ORCA), and the same in the header endpoint-load-metrics. It is plain
                  HTTP that is asked again and again; the gRPC stream of ORCA is not served.

--agent-check and --http have no authentication: bind them where only balancers reach them. HAProxy keeps the last weight
when the agent ends.

Exit codes: 0 told to stop; 1 an address cannot be had, or the load of this machine cannot be read; 2 wrong usage or keys.")]
pub(crate) struct Agent {
    /// This node, as it stands in upstream.nodes of the gateways. Repeat it if several are on this
    /// machine.
    #[arg(long, value_name = "URL", requires = "to")]
    pub(crate) node: Vec<String>,
    /// Where a gateway listens for load reports, as HOST:PORT. Repeat it for several.
    #[arg(long, value_name = "HOST:PORT", requires = "node", requires = "keys")]
    pub(crate) to: Vec<String>,
    /// File of keys, the same as on the gateways; nobody else may be able to read it.
    #[arg(long, value_name = "FILE", requires = "to")]
    pub(crate) keys: Option<PathBuf>,
    /// Time from one report to the next: 10ms to 1s.
    #[arg(long, value_name = "TIME", value_parser = every, default_value = "100ms")]
    pub(crate) every: Duration,
    /// Answer HAProxy's agent-check on this address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) agent_check: Option<SocketAddr>,
    /// While this file exists, answer agent-check with "drain", and else with "ready". Without it the
    /// agent leaves that to HAProxy's operator.
    #[arg(long, value_name = "FILE", requires = "agent_check")]
    pub(crate) drain: Option<PathBuf>,
    /// Answer GET /load on this address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// File in which the application keeps the number of its requests in flight; it is reported, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) in_flight: Option<PathBuf>,
    /// Where the kernel's files are: in a container perhaps those of its host.
    #[arg(long, value_name = "FOLDER", default_value = "/proc")]
    pub(crate) proc: PathBuf,
    /// File with the pressure on processors, such as cpu.pressure of a control group. [default:
    /// pressure/cpu in --proc]
    #[arg(long, value_name = "FILE")]
    pub(crate) pressure: Option<PathBuf>,
    /// Processors that the run queue is for. [default: all that are online]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) processors: Option<u16>,
    /// Make a file with a new key, which only its owner can read, and do nothing else.
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub(crate) new_key: Option<PathBuf>,
}

fn every(text: &str) -> Result<Duration, String> {
    let every = duration::parse(text).filter(|every| EVERY.contains(every));
    every.ok_or_else(|| "must be a time from 10ms to 1s".to_owned())
}

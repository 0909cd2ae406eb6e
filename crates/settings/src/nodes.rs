//! The nodes that come and go.

use crate::Faults;
use crate::program;
use crate::read::{Sections, Values};
use suimon_params::nodes::{
    HookParams, LifecycleParams, NodesLaw, NodesParams, ProcessesParams, ProviderKind, ProviderParams,
    ScalingLaw,
};
use suimon_params::pool::{CommandParams, PORT_WORD, WorkerListen};

/// Those that start nodes.
const STARTERS: &[ProviderKind] =
    &[ProviderKind::Processes, ProviderKind::Command, ProviderKind::Kubernetes, ProviderKind::Keda];

/// Returns whether nodes come that the settings do not name.
pub(crate) fn come(sections: &Sections) -> bool {
    let values = sections.optional("nodes");
    values.is_some_and(|values| STARTERS.contains(&values.choice("provider", ProviderKind::of)))
}

/// Returns how the nodes that come and go are kept. `stay`: how many nodes do not.
pub(crate) fn nodes(sections: &Sections, stay: usize, faults: &mut Faults) -> Option<NodesParams> {
    let values = sections.optional("nodes")?;
    let kind = values.choice("provider", ProviderKind::of);
    let (least, most) = (values.small("min"), values.small("max"));
    if least > most {
        faults.value("nodes.min", least, format!("at most nodes.max ({most})"));
    }
    let stay = u32::try_from(stay).unwrap_or(u32::MAX);
    if most < stay {
        let allowed = format!("at least {stay}: so many nodes of upstream.nodes stay");
        faults.value("nodes.max", most, allowed);
    }
    if sections.repeated("pool").iter().any(|pool| pool.texts("routes").is_empty()) {
        let allowed = "left out where a [[pool]] takes all requests: its workers are no nodes";
        faults.value("nodes", "given", allowed);
    }
    Some(NodesParams {
        law: law(values, faults),
        least: least.max(stay).min(most),
        most,
        provider: match kind {
            ProviderKind::Kubernetes | ProviderKind::Keda => {
                ProviderParams::Kubernetes(crate::kubernetes::nodes(sections, kind, least == 0, faults)?)
            }
            kind => provider(values, kind, faults)?,
        },
        lifecycle: LifecycleParams {
            parked: values.small("parked"),
            most: most.saturating_sub(stay),
            start_within: values.time("start_within"),
            drain_within: values.time("drain_within"),
        },
        processors: values.number("processors"),
    })
}

fn law(values: &Values, faults: &mut Faults) -> ScalingLaw {
    let law = values.choice("law", NodesLaw::of);
    let count = values.given_count("count").and_then(|count| u32::try_from(count).ok());
    if law == NodesLaw::Fixed && count.is_none() {
        faults.missing("nodes.count", "say how many, as law = \"fixed\" does not");
    }
    match law {
        NodesLaw::Demand => ScalingLaw::Demand { eagerness: values.number("eagerness") },
        NodesLaw::Seed => {
            ScalingLaw::Seed { interval: values.time("interval"), load_max: values.number("load_max") }
        }
        NodesLaw::Fixed => ScalingLaw::Fixed(count.unwrap_or_default()),
    }
}

fn provider(values: &Values, kind: ProviderKind, faults: &mut Faults) -> Option<ProviderParams> {
    if kind == ProviderKind::Observe {
        return Some(ProviderParams::Observe);
    }
    let mut words = values.given_texts("command").into_iter();
    let Some(program) = words.next() else {
        faults.missing(
            "nodes.command",
            "name the program, such as [\"/srv/shop/node\", \"--port\", \"{port}\"]",
        );
        return None;
    };
    let command = CommandParams {
        program: program.into(),
        arguments: words.collect(),
        environment: program::environment(values, None),
        folder: values.given_path("directory"),
        user: values.given_text("user").and_then(|name| program::user("nodes.user", name, faults)),
        listen: WorkerListen::Port,
    };
    let ready_path = values.given_text("ready").map(str::to_owned);
    let stop_within = values.time("stop_within");
    if kind == ProviderKind::Command {
        let hook = HookParams { command, ready_path, within: stop_within };
        return Some(ProviderParams::Command(hook));
    }
    if command.listen_by_words() != Some(WorkerListen::Port) {
        let allowed = format!(
            "with {PORT_WORD} in an argument or in nodes.environment: a node must know where to listen"
        );
        faults.value("nodes.command", "given", allowed);
    }
    let output = values.given_path("output");
    Some(ProviderParams::Processes(ProcessesParams { command, ready_path, stop_within, output }))
}

//! Nodes that come and go.

use super::DefaultValue::{Is, Unset};
use super::{ENTRIES_MAX, Form, HOUR, SECOND, Section, key};
use crate::shape::Shape::{Count, List, Number, Path, Text, Time, UrlPath, Variable, Word};
use suimon_params::nodes::{NodesLaw, ProviderKind};
use suimon_params::upstream::NODES_MAX;

pub(super) const NODES: Section = Section {
    path: "nodes",
    form: Form::Optional,
    doc: "Nodes that come and go, beside those of upstream.nodes, which stay: see docs/nodes.md. How many there should be is found while running.",
    keys: &[
        key("provider", Word(ProviderKind::CHOICES), Is("\"observe\""), "Who starts and ends them."),
        key("law", Word(NodesLaw::CHOICES), Is("\"demand\""), "How their number is found."),
        key(
            "eagerness",
            Number(0.0, 1.0),
            Is("0.5"),
            "With law = \"demand\": what counts more, from 0 (few nodes) to 1 (short waits).",
        ),
        key(
            "min",
            Count(0, NODES_MAX as u64),
            Is("1"),
            "The fewest nodes, those that stay among them. 0: none where nothing is asked for, so that the next visitor waits for a start.",
        ),
        key("max", Count(1, NODES_MAX as u64), Is("10"), "The most nodes, those that stay among them."),
        key(
            "count",
            Count(0, NODES_MAX as u64),
            Unset { means: "needed with law = \"fixed\"", example: "3" },
            "With law = \"fixed\": how many, those that stay among them.",
        ),
        key(
            "interval",
            Time(100, 60 * SECOND),
            Is("\"500ms\""),
            "With law = \"seed\": time from one decision to the next.",
        ),
        key(
            "load_max",
            Number(1.1, 1000.0),
            Is("5"),
            "With law = \"seed\": mean length of the run queues above which a node is added. With upstream.load_reports they are what `suimon agent` reports of every node; without, the requests of a node.",
        ),
        key(
            "parked",
            Count(0, NODES_MAX as u64),
            Is("0"),
            "Nodes kept started and ready beside those that serve, so that one more serves at once.",
        ),
        key(
            "processors",
            Number(0.01, 1024.0),
            Is("1"),
            "Processors that a node has for itself: so much CPU time a second makes it busy.",
        ),
        key(
            "command",
            List(&Text, ENTRIES_MAX),
            Unset {
                means: "needed with provider = \"processes\" and \"command\"",
                example: "[\"/srv/shop/node\", \"--port\", \"{port}\"]",
            },
            "With provider = \"processes\": program and arguments of a node, which listens at the port {port} of 127.0.0.1. With \"command\": the program that starts and ends nodes, with its first arguments. No shell reads them.",
        ),
        key(
            "environment",
            List(&Variable, ENTRIES_MAX),
            Is("[]"),
            "Environment of the program, beside the gateway's PATH. The rest of the gateway's environment is not passed on.",
        ),
        key(
            "directory",
            Path,
            Unset { means: "the gateway's", example: "\"/srv/shop\"" },
            "Working directory of the program.",
        ),
        key(
            "user",
            Text,
            Unset { means: "the gateway's", example: "\"nobody\"" },
            "With provider = \"processes\": the user that nodes run as, with that user's groups.",
        ),
        key(
            "output",
            Path,
            Unset { means: "it is thrown away", example: "\"/var/log/shop\"" },
            "With provider = \"processes\": folder of the files with what nodes write, one a port.",
        ),
        key(
            "ready",
            UrlPath,
            Unset { means: "a node is ready once it accepts connections", example: "\"/health\"" },
            "Path that a node must have answered with success before it gets requests.",
        ),
        key(
            "start_within",
            Time(SECOND, HOUR),
            Is("\"60s\""),
            "The longest from an order until a node is ready.",
        ),
        key(
            "drain_within",
            Time(0, HOUR),
            Is("\"60s\""),
            "How long a node that is given back may go on with what it has.",
        ),
        key(
            "stop_within",
            Time(SECOND, HOUR),
            Is("\"10s\""),
            "With provider = \"processes\": how long a node may take to end when asked to (SIGTERM), before it is killed. With \"command\": how long the program may take to stop a node.",
        ),
    ],
};

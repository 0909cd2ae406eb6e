//! Nodes that Kubernetes starts.

use super::DefaultValue::{Is, Required, Unset};
use super::{Form, HOUR, Section, key};
use crate::shape::Shape::{AddressOrOff, Name, Path, Text, Time};

pub(super) const NODES_KUBERNETES: Section = Section {
    path: "nodes.kubernetes",
    form: Form::Optional,
    doc: "With nodes.provider = \"kubernetes\" or \"keda\": where the nodes are. See docs/kubernetes.md.",
    keys: &[
        key(
            "service",
            Name,
            Required { example: "\"shop\"" },
            "The Service whose ready endpoints are the nodes. The gateway speaks to the pods themselves, not to its address.",
        ),
        key(
            "namespace",
            Name,
            Unset { means: "that of the gateway's pod, or of the kubeconfig's context", example: "\"web\"" },
            "The namespace of all that is named here.",
        ),
        key(
            "port",
            Name,
            Unset { means: "the only port that the Service has", example: "\"http\"" },
            "The name of the Service's port, or the number that its pods listen on.",
        ),
        key(
            "workload",
            Text,
            Unset { means: "the Deployment of the Service's name", example: "\"StatefulSet/shop\"" },
            "With provider = \"kubernetes\": what is scaled, KIND/NAME, or GROUP/VERSION/KIND/NAME if it is not of apps/v1. It needs a scale subresource.",
        ),
        key(
            "lease",
            Name,
            Unset { means: "suimon- and the Service's name", example: "\"suimon-shop\"" },
            "With provider = \"kubernetes\": the Lease whose holder, of several gateways, writes the number.",
        ),
        key(
            "grace",
            Time(0, HOUR),
            Is("\"30s\""),
            "From the moment a pod is told to end until it is killed: terminationGracePeriodSeconds of the workload's pods.",
        ),
        key(
            "kubeconfig",
            Path,
            Unset {
                means: "the service account of the gateway's pod, or else $KUBECONFIG or ~/.kube/config",
                example: "\"/etc/suimon/kubeconfig\"",
            },
            "How the API server is reached.",
        ),
    ],
};

pub(super) const NODES_KEDA: Section = Section {
    path: "nodes.keda",
    form: Form::Optional,
    doc: "With nodes.provider = \"keda\": the external push scaler that KEDA asks. With nodes.min = 0 it lets KEDA take the last node away.",
    keys: &[
        key(
            "listen",
            AddressOrOff,
            Is("\"0.0.0.0:9090\""),
            "Where KEDA connects; gRPC without TLS. It is told the number, and can change nothing.",
        ),
        key("metric", Name, Is("\"suimon-nodes-wanted\""), "The name of the metric."),
    ],
};

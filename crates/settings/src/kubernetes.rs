//! Nodes that Kubernetes starts.

use crate::Faults;
use crate::read::Sections;
use std::net::{Ipv4Addr, SocketAddr};
use suimon_params::kubernetes::{KEDA_PORT, KedaParams, KubernetesParams, OrdersParams, ScaleParams, Target};
use suimon_params::nodes::ProviderKind;
use suimon_params::upstream::Protocol;

/// Returns where they are and who orders them; `zero`: whether none may be wanted.
pub(crate) fn nodes(
    sections: &Sections,
    kind: ProviderKind,
    zero: bool,
    faults: &mut Faults,
) -> Option<KubernetesParams> {
    let Some(values) = sections.optional("nodes.kubernetes") else {
        faults.missing("nodes.kubernetes.service", "name the Service of the nodes, such as \"shop\"");
        return None;
    };
    let service = values.text("service").to_owned();
    let text = |key| values.given_text(key).map(str::to_owned);
    let orders = if kind == ProviderKind::Keda {
        OrdersParams::Keda(keda(sections, zero, faults)?)
    } else {
        OrdersParams::Scale(ScaleParams {
            target: match values.given_text("workload") {
                Some(workload) => target(workload, faults)?,
                None => Target::deployment(&service),
            },
            lease: text("lease").unwrap_or_else(|| format!("suimon-{service}")),
            identity: None,
        })
    };
    Some(KubernetesParams {
        namespace: text("namespace"),
        port: text("port").unwrap_or_default(),
        protocol: sections.once("upstream").choice("protocol", Protocol::of),
        grace: values.time("grace"),
        kubeconfig: values.given_path("kubeconfig"),
        service,
        orders,
    })
}

fn keda(sections: &Sections, zero: bool, faults: &mut Faults) -> Option<KedaParams> {
    let Some(values) = sections.optional("nodes.keda") else {
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, KEDA_PORT));
        return Some(KedaParams { zero, ..KedaParams::at(listen) });
    };
    let Some(listen) = values.address("listen") else {
        faults.value("nodes.keda.listen", "\"off\"", "an IP address and port, so that KEDA can ask");
        return None;
    };
    let metric = values.text("metric").to_owned();
    if metric.contains(|letter: char| letter.is_ascii_uppercase()) {
        let allowed = "without capital letters: it becomes a part of a URL that has none";
        faults.value("nodes.keda.metric", format!("\"{metric}\""), allowed);
    }
    Some(KedaParams { listen, metric, zero })
}

fn target(workload: &str, faults: &mut Faults) -> Option<Target> {
    let parts: Vec<&str> = workload.split('/').collect();
    let (api_version, kind, name) = match parts.as_slice() {
        [kind, name] => ("apps/v1".to_owned(), kind, name),
        [group, version, kind, name] => (format!("{group}/{version}"), kind, name),
        _ => (String::new(), &"", &""),
    };
    // A kind begins with a capital letter; who writes `deployment/shop` means it.
    let mut letters = kind.chars();
    let kind: String =
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect();
    if kind.is_empty() || name.is_empty() || parts.iter().any(|part| part.is_empty()) {
        let allowed = "KIND/NAME, such as \"Deployment/shop\", or GROUP/VERSION/KIND/NAME";
        faults.value("nodes.kubernetes.workload", format!("\"{workload}\""), allowed);
        return None;
    }
    Some(Target { api_version, kind, name: (*name).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use suimon_params::nodes::ProviderParams;

    fn params(text: &str) -> Result<KubernetesParams, String> {
        let settings = Settings::parse("x", text).map_err(|faults| faults.to_string())?;
        match settings.proxy.nodes.expect("nodes").provider {
            ProviderParams::Kubernetes(params) => Ok(params),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_service_is_enough() {
        let found = params("[nodes]\nprovider = \"kubernetes\"\n[nodes.kubernetes]\nservice = \"shop\"\n");
        assert_eq!(found, Ok(KubernetesParams::of("shop")));
    }

    #[test]
    fn no_service_is_missed() {
        for provider in ["kubernetes", "keda"] {
            let fault = params(&format!("[nodes]\nprovider = \"{provider}\"\n")).unwrap_err();
            assert!(fault.contains("nodes.kubernetes.service"), "{fault}");
        }
    }

    #[test]
    fn a_workload_is_a_kind_and_a_name_of_apps_unless_it_says_its_group() {
        let of = |workload: &str| {
            let text = format!(
                "[nodes]\nprovider = \"kubernetes\"\n[nodes.kubernetes]\nservice = \"shop\"\nworkload = \"{workload}\"\n"
            );
            params(&text).map(|params| match params.orders {
                OrdersParams::Scale(ScaleParams { target, .. }) => target,
                other @ OrdersParams::Keda(_) => panic!("{other:?}"),
            })
        };
        let target = |api: &str, kind: &str| Target {
            api_version: api.to_owned(),
            kind: kind.to_owned(),
            name: "a".to_owned(),
        };
        assert_eq!(of("StatefulSet/a"), Ok(target("apps/v1", "StatefulSet")));
        assert_eq!(of("deployment/a"), Ok(target("apps/v1", "Deployment")));
        assert_eq!(of("example.com/v1/Box/a"), Ok(target("example.com/v1", "Box")));
        for wrong in ["a", "Deployment/", "/a", "v1/Deployment/a"] {
            let fault = of(wrong).unwrap_err();
            assert!(fault.contains("KIND/NAME, such as"), "{fault}");
        }
    }

    #[test]
    fn keda_may_take_the_last_node_where_none_is_the_least() {
        let of = |min: u32, more: &str| {
            let text = format!(
                "[nodes]\nprovider = \"keda\"\nmin = {min}\n[nodes.kubernetes]\nservice = \"shop\"\n{more}"
            );
            params(&text).map(|params| match params.orders {
                OrdersParams::Keda(keda) => (keda.listen.to_string(), keda.zero),
                other @ OrdersParams::Scale(_) => panic!("{other:?}"),
            })
        };
        assert_eq!(of(1, ""), Ok(("0.0.0.0:9090".to_owned(), false)));
        let elsewhere = "[nodes.keda]\nlisten = \"127.0.0.1:9\"\n";
        assert_eq!(of(0, elsewhere), Ok(("127.0.0.1:9".to_owned(), true)));
        assert!(of(1, "[nodes.keda]\nlisten = \"off\"\n").unwrap_err().contains("so that KEDA can ask"));
        assert!(of(1, "[nodes.keda]\nmetric = \"Nodes\"\n").unwrap_err().contains("without capital letters"));
    }
}

//! `[sharing]`: several gateways before one application.

use crate::faults::Faults;
use crate::read::Values;
use suimon_params::nodes::ProviderParams;
use suimon_params::{Params, SharingParams};

/// Returns what is shared with other gateways, if an engine is named.
pub(crate) fn sharing(values: &Values) -> Option<SharingParams> {
    Some(SharingParams {
        engine: values.given_text("engine")?.to_owned(),
        group: values.text("group").to_owned(),
        gateways: u32::try_from(values.count("gateways")).unwrap_or(SharingParams::GATEWAYS_MAX),
        period: values.time("period"),
    })
}

/// Notes what several gateways cannot do without, and what only one alone can do.
pub(crate) fn check(proxy: &Params, faults: &mut Faults) {
    let sites = proxy.sites.iter().map(|site| &site.params);
    let shares = |params: &&Params| params.sharing.is_some();
    if proxy.lease.keys_file.is_none() && std::iter::once(proxy).chain(sites).any(|it| shares(&it)) {
        faults.missing(
            "lease.keys",
            "sharing.engine is given, and every gateway needs a file with the same keys: a lease of one is good at all",
        );
    }
    check_site(proxy, faults);
    let mut groups: Vec<_> = proxy.sharing.iter().map(|it| (&it.engine, &it.group)).collect();
    for (index, site) in proxy.sites.iter().enumerate() {
        let Some(sharing) = &site.params.sharing else { continue };
        let mut inner = Faults::none();
        check_site(&site.params, &mut inner);
        let group = (&sharing.engine, &sharing.group);
        if groups.contains(&group) {
            let allowed = "unlike those of other sites with the same engine: a group shares one site";
            inner.value("sharing.group", format!("{:?}", sharing.group), allowed);
        }
        groups.push(group);
        faults.append(inner.below(&format!("site[{index}]")));
    }
}

/// Notes what a site that is shared cannot have.
fn check_site(proxy: &Params, faults: &mut Faults) {
    if proxy.sharing.is_none() {
        return;
    }
    let starter = proxy.nodes.as_ref().and_then(|nodes| match nodes.provider {
        ProviderParams::Processes(_) => Some("processes"),
        ProviderParams::Command(_) => Some("command"),
        ProviderParams::Observe | ProviderParams::Kubernetes(_) => None,
    });
    if let Some(provider) = starter {
        faults.value(
            "nodes.provider",
            format!("\"{provider}\""),
            "kubernetes, keda or observe where sharing.engine is given: each gateway would start nodes of its own",
        );
    }
    if let Some(recording) = &proxy.record {
        faults.value(
            "record.file",
            format!("\"{}\"", recording.file.display()),
            "left out where sharing.engine is given: what other gateways did is in no recording",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    #[test]
    fn a_gateway_is_alone_unless_an_engine_is_named() {
        let alone = Settings::parse("test.toml", "[sharing]\ngroup = \"shop\"").expect("it is right");
        assert_eq!(alone.proxy.sharing, None);
        let text =
            "[sharing]\nengine = \"redis://db\"\nperiod = \"200ms\"\n[lease]\nkeys = \"/etc/suimon/keys\"";
        let sharing =
            Settings::parse("test.toml", text).expect("it is right").proxy.sharing.expect("an engine");
        assert_eq!((sharing.engine.as_str(), sharing.group.as_str()), ("redis://db", "suimon"));
        assert_eq!((sharing.gateways, sharing.period.as_millis()), (2, 200));
    }

    #[test]
    fn gateways_that_share_do_not_each_start_nodes() {
        let of = |nodes: &str| {
            let text = format!(
                "[sharing]\nengine = \"redis://db\"\n[lease]\nkeys = \"/etc/suimon/keys\"\n[nodes]\n{nodes}"
            );
            Settings::of_file("test.toml", &text).err().map_or_else(String::new, |faults| faults.to_string())
        };
        for provider in ["processes", "command"] {
            let faults = of(&format!("provider = \"{provider}\"\ncommand = [\"app\", \"{{port}}\"]"));
            assert!(faults.contains("nodes.provider") && faults.contains("of its own"), "{faults}");
        }
        assert_eq!(of("provider = \"observe\""), "");
    }

    #[test]
    fn what_is_shared_needs_shared_keys_and_is_not_recorded() {
        let text = "[sharing]\nengine = \"redis://db\"\n[record]\nfile = \"gate.rec\"";
        let faults = Settings::of_file("test.toml", text).expect_err("two faults").to_string();
        assert!(faults.contains("lease.keys") && faults.contains("record.file"), "{faults}");
    }
}

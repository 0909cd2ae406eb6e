//! `[[site]]`: other sites behind the same gateway. Each has a name, what it takes, and below it the
//! same sections as the file itself, such as `[site.upstream]` and `[[site.route]]`; what it leaves out
//! has its default, whatever the main site says.

use crate::faults::Faults;
use crate::read::{self, Sections};
use crate::schema::{SITE, own_table};
use crate::state_path::{StatePath, kept};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use suimon_params::kubernetes::OrdersParams;
use suimon_params::nodes::{NodesParams, ProviderParams};
use suimon_params::{Params, Site, SiteCertificate, SiteMatch};
use toml::Table;

/// The name that the first site has without being given one.
pub const MAIN_SITE: &str = "main";

/// What is the gateway's, or the main site's alone: sections, with all below them, ...
const OF_GATEWAY: [&str; 6] = ["listen", "admin", "log", "telemetry", "spool", SITE];
/// ... single keys, ...
const KEYS_OF_GATEWAY: [&str; 2] = ["lease.keys", "upstream.load_reports.listen"];
/// ... and all but some keys of these.
const SOME_OF_SITE: [(&str, &[&str]); 2] =
    [("limits", &["body_bytes"]), ("timeouts", &["connect", "first_byte", "response_read"])];

/// Where a site keeps what outlives the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteState {
    /// What of its line survives a restart.
    pub waiting_room: StatePath,
    /// What it has learned.
    pub learned: StatePath,
}

/// Returns the sites of a file whose other settings are `main`, and where each keeps its state.
/// `params_of`: what makes parameters of a site's sections, as it has made the main one's.
pub(crate) fn sites(
    table: &Table,
    sections: &Sections,
    main: &Params,
    params_of: fn(&Sections, &StatePath, &mut Faults) -> Params,
    faults: &mut Faults,
) -> Vec<(Site, SiteState)> {
    let entries = table.get(SITE).and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let mut sites: Vec<(Site, SiteState)> = Vec::new();
    for (index, values) in sections.repeated(SITE).iter().enumerate() {
        let entry = entries.get(index).and_then(toml::Value::as_table);
        let mut own = entry.map(own_table).unwrap_or_default();
        let path = format!("{SITE}[{index}]");
        let Some(name) = values.given_text("name") else { continue };
        let is_taken = |(site, _): &(Site, SiteState)| site.name() == name;
        if name == MAIN_SITE || sites.iter().any(is_taken) {
            faults.value(format!("{path}.name"), format!("{name:?}"), "unlike that of every other site");
        }
        let mut inner = Faults::none();
        refuse_foreign(&own, &mut inner);
        // Who comes by HTTPS is said there. What is wrong with it was noted before.
        if faults.is_empty() {
            own.extend(table.get("listen").map(|listen| ("listen".to_owned(), listen.clone())));
        }
        let of_site = read::read(&own, &mut inner);
        let params = params_of(&of_site, &StatePath::Nowhere, &mut inner);
        faults.append(inner.below(&path));
        let (cert, key) = (values.given_path("cert"), values.given_path("key"));
        let takes = SiteMatch { hosts: values.given_texts("hosts"), paths: values.given_texts("paths") };
        if takes == SiteMatch::default() {
            let wanted = "name hosts, paths or both; what no site takes is for the main one";
            faults.missing(format!("{path}.hosts"), wanted);
        }
        for (place, text) in takes.paths.iter().enumerate().filter(|(_, text)| !is_plain(text)) {
            let allowed = "a path as people write it, such as \"/tickets\": all below it is taken, too; without a query, *, %, ;, \\ and dots as segments";
            faults.value(format!("{path}.paths[{place}]"), format!("{text:?}"), allowed);
        }
        let state = SiteState {
            waiting_room: kept(of_site.once("waiting_room").given_path("state")),
            learned: kept(of_site.once("learned").given_path("state")),
        };
        let certificate = match (cert, key) {
            (Some(cert), Some(key)) => Some(SiteCertificate { cert, key }),
            (None, None) => None,
            (cert, _) => {
                let (missing, there) = if cert.is_some() { ("key", "cert") } else { ("cert", "key") };
                faults
                    .missing(format!("{path}.{missing}"), format!("{path}.{there} is given, and takes both"));
                None
            }
        };
        if certificate.is_some() && (main.listen.tls.is_none() || takes.hosts.is_empty()) {
            let wanted =
                if takes.hosts.is_empty() { format!("{path}.hosts") } else { "listen.tls".to_owned() };
            faults
                .missing(wanted, format!("{path}.cert is for clients that ask for one of the hosts by TLS"));
        }
        let mut params = Params { site: Some(name.to_owned()), ..params }.behind(main);
        if takes.hosts.is_empty() && !own.contains_key("https") {
            // Its hosts are the main site's, and browsers hold what is said there for the whole host.
            params.https = main.https.clone();
        }
        sites.push((Site { takes, certificate, params }, state));
    }
    refuse_same(&sites, faults);
    refuse_shared(main, &sites, faults);
    sites
}

/// Notes what is the gateway's, and so stands outside of its sites.
fn refuse_foreign(own: &Table, faults: &mut Faults) {
    const OUTSIDE: &str = "is the gateway's, for all of its sites: write it outside of [[site]]";
    for section in OF_GATEWAY.iter().filter(|section| own.contains_key(**section)) {
        faults.other(format!("{section}: {OUTSIDE}"));
    }
    for key in KEYS_OF_GATEWAY.iter().filter(|key| read::find(own, key).is_some()) {
        faults.other(format!("{key}: {OUTSIDE}"));
    }
    for (section, of_site) in SOME_OF_SITE {
        let given = read::find(own, section).and_then(toml::Value::as_table);
        for key in given.into_iter().flat_map(Table::keys).filter(|key| !of_site.contains(&key.as_str())) {
            faults.other(format!("{section}.{key}: {OUTSIDE}"));
        }
    }
}

/// Notes what two sites cannot both have.
fn refuse_same(sites: &[(Site, SiteState)], faults: &mut Faults) {
    for (index, (site, _)) in sites.iter().enumerate() {
        for (earlier, (other, _)) in sites[..index].iter().enumerate() {
            let any = |texts: &[String]| match texts {
                [] => vec![String::new()],
                texts => texts.iter().map(|text| text.trim_end_matches('/').to_owned()).collect(),
            };
            let both = |one: &[String], other: &[String]| {
                let alike = |text: &String| any(other).iter().any(|it| it.eq_ignore_ascii_case(text));
                any(one).into_iter().find(alike)
            };
            let same = both(&site.takes.hosts, &other.takes.hosts);
            if let (Some(host), Some(path)) = (same, both(&site.takes.paths, &other.takes.paths)) {
                let path = if path.is_empty() { "all paths".to_owned() } else { path };
                let host = if host.is_empty() { "any host".to_owned() } else { host };
                faults
                    .other(format!("{SITE}[{index}].hosts: {path} at {host} is {SITE}[{earlier}]'s already"));
            }
        }
    }
}

/// Notes what is one for the whole process, and two sites want.
fn refuse_shared(main: &Params, sites: &[(Site, SiteState)], faults: &mut Faults) {
    let mut taken: Vec<(String, String)> = Vec::new();
    let all = std::iter::once((String::new(), main));
    let of_sites = sites.iter().enumerate();
    let of_sites = of_sites.map(|(index, (site, _))| (format!("{SITE}[{index}]."), &site.params));
    for (prefix, params) in all.chain(of_sites) {
        let workers = params.upstreams().filter_map(|upstream| upstream.workers.as_ref());
        let names = workers.map(|workers| workers.pool.name.to_string()).collect::<BTreeSet<_>>();
        let pools = names.into_iter().map(|name| ("pool.name", format!("{name:?}")));
        let keda = params.nodes.as_ref().and_then(keda_address);
        let keda = keda.map(|address| ("nodes.keda.listen", format!("\"{address}\"")));
        for (key, value) in pools.chain(keda) {
            let of = |(_, other): &&(String, String)| *other == format!("{key} {value}");
            match taken.iter().find(of) {
                Some((other, _)) => {
                    let allowed = format!("unlike {other}{key}, as both are in one process");
                    faults.value(format!("{prefix}{key}"), value, allowed);
                }
                None => taken.push((prefix.clone(), format!("{key} {value}"))),
            }
        }
    }
}

/// Returns where KEDA asks for the number of nodes.
fn keda_address(nodes: &NodesParams) -> Option<SocketAddr> {
    match &nodes.provider {
        ProviderParams::Kubernetes(params) => match &params.orders {
            OrdersParams::Keda(keda) => Some(keda.listen),
            OrdersParams::Scale(_) => None,
        },
        _ => None,
    }
}

/// Returns whether all servers read a path as it is written.
fn is_plain(path: &str) -> bool {
    let is_dots = |segment: &str| matches!(segment, "." | "..");
    !path.contains(['?', '#', '*', '%', ';', '\\'])
        && !path.trim_end_matches('/').contains("//")
        && !path.split('/').any(is_dots)
}

#[cfg(test)]
mod tests {
    use crate::Settings;
    use suimon_params::Params;

    const TICKETS: &str = "\
[upstream]
nodes = [\"http://127.0.0.1:8080\"]
[limits]
head_bytes = \"32KiB\"
[[site]]
name = \"tickets\"
hosts = [\"tickets.example\", \"*.tickets.example\"]
[site.upstream]
nodes = [\"http://127.0.0.1:9090\"]
[site.upstream.health]
path = \"/alive\"
[[site.session]]
kind = \"buying\"
waiting_room = true
[site.limits]
body_bytes = 1000
";

    fn faults_of(text: &str) -> Vec<String> {
        let faults = Settings::parse("test.toml", text).expect_err("it is wrong");
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_site_has_settings_of_its_own_and_what_is_the_gateways() {
        let settings = Settings::parse("test.toml", TICKETS).expect("it is right");
        let Params { sites, limits, upstream, .. } = settings.proxy;
        let [site] = &sites[..] else { panic!("one") };
        assert_eq!((site.name(), site.takes.hosts.len()), ("tickets", 2));
        assert_eq!(site.params.upstream.nodes[0].to_string(), "http://127.0.0.1:9090");
        assert_eq!(site.params.upstream.health.path.as_deref(), Some("/alive"));
        assert_eq!(upstream.health.path, None, "what a site says is its own");
        assert_eq!(site.params.sessions.kinds[0].name, "buying");
        assert_eq!((site.params.limits.head_bytes, limits.head_bytes), (32 << 10, 32 << 10));
        assert_eq!((site.params.limits.body_bytes, limits.body_bytes), (Some(1000), None));
    }

    #[test]
    fn what_is_wrong_with_a_site_is_told_with_its_place() {
        let of = |more: &str| faults_of(&format!("{TICKETS}{more}"));
        for (more, told) in [
            ("[site.listen]\nhttp = \"0.0.0.0:1\"", "site[0].listen: is the gateway's"),
            ("[site.admin.tls]\ncert = \"a\"\nkey = \"b\"", "site[0].admin: is the gateway's"),
            ("[site.timeouts]\nkeep_alive = \"5s\"", "site[0].timeouts.keep_alive: is the gateway's"),
            ("[site.lease]\nkeys = \"/k\"", "site[0].lease.keys: is the gateway's"),
            ("[site.gate]\npatience = 5", "site[0].gate.patience = 5: must be a time"),
            (
                "[site.gate]\npatienc = 5",
                "site[0].gate.patienc = 5: there is no such key; did you mean gate.patience?",
            ),
            ("[site.gat]\na = 5", "site[0].gat = { ... }: there is no such key"),
            ("[[site]]\nname = \"tickets\"\npaths = [\"/x\"]", "site[1].name = \"tickets\": must be unlike"),
            ("[[site]]\nname = \"main\"\npaths = [\"/x\"]", "site[1].name = \"main\": must be unlike"),
            ("[[site]]\nname = \"b\"", "site[1].hosts is missing: name hosts"),
            (
                "[[site]]\nname = \"b\"\npaths = [\"/b/*\"]",
                "site[1].paths[0] = \"/b/*\": must be a path as people write it",
            ),
            (
                "[[site]]\nname = \"b\"\npaths = [\"/b\"]\n[[site]]\nname = \"c\"\npaths = [\"/b/\"]",
                "site[2].hosts: /b at any host is site[1]'s already",
            ),
            (
                "[[site]]\nname = \"b\"\npaths = [\"/b\"]\n[[site.pool]]\nname = \"app\"\ncommand = [\"/b\"]\n\
                 [[site]]\nname = \"c\"\npaths = [\"/c\"]\n[[site.pool]]\nname = \"app\"\ncommand = [\"/b\"]",
                "site[2].pool.name = \"app\": must be unlike site[1].pool.name",
            ),
            (
                "[[site]]\nname = \"b\"\nhosts = [\"TICKETS.example\"]",
                "site[1].hosts: all paths at TICKETS.example is site[0]'s already",
            ),
            (
                "[[site]]\nname = \"b\"\nhosts = [\"a:80\"]",
                "site[1].hosts[0] = \"a:80\": must be a host name",
            ),
            ("[[site]]\nname = \"b\"\nhosts = [\"b\"]\ncert = \"/c\"", "site[1].key is missing"),
            (
                "[[site]]\nname = \"b\"\nhosts = [\"b\"]\ncert = \"/c\"\nkey = \"/k\"",
                "listen.tls is missing: site[1].cert",
            ),
        ] {
            let faults = of(more);
            assert!(faults.iter().any(|fault| fault.starts_with(told)), "{more}: {faults:#?}");
        }
    }
}

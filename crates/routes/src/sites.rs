//! Which of several sites a request is for, told by its host and its path.
//!
//! Of the sites that a request fits, the one with the most precise host wins, and of these the one
//! with the longest path: a name counts more than `*.name`, a longer `*.name` more than a shorter one,
//! and both more than any host. A request that fits none is for the main site.
//!
//! Two sites may be parts of one application. Then a path that its server reads otherwise than it is
//! written must not lead round a site's gate, neither out of a site nor into one. So a path is looked at
//! as every server may read it (decoded or not, with parameters or without, dot segments resolved or
//! not), and one that is of different sites in different readings is of none.

use crate::spelling::all_readings;
use std::cmp::Reverse;

/// The site of every request that fits no other.
pub const MAIN_SITE: usize = 0;

/// The longest path, bytes, that is looked at as every server may read it: where it matters, a longer one
/// is of no site.
const READ_MAX: usize = 4096;

/// What a site takes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteMatch {
    /// Host names and addresses, without a port; `*.example.org` is every name below `example.org`.
    /// Empty: any host.
    pub hosts: Vec<String>,
    /// Paths; what is below each is the site's, too. Empty: all paths.
    pub paths: Vec<String>,
}

/// The sites, prepared for comparison.
#[derive(Debug, Default)]
pub struct SiteTable {
    /// The most precise first.
    entries: Vec<Entry>,
    /// Segments of the longest path.
    depth: usize,
}

#[derive(Debug)]
struct Entry {
    host: HostPattern,
    /// The segments of a path.
    path: Vec<String>,
    site: usize,
}

#[derive(Clone, Debug)]
enum HostPattern {
    Any,
    /// Every name that ends so: a dot, and what is behind it.
    Below(String),
    Named(String),
}

impl SiteTable {
    /// Returns the table of these sites: those beside the main one, which is [`MAIN_SITE`].
    pub fn new(sites: &[SiteMatch]) -> Self {
        let mut entries = Vec::new();
        for (site, SiteMatch { hosts, paths }) in (MAIN_SITE + 1..).zip(sites) {
            for host in patterns(hosts) {
                let of_site = prefixes(paths).map(|path| Entry { host: host.clone(), path, site });
                entries.extend(of_site);
            }
        }
        entries.sort_by_key(|entry| Reverse((entry.host.precision(), entry.path.len())));
        let depth = entries.iter().map(|entry| entry.path.len()).max().unwrap_or(0);
        SiteTable { entries, depth }
    }

    /// Returns whether there is the main site alone.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the site of a request for `path`; `None`: one server would read it as one site's, and
    /// another as another's. `host` is as the request names it, maybe with a port.
    pub fn site_of(&self, host: Option<&str>, path: &str) -> Option<usize> {
        let host = host.map(without_port);
        if self.depth == 0 {
            return Some(self.site_of_reading(host, &[]));
        }
        if path.len() > READ_MAX && (path.contains(['%', ';', '\\']) || path.contains("/.")) {
            return None;
        }
        let mut found = None;
        let is_one = all_readings(path, self.depth, |segments| {
            let site = self.site_of_reading(host, segments);
            *found.get_or_insert(site) == site
        });
        found.filter(|_| is_one)
    }

    fn site_of_reading(&self, host: Option<&str>, segments: &[&str]) -> usize {
        let is_below = |prefix: &[String]| {
            prefix.len() <= segments.len()
                && prefix.iter().zip(segments).all(|(own, segment)| segment.eq_ignore_ascii_case(own))
        };
        let fits = |entry: &&Entry| entry.host.matches(host) && is_below(&entry.path);
        self.entries.iter().find(fits).map_or(MAIN_SITE, |entry| entry.site)
    }

    /// Returns whether requests for one host may be for several sites.
    pub fn has_paths(&self) -> bool {
        self.depth > 0
    }
}

impl HostPattern {
    fn of(host: &str) -> Self {
        let host = host.to_ascii_lowercase();
        match host.strip_prefix('*') {
            Some(rest) => HostPattern::Below(rest.to_owned()),
            None => HostPattern::Named(host),
        }
    }

    fn precision(&self) -> (u8, usize) {
        match self {
            HostPattern::Any => (0, 0),
            HostPattern::Below(ending) => (1, ending.len()),
            HostPattern::Named(_) => (2, 0),
        }
    }

    fn matches(&self, host: Option<&str>) -> bool {
        let ends_so = |host: &str, ending: &str| {
            // A host is visible ASCII by the time its request is served; any other has no site.
            host.len() > ending.len()
                && host.get(host.len() - ending.len()..).is_some_and(|end| end.eq_ignore_ascii_case(ending))
        };
        match (self, host) {
            (HostPattern::Any, _) => true,
            (_, None) => false,
            (HostPattern::Named(name), Some(host)) => host.eq_ignore_ascii_case(name),
            (HostPattern::Below(ending), Some(host)) => ends_so(host, ending),
        }
    }
}

fn patterns(hosts: &[String]) -> Vec<HostPattern> {
    if hosts.is_empty() {
        return vec![HostPattern::Any];
    }
    hosts.iter().map(|host| HostPattern::of(host)).collect()
}

fn prefixes(paths: &[String]) -> impl Iterator<Item = Vec<String>> {
    let all = paths.is_empty().then(Vec::new);
    let of = |path: &String| path.split('/').filter(|it| !it.is_empty()).map(str::to_owned).collect();
    all.into_iter().chain(paths.iter().map(of))
}

/// Returns a host without its port, without the brackets of an IPv6 address, and without the dot at its
/// end, which stands for the root of all names.
pub fn without_port(host: &str) -> &str {
    if let Some(address) = host.strip_prefix('[') {
        return address.split(']').next().unwrap_or_default();
    }
    let name = host.split(':').next().unwrap_or_default();
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(hosts: &[&str], paths: &[&str]) -> SiteMatch {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        SiteMatch { hosts: owned(hosts), paths: owned(paths) }
    }

    #[test]
    fn the_most_precise_host_wins_and_then_the_longest_path() {
        let table = SiteTable::new(&[
            site(&["*.example.org"], &[]),
            site(&["shop.example.org"], &[]),
            site(&["shop.example.org", "other.org"], &["/tickets", "/a/b"]),
            site(&[], &["/tickets"]),
            site(&["*.eu.example.org"], &[]),
            site(&["2001:db8::1", "192.0.2.1"], &[]),
        ]);
        for (host, path, expected) in [
            ("shop.example.org", "/", 2),
            ("shop.example.org", "/tickets", 3),
            ("SHOP.example.org.:8443", "/tickets/7?x", 3),
            ("shop.example.org", "/ticketsale", 2),
            ("shop.example.org", "/a/b/c", 3),
            ("shop.example.org", "/a/bc", 2),
            ("a.example.org", "/tickets", 1),
            ("a.eu.example.org", "/", 5),
            ("example.org", "/", MAIN_SITE),
            ("example.org", "/tickets", 4),
            ("other.org", "/", MAIN_SITE),
            ("notexample.org", "/", MAIN_SITE),
            ("[2001:db8::1]:80", "/", 6),
            ("192.0.2.1:80", "/", 6),
        ] {
            assert_eq!(table.site_of(Some(host), path), Some(expected), "{host}{path}");
        }
        assert_eq!(table.site_of(None, "/tickets"), Some(4), "HTTP/1.0 names no host");
        assert_eq!(table.site_of(None, "/"), Some(MAIN_SITE));
        assert!(SiteTable::new(&[]).is_empty() && !table.is_empty());
    }

    #[test]
    fn no_spelling_leads_round_the_gate_of_a_path() {
        let table = SiteTable::new(&[site(&[], &["/tickets"]), site(&[], &["/a/b"])]);
        let of = |path: &str| table.site_of(None, path);
        for path in
            ["/tickets", "//tickets//", "/TICKETS/%41", "/tickets;a=b/c", "/tickets/./x", "/tickets/a%2Fb"]
        {
            assert_eq!(of(path), Some(1), "{path}");
        }
        for path in
            ["/", "/x/tickets", "/tickets-of-others", "/x/../y", "/caf%C3%A9", "/x%2Fy", "/a/c", "/x;y=z"]
        {
            assert_eq!(of(path), Some(MAIN_SITE), "{path}");
        }
        for path in [
            "/%74ickets/x",
            "/x/../tickets",
            "/x/%2e%2e/tickets",
            "/x%2f..%2ftickets",
            "/x\\..\\tickets",
            "/%2574ickets",
            "/./tickets",
            "/tickets/../x",
            "/tickets/..;/y",
            "/%74ickets/..;/y",
            "/%74ickets/buy.php/%252e%252e/%252e%252e/y",
            "/./tickets/buy.php/..;/..;/y",
            "/x//../tickets",
            "/a/../tickets",
            "/a/b/..",
            "/x;/../tickets",
            "/tickets%00/../x",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_is_some_sites_or_nobodys(host in "\\PC{0,40}", path in "/\\PC{0,40}") {
            let table = SiteTable::new(&[site(&["*.a"], &["/b"]), site(&["ä.a"], &[])]);
            prop_assert!(table.site_of(Some(&host), &path).is_none_or(|site| site <= 2));
        }
    }
}

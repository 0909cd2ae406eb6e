//! `[https]` and `[response]`: clients that use HTTPS, and what all answers carry.

use crate::faults::Faults;
use crate::read::{Sections, Values, seen_time};
use suimon_params::{Hsts, HttpsParams, ResponseHeader};

/// Returns what holds for clients that use HTTPS, and notes what would send them in circles or
/// promise what nobody can keep.
pub(crate) fn https(sections: &Sections, faults: &mut Faults) -> HttpsParams {
    let values = sections.once("https");
    let is_tls_here = sections.optional("listen.tls").is_some_and(|tls| tls.address("address").is_some());
    // Else no request is known to have come by HTTPS.
    let is_known = is_tls_here || !sections.once("listen").networks("trusted_proxies").is_empty();
    let redirect = values.flag("redirect");
    if redirect && !is_known {
        let allowed = "false without [listen.tls] and without listen.trusted_proxies, which say who came by HTTPS: everybody would be redirected for ever";
        faults.value("https.redirect", redirect, allowed);
    }
    HttpsParams {
        redirect,
        redirect_host: values.given_text("redirect_host").map(str::to_owned),
        redirect_port: values
            .given_count("redirect_port")
            .map(|port| u16::try_from(port).expect("the schema's range ends within u16")),
        hsts: hsts(values, is_known, faults),
    }
}

fn hsts(values: &Values, is_known: bool, faults: &mut Faults) -> Option<Hsts> {
    let (subdomains, preload) = (values.flag("hsts_subdomains"), values.flag("hsts_preload"));
    let Some(max_age) = values.given_time("hsts") else {
        for (key, is_set) in [("https.hsts_subdomains", subdomains), ("https.hsts_preload", preload)] {
            if is_set {
                faults.missing("https.hsts", format!("{key} is true, and says for whom it holds"));
            }
        }
        return None;
    };
    if !is_known {
        let allowed = "left out without [listen.tls] and without listen.trusted_proxies, which say who came by HTTPS: nobody would be told";
        faults.value("https.hsts", seen_time(max_age), allowed);
    }
    if preload && !subdomains {
        let allowed = "false without hsts_subdomains = true: browsers are not shipped with less";
        faults.value("https.hsts_preload", preload, allowed);
    }
    if preload && max_age < Hsts::PRELOAD_LEAST {
        let allowed = "at least \"365d\" with hsts_preload = true: browsers are not shipped with less";
        faults.value("https.hsts", seen_time(max_age), allowed);
    }
    Some(Hsts { max_age, subdomains, preload })
}

/// Returns the headers that all answers carry, and notes a name that is there twice.
pub(crate) fn response_headers(values: &Values, faults: &mut Faults) -> Vec<ResponseHeader> {
    let mut headers: Vec<ResponseHeader> = Vec::new();
    for (index, text) in values.texts("headers").iter().enumerate() {
        let Ok(header) = ResponseHeader::parse(text) else { continue };
        if let Some(earlier) = headers.iter().position(|earlier| earlier.name == header.name) {
            let allowed = format!("a header of another name than response.headers[{earlier}]");
            faults.value(format!("response.headers[{index}]"), format!("{text:?}"), allowed);
        }
        headers.push(header);
    }
    headers
}

#[cfg(test)]
mod tests {
    use crate::Settings;
    use suimon_model::Duration;
    use suimon_params::{Hsts, HttpsParams};

    const TLS: &str = "[listen]\ntls = { cert = \"c\", key = \"k\" }\n";
    const PROXY: &str = "[listen]\ntrusted_proxies = [\"10.0.0.1\"]\n";

    fn faults(text: &str) -> String {
        Settings::parse("test.toml", text).expect_err(text).to_string()
    }

    #[test]
    fn what_is_said_of_https_reaches_the_proxy() {
        let off = Settings::default().proxy;
        assert_eq!((off.https, off.response_headers), (HttpsParams::default(), vec![]));
        let text = "[https]\nredirect = true\nredirect_host = \"www.example.com\"\nredirect_port = 8443\n\
                    hsts = \"365d\"\nhsts_subdomains = true\nhsts_preload = true\n\
                    [response]\nheaders = [\"X-Frame-Options: DENY\"]";
        for way in [TLS, PROXY] {
            let proxy = Settings::parse("test.toml", &format!("{way}{text}")).expect("right").proxy;
            let max_age = Duration::from_secs(365 * 86_400);
            let https = HttpsParams {
                redirect: true,
                redirect_host: Some("www.example.com".to_owned()),
                redirect_port: Some(8443),
                hsts: Some(Hsts { max_age, subdomains: true, preload: true }),
            };
            assert_eq!(proxy.https, https);
            assert_eq!(proxy.response_headers[0].value, "DENY");
        }
    }

    #[test]
    fn what_would_go_in_circles_or_reach_nobody_is_refused() {
        let alone = faults("[https]\nredirect = true");
        assert!(
            alone.starts_with("https.redirect = true: must be false without [listen.tls] and"),
            "{alone}"
        );
        let alone = faults("[https]\nhsts = \"1d\"");
        assert!(alone.starts_with("https.hsts = \"24h\": must be left out without [listen.tls]"), "{alone}");
        for (text, fault) in [
            ("hsts_preload = true", "https.hsts is missing: https.hsts_preload is true"),
            (
                "hsts = \"365d\"\nhsts_preload = true",
                "https.hsts_preload = true: must be false without hsts_sub",
            ),
            (
                "hsts = \"364d\"\nhsts_preload = true\nhsts_subdomains = true",
                "https.hsts = \"8736h\": must be at least \"365d\" with hsts_preload",
            ),
            ("redirect_port = 0", "https.redirect_port = 0: must be a whole number from 1 to 65535"),
            ("redirect_host = \"http://a\"", "https.redirect_host = \"http://a\": must be a host name"),
        ] {
            let faults = faults(&format!("{TLS}[https]\n{text}"));
            assert!(faults.starts_with(fault) && !faults.contains('\n'), "{text}: {faults}");
        }
    }

    #[test]
    fn headers_that_not_all_answers_can_have_are_refused_each_by_its_place() {
        let text = "[response]\nheaders = [\"X-A: 1\", \"Set-Cookie: a=b\", \"nosniff\"]";
        let faults = faults(text);
        assert!(
            faults.contains("response.headers[1] = \"Set-Cookie: a=b\": must be another header"),
            "{faults}"
        );
        assert!(faults.contains("response.headers[2] = \"nosniff\": must be a name, a colon"), "{faults}");
        let twice = self::faults("[response]\nheaders = [\"X-A: 1\", \"x-a: 2\"]");
        assert!(
            twice.contains("response.headers[1] = \"x-a: 2\": must be a header of another name"),
            "{twice}"
        );
    }
}

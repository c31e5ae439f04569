//! The proxies that the environment names: `HTTPS_PROXY` for TLS, `HTTP_PROXY` without, `ALL_PROXY` for
//! both where these are not there, and hosts that are reached without one in `NO_PROXY`; each also in
//! lower case. Of hosts, names hold for what is below them, too, addresses may be networks, and `*` is
//! all, as curl has it. A loopback address is of this machine, whatever is said of proxies.

use std::net::IpAddr;

use ureq::Proxy;
use ureq::http::Uri;

use crate::reference::is_loopback;

/// Which proxy is on the way to a server.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    direct: Vec<Direct>,
}

/// Hosts that are reached without a proxy.
#[derive(Debug, PartialEq, Eq)]
enum Direct {
    All,
    Network(IpAddr, u8),
    /// In lower case, without a dot before it.
    Domain(String),
}

impl Proxies {
    /// What variables name.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Proxies {
        // A server's programs have the header `Proxy` of its clients there (CGI; CVE-2016-5385).
        if variable("REQUEST_METHOD").is_some() {
            return Proxies::default();
        }
        let named = |name: &str| variable(name).or_else(|| variable(&name.to_lowercase()));
        let proxy = |name: &str| Proxy::new(named(name)?.trim()).ok();
        let all = proxy("ALL_PROXY");
        let direct = named("NO_PROXY").unwrap_or_default();
        Proxies {
            http: proxy("HTTP_PROXY").or_else(|| all.clone()),
            https: proxy("HTTPS_PROXY").or(all),
            direct: direct.split(',').filter_map(|host| Direct::parse(host.trim())).collect(),
        }
    }

    pub(super) fn on_the_way_to(&self, url: &Uri) -> Option<Proxy> {
        let host = url.host().unwrap_or_default().to_ascii_lowercase();
        if is_loopback(&host) || self.direct.iter().any(|direct| direct.holds_for(&host)) {
            return None;
        }
        let named = if url.scheme_str() == Some("https") { &self.https } else { &self.http };
        named.clone()
    }
}

impl Direct {
    fn parse(text: &str) -> Option<Direct> {
        if text == "*" {
            return Some(Direct::All);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, bits.parse().ok()),
            None => (text, Some(u8::MAX)),
        };
        if let (Ok(address), Some(bits)) = (address.parse(), bits) {
            return Some(Direct::Network(address, bits));
        }
        let domain = text.strip_prefix('.').unwrap_or(text).to_ascii_lowercase();
        (!domain.is_empty()).then_some(Direct::Domain(domain))
    }

    fn holds_for(&self, host: &str) -> bool {
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        match (self, plain.parse()) {
            (Direct::All, _) => true,
            (Direct::Network(network, bits), Ok(address)) => is_inside(address, *network, *bits),
            (Direct::Domain(domain), Err(_)) => {
                let before = host.strip_suffix(domain.as_str());
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
            _ => false,
        }
    }
}

/// Whether the first `bits` of two addresses are the same; all, if there are not so many.
fn is_inside(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (differing, length) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (u128::from(one.to_bits() ^ other.to_bits()) << 96, 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits(), 128),
        _ => return false,
    };
    differing.leading_zeros() >= u32::from(bits).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_url;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn port(proxies: &Proxies, url: &str) -> Option<u16> {
        proxies.on_the_way_to(&parse_url(url).unwrap()).map(|proxy| proxy.port())
    }

    #[test]
    fn a_proxy_is_chosen_by_the_scheme() {
        let (tls, plain) = ("https://r.example/", "http://r.example/");
        let ports = |variables: &[(&str, &str)]| {
            let proxies = proxies(variables);
            (port(&proxies, tls), port(&proxies, plain))
        };
        let (http, https) = (("HTTP_PROXY", "http://p:1"), ("HTTPS_PROXY", "p.example:2"));
        let all = ("ALL_PROXY", "socks5h://p:3");
        assert_eq!(ports(&[]), (None, None));
        assert_eq!(ports(&[http]), (None, Some(1)));
        assert_eq!(ports(&[https]), (Some(2), None));
        assert_eq!(ports(&[http, https, all]), (Some(2), Some(1)));
        assert_eq!(ports(&[http, all]), (Some(3), Some(1)));
        assert_eq!(ports(&[("https_proxy", "http://p:4"), http]), (Some(4), Some(1)));
        assert_eq!(ports(&[("HTTPS_PROXY", ""), all]), (Some(3), Some(3)));
        assert_eq!(ports(&[("HTTPS_PROXY", "nonsense://p:1")]), (None, None));
        assert_eq!(ports(&[https, ("REQUEST_METHOD", "GET")]), (None, None));
    }

    #[test]
    fn hosts_of_the_list_are_reached_without_a_proxy() {
        let direct = |list: &str, host: &str| {
            let proxies = proxies(&[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", list)]);
            port(&proxies, &format!("https://{host}/")).is_none()
        };
        for (list, host) in [
            ("r.example", "r.example"),
            ("example", "r.example"),
            (".example", "r.example"),
            (".r.example", "r.example"),
            ("R.Example", "r.eXample:5000"),
            ("a, r.example ,b", "r.example"),
            ("*", "r.example"),
            ("10.0.0.0/8", "10.1.2.3:5000"),
            ("10.1.2.3", "10.1.2.3"),
            ("fd00::/8", "[fd12::1]"),
            ("0.0.0.0/0", "192.0.2.1"),
        ] {
            assert!(direct(list, host), "{list}: {host}");
        }
        for (list, host) in [
            ("", "r.example"),
            ("r.example", "other.example"),
            ("r.example", "xr.example"),
            ("x.r.example", "r.example"),
            ("10.0.0.0/8", "11.1.2.3"),
            ("10.0.0.0/8", "r.example"),
            ("10.1.2.3", "10.1.2.4"),
            ("::/0", "10.1.2.3"),
            ("0.0.0.0/0", "[fd12::1]"),
        ] {
            assert!(!direct(list, host), "{list}: {host}");
        }
    }

    #[test]
    fn an_address_of_this_machine_has_no_proxy() {
        let proxies = proxies(&[("ALL_PROXY", "http://p:1")]);
        assert_eq!(port(&proxies, "http://127.0.0.1:5000/"), None);
        assert_eq!(port(&proxies, "https://localhost/"), None);
        assert_eq!(port(&proxies, "http://10.0.0.1:5000/"), Some(1));
    }
}

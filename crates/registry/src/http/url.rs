//! Uniform resource locators of servers, and where they lead. Source: RFC 3986, RFC 9110 (10.2.2).

use ureq::http::Uri;

/// One of a server of HTTP; `None` for anything else, also for one with a password in it.
pub(crate) fn parse(text: &str) -> Option<Uri> {
    let url: Uri = text.parse().ok()?;
    default_port(&url)?;
    let authority = url.authority()?;
    let host = authority.host();
    // What is no port would become that of the scheme.
    let behind = authority.as_str().strip_prefix(host)?;
    let is_server = !host.is_empty() && (behind.is_empty() || authority.port().is_some());
    is_server.then_some(url)
}

/// Where a reference leads that stands in the answer to another URL (RFC 3986, 5.2). Fragments are left
/// out.
pub(super) fn join(base: &Uri, reference: &str) -> Option<Uri> {
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let path = base.path();
    let (written, query) = match reference.find(['?', '#']) {
        Some(at) => reference.split_at(at),
        None => (reference, ""),
    };
    if has_scheme(reference) {
        return parse(reference);
    }
    if reference.starts_with("//") {
        return parse(&format!("{scheme}:{reference}"));
    }
    let whole = match written {
        "" => path.to_owned(),
        absolute if absolute.starts_with('/') => without_dots(absolute),
        relative => {
            let folder = path.rfind('/').map_or("/", |slash| &path[..=slash]);
            without_dots(&format!("{folder}{relative}"))
        }
    };
    parse(&format!("{scheme}://{authority}{whole}{query}"))
}

/// Whether what one server may know can be sent to the other.
pub(super) fn is_same_server(one: &Uri, other: &Uri) -> bool {
    let server = |url: &Uri| {
        let host = url.host().map(str::to_ascii_lowercase);
        (url.scheme().cloned(), host, url.port_u16().or_else(|| default_port(url)))
    };
    server(one) == server(other)
}

fn default_port(url: &Uri) -> Option<u16> {
    match url.scheme_str()? {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) ":"`.
fn has_scheme(reference: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    reference.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(inside)
    })
}

/// A path without `.` and `..` (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            other => {
                kept.push(other);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_server_of_http() {
        for text in
            ["http://a/", "https://a", "HTTPS://a:5000/b?c", "http://[::1]/", "http://[::1]:1/"]
        {
            assert!(parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "a",
            "/a",
            "a:80",
            "ftp://a/",
            "file:///a",
            "http:///a",
            "http://:80/",
            "http://a:/",
            "http://a:x/",
            "http://a:65536/",
            "http://a b/",
            "http://me:secret@a/",
            "http://me@a/",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    /// The examples of RFC 3986, 5.4, that lead to servers of HTTP.
    #[test]
    fn a_redirect_leads_where_its_reference_does() {
        let base = parse("http://a/b/c/d;p?q").unwrap();
        let cases = [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("https://h/i?j", "https://h/i?j"),
        ];
        for (reference, expected) in cases {
            let joined = join(&base, reference).map(|url| url.to_string());
            assert_eq!(joined.as_deref(), Some(expected), "{reference}");
        }
        for reference in ["ftp://x/", "g:h", "//", "//a b/", "http://me:secret@g/"] {
            assert_eq!(join(&base, reference), None, "{reference}");
        }
    }

    #[test]
    fn another_scheme_host_or_port_is_another_server() {
        let is_same =
            |one: &str, other: &str| is_same_server(&parse(one).unwrap(), &parse(other).unwrap());
        assert!(is_same("https://a/b", "https://A:443/c"));
        assert!(is_same("http://a:80/", "http://a/"));
        assert!(!is_same("https://a/", "http://a/"));
        assert!(!is_same("https://a:443/", "http://a:443/"));
        assert!(!is_same("https://a/", "https://a:444/"));
        assert!(!is_same("https://a/", "https://b.a/"));
    }
}

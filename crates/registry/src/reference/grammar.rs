//! The grammar of references. Source: Distribution's "reference" package, the grammar at the head of
//! `reference.go`, and what `normalize.go` makes of names without a host; sizes of the OCI Distribution
//! Specification, "Pulling manifests".

/// What a reference consists of, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ImageReferenceParts<'a> {
    pub(super) name: &'a str,
    pub(super) tag: Option<&'a str>,
    pub(super) digest: Option<&'a str>,
}

impl<'a> ImageReferenceParts<'a> {
    /// Takes a reference apart; what its name and digest mean is looked at later.
    pub(super) fn of(text: &'a str) -> Result<ImageReferenceParts<'a>, String> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash is that of a port.
        let last = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[last..].split_once(':') {
            Some((component, tag)) => (&rest[..last + component.len()], Some(tag)),
            None => (rest, None),
        };
        match tag {
            Some(tag) if !is_tag(tag) => Err(format!(
                "the tag `{tag}` is not up to {TAG_CHARACTERS_MAX} letters, digits, `_`, `.` and `-`"
            )),
            _ => Ok(ImageReferenceParts { name, tag, digest }),
        }
    }
}

/// The registry that a name is of, and the repository in it.
pub(super) fn registry_and_repository(name: &str) -> Result<(String, String), String> {
    let (registry, path) = match name.split_once('/') {
        Some((host, path)) if names_a_registry(host) => (host, path),
        _ => (DOCKER_HUB, name),
    };
    if registry != DOCKER_HUB && !is_registry(registry) {
        return Err(format!("`{registry}` is not a host"));
    }
    let registry = if registry == DOCKER_INDEX { DOCKER_HUB } else { registry };
    if path.is_empty() {
        return Err("it has no name".to_owned());
    }
    if let Some(wrong) = path.split('/').find(|component| !is_component(component)) {
        let why = "is not lower-case letters and digits, with `.`, `_`, `__` or `-` between them";
        return Err(format!("`{wrong}` {why}"));
    }
    let is_official = registry == DOCKER_HUB && !path.contains('/');
    let repository = if is_official { format!("library/{path}") } else { path.to_owned() };
    if repository.len() > REPOSITORY_CHARACTERS_MAX {
        return Err(format!("its name has more than {REPOSITORY_CHARACTERS_MAX} characters"));
    }
    Ok((registry.to_owned(), repository))
}

/// Whether the first component of a name is a registry, and not a folder of Docker Hub.
fn names_a_registry(component: &str) -> bool {
    let is_upper = |byte: u8| byte.is_ascii_uppercase();
    component.contains(['.', ':']) || component == "localhost" || component.bytes().any(is_upper)
}

/// `host [":" port-number]`; where no port is written, the grammar takes a host that is a component of
/// a path as well (`a_b.example`).
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let is_port = |port: &str| port.bytes().all(is_digit) && port.parse::<u16>().is_ok();
    let is_host = host.split('.').all(is_label);
    is_host && port.is_none_or(is_port) || is_component(text)
}

/// `[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]`.
fn is_label(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.bytes().all(inside) && !text.starts_with('-') && !text.ends_with('-')
}

/// `[a-z0-9]+ (separator [a-z0-9]+)*`, where a separator is `.`, `_`, `__` or any number of `-`.
fn is_component(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |separator: &str| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    };
    text.starts_with(is_plain) && text.ends_with(is_plain) && text.split(is_plain).all(is_separator)
}

/// `[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`.
fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_more = |byte: u8| is_word(byte) || byte == b'.' || byte == b'-';
    let begins = text.bytes().next().is_some_and(is_word);
    begins && text.bytes().all(is_more) && text.len() <= TAG_CHARACTERS_MAX
}

/// The registry of names without a host.
pub(super) const DOCKER_HUB: &str = "docker.io";
/// Where it is, and its name in references of old.
pub(super) const DOCKER_INDEX: &str = "index.docker.io";
const TAG_CHARACTERS_MAX: usize = 128;
const REPOSITORY_CHARACTERS_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, String, Option<&str>), String> {
        let parts = ImageReferenceParts::of(text)?;
        let (registry, repository) = registry_and_repository(parts.name)?;
        Ok((registry, repository, parts.tag))
    }

    /// Of the tables in Distribution's `reference_test.go` and `normalize_test.go`, and by the grammar.
    const VALID: [(&str, &str, &str, Option<&str>); 34] = [
        ("redis", "docker.io", "library/redis", None),
        ("redis:7", "docker.io", "library/redis", Some("7")),
        ("library/redis", "docker.io", "library/redis", None),
        ("docker.io/redis", "docker.io", "library/redis", None),
        ("docker.io/a/b", "docker.io", "a/b", None),
        ("index.docker.io/redis", "docker.io", "library/redis", None),
        ("index.docker.io/a/b:c", "docker.io", "a/b", Some("c")),
        ("a/b", "docker.io", "a/b", None),
        ("a/b/c/d", "docker.io", "a/b/c/d", None),
        ("test.com:tag", "docker.io", "library/test.com", Some("tag")),
        ("test.com:5000", "docker.io", "library/test.com", Some("5000")),
        ("test.com/repo:tag", "test.com", "repo", Some("tag")),
        ("test:5000/repo", "test:5000", "repo", None),
        ("test:5000/repo:tag", "test:5000", "repo", Some("tag")),
        ("lowercase:Uppercase", "docker.io", "library/lowercase", Some("Uppercase")),
        // An upper-case letter can only be of a host.
        ("Uppercase/lowercase:tag", "Uppercase", "lowercase", Some("tag")),
        ("sub-dom1.foo.com/bar/baz/quux", "sub-dom1.foo.com", "bar/baz/quux", None),
        ("b.gcr.io/test.example.com/my-app", "b.gcr.io", "test.example.com/my-app", None),
        ("xn--n3h.com/myimage:xn--n3h.com", "xn--n3h.com", "myimage", Some("xn--n3h.com")),
        ("foo_bar.com:8080", "docker.io", "library/foo_bar.com", Some("8080")),
        ("foo_bar.com/x", "foo_bar.com", "x", None),
        ("foo/foo_bar.com:8080", "docker.io", "foo/foo_bar.com", Some("8080")),
        ("localhost", "docker.io", "library/localhost", None),
        ("localhost/a", "localhost", "a", None),
        ("localhost:5000/a", "localhost:5000", "a", None),
        ("127.0.0.1:5000/a:1", "127.0.0.1:5000", "a", Some("1")),
        ("example.org/a.b_c__d-e--f", "example.org", "a.b_c__d-e--f", None),
        ("example.org/a---------b", "example.org", "a---------b", None),
        ("0/0", "docker.io", "0/0", None),
        ("a:_", "docker.io", "library/a", Some("_")),
        ("a:1.2-x_y", "docker.io", "library/a", Some("1.2-x_y")),
        ("A.example/a", "A.example", "a", None),
        ("a-b.example/a", "a-b.example", "a", None),
        ("1.2.3.4/a", "1.2.3.4", "a", None),
    ];

    #[test]
    fn a_reference_of_the_grammar_has_a_registry_a_repository_and_a_tag() {
        for (text, registry, repository, tag) in VALID {
            let expected = (registry.to_owned(), repository.to_owned(), tag);
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    const INVALID: [&str; 51] = [
        "",
        "/",
        "//",
        "a/",
        "/a",
        "a//b",
        "./a",
        "../a",
        "a/..",
        "a/.",
        ":tag",
        ":",
        "a:",
        "a::b",
        "a:b:c",
        "a:.b",
        "a:-b",
        "a:b/",
        "A",
        "Uppercase:tag",
        "test:5000/Uppercase/lowercase:tag",
        "a/B",
        "a b",
        " a",
        "a ",
        "a\n",
        "a\0",
        "ä",
        "a/ä",
        "ä.example/a",
        "a:ä",
        "_a",
        "a_",
        "-a",
        "a-",
        ".a",
        "a.",
        "a..b",
        "a___b",
        "a._b",
        "a.-b",
        "aa/asdf$$^/aa",
        "http://x/a",
        "example.org:/a",
        "example.org:x/a",
        "example.org:65536/a",
        "-x.example/a",
        "x-.example/a",
        "x..example/a",
        "[::1:5000/a",
        "user@example.org/a:1/b",
    ];

    #[test]
    fn what_is_outside_of_the_grammar_is_refused_with_a_reason() {
        for text in INVALID {
            let parts = ImageReferenceParts::of(text);
            let read = parts.and_then(|parts| match parts.digest {
                Some(digest) => Err(format!("`{digest}` is no digest")),
                None => registry_and_repository(parts.name),
            });
            assert!(read.is_err_and(|why| !why.is_empty()), "{text:?}");
        }
    }

    #[test]
    fn names_and_tags_have_their_lengths() {
        let long = |length: usize| "a".repeat(length);
        assert!(read(&format!("x.example/{}", long(255))).is_ok());
        assert!(read(&format!("x.example/{}", long(256))).is_err());
        // `library/` counts.
        assert!(read(&long(247)).is_ok() && read(&long(248)).is_err());
        assert!(read(&format!("a:{}", long(128))).is_ok());
        assert!(read(&format!("a:{}", long(129))).is_err());
    }

    #[test]
    fn a_reason_names_the_part_that_is_wrong() {
        let why = |text: &str| read(text).unwrap_err();
        assert!(why("example.org/A").starts_with("`A` is not lower-case"));
        assert!(why("a:b c").starts_with("the tag `b c`"));
        assert_eq!(why("ex ample.org/a"), "`ex ample.org` is not a host");
        assert_eq!(why("example.org/"), "it has no name");
    }

    #[test]
    fn a_digest_is_what_stands_behind_an_at_sign() {
        let parts = ImageReferenceParts::of("h:1/a:t@sha256:00").unwrap();
        assert_eq!(
            parts,
            ImageReferenceParts { name: "h:1/a", tag: Some("t"), digest: Some("sha256:00") }
        );
    }
}

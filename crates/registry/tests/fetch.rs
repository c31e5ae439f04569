//! Fetching from registries that answer in ways which real ones should not. Images from a real one are
//! fetched by `--test programs images` of `cli`.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod image;
mod server;

use std::fs;

use serde_json::json;
use windtunnel_image::{Image, RegistryImageCache, Sha256Digest};
use windtunnel_registry::{ImageReference, fetch};

use image::{Made, blob, error_of, get, made_for};
use server::{Answer, Server};

#[test]
fn an_image_is_fetched_once_and_by_its_digest_without_the_registry() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::new());
    let server = made.serve();
    let place = get(&server, folder.path(), "a:1").unwrap();
    assert_eq!(Image::open(&place, None, None).unwrap().config().cmd, ["serve"]);
    let asked = server.asked();
    assert_eq!(get(&server, folder.path(), "a:1").unwrap(), place);
    let again = server.asked().split_off(asked.len());
    assert!(again.iter().all(|path| !path.contains("/blobs/")), "only the tag: {again:?}");
    let before = server.asked().len();
    let pinned = format!("a:1@{}", Sha256Digest::of(&made.manifest));
    assert_eq!(get(&server, folder.path(), &pinned).unwrap(), place);
    assert_eq!(server.asked().len(), before, "nothing is asked");
}

#[test]
fn two_platforms_of_one_reference_are_both_in_the_cache_and_each_fetches_its_own_alone() {
    let names = ["arm64", "s390x"];
    let all = names.map(made_for);
    let entry = |(name, made): (&str, &Made)| {
        json!({"digest": Sha256Digest::of(&made.manifest).to_string(), "size": made.manifest.len(),
               "platform": {"os": "linux", "architecture": name}})
    };
    let entries: Vec<_> = names.into_iter().zip(&all).map(entry).collect();
    let index = json!({"schemaVersion": 2, "manifests": entries}).to_string().into_bytes();
    let server = all.iter().fold(Server::new(), |server, made| made.give_to(server));
    let pinned = format!("/v2/a/manifests/{}", Sha256Digest::of(&index));
    let server = server.give("/v2/a/manifests/1", Answer::Bytes(index.clone()));
    let server = server.give(&pinned, Answer::Bytes(index));
    let folder = tempfile::tempdir().unwrap();
    let cache = RegistryImageCache::open(folder.path()).unwrap();
    let reference = ImageReference::parse(&format!("{}/a:1", server.address())).unwrap();
    let fetch_for = |text: &str| {
        let platform = text.parse().unwrap();
        fetch(&reference, Some(&platform), &cache, &mut |_, _| ()).map(|(_, place)| place)
    };
    let first = fetch_for("linux/arm64").unwrap();
    assert!(!server.asked().contains(&blob(&all[1].config)), "of the other, nothing is fetched");
    assert_eq!(fetch_for("linux/s390x").unwrap(), first, "they share a layout");
    for name in names {
        let platform = format!("linux/{name}").parse().unwrap();
        let image = Image::open(&first, None, Some(&platform)).unwrap();
        assert_eq!(image.config().cmd, [name]);
    }
    let error = fetch_for("linux/mips").unwrap_err().to_string();
    let end = "has no image for linux/mips, only for linux/arm64, linux/s390x";
    assert!(error.contains("/a:1") && error.ends_with(end), "{error}");
}

#[test]
fn a_blob_that_is_not_what_its_manifest_names_is_not_kept() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::new());
    let mut other = made.layer.clone();
    other[1023] = 1;
    let server = made.serve().give(&blob(&made.layer), Answer::Bytes(other));
    let text = error_of(&server, folder.path());
    assert!(text.contains("igest"), "{text}");
    let kept =
        folder.path().join("registry/blobs/sha256").join(Sha256Digest::of(&made.layer).hex());
    assert!(!kept.exists());
    // What was right stays, and the next attempt goes on from there.
    let server = made.serve();
    let place = get(&server, folder.path(), "a:1").unwrap();
    assert!(Image::open(&place, None, None).is_ok());
    assert!(!server.asked().contains(&blob(&made.config)), "{:?}", server.asked());
}

#[test]
fn a_blob_without_an_end_is_cut_where_its_manifest_says() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::new());
    let server = made.serve().give(&blob(&made.layer), Answer::Endless);
    let text = error_of(&server, folder.path());
    assert!(text.contains("longer than its manifest says"), "{text}");
    let partial =
        folder.path().join("registry/blobs/sha256").join(Sha256Digest::of(&made.layer).hex());
    let length = fs::metadata(partial.with_extension("partial")).unwrap().len();
    assert!(length <= 1024, "{length}");
}

#[test]
fn a_manifest_without_an_end_is_read_no_further_than_a_document_may_be_long() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new().give("/v2/a/manifests/1", Answer::Endless);
    let text = error_of(&server, folder.path());
    assert!(text.contains("gave a manifest that is longer than 4 MiB"), "{text}");
    let whole = Answer::Bytes(vec![b' '; (4 << 20) + 1]);
    let server = Server::new().give("/v2/a/manifests/1", whole);
    let text = error_of(&server, folder.path());
    assert!(text.contains("gave a manifest that is longer than 4 MiB"), "{text}");
    assert_eq!(RegistryImageCache::list(folder.path()).unwrap(), []);
}

#[test]
fn a_registry_that_refuses_without_an_end_is_not_listened_to() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = Answer::Code(500, vec![b'x'; 5 << 20]);
    let server = Server::new().give("/v2/a/manifests/1", refusal);
    let text = error_of(&server, folder.path());
    assert!(text.contains("code: 500"), "{text}");
}

/// A registry whose images are for those alone that have what its token service gives.
fn with_token_service(answer: Answer) -> Server {
    let made = Made::new();
    let given = |bytes: &[u8]| Answer::For("sesame".to_owned(), bytes.to_vec());
    let server = Server::new();
    let realm = format!("http://{}/token", server.address());
    server
        .give("/v2/", Answer::Challenge(format!("Bearer realm=\"{realm}\",service=\"x\"")))
        .give("/token?scope=repository%3Aa%3Apull&service=x", answer)
        .give("/v2/a/manifests/1", given(&made.manifest))
        .give(&blob(&made.config), given(&made.config))
        .give(&blob(&made.layer), given(&made.layer))
}

#[test]
fn an_image_is_fetched_with_the_token_that_its_service_gives() {
    for token in [r#"{"token":"sesame","expires_in":1}"#, r#"{"access_token":"sesame"}"#] {
        let folder = tempfile::tempdir().unwrap();
        let server = with_token_service(Answer::Bytes(token.as_bytes().to_vec()));
        let place = get(&server, folder.path(), "a:1").unwrap();
        assert_eq!(Image::open(&place, None, None).unwrap().config().cmd, ["serve"]);
        let asked = server.asked().iter().filter(|path| path.starts_with("/token")).count();
        assert_eq!(asked, 1, "{:?}", server.asked());
    }
}

#[test]
fn a_token_goes_to_the_server_alone_that_it_is_for() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::new());
    // Another port is another server; there, only requests without a token get something.
    let without_token = |bytes: &[u8]| Answer::For(String::new(), bytes.to_vec());
    let store = Server::new().give("/layer?signed=1", without_token(&made.layer));
    let away = format!("http://{}/layer?signed=1", store.address());
    let server = with_token_service(Answer::Bytes(br#"{"token":"sesame"}"#.to_vec()))
        .give(&blob(&made.layer), Answer::Elsewhere(away))
        .give(&blob(&made.config), Answer::Elsewhere("../config".to_owned()))
        .give("/v2/a/config", Answer::For("sesame".to_owned(), made.config.clone()));
    let place = get(&server, folder.path(), "a:1").unwrap();
    assert!(Image::open(&place, None, None).is_ok());
    assert_eq!(store.asked(), ["/layer?signed=1"]);
    // The body of a redirect has been read, so that the connection could be used again.
    let plain = server.begun().iter().filter(|first| **first == b'G').count();
    assert_eq!(plain, 1, "{:?}", server.begun());
}

#[test]
fn redirects_in_a_circle_and_to_what_is_no_server_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = "/v2/a/manifests/1";
    let cases = [(path, "too many redirects"), ("file:///etc/passwd", "`file:///etc/passwd`")];
    for (place, expected) in cases {
        let server = Server::new().give(path, Answer::Elsewhere(place.to_owned()));
        let text = error_of(&server, folder.path());
        assert!(text.contains(expected), "{text}");
        assert!(server.asked().len() < 20, "{:?}", server.asked());
    }
}

#[test]
fn a_redirect_to_another_machine_needs_a_certificate_that_is_known() {
    let folder = tempfile::tempdir().unwrap();
    // The kernel takes it for this machine's (ip(7)), and no registry has it.
    let other = Server::with_tls();
    let place = format!("https://0.0.0.0:{}/x", other.address().port());
    let server = Server::new().give("/v2/a/manifests/1", Answer::Elsewhere(place));
    let text = error_of(&server, folder.path());
    assert!(text.contains("certificate"), "{text}");
    assert_eq!(other.asked(), [""; 0]);
}

#[test]
fn no_connection_outlives_a_fetch() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Made::new().serve());
    get(&server, folder.path(), "a:1").unwrap();
    server.wait_until_closed();
    let server = Server::new().give("/v2/a/manifests/1", Answer::Endless);
    assert!(get(&server, folder.path(), "a:1").is_err());
    server.wait_until_closed();
}

#[test]
fn a_token_service_is_read_no_further_than_a_token_may_be_long() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (Answer::Endless, "the registry has a token service that gave more than 1 MiB"),
        (Answer::Code(500, vec![b'x'; 2 << 20]), "gave more than 1 MiB"),
        (Answer::Bytes(b"{}".to_vec()), "the registry has a token service that gave no token"),
        (Answer::Bytes(b"<html>".to_vec()), "gave no token"),
        (Answer::Code(500, b"broken".to_vec()), "code: 500"),
        (Answer::Code(401, b"who?".to_vec()), "podman login"),
    ];
    for (answer, expected) in cases {
        let text = error_of(&with_token_service(answer), folder.path());
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(RegistryImageCache::list(folder.path()).unwrap(), []);
}

#[test]
fn a_registry_of_this_machine_is_asked_by_tls_first_whatever_its_certificate() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::new());
    let server = made.give_to(Server::with_tls());
    let place = get(&server, folder.path(), "a:1").unwrap();
    assert_eq!(Image::open(&place, None, None).unwrap().config().cmd, ["serve"]);
    let handshake = 22;
    assert!(server.begun().iter().all(|first| *first == handshake), "{:?}", server.begun());
    // One that speaks none is asked again without.
    let (folder, server) = (tempfile::tempdir().unwrap(), made.serve());
    get(&server, folder.path(), "a:1").unwrap();
    let begun = server.begun();
    assert_eq!(begun[0], handshake);
    assert!(begun.len() > 1 && begun[1..].iter().all(|first| *first == b'G'), "{begun:?}");
}

#[test]
fn a_manifest_with_another_digest_than_was_asked_for_is_refused() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::new());
    let wanted = Sha256Digest::of(b"another");
    let server = made
        .serve()
        .give(&format!("/v2/a/manifests/{wanted}"), Answer::Bytes(made.manifest.clone()));
    assert!(get(&server, folder.path(), &format!("a@{wanted}")).is_err());
    assert_eq!(RegistryImageCache::list(folder.path()).unwrap(), []);
}

#[test]
fn an_index_without_this_processor_says_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({"mediaType": "x", "digest": format!("sha256:{}", "0".repeat(64)), "size": 2,
                       "platform": {"os": "linux", "architecture": "s390x"}});
    let index = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();
    let server = Server::new().give("/v2/a/manifests/1", Answer::Bytes(index.into_bytes()));
    let text = error_of(&server, folder.path());
    assert!(text.contains("only for linux/s390x"), "{text}");
}

#[test]
fn what_the_registry_refuses_is_said_with_what_can_be_done() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"no such manifest"}]}"#;
    let denied = br#"{"errors":[{"code":"DENIED","message":"go away"}]}"#;
    let cases: [(u16, &[u8], &str); 4] = [
        (404, unknown, "is there such a tag?"),
        (403, denied, "podman login"),
        (401, b"", "podman login"),
        (500, b"broken", "500"),
    ];
    for (code, body, expected) in cases {
        let server = Server::new().give("/v2/a/manifests/1", Answer::Code(code, body.to_vec()));
        let text = error_of(&server, folder.path());
        assert!(text.contains(expected), "{code}: {text}");
    }
}

#[test]
fn texts_of_a_registry_reach_no_terminal_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let body = format!("\x1b[31mred\n{}", "x".repeat(1 << 20));
    let entry = json!({"digest": format!("sha256:{}", "0".repeat(64)),
                       "platform": {"os": "\x1b]0;title\x07", "architecture": "y".repeat(1 << 20)}});
    let index = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();
    for answer in [Answer::Code(500, body.into_bytes()), Answer::Bytes(index.into_bytes())] {
        let server = Server::new().give("/v2/a/manifests/1", answer);
        let text = get(&server, folder.path(), "a:1").unwrap_err().to_string();
        assert!(!text.contains(char::is_control) && text.len() < 1000, "{text}");
    }
}

#[test]
fn a_registry_that_cannot_be_reached_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new();
    let reference = format!("{}/a:1", server.address());
    drop(server);
    let reference = ImageReference::parse(&reference).unwrap();
    let cache = RegistryImageCache::open(folder.path()).unwrap();
    let error = fetch(&reference, None, &cache, &mut |_, _| ()).unwrap_err();
    assert!(error.to_string().contains(&reference.to_string()), "{error}");
    assert!(error.hint().unwrap().contains("skopeo copy"), "{:?}", error.hint());
}

#[test]
fn garbage_is_no_manifest() {
    let folder = tempfile::tempdir().unwrap();
    for garbage in
        [&b"{}"[..], b"", b"\0\xff", b"[[[[", br#"{"config":{"digest":"x"},"layers":[]}"#]
    {
        let server = Server::new().give("/v2/a/manifests/1", Answer::Bytes(garbage.to_vec()));
        assert!(get(&server, folder.path(), "a:1").is_err(), "{garbage:?}");
    }
}

//! The tree is tidy.

#[test]
fn the_tree_is_tidy() {
    let faults = xtask::tidy::faults(&xtask::root()).unwrap();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_dependency_has_an_allowed_licence_and_source_and_needs_no_newer_rust() {
    let faults = xtask::supply::faults(&xtask::root()).unwrap();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

//! The tree is tidy.

#[test]
fn the_tree_is_tidy() {
    let faults = xtask::tidy::faults(&xtask::root()).unwrap();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

//! The generated pages in the tree are current.

#[test]
fn the_generated_pages_are_current() {
    let stale = xtask::docs::stale(&xtask::root()).unwrap();
    assert!(stale.is_empty(), "\n{}", stale.join("\n"));
}

//! Chores of the repository that must not depend on anything outside it.
fn main() {}

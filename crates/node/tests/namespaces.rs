//! What needs namespaces.
fn main() {}

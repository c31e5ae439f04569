//! Room `simlab`.

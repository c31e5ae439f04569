//! Room `control`.

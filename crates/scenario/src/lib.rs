//! Room `scenario`.

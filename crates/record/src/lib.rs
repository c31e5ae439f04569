//! Where records come from, and how they reach files.
//!
//! **Promises:** a source never waits for the disk; no event is lost without being counted; files
//! can be read after a `kill -9`.
//!
//! **Refuses:** to judge or to render what was recorded.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`drain`] | the thread that carries records from their sources to files |

pub mod drain;

//! Records of a run and how they come back.
//!
//! Promises: plain data in, common formats out (JSON, JSON lines, CSV); every field name carries
//! its unit; what had to be left out is counted. Refuses: deciding anything, reading clocks,
//! opening files (writers take any [`std::io::Write`]).
//!
//! | module | what |
//! | --- | --- |
//! | [`lateness`] | actual minus intended departure, in an HDR histogram |
//! | [`sample`] | a row per link direction and 100 ms in which it did something: `links.csv` |
//! | [`rate`], [`series`] | figures of a part of a run: rates, sums, percentiles |
//! | [`event`] | what happened in a run: `events.jsonl` |
//! | [`moment`] | times of a run as people read them |
//! | [`report`] | the whole run: `run.json` |
//! | [`junit`] | the same for CI systems: `junit.xml` |
//!
//! ```
//! use windtunnel_model::Span;
//! use windtunnel_trace::lateness::LatenessHistogram;
//! let mut lateness = LatenessHistogram::new();
//! lateness.record(Span::from_micros(40));
//! assert_eq!(lateness.summary().packets, 1);
//! ```

pub mod event;
pub mod junit;
pub mod lateness;
pub mod moment;
pub mod peaks;
pub mod rate;
pub mod report;
pub mod sample;
pub mod series;

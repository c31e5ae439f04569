//! Records as other programs read them. Each writes as it goes and holds no more than a group of
//! rows.

mod csv;
mod json_lines;
mod offers;
mod packets;
mod parquet;
pub mod pcapng;
#[cfg(test)]
mod tests;
mod timeline;

pub use csv::csv;
pub use json_lines::{json_line, json_lines};
pub use packets::{CaptureLocation, CapturePointSelection, packets};
pub use parquet::parquet;
pub use timeline::timeline;

//! The room `report`: what is shown of runs.
//!
//! **Promises:** one document has all that the page, plots and other programs draw, from run
//! folders of this version and of former ones; time lines get coarser rather than shorter, no byte
//! and no peak is lost by that, and a note says so; what a folder does not have, or what is left
//! out, is said in words.
//!
//! **Refuses:** to judge a run (`run.json` has the verdict), and to draw.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`document`] | the document's types |
//! | [`folder`] | run folders, groups of repetitions |
//! | `fit` | how coarse time lines get for a page that is small enough |
//! | `series` | `links.csv` in bins |
//! | `flows` | sums, round-trip times and requests of recorded evidence |
//! | `compare` | measures of several runs, and differences between groups of them |
//! | [`page`] | the page with a document inside |
//! | [`text`] | events and quantities in words |
//!
//! ```no_run
//! use windtunnel_report::{ReportSizeLimits, RenderedReport, groups};
//!
//! let groups = groups(&["runs/latest".into()])?;
//! let report = RenderedReport::of(&groups, &ReportSizeLimits::default())?;
//! std::fs::write("report.html", report.page.html()).unwrap();
//! # Ok::<(), windtunnel_report::ReportError>(())
//! ```

mod compare;
pub mod document;
mod fit;
mod flows;
pub mod folder;
pub mod page;
mod series;
pub mod text;

pub use document::ReportDocument;
pub use folder::{
    RenderedReport, ReportError, ReportSizeLimits, RunGroup, groups, read_plan, record_files,
};

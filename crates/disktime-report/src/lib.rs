//! Turns measured results into a report.
//!
//! The seam to the program that measures is its file of results, one JSON object a line. What is read
//! becomes cases (`reduce`), in which controllers are compared (`verdict`).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod input;
pub mod reduce;
pub mod verdict;

pub use crate::input::Error;

//! What the disk has done, as it is told to others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The content of the tally file. All numbers count from the start of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// When it was so: CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// In the order of [`Options::regions`](crate::Options::regions).
    pub regions: Vec<Account>,
    /// Everything that begins in no region.
    pub other: Account,
    /// How much later than by the model's time the kernel was told of completions.
    pub late_ns: Late,
}

/// What was done in one part of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Device time, known when the device has spent it: of a cached write long after its
    /// completion.
    pub true_ns: u64,
    /// Requests completed.
    pub reads: u64,
    pub writes: u64,
    pub read_sectors: u64,
    pub write_sectors: u64,
}

/// Of all completions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

impl Tally {
    /// What the file at `path` says, which is always one whole tally.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }

    /// Replaces the file at `path`: a reader sees the old or the new one, never a part.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        fs::write(&new, text)?;
        fs::rename(&new, path)
    }
}

/// The books while they are kept.
#[derive(Clone)]
pub(crate) struct Book {
    pub(crate) regions: Vec<Account>,
    pub(crate) other: Account,
    late: Histogram<u32>,
    late_max: u64,
}

impl Book {
    pub(crate) fn new(regions: usize) -> Self {
        // 1 ns to 100 s, to one percent.
        let late = Histogram::new_with_bounds(1, 100_000_000_000, 2);
        Book {
            regions: vec![Account::default(); regions],
            other: Account::default(),
            late: late.expect("bounds and digits are what a histogram can have"),
            late_max: 0,
        }
    }

    /// The account of a region; the index after the last is that of everything else.
    pub(crate) fn account(&mut self, region: usize) -> &mut Account {
        self.regions.get_mut(region).unwrap_or(&mut self.other)
    }

    pub(crate) fn late(&mut self, ns: u64) {
        self.late.saturating_record(ns.max(1));
        self.late_max = self.late_max.max(ns);
    }

    pub(crate) fn tally(&self, at_ns: u64) -> Tally {
        // The histogram answers with the upper end of a range.
        let late = |part| self.late.value_at_quantile(part).min(self.late_max);
        Tally {
            at_ns,
            regions: self.regions.clone(),
            other: self.other,
            late_ns: Late {
                p50: late(0.5),
                p99: late(0.99),
                max: self.late_max,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tally.json");
        let mut book = Book::new(2);
        book.account(1).true_ns = 1 << 60;
        book.account(2).writes = 3;
        for ns in 1..=100 {
            book.late(ns * 1000);
        }
        let tally = book.tally(77);
        tally.write(&path).unwrap();
        // Once more, over the old one.
        tally.write(&path).unwrap();
        assert_eq!(Tally::read(&path).unwrap(), tally);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(tally.regions[1].true_ns, 1 << 60);
        assert_eq!(tally.other.writes, 3);
        let Late { p50, p99, max } = tally.late_ns;
        assert!((49_500..=50_500).contains(&p50), "{p50}");
        assert!((98_000..=100_000).contains(&p99), "{p99}");
        assert_eq!(max, 100_000);
    }

    #[test]
    fn the_file_has_the_keys_that_readers_know() {
        let text = serde_json::to_string(&Book::new(1).tally(5)).unwrap();
        let account = r#"{"true_ns":0,"reads":0,"writes":0,"read_sectors":0,"write_sectors":0}"#;
        let expected = format!(
            r#"{{"at_ns":5,"regions":[{account}],"other":{account},"late_ns":{{"p50":0,"p99":0,"max":0}}}}"#
        );
        assert_eq!(text, expected);
    }
}

//! Latencies from fio's own reports (`--output-format=json+`), which carry whole histograms: those
//! of several processes can be put together. The simulator counts in the same bins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Report {
    jobs: Vec<JobReport>,
}

#[derive(Deserialize)]
struct JobReport {
    error: i64,
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    lat_ns: Histogram,
}

#[derive(Deserialize)]
struct Histogram {
    max: u64,
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

/// How long I/Os took, from being handed in to being done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    bins: BTreeMap<u64, u64>,
    max_ns: u64,
}

/// Percentiles in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

impl Latencies {
    /// Adds what a report says. What fio printed before the report is skipped.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let start = text.find('{').ok_or("fio left no report")?;
        let report: Report = serde_json::from_str(&text[start..])
            .map_err(|e| format!("cannot read fio's report: {e}"))?;
        for job in report.jobs {
            if job.error != 0 {
                return Err(format!("fio failed with error {}", job.error));
            }
            for histogram in [job.read.lat_ns, job.write.lat_ns] {
                self.max_ns = self.max_ns.max(histogram.max);
                for (ns, count) in histogram.bins {
                    *self.bins.entry(ns).or_default() += count;
                }
            }
        }
        Ok(())
    }

    /// Adds one I/O. Like fio's bins: 64 of them for each power of two.
    pub fn count(&mut self, ns: u64) {
        let coarse = ns.checked_ilog2().unwrap_or(0).saturating_sub(6);
        *self.bins.entry(ns >> coarse << coarse).or_default() += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// How many there are.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.bins.values().sum()
    }

    /// The longest of them.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        for (&ns, &count) in &other.bins {
            *self.bins.entry(ns).or_default() += count;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Which part of the I/Os took no longer than how many nanoseconds, at some sixty points that lie
    /// closer where few are left.
    #[must_use]
    pub fn curve(&self) -> Vec<(u64, f64)> {
        const POINTS: [f64; 8] = [0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99999, 1.0];
        let all = self.all();
        let mut curve = Vec::new();
        let mut bins = self.bins.iter();
        let (mut seen, mut at) = (0, 0);
        for part in (1..50)
            .map(|n| f64::from(n) / 50.0)
            .chain([0.99])
            .chain(POINTS)
        {
            let wanted = (all as f64 * part).ceil() as u64;
            while seen < wanted {
                let Some((&ns, &count)) = bins.next() else {
                    break;
                };
                seen += count;
                at = ns;
            }
            if all > 0 {
                curve.push((at, part));
            }
        }
        curve
    }

    /// The percentiles, if there was any I/O.
    #[must_use]
    pub fn percentiles(&self) -> Option<Percentiles> {
        let all = self.all();
        let at = |part: f64| {
            let mut left = (all as f64 * part).ceil().max(1.0) as u64;
            self.bins.iter().find_map(|(&ns, &count)| {
                if count >= left {
                    return Some(ns);
                }
                left -= count;
                None
            })
        };
        Some(Percentiles {
            p50: at(0.5)?,
            p99: at(0.99)?,
            p999: at(0.999)?,
            max: self.max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(error: i64, bins: &str) -> String {
        format!(
            "fio: terminating on signal 2\n{{\"jobs\": [{{\"error\": {error}, \
             \"read\": {{\"lat_ns\": {{\"max\": 900, \"bins\": {bins}}}}}, \
             \"write\": {{\"lat_ns\": {{\"max\": 0}}}}}}]}}"
        )
    }

    #[test]
    fn histograms_of_several_processes_are_one() {
        let mut all = Latencies::default();
        assert_eq!(all.percentiles(), None);
        all.add(&report(0, r#"{"100": 900, "200": 50}"#)).unwrap();
        all.add(&report(0, r#"{"100": 1, "800": 49}"#)).unwrap();
        let expect = Percentiles {
            p50: 100,
            p99: 800,
            p999: 800,
            max: 900,
        };
        assert_eq!(all.percentiles(), Some(expect));
    }

    #[test]
    fn a_curve_rises_to_the_slowest() {
        let mut all = Latencies::default();
        assert!(all.curve().is_empty());
        for ns in 1..=1000 {
            all.count(ns * 10);
        }
        let curve = all.curve();
        assert!(curve.is_sorted());
        let half = curve.iter().find(|p| p.1 == 0.5).unwrap();
        assert!((4900..=5000).contains(&half.0), "{half:?}");
        let last = curve.last().unwrap();
        assert!(
            last.1 == 1.0 && (9900..=10_000).contains(&last.0),
            "{last:?}"
        );
    }

    #[test]
    fn broken_reports_are_refused() {
        for bad in ["", "fio: no such file", "{", &report(5, "{}")] {
            assert!(Latencies::default().add(bad).is_err(), "{bad:?}");
        }
    }
}

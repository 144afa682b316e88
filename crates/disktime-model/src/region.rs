//! Parts of a disk.

use std::fmt;
use std::str::FromStr;

/// Equal runs of sectors at equal distances: run `i` of `count` is `len` sectors from
/// `from + i * stride` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub from: u64,
    /// At least 1.
    pub len: u64,
    /// At least `len`.
    pub stride: u64,
    /// At least 1.
    pub count: u64,
}

impl Region {
    /// Whether the sector lies in one of them.
    pub fn contains(&self, sector: u64) -> bool {
        let Some(into) = sector.checked_sub(self.from) else {
            return false;
        };
        // A stride of nothing, which FromStr refuses, has no runs.
        into.checked_div(self.stride)
            .is_some_and(|run| run < self.count && into % self.stride < self.len)
    }
}

impl FromStr for Region {
    type Err = String;

    /// `FROM:LEN:STRIDE:COUNT`, or `FROM:LEN` for a single run; sectors of 512 bytes.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = text
            .split(':')
            .map(|part| {
                part.parse()
                    .map_err(|_| format!("{part:?} is no number of sectors"))
            })
            .collect::<Result<_, _>>()?;
        let region = match *numbers {
            [from, len] => Region {
                from,
                len,
                stride: len,
                count: 1,
            },
            [from, len, stride, count] => Region {
                from,
                len,
                stride,
                count,
            },
            _ => return Err("write FROM:LEN:STRIDE:COUNT or FROM:LEN, in sectors".into()),
        };
        if region.len == 0 || region.count == 0 {
            return Err("a region without sectors counts nothing".into());
        }
        if region.stride < region.len {
            return Err("STRIDE is from one run to the next: at least LEN".into());
        }
        Ok(region)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region {
            from,
            len,
            stride,
            count,
        } = self;
        write!(f, "{from}:{len}:{stride}:{count}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_makes_no_region_is_refused() {
        for (text, why) in [
            ("", "no number"),
            ("1", "write FROM"),
            ("1:2:3", "write FROM"),
            ("1:2:3:4:5", "write FROM"),
            ("1:-2", "no number"),
            ("0:0", "without sectors"),
            ("0:8:8:0", "without sectors"),
            ("0:8:7:2", "at least LEN"),
        ] {
            assert!(text.parse::<Region>().unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn the_end_of_the_numbers_is_no_edge() {
        let whole: Region = format!("0:{}", u64::MAX).parse().unwrap();
        assert!(whole.contains(0) && whole.contains(u64::MAX - 1));
        assert!(!whole.contains(u64::MAX));
        let none = Region {
            from: 0,
            len: 1,
            stride: 0,
            count: 1,
        };
        assert!(!none.contains(0));
    }

    proptest! {
        #[test]
        fn a_region_is_the_union_of_its_runs(
            from in 0u64..50,
            len in 1u64..20,
            gap in 0u64..20,
            count in 1u64..8,
        ) {
            let region = Region { from, len, stride: len + gap, count };
            let text = region.to_string();
            prop_assert_eq!(text.parse::<Region>().unwrap(), region);
            for sector in 0..500 {
                let inside = (0..count).any(|run| {
                    let start = from + run * region.stride;
                    (start..start + len).contains(&sector)
                });
                prop_assert_eq!(region.contains(sector), inside, "sector {}", sector);
            }
        }
    }
}

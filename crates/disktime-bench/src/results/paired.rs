//! Pairs of runs: what one controller did, by what another did in the same round.
//!
//! What a machine can do drifts within minutes, alike for both of a pair. The median of the ratios
//! has an interval that needs to know nothing of how they are distributed: each of `n` lies above
//! the true median or below it as a coin falls, so that the median is between the `k`th from below
//! and the `k`th from above unless fewer than `k` of the `n` coins fell on either side.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::median;

/// The chance that the true median is not in the interval is at most this.
const MISSED: f64 = 0.05;

/// What all pairs together say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paired {
    /// Of the ratios.
    pub(super) median: f64,
    /// In which the true one is, with 95 % confidence at least.
    pub(super) interval: (f64, f64),
}

/// The median of ratios and its interval; `None` for fewer than six, which have none.
pub(super) fn paired(ratios: &[f64]) -> Option<Paired> {
    let coins = Binomial::new(0.5, ratios.len() as u64).ok()?;
    let likely = |k: &usize| 2.0 * coins.cdf(*k as u64 - 1) <= MISSED;
    let k = (1..=ratios.len() / 2).take_while(likely).last()?;
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Paired {
        interval: (sorted[k - 1], sorted[sorted.len() - k]),
        median: median(sorted)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks as tables of the sign test have them.
    #[test]
    fn interval_is_between_the_ranks_of_the_sign_test() {
        for (n, ranks) in [
            (5, None),
            (6, Some((1.0, 6.0))),
            (8, Some((1.0, 8.0))),
            (9, Some((2.0, 8.0))),
            (15, Some((4.0, 12.0))),
            (20, Some((6.0, 15.0))),
        ] {
            let ratios: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            assert_eq!(paired(&ratios).map(|p| p.interval), ranks, "{n}");
        }
        let three = [3.0, 1.0, 2.0].repeat(5);
        assert_eq!(paired(&three).map(|p| p.median), Some(2.0));
        assert_eq!(paired(&[]), None);
    }
}

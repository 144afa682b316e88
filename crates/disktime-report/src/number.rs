//! Numbers as they are printed.

use crate::document::NOTHING;
use crate::reduce::Spread;

/// A share, or a dash. Of shares below a percent, as of many groups, more is told.
pub fn percent(value: Option<f64>) -> String {
    value.map_or(NOTHING.into(), |v| match v * 100.0 {
        p if (0.005..0.995).contains(&p) => format!("{p:.2} %"),
        p => format!("{:.1} %", clean(p, 0.05)),
    })
}

/// Zero has no sign.
fn clean(value: f64, half: f64) -> f64 {
    if value.abs() < half { 0.0 } else { value }
}

/// A difference of shares.
pub fn points(value: f64) -> String {
    format!("{:.2}", clean(value, 0.005))
}

/// A difference of shares with its sign.
pub fn signed_points(value: f64) -> String {
    format!("{:+.2}", clean(value, 0.005))
}

/// I/Os a second.
pub fn rate(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 1000.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Nanoseconds in the unit that suits them, with three digits.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        v if v < 999.5 => return format!("{v:.0} ns"),
        v if v < 999.5e3 => (v / 1e3, "µs"),
        v if v < 999.5e6 => (v / 1e6, "ms"),
        v => (v / 1e9, "s"),
    };
    match value {
        v if v < 9.995 => format!("{v:.2} {unit}"),
        v if v < 99.95 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}

/// The median of what was measured, or a dash.
pub fn median(value: Option<Spread>, print: impl Fn(f64) -> String) -> String {
    value.map_or(NOTHING.into(), |s| print(s.median))
}

/// One of these, or several of those.
pub fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_three_digits_across_units() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (15_990_784.0, "16.0 ms"),
            (999_600_000.0, "1.00 s"),
            (13_540_000_000.0, "13.5 s"),
            (120e9, "120 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn zero_has_no_sign() {
        assert_eq!(percent(Some(-0.0001)), "0.0 %");
        assert_eq!(signed_points(-0.004), "+0.00");
        assert_eq!(points(-0.0), "0.00");
        assert_eq!(percent(None), NOTHING);
    }

    #[test]
    fn small_shares_have_more_digits() {
        for (share, text) in [
            (0.0, "0.0 %"),
            (0.00004, "0.0 %"),
            (0.0033, "0.33 %"),
            (0.00994, "0.99 %"),
            (0.00996, "1.0 %"),
            (0.5712, "57.1 %"),
            (1.0, "100.0 %"),
        ] {
            assert_eq!(percent(Some(share)), text);
        }
    }
}

//! Axes, their ticks and labels.

/// An axis: its ends, where its labels are, what they say, what it is.
pub struct Axis<'a> {
    /// From and to.
    pub range: (f64, f64),
    /// Where there are lines and labels.
    pub ticks: Vec<f64>,
    /// A tick's label.
    pub label: &'a dyn Fn(f64) -> String,
    /// What is shown, and its unit.
    pub title: &'a str,
}

/// A place on the sheet.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Frame {
    /// From one range of values to pixels.
    pub fn x(&self, axis: &Axis<'_>, value: f64) -> f64 {
        let (from, to) = axis.range;
        self.left + (value.clamp(from, to) - from) / (to - from) * (self.right - self.left)
    }

    /// The same upwards.
    pub fn y(&self, axis: &Axis<'_>, value: f64) -> f64 {
        let (from, to) = axis.range;
        self.bottom - (value.clamp(from, to) - from) / (to - from) * (self.bottom - self.top)
    }
}

/// Ticks of a share's axis that ends at or above a value.
pub fn share_ticks(most: f64) -> (f64, Vec<f64>) {
    let step = match most {
        m if m > 0.6 => 0.2,
        m if m > 0.3 => 0.1,
        m if m > 0.12 => 0.05,
        m if m > 0.06 => 0.02,
        m if m > 0.03 => 0.01,
        m if m > 0.012 => 0.005,
        _ => 0.002,
    };
    let count = (most.max(step) / step - 1e-9).ceil().min(50.0);
    let ticks = (0..=count as u32).map(|n| f64::from(n) * step);
    (count * step, ticks.collect())
}

/// A share's label on an axis.
pub fn share_label(value: f64) -> String {
    let percent = value * 100.0;
    match (percent - percent.round()).abs() < 1e-6 {
        true => format!("{percent:.0} %"),
        false => format!("{percent:.1} %"),
    }
}

/// The decimal logarithms of latencies between two, and the label of one.
pub fn latency_ticks(least: f64, most: f64) -> ((f64, f64), Vec<f64>) {
    let (from, mut to) = (least.max(1.0).log10().floor(), most.max(1.0).log10().ceil());
    if to <= from {
        to = from + 1.0;
    }
    let ticks = (0..=(to - from) as u32).map(|n| from + f64::from(n));
    ((from, to), ticks.collect())
}

/// Powers of ten of nanoseconds.
pub fn latency_label(exponent: f64) -> String {
    let exponent = exponent.round().clamp(0.0, 18.0) as i32;
    let unit = ["ns", "µs", "ms", "s"][(exponent / 3).min(3) as usize];
    let rest = exponent - (exponent / 3).min(3) * 3;
    format!("{} {unit}", 10_i64.pow(rest as u32))
}

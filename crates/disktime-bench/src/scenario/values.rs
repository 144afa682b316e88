//! Values in scenario files: times, sizes, priorities, ranges.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use crate::plan::Class;

/// A time in nanoseconds, written like `10s`, `250ms`, `40us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Nanos(pub u64);

impl FromStr for Nanos {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no time; write it like 10s, 250ms or 40us");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit: f64 = match &text[digits.len()..] {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            _ => return Err(bad()),
        };
        let number: f64 = digits.parse().map_err(|_| bad())?;
        let ns = number * unit;
        if !(0.0..=86_400e9).contains(&ns) || digits.starts_with('+') {
            return Err(bad());
        }
        Ok(Self(ns.round() as u64))
    }
}

/// A size in bytes, written like fio's: `4k`, `1m`, `512`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no size; write it like 512, 4k, 1m or 2g");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return Err(bad()),
        };
        let number: u64 = digits.parse().map_err(|_| bad())?;
        let bytes = number.checked_mul(1 << shift).ok_or_else(bad)?;
        if bytes == 0 || bytes % 512 != 0 {
            return Err(format!("{text:?} is no multiple of a sector of 512 bytes"));
        }
        Ok(Self(bytes))
    }
}

/// An I/O priority: a class and, but for idle, a level, written like `be/4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPrio {
    pub(super) class: Class,
    pub(super) level: u8,
}

impl FromStr for IoPrio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no I/O priority; write it like be/4, rt/0 or idle");
        if text == "idle" {
            return Ok(Self {
                class: Class::Idle,
                level: 7,
            });
        }
        let (class, level) = text.split_once('/').ok_or_else(bad)?;
        let class = match class {
            "rt" => Class::Rt,
            "be" => Class::Be,
            _ => return Err(bad()),
        };
        let level = level.parse().ok().filter(|l| *l <= 7).ok_or_else(bad)?;
        Ok(Self { class, level })
    }
}

macro_rules! deserialize_from_str {
    ($($t:ty),*) => {$(
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )*};
}
deserialize_from_str!(Nanos, Bytes, IoPrio);

pub(super) fn in_range<T: PartialOrd + std::fmt::Display>(
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "{value} is not within {} to {}",
        range.start(),
        range.end()
    ))
}

/// A number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Within<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Within<MIN, MAX> {
    /// The number, where `MAX` fits.
    pub(super) fn get<T: TryFrom<u64> + Default>(self) -> T {
        T::try_from(self.0).unwrap_or_default()
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        in_range(u64::deserialize(from)?, MIN..=MAX)
            .map(Self)
            .map_err(de::Error::custom)
    }
}

/// As many as one may have of something.
pub(super) type Count = Within<1, 1024>;
/// What a group weighs.
pub(super) type Weight = Within<1, 10_000>;

pub(super) fn weight<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Weight::deserialize(from).map(Within::get)
}

pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Count::deserialize(from).map(Within::get)
}

pub(super) fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    in_range(f64::deserialize(from)?, 0.0..=1.0)
        .map(Some)
        .map_err(de::Error::custom)
}

pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Spanned<String>, D::Error> {
    let name = Spanned::<String>::deserialize(from)?;
    let text = name.get_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if text.is_empty() || text.starts_with('.') || text.len() > 60 || !text.chars().all(plain) {
        return Err(de::Error::custom(format!(
            "{text:?} is no name: letters, digits, - _ + and . make one"
        )));
    }
    Ok(name)
}

pub(super) fn one_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(String::deserialize(from)?
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" "))
}

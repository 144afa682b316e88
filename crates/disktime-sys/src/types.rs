//! The values that the interface files carry.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A value was refused; the text says what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseValueError(pub String);

/// A block device's number, written `MAJ:MIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevNo {
    /// The major number: the driver.
    pub major: u32,
    /// The minor number: which of its devices.
    pub minor: u32,
}

impl DevNo {
    /// The number `major:minor`.
    pub fn new(major: u32, minor: u32) -> Self {
        DevNo { major, minor }
    }
}

impl fmt::Display for DevNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DevNo {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseValueError(format!("'{text}' is not a device number like 8:0"));
        let (major, minor) = text.split_once(':').ok_or_else(refuse)?;
        Ok(DevNo {
            major: decimal(major).ok_or_else(refuse)?,
            minor: decimal(minor).ok_or_else(refuse)?,
        })
    }
}

/// A number of decimal digits alone: no sign, no blanks.
pub(crate) fn decimal<T: FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A weight: siblings of one class receive disk time in proportion to it while backlogged. 1 to 10000, 100 if unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Weight(u32);

impl Weight {
    /// The least weight.
    pub const MIN: u32 = 1;
    /// The greatest weight.
    pub const MAX: u32 = 10_000;

    /// A weight, where `n` lies in 1 to 10000.
    pub fn new(n: u32) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&n).then_some(Weight(n))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Weight(100)
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Weight {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decimal(text).and_then(Weight::new).ok_or_else(|| {
            ParseValueError(format!(
                "'{text}' is not a weight from {} to {}",
                Self::MIN,
                Self::MAX
            ))
        })
    }
}

impl TryFrom<u32> for Weight {
    type Error = ParseValueError;

    fn try_from(n: u32) -> Result<Self, Self::Error> {
        n.to_string().parse()
    }
}

impl From<Weight> for u32 {
    fn from(weight: Weight) -> u32 {
        weight.0
    }
}

/// A class. The order of the variants is the order of service.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Served first.
    Rt,
    /// The usual one.
    #[default]
    Be,
    /// Served when no other class asks.
    Idle,
}

impl Class {
    /// All classes in the order of service.
    pub const ALL: [Class; 3] = [Class::Rt, Class::Be, Class::Idle];

    /// The name in the interface files.
    pub fn name(self) -> &'static str {
        match self {
            Class::Rt => "rt",
            Class::Be => "be",
            Class::Idle => "idle",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Class {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Class::ALL
            .into_iter()
            .find(|class| class.name() == text)
            .ok_or_else(|| ParseValueError(format!("'{text}' is not a class: rt, be or idle")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_outside_the_range_are_refused() {
        for bad in [
            "0",
            "10001",
            "-1",
            "+5",
            "",
            " 5",
            "5 ",
            "1e2",
            "99999999999999999999",
            "0x10",
            "ten",
        ] {
            assert!(bad.parse::<Weight>().is_err(), "{bad:?}");
        }
        for good in ["1", "100", "10000"] {
            assert_eq!(good.parse::<Weight>().expect(good).to_string(), good);
        }
    }

    #[test]
    fn classes_are_ordered_by_service() {
        assert!(Class::Rt < Class::Be && Class::Be < Class::Idle);
        assert!("RT".parse::<Class>().is_err());
    }

    #[test]
    fn device_numbers_are_two_plain_numbers() {
        assert_eq!("8:16".parse(), Ok(DevNo::new(8, 16)));
        for bad in ["8", "8:", ":8", "8:1:2", "8:-1", "a:b", "8: 1"] {
            assert!(bad.parse::<DevNo>().is_err(), "{bad:?}");
        }
    }
}

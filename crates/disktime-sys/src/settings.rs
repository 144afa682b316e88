//! `io.disktime.weight` and `io.disktime.class`: a default and per-device overrides.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{DevNo, ParseValueError};

/// The content of a settings file: `default V`, then `MAJ:MIN V` lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setting<T> {
    /// What holds on a device without an override.
    pub default: T,
    /// The overrides.
    pub devices: BTreeMap<DevNo, T>,
}

impl<T: Copy> Setting<T> {
    /// What holds on `device`.
    pub fn on(&self, device: DevNo) -> T {
        self.devices.get(&device).copied().unwrap_or(self.default)
    }
}

impl<T> FromStr for Setting<T>
where
    T: FromStr<Err = ParseValueError> + Default,
{
    type Err = ParseValueError;

    /// A bare value is taken for the default, as the kernel takes it when written.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut setting = Setting {
            default: T::default(),
            devices: BTreeMap::new(),
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                [] => {}
                [value] | ["default", value] => setting.default = value.parse()?,
                [device, value] => {
                    setting.devices.insert(device.parse()?, value.parse()?);
                }
                _ => {
                    return Err(ParseValueError(format!(
                        "'{line}' is neither 'default VALUE' nor 'MAJ:MIN VALUE'"
                    )));
                }
            }
        }
        Ok(setting)
    }
}

impl<T: fmt::Display> fmt::Display for Setting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "default {}", self.default)?;
        for (device, value) in &self.devices {
            writeln!(f, "{device} {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Weight};
    use proptest::prelude::*;

    fn weight() -> impl Strategy<Value = Weight> {
        (Weight::MIN..=Weight::MAX).prop_map(|n| Weight::new(n).expect("in range"))
    }

    fn device() -> impl Strategy<Value = DevNo> {
        (0u32..4096, 0u32..1 << 20).prop_map(|(major, minor)| DevNo::new(major, minor))
    }

    proptest! {
        #[test]
        fn weight_files_survive_the_round_trip(
            default in weight(),
            devices in prop::collection::btree_map(device(), weight(), 0..8),
        ) {
            let setting = Setting { default, devices };
            prop_assert_eq!(setting.to_string().parse::<Setting<Weight>>(), Ok(setting));
        }

        #[test]
        fn class_files_survive_the_round_trip(
            default in prop::sample::select(&Class::ALL[..]),
            devices in prop::collection::btree_map(device(), prop::sample::select(&Class::ALL[..]), 0..8),
        ) {
            let setting = Setting { default, devices };
            prop_assert_eq!(setting.to_string().parse::<Setting<Class>>(), Ok(setting));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*(\n\\PC*)*") {
            let _ = text.parse::<Setting<Weight>>();
            let _ = text.parse::<Setting<Class>>();
        }
    }

    #[test]
    fn overrides_win_over_the_default() {
        let setting: Setting<Weight> = "default 200\n8:0 50\n".parse().expect("valid");
        assert_eq!(setting.on(DevNo::new(8, 0)).get(), 50);
        assert_eq!(setting.on(DevNo::new(8, 16)).get(), 200);
        assert_eq!(
            "".parse::<Setting<Weight>>().expect("empty").default.get(),
            100
        );
        assert_eq!(
            "300\n"
                .parse::<Setting<Weight>>()
                .expect("bare")
                .default
                .get(),
            300
        );
    }

    #[test]
    fn half_lines_are_refused() {
        for bad in [
            "default",
            "8:0",
            "default 100 7",
            "8:0 x",
            "x 100",
            "default 0",
            "8:0 default",
        ] {
            assert!(bad.parse::<Setting<Weight>>().is_err(), "{bad:?}");
        }
    }
}

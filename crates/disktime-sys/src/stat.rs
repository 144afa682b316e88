//! `io.disktime.stat` of a cgroup, and `iosched/groups` of a device.

use std::collections::BTreeMap;

use crate::types::decimal;
use crate::{Class, DevNo, ParseValueError, Weight};

/// The counters of one group on one device, by the kernel's keys. Keys that this crate does not know are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stat {
    values: BTreeMap<String, u64>,
}

impl Stat {
    /// A counter's value, where the kernel printed it.
    pub fn get(&self, key: &str) -> Option<u64> {
        self.values.get(key).copied()
    }

    /// Sets a counter.
    pub fn set(&mut self, key: &str, value: u64) {
        self.values.insert(key.to_owned(), value);
    }

    /// A counter's value, 0 where there is none.
    pub fn or_zero(&self, key: &str) -> u64 {
        self.get(key).unwrap_or(0)
    }

    /// Disk time received, in microseconds.
    pub fn time_usec(&self) -> u64 {
        self.or_zero("time_usec")
    }

    /// Whether requests wait now, in the scheduler or for one of its tags.
    pub fn is_backlogged(&self) -> bool {
        self.or_zero("queued") > 0 || self.or_zero("waiting") > 0
    }

    /// All counters, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.values
            .iter()
            .map(|(key, value)| (key.as_str(), *value))
    }

    /// Whether the kernel printed nothing.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl FromIterator<(String, u64)> for Stat {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(values: I) -> Self {
        Stat {
            values: values.into_iter().collect(),
        }
    }
}

/// One line of `iosched/groups`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupLine {
    /// The cgroup's path from the cgroup root; `/` is the root.
    pub path: String,
    /// `weight=`: the weight in force on this device.
    pub weight: Option<Weight>,
    /// `class=`: the class in force on this device.
    pub class: Option<Class>,
    /// The counters: every pair whose value is a plain number.
    pub stat: Stat,
    /// Every other pair.
    pub text: BTreeMap<String, String>,
}

fn pair<'a>(word: &'a str, line: &str) -> Result<(&'a str, &'a str), ParseValueError> {
    match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key, value)),
        _ => Err(ParseValueError(format!(
            "'{word}' is not key=value in '{line}'"
        ))),
    }
}

/// Parses `io.disktime.stat`: a line per device, `MAJ:MIN key=number ...`. Values that are not plain numbers are skipped.
pub fn parse_stat(text: &str) -> Result<BTreeMap<DevNo, Stat>, ParseValueError> {
    let mut devices = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(device) = words.next() else { continue };
        let device: DevNo = device.parse()?;
        let stat: &mut Stat = devices.entry(device).or_default();
        for word in words {
            let (key, value) = pair(word, line)?;
            if let Some(number) = decimal(value) {
                stat.set(key, number);
            }
        }
    }
    Ok(devices)
}

/// Parses `iosched/groups`: a line per group, `PATH key=value ...`, blanks and backslashes of the path escaped in octal.
pub fn parse_groups(text: &str) -> Result<Vec<GroupLine>, ParseValueError> {
    text.lines()
        .filter(|line| !line.trim_ascii().is_empty())
        .map(parse_group)
        .collect()
}

fn parse_group(line: &str) -> Result<GroupLine, ParseValueError> {
    let mut words = line.split_ascii_whitespace();
    let path = unescape_path(words.next().unwrap_or_default());
    if !path.starts_with('/') {
        return Err(ParseValueError(format!(
            "'{path}' is not the path of a group in '{line}'"
        )));
    }
    let mut group = GroupLine {
        path,
        ..GroupLine::default()
    };
    for word in words {
        let (key, value) = pair(word, line)?;
        match key {
            "weight" => group.weight = Some(value.parse()?),
            // The core's own numbers of classes are no interface: such a class counts as unsaid.
            "class" if decimal::<u32>(value).is_some() => {}
            "class" => group.class = Some(value.parse()?),
            _ => match decimal(value) {
                Some(number) => group.stat.set(key, number),
                None => {
                    group.text.insert(key.to_owned(), value.to_owned());
                }
            },
        }
    }
    Ok(group)
}

/// Undoes the kernel's octal escapes (`\040` for a blank). Anything else stays as it is.
pub fn unescape_path(escaped: &str) -> String {
    let bytes = escaped.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|digits| {
            bytes[at] == b'\\'
                && matches!(digits[0], b'0'..=b'3')
                && digits.iter().all(|d| matches!(d, b'0'..=b'7'))
        });
        match octal {
            Some(digits) => {
                out.push(
                    digits
                        .iter()
                        .fold(0, |value, digit| value * 8 + (digit - b'0')),
                );
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kernel does to a path in such a file.
    fn escape_path(path: &str) -> String {
        let mut out = String::new();
        for c in path.chars() {
            match c {
                ' ' | '\t' | '\n' | '\\' => out.push_str(&format!("\\{:03o}", u32::from(c))),
                c => out.push(c),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn paths_survive_the_round_trip(path in "/([a-z \\\\\n\t.0-7é-]{0,12}/?){0,4}") {
            prop_assert_eq!(unescape_path(&escape_path(&path)), path);
        }

        #[test]
        fn stat_lines_survive_the_round_trip(
            devices in prop::collection::btree_map(
                (0u32..4096, 0u32..1 << 20),
                prop::collection::btree_map("[a-z][a-z_]{0,12}", any::<u64>(), 0..12),
                0..6,
            ),
        ) {
            let mut text = String::new();
            let mut expect = BTreeMap::new();
            for ((major, minor), values) in devices {
                text.push_str(&format!("{major}:{minor}"));
                for (key, value) in &values {
                    text.push_str(&format!(" {key}={value}"));
                }
                text.push('\n');
                expect.insert(DevNo::new(major, minor), values.into_iter().collect::<Stat>());
            }
            prop_assert_eq!(parse_stat(&text), Ok(expect));
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC*(\n\\PC*)*") {
            let _ = parse_stat(&text);
            let _ = parse_groups(&text);
            let _ = unescape_path(&text);
        }
    }

    #[test]
    fn unknown_keys_are_kept() {
        let devices =
            parse_stat("8:0 time_usec=12 sectors=8 ios=1 brand_new=7 odd=x \n").expect("valid");
        let stat = &devices[&DevNo::new(8, 0)];
        assert_eq!(stat.time_usec(), 12);
        assert_eq!(stat.get("brand_new"), Some(7));
        assert_eq!(stat.get("odd"), None);
        assert_eq!(stat.or_zero("queued"), 0);
    }

    #[test]
    fn broken_stat_lines_are_refused() {
        for bad in ["8:0 time_usec", "8 time_usec=1", "x", "8:0 =1"] {
            assert!(parse_stat(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn group_lines_carry_settings_and_counters() {
        let groups = parse_groups(
            "/ weight=100 class=be time_usec=5\n\n/a\\040b/c weight=40 class=rt time_usec=9 state=busy\n",
        )
        .expect("valid");
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[1].path, "/a b/c");
        assert_eq!(groups[1].weight.map(Weight::get), Some(40));
        assert_eq!(groups[1].class, Some(Class::Rt));
        assert_eq!(groups[1].stat.time_usec(), 9);
        assert_eq!(
            groups[1].text.get("state").map(String::as_str),
            Some("busy")
        );
        assert_eq!(parse_groups("/a class=3").expect("valid")[0].class, None);
        for bad in ["a weight=1", "/a weight=0", "/a class=x", "/a junk"] {
            assert!(parse_groups(bad).is_err(), "{bad:?}");
        }
    }
}

//! Counters of cgroups.

use std::collections::BTreeMap;

/// The pairs of the line of device `dev` (`MAJ:MIN`), added with `prefix` before their keys.
pub(super) fn add_pairs(text: &str, dev: &str, prefix: &str, to: &mut BTreeMap<String, u64>) {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(dev)?.strip_prefix(' '));
    for word in line.unwrap_or_default().split_ascii_whitespace() {
        if let Some((key, value)) = word.split_once('=') {
            if let Ok(value) = value.parse() {
                to.insert(format!("{prefix}{key}"), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_of_the_device_counts() {
        let mut pairs = BTreeMap::new();
        add_pairs(
            "254:01 a=1\n254:0 b=2 c=x d=3\n8:0 e=4\n",
            "254:0",
            "io.",
            &mut pairs,
        );
        let expect = [("io.b".to_owned(), 2), ("io.d".to_owned(), 3)];
        assert_eq!(pairs, BTreeMap::from(expect));
    }
}

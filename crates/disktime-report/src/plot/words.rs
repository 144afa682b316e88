//! How much room words take.

use std::collections::BTreeSet;

/// About how wide a text is. Browsers choose the font, so it is rather too much.
pub fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | '|' | '\'' => 0.34,
        'm' | 'w' | 'M' | 'W' | '%' => 0.95,
        c if c.is_ascii_uppercase() => 0.74,
        c if c > '\u{2e7f}' => 1.1,
        _ => 0.6,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// A text that fits, its middle left out if need be: names often differ at their ends.
pub fn fit(text: &str, room: f64, size: f64) -> String {
    if width(text, size) <= room {
        return text.into();
    }
    let all: Vec<char> = text.chars().collect();
    for kept in (2..all.len()).rev() {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        let short: String = all[..head]
            .iter()
            .chain(&['…'])
            .chain(&all[all.len() - tail..])
            .collect();
        if width(&short, size) <= room {
            return short;
        }
    }
    "…".into()
}

/// Texts that fit and are still told apart: where their beginnings and ends are alike, what is left
/// out is at one side.
pub fn fit_apart(texts: &[&str], room: f64, size: f64) -> Vec<String> {
    let short = |text: &&str| fit(text, room, size);
    let ends = |text: &&str| {
        one_side(text.chars().rev(), room, size)
            .chars()
            .rev()
            .collect()
    };
    let begins = |text: &&str| one_side(text.chars(), room, size);
    let apart = |short: &Vec<String>| short.iter().collect::<BTreeSet<_>>().len() == texts.len();
    let tries: [Vec<String>; 3] = [
        texts.iter().map(short).collect(),
        texts.iter().map(ends).collect(),
        texts.iter().map(begins).collect(),
    ];
    let found = tries.iter().position(apart).unwrap_or(0);
    tries.into_iter().nth(found).unwrap_or_default()
}

/// As much of a text as fits from its first character on.
fn one_side(text: impl Iterator<Item = char>, room: f64, size: f64) -> String {
    let mut text: String = text.collect();
    if width(&text, size) <= room {
        return text;
    }
    while width(&text, size) > room - size && text.pop().is_some() {}
    text + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_names_fit_and_are_told_apart() {
        for (names, expected) in [
            (["a", "b"], ["a", "b"]),
            (
                ["user-1001.slice", "user-1002.slice"],
                ["…01.slice", "…02.slice"],
            ),
            (
                ["tail-1-in-the-beginning", "tail-2-in-the-beginning"],
                ["tail-1-i…", "tail-2-i…"],
            ),
            (
                ["same-at-all-places", "same-at-all-places"],
                ["same…ces", "same…ces"],
            ),
        ] {
            let room = width("123456789", 10.0);
            let short = fit_apart(&names, room, 10.0);
            assert!(
                short.iter().all(|s| width(s, 10.0) <= room + 1e-9),
                "{short:?}"
            );
            assert_eq!(short, expected);
        }
    }
}

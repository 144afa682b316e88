//! How much room words take.

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

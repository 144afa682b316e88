//! The report in GitHub's Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::document::{Block, Cell, Document, Table, Tone};

/// Text whose characters stand for themselves, on one line.
///
/// GitHub reads HTML within Markdown, too.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' | '\r' => escaped.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// The anchor that GitHub gives a heading.
fn slug(title: &str, seen: &mut BTreeMap<String, usize>) -> String {
    let slug: String = title
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect();
    let times = seen.entry(slug.clone()).or_default();
    *times += 1;
    match *times {
        1 => slug,
        n => format!("{slug}-{}", n - 1),
    }
}

fn cell(cell: &Cell) -> String {
    let text = escape(&cell.text);
    match cell.tone {
        Tone::Best => format!("**\\* {text}**"),
        Tone::Bad => format!("**{text}**"),
        Tone::Plain | Tone::Good => text,
    }
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

fn table(table: &Table) -> String {
    let mut text = line(table.columns.iter().map(|c| escape(&c.title)));
    let rules = table
        .columns
        .iter()
        .map(|c| if c.number { "---:" } else { "---" });
    text.push_str(&line(rules.map(Into::into)));
    for row in &table.rows {
        text.push_str(&line(row.iter().map(cell)));
    }
    text
}

fn block(block: &Block<'_>) -> Option<String> {
    Some(match block {
        Block::Text(text) | Block::Note(text) => format!("{}\n", escape(text)),
        Block::Facts(facts) => {
            let lines = facts
                .iter()
                .map(|(k, v)| format!("- {}: {}\n", escape(k), escape(v)));
            lines.collect()
        }
        Block::List(items) => items
            .iter()
            .map(|i| format!("- {}\n", escape(&i.text)))
            .collect(),
        Block::Table(rows) => table(rows),
        Block::Figure(_) => return None,
    })
}

/// The whole report.
#[must_use]
pub fn render(document: &Document<'_>) -> String {
    let mut text = format!("# {}\n\n", escape(&document.title));
    let mut seen = BTreeMap::new();
    slug(&document.title, &mut seen);
    for section in &document.sections {
        let anchor = slug(&section.title, &mut seen);
        if section.level == 2 {
            let _ = writeln!(text, "- [{}](#{anchor})", escape(&section.title));
        }
    }
    for section in &document.sections {
        let hashes = "#".repeat(section.level.into());
        let _ = write!(text, "\n{hashes} {}\n", escape(&section.title));
        for piece in section.blocks.iter().filter_map(block) {
            let _ = write!(text, "\n{piece}");
        }
    }
    text
}

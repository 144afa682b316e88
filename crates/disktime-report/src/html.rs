//! The report as one HTML file that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::{Block, Cell, Document, Figure, Section, Table, Tone};
use crate::plot;

const STYLE: &str = include_str!("style.css");

/// A name for links within the page: unique, whatever titles hold.
fn anchor(index: usize, title: &str) -> String {
    let mut words = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            words.push(c.to_ascii_lowercase());
        } else if !words.ends_with('-') {
            words.push('-');
        }
    }
    let words: String = words.trim_matches('-').chars().take(60).collect();
    format!("s{index}-{words}")
}

fn cell(cell: &Cell, number: bool) -> Markup {
    let class = match (cell.tone, number) {
        (Tone::Best, _) => "n best",
        (Tone::Good, _) => "good",
        (Tone::Bad, _) => "bad",
        (Tone::Plain, true) => "n",
        // Short ones are not broken, at a hyphen for instance.
        (Tone::Plain, false) if cell.text.chars().count() <= 22 => "w",
        (Tone::Plain, false) => "",
    };
    html! {
        td class=[(!class.is_empty()).then_some(class)] {
            @if cell.tone == Tone::Best { span.mark { "*" } " " }
            (cell.text)
        }
    }
}

fn table(table: &Table) -> Markup {
    let wide = table.columns.len() > 10;
    // Where most rows begin something new, rules between them would tell nothing.
    let blocks = table.begins.len() * 2 <= table.rows.len();
    html! {
        div.scroll { table class=[wide.then_some("wide")] {
            thead { tr {
                @for column in &table.columns {
                    th.n[column.number] scope="col" { (column.title) }
                }
            } }
            tbody {
                @for (index, row) in table.rows.iter().enumerate() {
                    tr.begin[blocks && index > 0 && table.begins.contains(&index)] {
                        @for (column, field) in table.columns.iter().zip(row) {
                            (cell(field, column.number))
                        }
                    }
                }
            }
        } }
    }
}

fn figure(figure: Figure<'_>) -> Result<Markup, plot::Error> {
    let mut drawn = html! {};
    for plot in plot::draw(figure)? {
        drawn = html! {
            (drawn)
            figure {
                figcaption { b { (plot.title) } " " (plot.caption) }
                (PreEscaped(plot.svg))
            }
        };
    }
    Ok(drawn)
}

fn block(block: &Block<'_>) -> Result<Markup, plot::Error> {
    Ok(match block {
        Block::Text(text) => html! { p { (text) } },
        Block::Note(text) => html! { p.note { (text) } },
        Block::Facts(facts) => html! {
            dl { @for (name, value) in facts { dt { (name) } dd { (value) } } }
        },
        Block::List(items) => html! {
            ul { @for item in items { li.bad[item.tone == Tone::Bad] { (item.text) } } }
        },
        Block::Table(rows) => table(rows),
        Block::Figure(what) => figure(*what)?,
    })
}

fn contents(sections: &[Section<'_>]) -> Markup {
    let indexed: Vec<_> = sections.iter().enumerate().collect();
    let mut chapters: Vec<&[(usize, &Section<'_>)]> = Vec::new();
    for chapter in indexed.chunk_by(|_, (_, next)| next.level > 2) {
        chapters.push(chapter);
    }
    let link = |(index, section): &(usize, &Section<'_>), above: &str| {
        let short = section.title.strip_prefix(above).unwrap_or(&section.title);
        html! { a href={ "#" (anchor(*index, &section.title)) } { (short.trim_start_matches(": ")) } }
    };
    html! {
        nav aria-label="Contents" { h2 { "Contents" } ol {
            @for chapter in chapters {
                li {
                    (link(&chapter[0], ""))
                    @if chapter.len() > 1 {
                        ul { @for entry in &chapter[1..] {
                            li { (link(entry, &chapter[0].1.title)) }
                        } }
                    }
                }
            }
        } }
    }
}

/// The whole report.
///
/// # Errors
/// If a plot cannot be drawn.
pub fn render(document: &Document<'_>) -> Result<String, plot::Error> {
    let mut body = html! {};
    for (index, section) in document.sections.iter().enumerate() {
        let id = anchor(index, &section.title);
        let mut blocks = html! {};
        for piece in &section.blocks {
            blocks = html! { (blocks) (block(piece)?) };
        }
        body = html! {
            (body)
            section {
                @if section.level == 2 { h2 id=(id) { (section.title) } }
                @else { h3 id=(id) { (section.title) } }
                (blocks)
            }
        };
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (document.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (document.title) } }
                (contents(&document.sections))
                main { (body) }
            }
        }
    };
    Ok(page.into_string() + "\n")
}

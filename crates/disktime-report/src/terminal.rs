//! The report as text in lines that fit.

use std::fmt::Write;

use anstyle::{AnsiColor, Effects, Style};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::peaker::PriorityMax;
use tabled::settings::style::HorizontalLine;
use tabled::settings::{Alignment, Style as Borders, Theme, Width};

use crate::document::{Block, Cell, Document, Table, Tone};

/// Where the text is going.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Columns; nothing where lines may be of any length.
    pub width: Option<usize>,
    /// Whether it shows colours.
    pub colour: bool,
}

/// A word that no line holds, in pieces that lines hold.
fn pieces(word: &str, room: usize) -> Vec<String> {
    let all: Vec<char> = word.chars().collect();
    all.chunks(room)
        .map(|piece| piece.iter().collect())
        .collect()
}

impl Screen {
    fn paint(self, text: &str, style: Style) -> String {
        match self.colour && !text.is_empty() {
            true => format!("{style}{text}{style:#}"),
            false => text.into(),
        }
    }

    fn toned(self, text: &str, tone: Tone) -> String {
        let style = match tone {
            Tone::Plain => return text.into(),
            Tone::Best => Style::new().effects(Effects::BOLD),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
        };
        self.paint(text, style)
    }

    fn cell(self, cell: &Cell) -> String {
        match cell.tone {
            Tone::Best => self.toned(&format!("* {}", cell.text), cell.tone),
            tone => self.toned(&cell.text, tone),
        }
    }

    /// Breaks a paragraph into lines; those after the first are indented by as much as `first` is
    /// long, unless that would leave no room beside it.
    fn wrap(self, first: &str, text: &str) -> String {
        let width = self.width.unwrap_or(100).max(40);
        let length = first.chars().count();
        let (mut lines, indent, text) = match length <= width / 3 {
            true => (first.to_owned(), length, text.to_owned()),
            false => (String::new(), 4, format!("{first}{text}")),
        };
        let mut column = lines.chars().count();
        let mut begins = true;
        let room = width - indent;
        for word in text.split_whitespace().flat_map(|w| pieces(w, room)) {
            let length = word.chars().count();
            if !begins && column + 1 + length > width {
                let _ = write!(lines, "\n{:indent$}", "");
                column = indent;
            } else if !begins {
                lines.push(' ');
                column += 1;
            }
            begins = false;
            lines.push_str(&word);
            column += length;
        }
        lines
    }

    fn draw(self, table: &Table) -> tabled::Table {
        let mut builder = Builder::default();
        let style = Style::new().effects(Effects::BOLD);
        builder.push_record(table.columns.iter().map(|c| self.paint(&c.title, style)));
        for row in &table.rows {
            builder.push_record(row.iter().map(|c| self.cell(c)));
        }
        let mut drawn = builder.build();
        let mut theme = Theme::from_style(Borders::psql());
        // A line above each block, unless blocks are hardly more than rows.
        if table.begins.len() * 2 <= table.rows.len() {
            for row in table.begins.iter().filter(|r| **r > 0) {
                theme.insert_horizontal_line(row + 1, HorizontalLine::new('-').intersection('+'));
            }
        }
        drawn.with(theme);
        for (n, _) in table.columns.iter().enumerate().filter(|(_, c)| c.number) {
            drawn.modify(Columns::new(n..=n), Alignment::right());
        }
        // A long name is rather broken than that numbers beside it go.
        if let Some(width) = self.width {
            let name = Width::wrap((width * 2 / 5).max(20)).keep_words(true);
            drawn.modify(Columns::first(), name);
        }
        drawn
    }

    fn fits(self, table: &Table) -> bool {
        self.width
            .is_none_or(|w| self.draw(table).total_width() <= w)
    }

    /// A matrix in pieces that fit, each with the columns that name the row.
    fn pieces(self, table: &Table, named: usize) -> Vec<Table> {
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let mut piece: Vec<usize> = (0..named).collect();
        for column in named..table.columns.len() {
            let wider = [piece.as_slice(), &[column]].concat();
            let full = piece.len() > named && !self.fits(&table.select(&wider));
            piece = match full {
                true => {
                    pieces.push(piece);
                    (0..named).chain([column]).collect()
                }
                false => wider,
            };
        }
        pieces.push(piece);
        pieces.iter().map(|p| table.select(p)).collect()
    }

    /// A table without the least important of its columns until it fits, and what went.
    fn narrowed(self, table: &Table) -> (Table, Vec<String>) {
        let mut table = table.clone();
        let mut gone = Vec::new();
        while !self.fits(&table) {
            let ranks = table.columns.iter().enumerate().map(|(n, c)| (c.rank, n));
            let Some((rank, column)) = ranks.max_by_key(|(rank, n)| (*rank, *n)) else {
                break;
            };
            if rank == 0 {
                break;
            }
            gone.push(table.columns[column].title.clone());
            let keep: Vec<_> = (0..table.columns.len()).filter(|n| *n != column).collect();
            table = table.select(&keep);
        }
        (table, gone)
    }

    fn table(self, table: &Table) -> String {
        let (pieces, gone) = match table.matrix {
            Some(named) => (self.pieces(table, named), Vec::new()),
            None => {
                let (table, gone) = self.narrowed(table);
                (vec![table], gone)
            }
        };
        let mut text = String::new();
        for piece in &pieces {
            let mut drawn = self.draw(piece);
            if let Some(width) = self.width {
                drawn.with(
                    Width::wrap(width)
                        .priority(PriorityMax::left())
                        .keep_words(true),
                );
            }
            let _ = writeln!(text, "{drawn}\n");
        }
        if !gone.is_empty() {
            let what = format!("No room for: {}.", gone.join(", "));
            let _ = writeln!(text, "{}\n", self.wrap("", &what));
        }
        text
    }

    fn block(self, block: &Block<'_>) -> String {
        match block {
            Block::Text(text) => format!("{}\n\n", self.wrap("", text)),
            Block::Note(text) => {
                let wrapped = self.wrap("", text);
                let dim = Style::new().effects(Effects::DIMMED);
                let lines = wrapped.lines().map(|l| self.paint(l, dim));
                format!("{}\n\n", lines.collect::<Vec<_>>().join("\n"))
            }
            Block::Facts(facts) => {
                let lines = facts.iter().map(|(k, v)| self.wrap(&format!("{k}: "), v));
                format!("{}\n\n", lines.collect::<Vec<_>>().join("\n"))
            }
            Block::List(items) => {
                let lines = items.iter().map(|item| {
                    let wrapped = self.wrap("- ", &item.text);
                    let lines = wrapped.lines().map(|l| self.toned(l, item.tone));
                    lines.collect::<Vec<_>>().join("\n")
                });
                format!("{}\n\n", lines.collect::<Vec<_>>().join("\n"))
            }
            Block::Table(table) => self.table(table),
            Block::Figure(_) => String::new(),
        }
    }
}

/// The whole report.
#[must_use]
pub fn render(document: &Document<'_>, screen: Screen) -> String {
    let bold = Style::new().effects(Effects::BOLD);
    let rule = |title: &str, with: &str| with.repeat(title.chars().count());
    let mut text = format!(
        "{}\n{}\n\n",
        screen.paint(&document.title, bold),
        rule(&document.title, "=")
    );
    for section in &document.sections {
        let with = if section.level == 2 { "=" } else { "-" };
        let title = screen.paint(&section.title, bold);
        let _ = writeln!(text, "{title}\n{}\n", rule(&section.title, with));
        for block in &section.blocks {
            text.push_str(&screen.block(block));
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

//! What a report consists of, before it takes a shape.
//!
//! Every shape is made from this, so that none of them tells what another leaves out; only plots
//! need a medium that can show them.

use crate::reduce::Case;

/// How a cell or a line is meant. Shapes must not say it by colour alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Tone {
    #[default]
    Plain,
    Best,
    Good,
    Bad,
}

/// A field of a table.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

impl Cell {
    /// With a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// A column's heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// What it holds.
    pub title: String,
    /// Whether it holds numbers.
    pub number: bool,
    /// The higher, the sooner it is left out where there is no room; 0 for never.
    pub rank: u8,
}

/// Rows and columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Headings.
    pub columns: Vec<Column>,
    /// Each as long as the headings.
    pub rows: Vec<Vec<Cell>>,
    /// Rows that something new begins with.
    pub begins: Vec<usize>,
    /// How many columns name the row, where all others are alike: such a table is cut into several
    /// where there is no room, and loses no column.
    pub matrix: Option<usize>,
}

impl Table {
    /// Adds a heading.
    pub fn column(&mut self, title: &str, number: bool, rank: u8) {
        self.columns.push(Column {
            title: title.into(),
            number,
            rank,
        });
    }

    /// Leaves out columns in which nothing is known.
    #[must_use]
    pub fn without_empty(self) -> Self {
        let known = |n: usize| {
            self.rows
                .iter()
                .any(|r| !matches!(r[n].text.as_str(), "" | NOTHING))
        };
        let keep: Vec<usize> = (0..self.columns.len()).filter(|n| known(*n)).collect();
        self.select(&keep)
    }

    /// Some columns only.
    #[must_use]
    pub fn select(&self, keep: &[usize]) -> Self {
        Self {
            columns: keep.iter().map(|n| self.columns[*n].clone()).collect(),
            rows: self
                .rows
                .iter()
                .map(|row| keep.iter().map(|n| row[*n].clone()).collect())
                .collect(),
            ..self.clone()
        }
    }
}

/// What stands for an unknown value.
pub const NOTHING: &str = "–";

/// A line of a list.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Item {
    pub text: String,
    pub tone: Tone,
}

/// Something to draw.
#[derive(Debug, Clone, Copy)]
pub enum Figure<'a> {
    /// Worst share errors of all cases.
    Overview(&'a [Case]),
    /// Shares by group and controller.
    Shares(&'a Case),
    /// Latencies by group and controller.
    Latency(&'a Case),
    /// Shares over time.
    Series(&'a Case),
}

/// A piece of a section.
#[derive(Debug, Clone)]
pub enum Block<'a> {
    /// A paragraph.
    Text(String),
    /// A paragraph that explains and may be skipped.
    Note(String),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A list.
    List(Vec<Item>),
    /// A table.
    Table(Table),
    /// A plot.
    Figure(Figure<'a>),
}

/// A heading and what is below it.
#[derive(Debug, Clone)]
pub struct Section<'a> {
    /// 2, or 3 for what belongs to the section before.
    pub level: u8,
    /// Its heading.
    pub title: String,
    /// What it holds.
    pub blocks: Vec<Block<'a>>,
}

impl<'a> Section<'a> {
    /// An empty one.
    pub fn new(level: u8, title: impl Into<String>) -> Self {
        Self {
            level,
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    /// Adds a paragraph, unless there is nothing to say.
    pub fn text(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(Block::Text(text));
        }
    }

    /// Adds an explanation.
    pub fn note(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Note(text.into()));
    }

    /// Adds names and values, if any.
    pub fn facts(&mut self, facts: Vec<(String, String)>) {
        if !facts.is_empty() {
            self.blocks.push(Block::Facts(facts));
        }
    }

    /// Adds a list, if it has lines.
    pub fn list(&mut self, items: Vec<Item>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Adds a table, if it has rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a plot.
    pub fn figure(&mut self, figure: Figure<'a>) {
        self.blocks.push(Block::Figure(figure));
    }
}

/// A report.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Document<'a> {
    pub title: String,
    pub sections: Vec<Section<'a>>,
}

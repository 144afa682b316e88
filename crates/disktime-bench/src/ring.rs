//! Reads pages of the kernel's trace ring buffer (`trace_pipe_raw`), so that the guest need not
//! spend time on having its own trace printed while it is measured, and stamps keep their
//! nanoseconds.
//!
//! A page is a stamp (u64), the number of bytes used (u64, flags in the upper bits), and events. An
//! event begins with a word of 5 bits of type and 27 bits of time since the event before; the type
//! says how long the data is, or that this is no event at all. Documentation/trace/ring-buffer-map.rst
//! and `/sys/kernel/tracing/events/header_{page,event}` describe it.

use thiserror::Error;

use crate::trace::{Kind, Record};

/// Size of a page header.
const HEADER: usize = 16;
/// Bits of the number of bytes used.
const USED: u64 = (1 << 20) - 1;
/// Set in that word where events before this page were lost.
const MISSED: u64 = 1 << 31;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// A time stamp event carries this many bits; the rest are the page's.
const STAMP_BITS: u32 = 59;

/// The kernel writes something else than expected.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("cannot read the kernel's trace: {0}")]
pub struct Broken(String);

/// Where an event keeps what a [`Record`] needs, from its `format` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// What the event stands for.
    pub kind: Kind,
    id: u16,
    sector: usize,
    sectors: usize,
    op: usize,
}

impl Layout {
    /// Reads a `format` file.
    pub fn parse(kind: Kind, format: &str) -> Result<Self, Broken> {
        let broken = |what: &str| Broken(format!("the format of {kind:?} has no usable {what}"));
        let id = format
            .lines()
            .find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())
            .ok_or_else(|| broken("ID"))?;
        let field = |name: &str, size: Option<usize>| {
            format
                .lines()
                .find_map(|line| {
                    let mut parts = line
                        .trim()
                        .strip_prefix("field:")?
                        .split(';')
                        .map(str::trim);
                    let declared = parts.next()?.split('[').next()?;
                    if declared.rsplit([' ', '*']).next()? != name {
                        return None;
                    }
                    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
                    let bytes: usize = parts.next()?.strip_prefix("size:")?.parse().ok()?;
                    size.is_none_or(|s| s == bytes).then_some(offset)
                })
                .ok_or_else(|| broken(name))
        };
        Ok(Self {
            kind,
            id,
            sector: field("sector", Some(8))?,
            sectors: field("nr_sector", Some(4))?,
            op: field("rwbs", None)?,
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Appends the records of one page; says whether events before it were lost.
pub fn read_page(
    page: &[u8],
    layouts: &[Layout],
    records: &mut Vec<Record>,
) -> Result<bool, Broken> {
    let short = || Broken("a page ends early".into());
    let stamp = u64_at(page, 0).ok_or_else(short)?;
    let word = u64_at(page, 8).ok_or_else(short)?;
    let used = usize::try_from(word & USED).map_err(|_| short())?;
    let data = page.get(HEADER..HEADER + used).ok_or_else(short)?;
    let mut now = stamp;
    let mut at = 0;
    while at < data.len() {
        let head = u32_at(data, at).ok_or_else(short)?;
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        at += 4;
        let length = match kind {
            PADDING if delta == 0 => break,
            PADDING => {
                // Discarded: the length counts its own word, too.
                now += delta;
                at += u32_at(data, at).ok_or_else(short)? as usize;
                continue;
            }
            TIME_EXTEND => {
                now += delta + (u64::from(u32_at(data, at).ok_or_else(short)?) << 27);
                at += 4;
                continue;
            }
            TIME_STAMP => {
                let low = delta + (u64::from(u32_at(data, at).ok_or_else(short)?) << 27);
                now = (now >> STAMP_BITS << STAMP_BITS) | low;
                at += 4;
                continue;
            }
            0 => {
                let length = u32_at(data, at).ok_or_else(short)? as usize;
                at += 4;
                length.checked_sub(4).ok_or_else(short)?
            }
            words => words as usize * 4,
        };
        now += delta;
        let event = data.get(at..at + length).ok_or_else(short)?;
        at += length.next_multiple_of(4);
        let id = u16_at(event, 0).ok_or_else(short)?;
        if let Some(layout) = layouts.iter().find(|l| l.id == id) {
            records.push(Record {
                at_ns: now,
                sector: u64_at(event, layout.sector).ok_or_else(short)?,
                sectors: u32_at(event, layout.sectors).ok_or_else(short)?,
                kind: layout.kind,
                op: *event.get(layout.op).ok_or_else(short)?,
            });
        }
    }
    Ok(word & MISSED != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "\
name: block_rq_issue
ID: 1234
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;
\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;

print fmt: \"x\"
";

    fn layout() -> Layout {
        Layout::parse(Kind::Issue, FORMAT).unwrap()
    }

    fn event(id: u16, sector: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..2].copy_from_slice(&id.to_ne_bytes());
        bytes[16..24].copy_from_slice(&sector.to_ne_bytes());
        bytes[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        bytes[34] = b'R';
        bytes
    }

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_ne_bytes()
    }

    fn page(stamp: u64, flags: u64, parts: &[&[u8]]) -> Vec<u8> {
        let data: Vec<u8> = parts.concat();
        let mut page = stamp.to_ne_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_ne_bytes());
        page.extend(data);
        page.resize(4096, 0xaa);
        page
    }

    #[test]
    fn formats_are_read() {
        let expect = Layout {
            kind: Kind::Issue,
            id: 1234,
            sector: 16,
            sectors: 24,
            op: 34,
        };
        assert_eq!(layout(), expect);
        for (from, to) in [
            ("ID:", "No:"),
            ("sector;", "secret;"),
            ("rwbs", "what"),
            ("size:8", "size:4"),
        ] {
            assert!(
                Layout::parse(Kind::Issue, &FORMAT.replace(from, to)).is_err(),
                "{from}"
            );
        }
    }

    #[test]
    fn all_kinds_of_events_are_walked() {
        let long = [&68_u32.to_ne_bytes()[..], &event(1234, 3)].concat();
        let page = page(
            1000,
            0,
            &[
                &head(16, 5),
                &event(1234, 1),
                &head(TIME_EXTEND, 1),
                &2_u32.to_ne_bytes(),
                &head(16, 7),
                &event(99, 2),
                &head(PADDING, 3),
                &12_u32.to_ne_bytes(),
                &[0; 8],
                &head(0, 10),
                &long,
                &head(TIME_STAMP, 77),
                &0_u32.to_ne_bytes(),
                &head(16, 1),
                &event(1234, 4),
                &head(PADDING, 0),
                &[0; 32],
            ],
        );
        let mut records = Vec::new();
        assert_eq!(read_page(&page, &[layout()], &mut records), Ok(false));
        let seen: Vec<_> = records
            .iter()
            .map(|r| (r.at_ns, r.sector, r.sectors, r.op))
            .collect();
        let after = 1005 + 1 + (2 << 27) + 7 + 3 + 10;
        assert_eq!(
            seen,
            [(1005, 1, 8, b'R'), (after, 3, 8, b'R'), (78, 4, 8, b'R')]
        );
    }

    #[test]
    fn lost_events_are_noticed() {
        let page = page(1, MISSED, &[&head(16, 5), &event(1234, 1)]);
        let mut records = Vec::new();
        assert_eq!(read_page(&page, &[layout()], &mut records), Ok(true));
        assert_eq!(records.len(), 1);
    }

    #[test]
    fn broken_pages_are_refused() {
        let cut = page(1, 0, &[&head(28, 5), &[0; 8]]);
        let tiny = page(1, 0, &[&head(0, 5), &2_u32.to_ne_bytes()]);
        for bad in [&[][..], &[0; 12], &cut, &tiny] {
            assert!(read_page(bad, &[layout()], &mut Vec::new()).is_err());
        }
    }
}

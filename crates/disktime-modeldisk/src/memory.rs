//! What is written to a disk, kept in memory, page by page.

use std::collections::BTreeMap;

const SECTOR: u64 = 512;
const PAGE: usize = 4096;
const ZEROES: [u8; PAGE] = [0; PAGE];

/// A disk's data. It reads zero where nothing was written, and only pages that hold something else
/// take memory.
#[derive(Default)]
pub struct Memory {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

/// The part of one page that a request covers.
struct Piece {
    page: u64,
    /// Within the page.
    from: usize,
    to: usize,
}

impl Piece {
    fn is_whole(&self) -> bool {
        self.to - self.from == PAGE
    }
}

/// The pieces that `len` bytes from byte `at` on are in.
fn pieces(mut at: u64, len: usize) -> impl Iterator<Item = Piece> {
    let end = at + len as u64;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at / PAGE as u64;
        let from = (at % PAGE as u64) as usize;
        let len = (PAGE - from).min((end - at) as usize);
        at += len as u64;
        Some(Piece {
            page,
            from,
            to: from + len,
        })
    })
}

impl Memory {
    /// Pages that take memory.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    pub fn write(&mut self, sector: u64, mut data: &[u8]) {
        for piece in pieces(sector * SECTOR, data.len()) {
            let (part, rest) = data.split_at(piece.to - piece.from);
            data = rest;
            if part == &ZEROES[..part.len()] {
                self.zero_piece(&piece);
                continue;
            }
            let page = self
                .pages
                .entry(piece.page)
                .or_insert_with(|| Box::new(ZEROES));
            page[piece.from..piece.to].copy_from_slice(part);
        }
    }

    pub fn read(&self, sector: u64, mut data: &mut [u8]) {
        for piece in pieces(sector * SECTOR, data.len()) {
            let (part, rest) = data.split_at_mut(piece.to - piece.from);
            data = rest;
            match self.pages.get(&piece.page) {
                Some(page) => part.copy_from_slice(&page[piece.from..piece.to]),
                None => part.fill(0),
            }
        }
    }

    /// Makes `sectors` from `sector` on read zero; whole pages take no more memory.
    pub fn zero(&mut self, sector: u64, sectors: u64) {
        let (from, to) = (sector * SECTOR, (sector + sectors) * SECTOR);
        // Of a long run, which may be the whole disk, only the pages that exist are looked at.
        let first = from / PAGE as u64;
        let kept: Vec<u64> = self
            .pages
            .range(first..to.div_ceil(PAGE as u64))
            .map(|(page, _)| *page)
            .collect();
        for page in kept {
            let start = page * PAGE as u64;
            let piece = Piece {
                page,
                from: from.saturating_sub(start) as usize,
                to: (to - start).min(PAGE as u64) as usize,
            };
            self.zero_piece(&piece);
        }
    }

    fn zero_piece(&mut self, piece: &Piece) {
        if piece.is_whole() {
            self.pages.remove(&piece.page);
        } else if let Some(page) = self.pages.get_mut(&piece.page) {
            page[piece.from..piece.to].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const SECTORS: u64 = 128;

    #[derive(Clone, Debug)]
    enum Step {
        Write {
            sector: u64,
            sectors: u64,
            fill: u8,
            /// Only the first sector gets it, the others zeroes.
            first_only: bool,
        },
        Zero {
            sector: u64,
            sectors: u64,
        },
        Read {
            sector: u64,
            sectors: u64,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        let span =
            (0..SECTORS).prop_flat_map(|sector| (Just(sector), 1..=(SECTORS - sector).min(40)));
        (span, 0u8..4, any::<bool>(), 0..4).prop_map(
            |((sector, sectors), fill, first_only, kind)| match kind {
                0 | 1 => Step::Write {
                    sector,
                    sectors,
                    fill,
                    first_only,
                },
                2 => Step::Zero { sector, sectors },
                _ => Step::Read { sector, sectors },
            },
        )
    }

    fn span(sector: u64, sectors: u64) -> std::ops::Range<usize> {
        (sector * SECTOR) as usize..((sector + sectors) * SECTOR) as usize
    }

    proptest! {
        #[test]
        fn it_reads_what_was_written_and_keeps_no_page_for_nothing(
            // At 0 and far behind 4 GiB, where an index of 32 bits would wrap.
            base in prop_oneof![Just(0u64), Just(1 << 29)],
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let mut plain = vec![0u8; (SECTORS * SECTOR) as usize];
            let mut kept = BTreeSet::new();
            let mut memory = Memory::default();
            for step in steps {
                match step {
                    Step::Write { sector, sectors, fill, first_only } => {
                        let mut data = vec![fill; span(0, sectors).len()];
                        if first_only {
                            data[SECTOR as usize..].fill(0);
                        }
                        memory.write(base + sector, &data);
                        plain[span(sector, sectors)].copy_from_slice(&data);
                        for piece in pieces(sector * SECTOR, data.len()) {
                            let at = piece.page as usize * PAGE;
                            if plain[at + piece.from..at + piece.to].iter().any(|b| *b != 0) {
                                kept.insert(piece.page);
                            } else if piece.is_whole() {
                                kept.remove(&piece.page);
                            }
                        }
                    }
                    Step::Zero { sector, sectors } => {
                        memory.zero(base + sector, sectors);
                        plain[span(sector, sectors)].fill(0);
                        kept.retain(|page| {
                            let first = page * 8;
                            first < sector || first + 8 > sector + sectors
                        });
                    }
                    Step::Read { sector, sectors } => {
                        let mut data = vec![0xaa; span(0, sectors).len()];
                        memory.read(base + sector, &mut data);
                        prop_assert_eq!(&data[..], &plain[span(sector, sectors)]);
                    }
                }
                prop_assert_eq!(memory.pages(), kept.len());
            }
            let mut all = vec![0xaa; plain.len()];
            memory.read(base, &mut all);
            prop_assert_eq!(all, plain);
            memory.zero(0, 1 << 40);
            prop_assert_eq!(memory.pages(), 0);
        }
    }
}

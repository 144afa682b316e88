//! The recorded trace: one record for each time a request went to the device or came back, in
//! the order of time. 24 bytes each, little endian, nothing before or after.

use std::io::{self, Read, Write};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All or a part of a request is done.
    Complete,
    /// The device gave a request back untouched.
    Requeue,
    /// The driver started a request.
    Issue,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// What happened.
    pub kind: Kind,
    /// `R`, `W`, `D`, `F` and so on: the operation as blktrace writes it.
    pub op: u8,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.at_ns.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sector.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sectors.to_le_bytes());
        bytes[20] = match self.kind {
            Kind::Issue => b'D',
            Kind::Complete => b'C',
            Kind::Requeue => b'R',
        };
        bytes[21] = self.op;
        bytes
    }

    /// Of exactly [`RECORD_BYTES`] bytes.
    fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let kind = match bytes[20] {
            b'D' => Kind::Issue,
            b'C' => Kind::Complete,
            b'R' => Kind::Requeue,
            other => {
                let why = format!("the trace has a record of kind {other}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        };
        Ok(Self {
            at_ns: u64_at(0),
            sector: u64_at(8),
            sectors: u64_at(16) as u32,
            kind,
            op: bytes[21],
        })
    }
}

/// Writes records as they are.
pub fn write(to: &mut impl Write, records: &[Record]) -> io::Result<()> {
    for record in records {
        to.write_all(&record.to_bytes())?;
    }
    Ok(())
}

/// Reads records to the end.
pub fn read(from: &mut impl Read) -> io::Result<Vec<Record>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)?;
    let records = bytes.chunks_exact(RECORD_BYTES);
    if !records.remainder().is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the trace ends within a record",
        ));
    }
    records.map(Record::from_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_round_trip() {
        let records = [
            Record {
                at_ns: 1,
                sector: 1 << 40,
                sectors: 8,
                kind: Kind::Issue,
                op: b'R',
            },
            Record {
                at_ns: u64::MAX,
                sector: 0,
                sectors: u32::MAX,
                kind: Kind::Complete,
                op: b'W',
            },
            Record {
                at_ns: 3,
                sector: 5,
                sectors: 0,
                kind: Kind::Requeue,
                op: b'F',
            },
        ];
        let mut bytes = Vec::new();
        write(&mut bytes, &records).unwrap();
        assert_eq!(bytes.len(), 3 * RECORD_BYTES);
        assert_eq!(read(&mut bytes.as_slice()).unwrap(), records);
    }

    #[test]
    fn broken_traces_are_refused() {
        assert!(read(&mut [0_u8; 23].as_slice()).is_err());
        assert!(read(&mut [0_u8; 24].as_slice()).is_err());
    }
}

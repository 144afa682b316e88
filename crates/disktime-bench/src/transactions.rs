//! Transactions: what a program does one after the other, each to its end, such as a write and its
//! fsync. When each began and ended is known, so that those of a window can be told from others.

use std::collections::BTreeMap;

use crate::fio::Latencies;

/// One of them, in nanoseconds of the time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended; `None`: nobody saw that.
    pub end_ns: Option<u64>,
}

/// From fio's log of the latencies of writes that are synced one by one (`--write_lat_log`): lines
/// of the time in milliseconds at which a write ended, its latency in nanoseconds, and more.
///
/// fio logs no syncs, but begins with the next write when one has ended. So a transaction is as
/// exact as the times are, to a millisecond.
pub fn of_fio(log: &str) -> Result<Vec<Transaction>, String> {
    let mut begins = Vec::new();
    for line in log.lines() {
        let mut numbers = line.split(',').map(|word| word.trim().parse::<u64>());
        let (Some(Ok(at_ms)), Some(Ok(took_ns))) = (numbers.next(), numbers.next()) else {
            return Err(format!("fio's log of latencies has a line {line:?}"));
        };
        begins.push((at_ms * 1_000_000).saturating_sub(took_ns));
    }
    let ends = begins.iter().skip(1).map(|&end| Some(end)).chain([None]);
    Ok(begins
        .iter()
        .zip(ends)
        .map(|(&begin_ns, end_ns)| Transaction { begin_ns, end_ns })
        .collect())
}

/// From pgbench's log (`--log`): lines of the client, its transaction's number, how long that took
/// in microseconds, which script it was, and when it ended: seconds of the time of day, and
/// microseconds. A client goes on at once.
pub fn of_pgbench(log: &str) -> Result<Vec<Transaction>, String> {
    let mut all = Vec::new();
    let mut last = BTreeMap::new();
    for line in log.lines() {
        let words: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        let Ok([client, _, took_us, _, seconds, micros, ..]) = words.as_deref() else {
            return Err(format!("pgbench's log has a line {line:?}"));
        };
        let end_ns = seconds * 1_000_000_000 + micros * 1000;
        all.push(Transaction {
            begin_ns: end_ns.saturating_sub(took_us * 1000),
            end_ns: Some(end_ns),
        });
        last.insert(*client, end_ns);
    }
    all.extend(last.into_values().map(|begin_ns| Transaction {
        begin_ns,
        end_ns: None,
    }));
    Ok(all)
}

/// How many ended in a window, and how long all took that were under way in it. One that nobody saw
/// ending counts if it had lasted longest by the window's end.
#[must_use]
pub fn within(all: &[Transaction], from_ns: u64, to_ns: u64) -> (u64, Latencies) {
    let (mut ended, mut latencies) = (0, Latencies::default());
    let mut longest = 0;
    let here = |t: &&Transaction| t.begin_ns < to_ns && t.end_ns.is_none_or(|end| end > from_ns);
    for transaction in all.iter().filter(here) {
        let Some(end_ns) = transaction.end_ns else {
            longest = longest.max(to_ns - transaction.begin_ns);
            continue;
        };
        ended += u64::from(end_ns <= to_ns);
        latencies.count(end_ns.saturating_sub(transaction.begin_ns));
    }
    if longest > latencies.max_ns() {
        latencies.count(longest);
    }
    (ended, latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_write_and_its_sync_end_where_the_next_write_begins() {
        let log = "1000, 1000000, 1, 4096, 0\n1010, 2000000, 1, 4096, 0\n1030, 0, 1, 4096, 0\n";
        let seen = of_fio(log).unwrap();
        let expect = [(999, Some(1008)), (1008, Some(1030)), (1030, None)];
        let expect = expect.map(|(begin, end)| Transaction {
            begin_ns: begin * MS,
            end_ns: end.map(|end| end * MS),
        });
        assert_eq!(seen, expect);
        assert_eq!(of_fio(""), Ok(Vec::new()));
        assert!(of_fio("1000, x, 1").is_err() && of_fio("1000").is_err());
    }

    #[test]
    fn clients_of_a_database_have_transactions_of_their_own() {
        let log = "0 1 5000 0 2 10000\n1 1 7000 0 2 12000\n0 2 3000 0 2 13000\n";
        let at = |ms: u64| 2_000_000_000 + ms * MS;
        let expect = [
            (5, Some(10)),
            (5, Some(12)),
            (10, Some(13)),
            (13, None),
            (12, None),
        ];
        let expect = expect.map(|(begin, end)| Transaction {
            begin_ns: at(begin),
            end_ns: end.map(at),
        });
        assert_eq!(of_pgbench(log).unwrap(), expect);
        // It skips none, as there is no rate to keep.
        assert!(of_pgbench("0 1 skipped 0 2 10000\n").is_err());
    }

    #[test]
    fn those_of_a_window_are_told_from_others() {
        let all: Vec<Transaction> = (0..10)
            .map(|n| Transaction {
                begin_ns: n * 10 * MS,
                end_ns: (n < 9).then_some((n + 1) * 10 * MS),
            })
            .collect();
        let (ended, latencies) = within(&all, 15 * MS, 45 * MS);
        // Of those that the window's ends cut, the first ended in it.
        assert_eq!((ended, latencies.all()), (3, 4));
        // The last is under way.
        let max = |to| within(&all, 15 * MS, to * MS).1.max_ns() / MS;
        assert_eq!((max(95), max(130)), (10, 40));
        assert_eq!(within(&all, 200 * MS, 300 * MS).0, 0);
        let stalled = within(&all[9..], 15 * MS, 130 * MS).1.percentiles();
        assert_eq!(stalled.unwrap().max, 40 * MS);
    }
}

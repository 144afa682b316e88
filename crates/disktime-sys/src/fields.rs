//! What the module's counters mean, said once. Every output is rendered from this table: a new counter is a new line
//! here, and a counter that the table does not know is still carried along under the kernel's own name.

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds in the kernel's file.
    Usec,
    /// Sectors of 512 bytes.
    Sectors,
    /// A plain count.
    Count,
}

/// How a number behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, so differences mean something.
    Counter,
    /// It is a state of this instant.
    Gauge,
}

/// A number of `io.disktime.stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The kernel's key.
    pub key: &'static str,
    /// The name in our outputs, without a unit.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// How it behaves.
    pub kind: Kind,
    /// Whether every version of the module has it: outputs show 0 where it is absent.
    pub always: bool,
    /// One sentence.
    pub help: &'static str,
}

const fn base(key: &'static str, name: &'static str, unit: Unit, help: &'static str) -> Field {
    Field {
        key,
        name,
        unit,
        kind: Kind::Counter,
        always: true,
        help,
    }
}

const fn more(key: &'static str, name: &'static str, unit: Unit, help: &'static str) -> Field {
    Field {
        always: false,
        ..base(key, name, unit, help)
    }
}

const fn gauge(field: Field) -> Field {
    Field {
        kind: Kind::Gauge,
        ..field
    }
}

/// The documented numbers.
pub const FIELDS: &[Field] = &[
    base(
        "time_usec",
        "disk_time",
        Unit::Usec,
        "Disk time received, without anticipation.",
    ),
    base(
        "sectors",
        "sectors",
        Unit::Sectors,
        "Sectors read and written.",
    ),
    base("ios", "ios", Unit::Count, "Requests completed."),
    gauge(base(
        "queued",
        "queued",
        Unit::Count,
        "Requests waiting in the scheduler now.",
    )),
    base(
        "wait_usec",
        "wait",
        Unit::Usec,
        "Time that requests waited in the scheduler, summed over requests.",
    ),
    base(
        "idle_usec",
        "idle",
        Unit::Usec,
        "Time the device was kept idle for this group by anticipation.",
    ),
    base(
        "dequeues",
        "dequeues",
        Unit::Count,
        "How often the group ran out of requests.",
    ),
    base("slices", "slices", Unit::Count, "Turns received."),
    more(
        "rtime_usec",
        "read_disk_time",
        Unit::Usec,
        "Disk time received by reads.",
    ),
    more(
        "wtime_usec",
        "write_disk_time",
        Unit::Usec,
        "Disk time received by writes.",
    ),
    more("rsectors", "read_sectors", Unit::Sectors, "Sectors read."),
    more(
        "wsectors",
        "write_sectors",
        Unit::Sectors,
        "Sectors written.",
    ),
    more("rios", "read_ios", Unit::Count, "Reads completed."),
    more("wios", "write_ios", Unit::Count, "Writes completed."),
    more(
        "wait_share_usec",
        "wait_share",
        Unit::Usec,
        "Time waited while others of the class were served.",
    ),
    more(
        "wait_class_usec",
        "wait_class",
        Unit::Usec,
        "Time waited while a higher class was served.",
    ),
    more(
        "wait_anticipation_usec",
        "wait_anticipation",
        Unit::Usec,
        "Time waited while the device was kept idle.",
    ),
    more(
        "wait_depth_usec",
        "wait_depth",
        Unit::Usec,
        "Time waited while enough was in flight.",
    ),
    more(
        "wait_tag_usec",
        "wait_tag",
        Unit::Usec,
        "Time waited for a scheduler tag.",
    ),
    gauge(more(
        "wait_max_usec",
        "wait_max",
        Unit::Usec,
        "The longest wait of a request so far.",
    )),
    gauge(more(
        "inflight",
        "inflight",
        Unit::Count,
        "Requests in the device now.",
    )),
    gauge(more(
        "waiting",
        "waiting",
        Unit::Count,
        "Submitters waiting for a scheduler tag now.",
    )),
    more(
        "express",
        "express",
        Unit::Count,
        "Requests sent ahead at once, booked as debt.",
    ),
];

/// The description of a kernel key, where it is a documented one.
pub fn field(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_and_names_are_unique() {
        let keys: BTreeSet<_> = FIELDS.iter().map(|f| f.key).collect();
        let names: BTreeSet<_> = FIELDS.iter().map(|f| f.name).collect();
        assert_eq!((keys.len(), names.len()), (FIELDS.len(), FIELDS.len()));
        assert_eq!(field("time_usec").map(|f| f.name), Some("disk_time"));
        assert_eq!(field("nonsense"), None);
    }
}

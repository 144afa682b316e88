//! Every output of `status`, made from one model; counters come from the field table of disktime-sys.

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use disktime_sys::{FIELDS, Field, Kind, Unit};
use serde_json::{Map, Value, json};
use tabled::builder::Builder;
use tabled::settings::object::{Columns, Rows};
use tabled::settings::{Alignment, Format, Modify, Padding, Style as Shape};

use crate::device::in_words;
use crate::status::{DeviceStatus, GroupStatus};

/// The version of the JSON, changed only where a reader would break.
const JSON_VERSION: u32 = 1;
const BOLD: Style = Style::new().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default().bold();

/// How tables look.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// On a terminal: lines and colours. Elsewhere plain columns.
    pub terminal: bool,
    /// Groups that have nothing to say are shown too.
    pub all: bool,
}

fn table(look: Look, header: &[&str], rows: Vec<Vec<String>>, left: &[usize]) -> String {
    let mut builder = Builder::default();
    builder.push_record(header.iter().copied());
    for row in rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    if look.terminal {
        table.with(
            Modify::new(Rows::first())
                .with(Format::content(|text| format!("{BOLD}{text}{BOLD:#}"))),
        );
    }
    table.with(Shape::empty());
    table.with(Padding::new(0, 2, 0, 0));
    table.with(Modify::new(Columns::new(..)).with(Alignment::right()));
    for column in left {
        table.with(Modify::new(Columns::one(*column)).with(Alignment::left()));
    }
    let text = table.to_string();
    let width = table.total_width();
    let mut out = String::new();
    for (n, line) in text.lines().enumerate() {
        let _ = writeln!(out, "{}", line.trim_end());
        if n == 0 && look.terminal {
            let _ = writeln!(out, "{}", "─".repeat(width));
        }
    }
    out
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1} %", share * 100.0))
}

fn seconds(usec: u64) -> String {
    format!("{}.{:03} s", usec / 1_000_000, usec % 1_000_000 / 1000)
}

fn cell(field: &Field, value: Option<u64>) -> String {
    match (value, field.unit) {
        (None, _) => "-".into(),
        (Some(usec), Unit::Usec) => seconds(usec),
        (Some(count), _) => count.to_string(),
    }
}

/// The columns of counters in the table; the rest is in the other outputs.
const SHOWN: [&str; 4] = ["time_usec", "ios", "queued", "wait_usec"];

/// The tables for people.
pub fn text(devices: &[DeviceStatus], look: Look) -> String {
    let rows = devices
        .iter()
        .map(|device| {
            let attr = |key: &str| {
                device
                    .iosched
                    .get(key)
                    .map_or("-".into(), |value| in_words(key, value).to_owned())
            };
            let mut health = attr("health");
            if device.active() && look.terminal {
                let style = if health == "ok" { GREEN } else { RED };
                health = format!("{style}{health}{style:#}");
            }
            vec![
                device.name.clone(),
                device.devno.to_string(),
                if device.supported {
                    device.scheduler.clone()
                } else {
                    "-".into()
                },
                device.nr_requests.map_or("-".into(), |n| n.to_string()),
                attr("depth"),
                attr("order"),
                attr("slice_usec"),
                attr("idle_usec"),
                health,
            ]
        })
        .collect();
    let header = [
        "DEVICE",
        "NUMBER",
        "SCHEDULER",
        "NR_REQUESTS",
        "DEPTH",
        "ORDER",
        "SLICE_USEC",
        "IDLE_USEC",
        "HEALTH",
    ];
    let mut out = table(look, &header, rows, &[0, 1, 2, 5, 8]);
    for device in devices.iter().filter(|device| device.active()) {
        let over = match device.interval {
            Some(interval) => format!(
                "over {:.1} s, busy {:.1} % of it",
                interval.as_secs_f64(),
                // Rounding and the instants of two reads can put it a little above.
                (100.0 * device.busy_usec as f64 / 1e6 / interval.as_secs_f64().max(1e-9))
                    .min(100.0)
            ),
            None => format!(
                "since disktime was enabled, busy {}",
                seconds(device.busy_usec)
            ),
        };
        let _ = write!(out, "\n{}: {over}\n", device.name);
        let shown: Vec<&GroupStatus> = device
            .groups
            .iter()
            .filter(|group| look.all || !group.is_dull())
            .collect();
        if shown.is_empty() {
            out.push_str("no group asked for anything yet\n");
            continue;
        }
        let counters: Vec<&Field> = SHOWN
            .iter()
            .filter_map(|key| disktime_sys::field(key))
            .collect();
        let mut header: Vec<String> = ["GROUP", "CLASS", "WEIGHT", "ENTITLED", "GOT"]
            .into_iter()
            .map(str::to_owned)
            .collect();
        header.extend(
            counters
                .iter()
                .map(|field| field.name.replace('_', " ").to_uppercase()),
        );
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let rows = shown
            .iter()
            .map(|group| {
                let asked = group.contends || group.got.is_some_and(|got| got > 0.0);
                let mut row = vec![
                    printable(&group.path),
                    group.class.to_string(),
                    group.weight.to_string(),
                    percent(asked.then_some(group.entitled)),
                    percent(group.got),
                ];
                row.extend(
                    counters
                        .iter()
                        .map(|field| cell(field, group.stat.get(field.key))),
                );
                row
            })
            .collect();
        out.push_str(&table(look, &header, rows, &[0, 1]));
    }
    out
}

/// How many groups [`text`] left out.
pub fn left_out(devices: &[DeviceStatus]) -> usize {
    devices
        .iter()
        .flat_map(|device| &device.groups)
        .filter(|group| group.is_dull())
        .count()
}

/// A path that cannot move the cursor or break the line.
fn printable(path: &str) -> String {
    path.chars()
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

/// A counter's name and value with its unit in the name, in nanoseconds for times.
fn with_unit(key: &str, value: u64) -> (String, u64) {
    let name = disktime_sys::field(key).map(|field| field.name);
    match key.strip_suffix("_usec") {
        Some(base) => (
            format!("{}_ns", name.unwrap_or(base)),
            value.saturating_mul(1000),
        ),
        None => (name.unwrap_or(key).to_owned(), value),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn round(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

fn group_json(group: &GroupStatus) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("group".into(), json!(group.path));
    out.insert("class".into(), json!(group.class));
    out.insert("weight".into(), json!(group.weight));
    out.insert("contends".into(), json!(group.contends));
    out.insert("entitled".into(), json!(round(group.entitled)));
    out.insert("got".into(), json!(group.got.map(round)));
    for field in FIELDS {
        let value = group.stat.get(field.key).or(field.always.then_some(0));
        let (name, value) = (
            with_unit(field.key, 0).0,
            value.map(|value| with_unit(field.key, value).1),
        );
        if let Some(value) = value {
            out.insert(name, json!(value));
        }
    }
    let mut extra = Map::new();
    for (key, value) in group
        .stat
        .iter()
        .filter(|(key, _)| disktime_sys::field(key).is_none())
    {
        let (name, value) = with_unit(key, value);
        extra.insert(name, json!(value));
    }
    extra.extend(
        group
            .text
            .iter()
            .map(|(key, value)| (key.clone(), json!(value))),
    );
    out.insert("extra".into(), Value::Object(extra));
    out
}

fn device_json(device: &DeviceStatus) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("device".into(), json!(device.name));
    out.insert("devno".into(), json!(device.devno.to_string()));
    out.insert(
        "scheduler".into(),
        json!(device.supported.then_some(&device.scheduler)),
    );
    out.insert("active".into(), json!(device.active()));
    out.insert("nr_requests".into(), json!(device.nr_requests));
    if device.active() {
        let attrs: Map<String, Value> = device
            .iosched
            .iter()
            .map(|(key, value)| {
                let value = value
                    .parse::<u64>()
                    .map_or_else(|_| json!(value), |number| json!(number));
                (key.clone(), value)
            })
            .collect();
        out.insert("iosched".into(), Value::Object(attrs));
        out.insert(
            "interval_ns".into(),
            json!(device.interval.map(nanoseconds)),
        );
        out.insert(
            "busy_ns".into(),
            json!(device.busy_usec.saturating_mul(1000)),
        );
    }
    out
}

/// One JSON document.
pub fn json(devices: &[DeviceStatus]) -> Result<String> {
    let devices: Vec<Value> = devices
        .iter()
        .map(|device| {
            let mut out = device_json(device);
            if device.active() {
                out.insert(
                    "groups".into(),
                    device
                        .groups
                        .iter()
                        .map(|group| Value::Object(group_json(group)))
                        .collect(),
                );
            }
            Value::Object(out)
        })
        .collect();
    Ok(serde_json::to_string_pretty(
        &json!({ "disktime_status": JSON_VERSION, "devices": devices }),
    )? + "\n")
}

/// One object a line: each device, then its groups.
pub fn jsonl(devices: &[DeviceStatus]) -> Result<String> {
    let mut out = String::new();
    let mut line = |kind: &str, rest: Map<String, Value>| -> Result<()> {
        let mut object = Map::new();
        object.insert("disktime_status".into(), json!(JSON_VERSION));
        object.insert("kind".into(), json!(kind));
        object.extend(rest);
        out.push_str(&serde_json::to_string(&object)?);
        out.push('\n');
        Ok(())
    };
    for device in devices {
        line("device", device_json(device))?;
        for group in &device.groups {
            let mut object = Map::new();
            object.insert("device".into(), json!(device.name));
            object.extend(group_json(group));
            line("group", object)?;
        }
    }
    Ok(out)
}

/// One row a group of every disk that runs disktime.
pub fn csv(devices: &[DeviceStatus]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header: Vec<String> = [
        "device",
        "devno",
        "interval_ns",
        "group",
        "class",
        "weight",
        "contends",
        "entitled",
        "got",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    header.extend(FIELDS.iter().map(|field| with_unit(field.key, 0).0));
    writer.write_record(&header)?;
    for device in devices {
        for group in &device.groups {
            let mut row = vec![
                device.name.clone(),
                device.devno.to_string(),
                device
                    .interval
                    .map(|interval| nanoseconds(interval).to_string())
                    .unwrap_or_default(),
                group.path.clone(),
                group.class.to_string(),
                group.weight.to_string(),
                group.contends.to_string(),
                round(group.entitled).to_string(),
                group
                    .got
                    .map(|got| round(got).to_string())
                    .unwrap_or_default(),
            ];
            row.extend(FIELDS.iter().map(|field| {
                let value = group.stat.get(field.key).or(field.always.then_some(0));
                value
                    .map(|value| with_unit(field.key, value).1.to_string())
                    .unwrap_or_default()
            }));
            writer.write_record(&row)?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// OpenMetrics text. Counters are the totals since disktime was enabled, as the format wants them.
pub fn openmetrics(devices: &[DeviceStatus]) -> String {
    fn label(text: &str) -> String {
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    }
    let mut out = String::new();
    let mut family =
        |name: &str, kind: &str, unit: &str, help: &str, samples: Vec<(String, String)>| {
            let _ = writeln!(out, "# TYPE {name} {kind}");
            if !unit.is_empty() {
                let _ = writeln!(out, "# UNIT {name} {unit}");
            }
            let _ = writeln!(out, "# HELP {name} {help}");
            let suffix = if kind == "counter" { "_total" } else { "" };
            for (labels, value) in samples {
                let _ = writeln!(out, "{name}{suffix}{{{labels}}} {value}");
            }
        };
    let groups = |value: &dyn Fn(&GroupStatus) -> Option<String>| -> Vec<(String, String)> {
        devices
            .iter()
            .flat_map(|device| device.groups.iter().map(move |group| (device, group)))
            .filter_map(|(device, group)| {
                let labels = format!(
                    "device=\"{}\",group=\"{}\"",
                    label(&device.name),
                    label(&group.path)
                );
                Some((labels, value(group)?))
            })
            .collect()
    };
    let active = devices
        .iter()
        .map(|device| {
            let scheduler = if device.supported {
                label(&device.scheduler)
            } else {
                String::new()
            };
            let labels = format!(
                "device=\"{}\",scheduler=\"{scheduler}\"",
                label(&device.name)
            );
            (labels, u8::from(device.active()).to_string())
        })
        .collect();
    family(
        "disktime_active",
        "gauge",
        "",
        "Whether the device runs disktime.",
        active,
    );
    family(
        "disktime_weight",
        "gauge",
        "",
        "Weight in force on the device.",
        groups(&|g| Some(g.weight.to_string())),
    );
    family(
        "disktime_entitled_ratio",
        "gauge",
        "ratio",
        "Share of disk time that the weights promise.",
        groups(&|g| Some(round(g.entitled).to_string())),
    );
    family(
        "disktime_got_ratio",
        "gauge",
        "ratio",
        "Share of disk time received.",
        groups(&|g| Some(round(g.got?).to_string())),
    );
    for field in FIELDS {
        let kind = if field.kind == Kind::Counter {
            "counter"
        } else {
            "gauge"
        };
        let (name, unit) = match field.unit {
            Unit::Usec => (format!("disktime_{}_seconds", field.name), "seconds"),
            _ => (format!("disktime_{}", field.name), ""),
        };
        let samples = groups(&|group| {
            let value = group.stat.get(field.key)?;
            Some(match field.unit {
                Unit::Usec => format!("{}.{:06}", value / 1_000_000, value % 1_000_000),
                _ => value.to_string(),
            })
        });
        family(&name, kind, unit, field.help, samples);
    }
    out.push_str("# EOF\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use disktime_sys::{Class, DevNo, Weight};

    fn device(health: &str) -> DeviceStatus {
        DeviceStatus {
            name: "sda".into(),
            devno: DevNo::new(8, 0),
            scheduler: "disktime".into(),
            supported: true,
            bytes: None,
            nr_requests: Some(256),
            iosched: [("health".to_owned(), health.to_owned())].into(),
            groups: vec![GroupStatus {
                path: "/a".into(),
                weight: Weight::default(),
                class: Class::Rt,
                contends: true,
                entitled: 1.0,
                got: None,
                stat: [("time_usec".to_owned(), 1_234_567)].into_iter().collect(),
                text: Default::default(),
            }],
            busy_usec: 1_234_567,
            interval: Some(Duration::from_secs(2)),
        }
    }

    #[test]
    fn a_terminal_gets_lines_and_colours_and_loses_nothing_without_them() {
        let devices = [device("stuck")];
        let terminal = text(
            &devices,
            Look {
                terminal: true,
                all: false,
            },
        );
        let plain = text(
            &devices,
            Look {
                terminal: false,
                all: false,
            },
        );
        assert!(terminal.contains("\u{1b}[1m") && terminal.contains("────"));
        assert!(!plain.contains('\u{1b}') && !plain.contains('─'));
        for word in ["stuck", "1.235 s", "61.7 %", "100.0 %", "rt"] {
            assert!(terminal.contains(word) == plain.contains(word), "{word}");
        }
        assert!(plain.contains("over 2.0 s, busy 61.7 % of it"), "{plain}");
        assert!(plain.contains("1.234 s"), "{plain}");
    }

    #[test]
    fn openmetrics_labels_are_escaped() {
        let mut status = device("ok");
        status.groups[0].path = "/a\"b\\c\nd".into();
        let out = openmetrics(&[status]);
        assert!(out.contains(r#"group="/a\"b\\c\nd""#), "{out}");
    }
}

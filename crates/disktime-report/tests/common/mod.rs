//! Results that nobody measured, with all fields that a result may have.
#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::{Value, json};

pub const CONTROLLERS: [&str; 9] = [
    "disktime",
    "none",
    "mq-deadline",
    "mq-deadline+ioprio",
    "kyber",
    "bfq",
    "iocost",
    "fifo",
    "cfq-as-in-2.6",
];

/// A number between 0 and 1 that follows from the seed.
pub fn noise(seed: u64) -> f64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// How unfair a controller is, from 0 to 1.
fn unfairness(controller: &str) -> f64 {
    let place = CONTROLLERS.iter().position(|c| *c == controller);
    [0.002, 1.0, 0.97, 0.8, 0.95, 0.06, 0.15, 0.9, 0.3][place.unwrap_or(2)]
}

/// A scenario to make results of.
#[derive(Clone)]
pub struct Sketch {
    pub scenario: String,
    pub variant: String,
    pub phase: String,
    pub on: &'static str,
    pub controllers: Vec<&'static str>,
    pub weights: Vec<u64>,
    pub rounds: u32,
    /// Curves, series, settings, and all else that may be absent.
    pub rich: bool,
}

impl Sketch {
    pub fn new(scenario: &str, weights: &[u64]) -> Self {
        Self {
            scenario: scenario.into(),
            variant: String::new(),
            phase: String::new(),
            on: "sim",
            controllers: CONTROLLERS.to_vec(),
            weights: weights.to_vec(),
            rounds: 1,
            rich: true,
        }
    }

    pub fn results(&self) -> Vec<Value> {
        let rounds = 1..=self.rounds;
        rounds
            .flat_map(|round| self.controllers.iter().map(move |c| self.result(c, round)))
            .collect()
    }

    /// Points of curves and series; fewer where groups are many, for tests to be quick.
    fn fineness(&self) -> u32 {
        if self.weights.len() > 100 { 10 } else { 60 }
    }

    fn seed(&self, controller: &str, round: u32, salt: usize) -> u64 {
        let text = format!(
            "{}{}{}{controller}{round}",
            self.scenario, self.variant, self.on
        );
        text.bytes().fold(salt as u64, |a, b| {
            a.wrapping_mul(31).wrapping_add(b.into())
        })
    }

    fn got(&self, controller: &str, round: u32) -> Vec<f64> {
        let sum: u64 = self.weights.iter().sum();
        let even = 1.0 / self.weights.len() as f64;
        let unfair = unfairness(controller);
        let raw: Vec<f64> = self
            .weights
            .iter()
            .enumerate()
            .map(|(n, w)| {
                let entitled = *w as f64 / sum as f64;
                let wobble = 1.0 + (noise(self.seed(controller, round, n)) - 0.5) * 0.02;
                (entitled * (1.0 - unfair) + even * unfair) * wobble
            })
            .collect();
        let all: f64 = raw.iter().sum();
        raw.into_iter().map(|r| r / all).collect()
    }

    fn result(&self, controller: &str, round: u32) -> Value {
        let sum: u64 = self.weights.iter().sum();
        let got = self.got(controller, round);
        let groups: Vec<_> = self
            .weights
            .iter()
            .zip(&got)
            .enumerate()
            .map(|(n, (weight, got))| {
                let entitled = *weight as f64 / sum as f64;
                self.group(controller, round, n, *weight, entitled, *got)
            })
            .collect();
        let rate = 2000.0 * (1.0 - noise(self.seed(controller, round, 77)) * 0.1);
        let failed = controller == "bfq";
        let mut result = json!({
            "disktime_result": 1, "scenario": self.scenario, "variant": self.variant,
            "phase": self.phase, "round": round, "on": self.on, "controller": controller,
            "kernel": if self.on == "sim" { "simulator" } else { "6.12.48+deb13-amd64" },
            "seed": round, "duration_ns": 12_000_000_000_u64,
            "disk": {"servers": 8, "service_ns": 4_000_000, "rotational": false},
            "nr_requests": 256, "groups": groups, "ios_per_s": rate, "none_ratio": null,
            "counted": true, "error": null, "health": "ok",
            "checks": [{"name": "share of a within 0.01 of 0.57", "ok": !failed, "value": 0.5712}],
        });
        if self.rich {
            self.enrich(&mut result, controller, round, &got);
        }
        result
    }

    fn group(
        &self,
        controller: &str,
        round: u32,
        n: usize,
        weight: u64,
        entitled: f64,
        got: f64,
    ) -> Value {
        let base = 2e6 / got.max(0.001) * (1.0 + noise(self.seed(controller, round, n + 500)));
        let at = |part: f64| (base * (0.3 + (1.0 / (1.0 - part)).ln())) as u64;
        let mut group = json!({
            "name": format!("group-{n}"), "path": format!("group-{n}"), "weight": weight, "class": "be",
            "entitled": entitled, "got": got, "io_share": got, "trace_share": got,
            "disk_time_ns": null, "true_time_ns": 1,
            "ios": {"read": (got * 24000.0) as u64, "write": 0}, "bytes": {"read": 1, "write": 0},
            "latency_ns": {"p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": at(0.9999)},
            "published": if n == 0 { json!(entitled * 0.98) } else { Value::Null },
        });
        if self.rich {
            let last = self.fineness();
            let curve = (0..=last).map(|k| {
                let part = 1.0 - 10_f64.powf(-4.0 * f64::from(k) / f64::from(last));
                json!([at(part), part])
            });
            group["latency_curve"] = curve.collect();
            group["true_share"] = json!(got * 0.99 + 0.01 * entitled);
            group["finished_ns"] = json!(9_000_000_000_u64 + n as u64);
            group["user"] = json!("somebody");
            if n == 0 {
                group["published_note"] = json!("read from a figure");
            }
        }
        group
    }

    fn enrich(&self, result: &mut Value, controller: &str, round: u32, got: &[f64]) {
        let steps = self.fineness();
        let series: serde_json::Map<_, _> = got
            .iter()
            .enumerate()
            .map(|(n, got)| {
                let wave = |k: u32| {
                    got * (1.0
                        + 0.2 * (noise(self.seed(controller, round, n * 100 + k as usize)) - 0.5))
                };
                (
                    format!("group-{n}"),
                    (0..steps).map(|k| json!(wave(k))).collect(),
                )
            })
            .collect();
        let times: Vec<_> = (1..=steps).map(|k| u64::from(k) * 200_000_000).collect();
        result["series"] = json!({"t_ns": times, "got": series});
        result["disk_title"] = json!("st3250620as, write cache of 128");
        result["about"] =
            json!("Groups of several weights read and write at random; each gets its share.");
        result["source"] = json!("Nobody & Co. 2008, test <1>");
        result["settings"] = json!({"nr_requests": "256 (default 62)"});
        if controller == "iocost" {
            result["settings"]["io.cost.model"] =
                json!("ctrl=user model=linear rbps=104857600 rseqiops=2000");
        }
        if self.on != "sim" {
            result["date"] = json!("2026-02-03T04:05:06Z");
        }
        result["from_the_future"] = json!({"of": ["no", "interest"]});
    }
}

/// All that makes reports difficult.
pub fn difficult() -> Vec<Value> {
    let mut all = Vec::new();
    let three = Sketch::new("nine-controllers", &[40, 20, 10]);
    for (on, rounds) in [("sim", 1), ("vm", 3)] {
        for variant in ["servers8", "servers1"] {
            all.extend(
                Sketch {
                    on,
                    rounds,
                    variant: variant.into(),
                    ..three.clone()
                }
                .results(),
            );
        }
    }
    let one = Sketch::new("one-group", &[100]);
    all.extend(Sketch { rounds: 2, ..one }.results());
    let weights: Vec<u64> = (1..=256).collect();
    let many = Sketch::new("many-groups", &weights);
    all.extend(
        Sketch {
            controllers: vec!["disktime", "none", "bfq"],
            ..many
        }
        .results(),
    );
    let long =
        "a-scenario-with-a-very-long-name-that-goes-on-and-on-and-does-not-end-before-the-margin";
    let named = Sketch {
        variant: "with <angles> & \"quotes\" | pipes".into(),
        phase: "the-second-phase-which-has-a-long-name-as-well".into(),
        controllers: vec![
            "disktime",
            "none",
            "a-controller-whose-name-is-longer-than-the-room-beside-its-bars",
        ],
        ..Sketch::new(long, &[3, 1])
    };
    all.extend(named.results());
    let poor = Sketch {
        rich: false,
        ..Sketch::new("without-the-new-fields", &[300, 200, 100, 50])
    };
    all.extend(poor.results());
    all.push(
        json!({"disktime_result": 1, "scenario": "bare", "on": "host", "controller": "disktime"}),
    );
    all.extend(flawed());
    all
}

/// Rows that are not kept, that do not count, that are not whole.
fn flawed() -> Vec<Value> {
    let base = Sketch {
        controllers: vec!["disktime", "none", "bfq", "kyber"],
        ..Sketch::new("flawed", &[2, 1])
    };
    let mut all = base.results();
    let mut worse = base.results();
    for result in &mut worse[2..] {
        result["kept"] = json!(false);
        result["nr_requests"] = json!(64);
        result["settings"] = json!({"nr_requests": "64 (default)"});
    }
    all.extend(worse.into_iter().skip(2));
    all[1]["counted"] = json!(false);
    all[2]["error"] = json!("the run did not come to its end");
    all[0]["health"] = json!("2 requests were lost");
    all
}

/// One result a line.
pub fn lines(results: &[Value]) -> String {
    results.iter().map(|r| format!("{r}\n")).collect()
}

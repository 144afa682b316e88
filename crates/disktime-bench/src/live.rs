//! Shows a machine at work: bars on a terminal, a line for each window elsewhere.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::plan::{Event, Plan, Run, Snapshot};
use crate::scenario::entitled;

/// What is shown.
pub struct Live<'a> {
    plan: &'a Plan,
    begin: Option<Snapshot>,
    seen: Option<Snapshot>,
    bars: Option<Bars>,
}

struct Bars {
    all: MultiProgress,
    whole: ProgressBar,
    what: ProgressBar,
    groups: Vec<ProgressBar>,
}

/// Steps of a bar.
const STEPS: u64 = 1000;

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ")
}

/// Disk time with disktime, I/Os else: growth since `from`.
fn received(run: &Run, group: &str, from: &Snapshot, to: &Snapshot) -> f64 {
    let keys: &[&str] = match run.controller.is_disktime() {
        true => &["time_usec"],
        false => &["io.rios", "io.wios"],
    };
    let at = |s: &Snapshot| -> u64 {
        keys.iter()
            .filter_map(|k| s.groups.get(group)?.get(*k).copied())
            .sum()
    };
    at(to).saturating_sub(at(from)) as f64
}

/// Groups in which something runs, their promised and their received shares.
fn shares(run: &Run, phase: usize, from: &Snapshot, to: &Snapshot) -> Vec<(String, f64, f64)> {
    let busy: BTreeSet<usize> = run.phases[phase]
        .jobs
        .iter()
        .map(|&j| run.jobs[j].group)
        .collect();
    let promised = entitled(&run.groups, &busy);
    let got: Vec<(usize, f64)> = busy
        .iter()
        .map(|&g| (g, received(run, &run.groups[g].name, from, to)))
        .collect();
    let all: f64 = got.iter().map(|g| g.1).sum();
    got.into_iter()
        .map(|(g, got)| (run.groups[g].name.clone(), promised[g], got / all.max(1.0)))
        .collect()
}

/// What a run is called.
#[must_use]
pub fn title(run: &Run) -> String {
    let mut title = run.scenario.clone();
    if !run.variant.is_empty() {
        title = format!("{title} ({})", run.variant);
    }
    title
}

impl<'a> Live<'a> {
    /// Bars if standard error is a terminal, plain lines else.
    #[must_use]
    pub fn new(plan: &'a Plan) -> Self {
        let bars = std::io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let whole = all.add(ProgressBar::new(plan.runs.len() as u64));
            whole.set_style(style(
                "{spinner} run {pos} of {len}  {elapsed_precise}  {msg}",
            ));
            whole.enable_steady_tick(Duration::from_millis(120));
            whole.set_message("booting");
            let what = all.add(ProgressBar::new(1));
            what.set_style(style("  {msg}"));
            Bars {
                all,
                whole,
                what,
                groups: Vec::new(),
            }
        });
        Self {
            plan,
            begin: None,
            seen: None,
            bars,
        }
    }

    /// Shows an event.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Hello { release } => {
                if let Some(bars) = &self.bars {
                    bars.whole.set_message(format!("Linux {release}"));
                }
            }
            Event::Start { run, .. } => self.start(*run),
            Event::Tick {
                run,
                phase,
                snapshot,
            } => self.tick(*run, *phase, snapshot),
            Event::Begin { snapshot, .. } => self.begin = Some(snapshot.clone()),
            Event::End {
                run,
                phase,
                snapshot,
                ..
            } => self.end(*run, *phase, snapshot),
            Event::Done { run, error, .. } => {
                self.begin = None;
                self.seen = None;
                if let Some(error) = error {
                    let title = self.plan.runs.get(*run).map(title).unwrap_or_default();
                    self.say(&format!("{title}: the run failed: {error}"));
                }
            }
        }
    }

    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => {
                let _ = bars.all.println(line);
            }
            None => eprintln!("{line}"),
        }
    }

    fn start(&mut self, index: usize) {
        let Some(run) = self.plan.runs.get(index) else {
            return;
        };
        let Some(bars) = &mut self.bars else { return };
        for bar in bars.groups.drain(..) {
            bar.finish_and_clear();
        }
        bars.whole.set_position(index as u64 + 1);
        bars.what
            .set_message(format!("{}  {}  starting", title(run), run.controller));
    }

    fn tick(&mut self, index: usize, phase: usize, snapshot: &Snapshot) {
        let Some(run) = self.plan.runs.get(index) else {
            return;
        };
        // Until the window begins, from one tick to the next.
        let from = self.begin.clone().or_else(|| self.seen.clone());
        self.seen = Some(snapshot.clone());
        let (Some(from), Some(bars)) = (from, &mut self.bars) else {
            return;
        };
        let state = match &self.begin {
            Some(begin) => {
                let passed = snapshot.mono_ns.saturating_sub(begin.mono_ns) as f64 / 1e9;
                format!(
                    "{passed:4.1} of {:.1} s",
                    run.phases[phase].duration_ns as f64 / 1e9
                )
            }
            None => "settling".into(),
        };
        let name = &run.phases[phase].name;
        bars.what.set_message(format!(
            "{}  {} {name}  {state}",
            title(run),
            run.controller
        ));
        let shares = shares(run, phase, &from, snapshot);
        if bars.groups.len() != shares.len() {
            for bar in bars.groups.drain(..) {
                bar.finish_and_clear();
            }
            bars.groups = shares
                .iter()
                .map(|_| {
                    let bar = bars.all.add(ProgressBar::new(STEPS));
                    bar.set_style(style("    {prefix:12} [{bar:40}] {msg}"));
                    bar
                })
                .collect();
        }
        for (bar, (name, promised, got)) in bars.groups.iter().zip(shares) {
            bar.set_prefix(name);
            bar.set_position((got * STEPS as f64) as u64);
            bar.set_message(format!(
                "{:5.1} %  entitled {:5.1} %",
                got * 100.0,
                promised * 100.0
            ));
        }
    }

    fn end(&mut self, index: usize, phase: usize, snapshot: &Snapshot) {
        let (Some(run), Some(begin)) = (self.plan.runs.get(index), self.begin.take()) else {
            return;
        };
        let list: Vec<_> = shares(run, phase, &begin, snapshot)
            .into_iter()
            .map(|(name, _, got)| format!("{name} {:.1} %", got * 100.0))
            .collect();
        let seconds = snapshot.mono_ns.saturating_sub(begin.mono_ns) as f64 / 1e9;
        let name = match run.phases[phase].name.as_str() {
            "" => String::new(),
            name => format!(" {name}"),
        };
        self.say(&format!(
            "[{:2}/{}] {} {}{name}: {} in {seconds:.1} s",
            index + 1,
            self.plan.runs.len(),
            title(run),
            run.controller,
            list.join(", "),
        ));
    }

    /// Takes the bars away.
    pub fn finish(self) {
        if let Some(bars) = self.bars {
            let _ = bars.all.clear();
        }
    }
}

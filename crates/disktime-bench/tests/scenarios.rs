//! The scenario files of the repository can be used.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use disktime_bench::plan::Controller;
use disktime_bench::scenario::{On, Options, load, runs};

#[test]
fn every_scenario_file_is_one() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        count += 1;
        let scenario = load(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            path.file_stem().unwrap().to_str(),
            Some(scenario.name.get_ref().as_str())
        );
        assert!(
            !scenario.about.is_empty() && !scenario.checks.is_empty(),
            "{}",
            path.display()
        );
        let somewhere = [On::Vm, On::Sim].into_iter().flat_map(|on| {
            let options = Options {
                on,
                ..Options::default()
            };
            runs(&scenario, &options)
        });
        let mut controllers = somewhere.map(|r| r.controller);
        assert!(
            controllers.any(|c| c == Controller::Disktime),
            "{}",
            path.display()
        );
    }
    assert!(count >= 28, "{count} scenario files");
}

#[test]
fn the_demo_shows_the_published_tests() {
    for (name, published) in [
        ("dm-band-test1", [Some(0.564), Some(0.292), Some(0.144)]),
        ("dm-band-test2", [Some(0.801), None, Some(0.199)]),
    ] {
        let file = format!("../../scenarios/{name}.toml");
        let scenario = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let groups: Vec<_> = scenario
            .groups()
            .map(|(name, g)| (name, g.weight))
            .collect();
        let expect = [("sdb5", 40), ("sdb6", 20), ("sdb7", 10)];
        assert_eq!(
            groups,
            expect.map(|(name, weight)| (name.to_owned(), weight))
        );
        let seen: Vec<_> = scenario.groups().map(|(_, g)| g.published).collect();
        assert_eq!(seen, published);
        use Controller::{Bfq, Disktime, None};
        assert_eq!(scenario.controllers, [Disktime, Bfq, None]);
    }
}

//! The program from outside.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::fs;

use assert_cmd::Command;
use common::{Sketch, lines};
use tempfile::TempDir;

fn program(folder: &TempDir) -> Command {
    let mut command = Command::cargo_bin("disktime-report").unwrap();
    command.current_dir(folder.path()).env_remove("COLUMNS");
    command
}

fn folder(text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("results.jsonl"), text).unwrap();
    folder
}

fn good() -> String {
    lines(&Sketch::new("good", &[2, 1]).results())
}

#[test]
fn lines_that_are_no_results_are_refused_with_their_place() {
    for (broken, why) in [
        ("{", "EOF while parsing an object at column 1"),
        ("not json", "expected ident at column 2"),
        ("{}", "it has no disktime_result"),
        ("[1]", "it has no disktime_result"),
        (
            r#"{"disktime_result":2}"#,
            "its disktime_result is 2, and only 1 is understood",
        ),
        (r#"{"disktime_result":"1"}"#, "its disktime_result is \"1\""),
        (r#"{"disktime_result":1}"#, "missing field `scenario`"),
        (
            r#"{"disktime_result":1,"scenario":"s","on":"vm"}"#,
            "missing field `controller`",
        ),
        (
            r#"{"disktime_result":1,"scenario":"","on":"vm","controller":"c"}"#,
            "its scenario is empty",
        ),
        (
            r#"{"disktime_result":1,"scenario":"s","on":"vm","controller":"c","groups":7}"#,
            "invalid type",
        ),
    ] {
        let folder = folder(&format!("{}\n{broken}\n", good()));
        let run = program(&folder).arg("results.jsonl").assert().code(2);
        let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        // Nine controllers, then an empty line.
        assert!(told.starts_with("error: results.jsonl:11: "), "{told}");
        assert!(told.contains(why), "{broken}: {told}");
        assert!(told.contains("\nhint: "), "{told}");
        assert!(run.get_output().stdout.is_empty());
    }
}

#[test]
fn missing_and_empty_files_are_errors_of_use() {
    let folder = folder("\n\n");
    for (file, why) in [
        ("absent", "cannot read absent: "),
        ("results.jsonl", "no results in results.jsonl"),
    ] {
        let run = program(&folder).arg(file).assert().code(2);
        let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(
            told.starts_with(&format!("error: {why}")) && told.contains("\nhint: "),
            "{told}"
        );
    }
}

#[test]
fn the_shape_follows_the_name_unless_it_is_asked_for() {
    let folder = folder(&good());
    for (arguments, file, begin) in [
        (vec!["--out", "a.html"], "a.html", "<!DOCTYPE html>"),
        (vec!["--out", "a.md"], "a.md", "# disktime: results\n"),
        (vec!["--out", "a.txt"], "a.txt", "disktime: results\n===="),
        (
            vec!["--out", "b.html", "-o", "markdown", "--title", "T"],
            "b.html",
            "# T\n",
        ),
    ] {
        let run = program(&folder)
            .arg("results.jsonl")
            .args(&arguments)
            .assert()
            .success();
        assert!(run.get_output().stdout.is_empty());
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.starts_with(begin), "{arguments:?}");
    }
}

#[test]
fn results_come_from_standard_input_too() {
    let folder = folder(&good());
    let piped = program(&folder)
        .arg("-")
        .write_stdin(good())
        .assert()
        .success();
    let named = program(&folder).arg("results.jsonl").assert().success();
    assert_eq!(piped.get_output().stdout, named.get_output().stdout);
    assert!(
        !named.get_output().stdout.contains(&0x1b),
        "no colours but on a terminal"
    );
}

#[test]
fn a_file_named_twice_is_not_two_runs() {
    let folder = folder(&good());
    let run = program(&folder)
        .args(["results.jsonl", "results.jsonl"])
        .assert()
        .success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("9 runs of 9 controllers") && text.contains("9 lines repeated"),
        "{text}"
    );
}

//! What the documents must say, and must not.

use std::fs;
use std::path::Path;

use crate::tree::{Place, everything, files, no_breach, sources};

#[test]
fn every_metric_is_explained() {
    let recorded = fs::read_to_string("src/metrics.rs").unwrap();
    let names: Vec<_> = recorded
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|name| name.starts_with("idempotent_consumer_"))
        .collect();
    assert!(!names.is_empty(), "no metric found in src/metrics.rs");
    for document in ["src/metrics.rs", "docs/operations.md"] {
        let Ok(text) = fs::read_to_string(document) else {
            continue;
        };
        for name in &names {
            assert!(
                text.contains(&format!("`{name}`")),
                "{document} does not explain {name}"
            );
        }
    }
}

#[test]
fn no_file_names_a_registrys_host() {
    // Where packages come from is the affair of each client's settings; a mirror must do.
    let hosts = [
        "crates io",
        "debian org",
        "maven org",
        "maven apache org",
        "pypi org",
        "npmjs ",
    ]
    .map(|host| host.replace(' ', "."));
    let mut breaches = Vec::new();
    for file in everything() {
        for host in hosts.iter().filter(|host| file.text.contains(*host)) {
            breaches.push(Place::file(&file, host));
        }
    }
    no_breach("a registry's host", &breaches);
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut breaches = Vec::new();
    for file in files(&["docs", "tests", "README.md", "CHANGELOG.md"], &[".md"]) {
        let dir = Path::new(&file.path).parent().unwrap();
        let links = file.text.split("](").skip(1);
        for target in links.filter_map(|rest| rest.split([')', '#']).next()) {
            // Names of the crate's items are rustdoc's to check.
            let elsewhere = target.is_empty() || target.contains("::") || target.contains("://");
            if !elsewhere && !dir.join(target).exists() {
                breaches.push(Place::file(&file, target));
            }
        }
    }
    no_breach("links to nothing", &breaches);
}

#[test]
fn the_list_of_test_binaries_is_complete() {
    let list = fs::read_to_string("tests/README.md").unwrap();
    for entry in fs::read_dir("tests").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        if !["README.md", "fixtures", "support"].contains(&name) {
            let row = format!("| `{name}` |");
            assert!(list.contains(&row), "tests/README.md has no row {row}");
        }
    }
}

/// A case is a fault that people met, with a number; the test that covers it names the number in a
/// comment.
#[test]
fn the_list_of_cases_knows_every_case_and_where_it_is_tested() {
    let list = fs::read_to_string("tests/README.md").unwrap();
    let rows: Vec<_> = list.lines().filter(|row| row.starts_with("| C")).collect();
    let mut missing = Vec::new();
    for file in sources() {
        for case in cases(&file.text) {
            let has_row = rows
                .iter()
                .any(|row| row.starts_with(&format!("| {case} |")));
            if !has_row {
                missing.push(Place::file(&file, case));
            }
        }
    }
    no_breach("cases without a row in tests/README.md", &missing);
    for row in rows {
        let case = cases(row).next().unwrap();
        for path in row.split('`').skip(1).step_by(2) {
            let text = fs::read_to_string(path).unwrap_or_default();
            assert!(
                cases(&text).any(|named| named == case),
                "tests/README.md: {path} does not cover {case}"
            );
        }
    }
}

/// The words of the form `C000` in a text.
fn cases(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| {
        let digits = word.strip_prefix('C').unwrap_or_default();
        digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

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

/// The numbers of the faults that the project has to hold against. Numbers between them were left
/// out by whoever gathered them.
const CASES: &str = "\
    C001 C002 C004 C005 C006 C007 C008 C009 C010 C011 C012 C014 C015 C016 C017 C019 C020 C022 \
    C023 C024 C025 C026 C027 C029 C030 C031 C032 C033 C034 C035 C036 C037 C038 C040 C041 C042 \
    C043 C044 C046 C048 C049 C050 C051 C052 C053 C054 C055 C056 C057 C058 C059 C060 C061 C062 \
    C063 C064 C065 C066 C068 C069 C070 C071 C072 C073 C074 C077 C078 C080 C081 C082 C083 C084 \
    C085 C086 C087 C090 C092 C095 C096 C097 C098 C099 C100 C101 C103 C107 C110";

/// A case is a fault that people met, with a number; the test that covers it names the number in a
/// comment. Where no test can be, the row names the document that says what holds.
#[test]
fn the_list_of_cases_knows_every_case_and_where_it_is_tested() {
    let list = fs::read_to_string("tests/README.md").unwrap();
    let rows: Vec<_> = list.lines().filter(|row| row.starts_with("| C")).collect();
    let has_row = |case: &str| {
        let of_case = |row: &&&str| row.starts_with(&format!("| {case} |"));
        rows.iter().filter(of_case).count() == 1
    };
    let without: Vec<_> = cases(CASES).filter(|case| !has_row(case)).collect();
    assert!(
        without.is_empty(),
        "tests/README.md: not one row: {without:?}"
    );
    let mut missing = Vec::new();
    for file in sources() {
        for case in cases(&file.text).filter(|case| !has_row(case)) {
            missing.push(Place::file(&file, case));
        }
    }
    no_breach("cases without a row in tests/README.md", &missing);
    for row in rows {
        let case = cases(row).next().unwrap();
        let mut paths = row.split('`').skip(1).step_by(2).peekable();
        assert!(
            paths.peek().is_some(),
            "tests/README.md: {case} names no file"
        );
        for path in paths {
            let text = fs::read_to_string(path).unwrap_or_default();
            let covers = if Path::new(path).extension() == Some("md".as_ref()) {
                !text.is_empty()
            } else {
                cases(&text).any(|named| named == case)
            };
            assert!(covers, "tests/README.md: {path} does not cover {case}");
        }
    }
}

// C078
#[test]
fn the_documents_promise_nothing_that_no_consumer_can_keep() {
    // The words are searched for; whoever says them has to deny them.
    let mut breaches = Vec::new();
    for file in files(
        &["docs", "src", "README.md", "CHANGELOG.md"],
        &[".md", ".rs"],
    ) {
        for (at, line) in file.text.lines().enumerate() {
            let said = line.to_lowercase().replace("exactly once", "exactly-once");
            if said.contains("exactly-once") && !said.contains("no exactly-once") {
                breaches.push(Place::line(&file, at + 1, line));
            }
        }
    }
    no_breach("exactly-once is claimed", &breaches);
    let readme = fs::read_to_string("README.md").unwrap();
    assert!(readme.contains("no exactly-once for effects outside the store"));
    let store = fs::read_to_string("src/store/mod.rs").unwrap();
    for crash in ["power cut", "death of the process"] {
        assert!(store.contains(crash), "Durability does not say: {crash}");
    }
}

/// The words of the form `C000` in a text.
fn cases(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| {
        let digits = word.strip_prefix('C').unwrap_or_default();
        digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

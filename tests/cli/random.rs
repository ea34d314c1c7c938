//! Made-up input against a few lines that say what must come out.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::support::{Lab, assert_bytes, read, run};

/// Each line that is the first of its key, with its terminator.
fn expected(
    input: &[u8],
    terminator: u8,
    field: Option<usize>,
    seen: &mut HashSet<Vec<u8>>,
) -> Vec<u8> {
    let mut lines: Vec<_> = input.split(|byte| *byte == terminator).collect();
    // What stands behind the last terminator is a line where it is anything.
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let mut out = Vec::new();
    for line in lines {
        let key = match field {
            None => Some(line),
            Some(number) => line.split(|byte| *byte == b',').nth(number - 1),
        };
        let key = key.filter(|key| field.is_none() || !key.is_empty());
        if key.is_none_or(|key| seen.insert(key.to_vec())) {
            out.extend_from_slice(line);
            out.push(terminator);
        }
    }
    out
}

/// Bytes of which many are ends of lines or delimiters, so that much is short, blank or a copy.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => Just(b'\n'), 3 => Just(0), 3 => Just(b','), 6 => b'a'..=b'c', 1 => any::<u8>(),
    ];
    let long = (1_usize..200_000).prop_map(|length| vec![b'y'; length]);
    let piece = prop_oneof![40 => prop::collection::vec(byte, 0..200), 1 => long];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_comes_out_is_the_first_line_of_each_key(
        inputs in prop::collection::vec(input(), 1..4),
        null in any::<bool>(),
        field in prop::option::of(1_usize..4),
        stored in any::<bool>(),
    ) {
        let lab = Lab::new();
        let (mut seen, mut out) = (HashSet::new(), Vec::new());
        for input in inputs {
            let mut command = lab.dedup();
            if null {
                command.arg("-z");
            }
            if let Some(number) = field {
                command.args(["--delimiter=,", "--no-key=pass", &format!("--key=field:{number}")]);
            }
            if stored && cfg!(feature = "sled") {
                command.args(["--store=sled", "--seen=store"]);
            }
            let finished = run(&mut command, &input);
            prop_assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
            let terminator = if null { 0 } else { b'\n' };
            out.extend(expected(&input, terminator, field, &mut seen));
            assert_bytes(&read(lab.out()), &out, "the out file");
        }
    }
}

#[test]
fn an_input_of_many_batches_and_a_seen_file_of_many_reads_come_out_right() {
    let lab = Lab::new();
    // 14 MB of new lines, each third a copy of one long before; batches are of 3 MiB.
    let line = |number: usize| format!("order-{number}-{}\n", "x".repeat(number % 50));
    let input: String = (0..600_000)
        .map(|number| line(if number % 3 == 2 { number / 3 } else { number }))
        .collect();
    let mut seen = HashSet::new();
    let mut out = expected(input.as_bytes(), b'\n', None, &mut seen);
    lab.feed(&input);
    lab.expect_both(&out);
    lab.feed(&input);
    lab.expect_both(&out);
    let later: String = (590_000..610_000).map(line).collect();
    out.extend(expected(later.as_bytes(), b'\n', None, &mut seen));
    lab.feed(&later);
    lab.expect_both(&out);
}

//! Side by side with the shell script that `dedup` replaces: the same input must leave the same
//! bytes in both files, and either must be able to go on where the other stopped.
//!
//! The script cannot hold NUL bytes in a variable, so there are none here.

use std::{fs, process::Command};

use crate::support::{Lab, Random, assert_bytes, read, run};

/// The lab's step 6, written so that it handles every line it can.
const SCRIPT: &str = r#"
SEEN=${DEDUP_SEEN:-/root/kafka/seen.txt}
OUT=${DEDUP_OUT:-/root/kafka/processed-dedup.txt}
touch -- "$SEEN" "$OUT"
while IFS= read -r line || [ -n "$line" ]; do
    if ! grep -qxF -- "$line" "$SEEN"; then
        printf '%s\n' "$line" >> "$OUT"
        printf '%s\n' "$line" >> "$SEEN"
    fi
done
"#;

/// A few hundred lines out of a small stock of odd ones, so that many are copies.
fn odd_lines(random: &mut Random) -> Vec<u8> {
    const STOCK: [&[u8]; 24] = [
        b"order-1",
        b"order-2",
        b"order-12",
        b"order-1 ",
        b" order-1",
        b"order-1\r",
        b"",
        b" ",
        b"\t",
        b"-n",
        b"-e",
        b"--help",
        b"--",
        b"-",
        b"a\\b",
        b"a\\",
        b"*",
        b"$HOME",
        b"a.b",
        b"a*b",
        b"\xff\xfe",
        b"\xc3\xa9",
        b"\x01",
        b"[a]",
    ];
    let mut input = Vec::new();
    for _ in 0..random.below(120) {
        match random.below(3) {
            0 => input.extend_from_slice(format!("order-{}", random.below(40)).as_bytes()),
            _ => input.extend_from_slice(STOCK[random.below(STOCK.len())]),
        }
        input.push(b'\n');
    }
    if random.below(2) == 0 {
        input.extend_from_slice(STOCK[random.below(STOCK.len())]);
    }
    input
}

fn script(lab: &Lab, directory: &str) -> Command {
    let mut command = lab.command("bash");
    command.arg(lab.write("dedup.sh", SCRIPT));
    into(lab, command, directory)
}

fn into(lab: &Lab, mut command: Command, directory: &str) -> Command {
    let directory = lab.path(directory);
    fs::create_dir_all(&directory).unwrap();
    command
        .env("DEDUP_SEEN", directory.join("seen"))
        .env("DEDUP_OUT", directory.join("out"))
        // Bytes that are no text in the locale are where grep is on its own.
        .env("LC_ALL", "C");
    command
}

fn feed(mut command: Command, input: &[u8]) {
    let finished = run(&mut command, input);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
}

#[test]
fn both_leave_the_same_bytes() {
    let lab = Lab::new();
    for seed in 1..=12 {
        let random = &mut Random(seed);
        for round in ["first", "second"] {
            let input = odd_lines(random);
            feed(script(&lab, &format!("script-{seed}")), &input);
            feed(into(&lab, lab.dedup(), &format!("dedup-{seed}")), &input);
            for file in ["seen", "out"] {
                assert_bytes(
                    &read(lab.path(format!("dedup-{seed}/{file}"))),
                    &read(lab.path(format!("script-{seed}/{file}"))),
                    &format!("seed {seed}, {round} input, {file}"),
                );
            }
        }
    }
}

#[test]
fn either_goes_on_where_the_other_stopped() {
    let lab = Lab::new();
    let random = &mut Random(99);
    for round in 0..12 {
        let input = odd_lines(random);
        feed(script(&lab, "script"), &input);
        if round % 2 == 0 {
            feed(script(&lab, "mixed"), &input);
        } else {
            feed(into(&lab, lab.dedup(), "mixed"), &input);
        }
        for file in ["seen", "out"] {
            assert_bytes(
                &read(lab.path("mixed").join(file)),
                &read(lab.path("script").join(file)),
                &format!("round {round}, {file}"),
            );
        }
    }
}

#[test]
fn the_labs_five_orders_fed_twice_stay_five() {
    let lab = Lab::new();
    let orders = "order-1\norder-2\norder-3\norder-4\norder-5\n";
    lab.feed(orders);
    lab.feed(orders);
    lab.expect_both(orders);
}

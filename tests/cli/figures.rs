//! `--stats`, and the counts that a terminal is shown.

use std::{
    fs::{self, File},
    io::Write,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::support::{
    DEDUP, Lab, cannot_run, eventually, finish, pipe_without_reader, read, run, start,
};

const FIELDS: [&str; 8] = [
    "lines",
    "new",
    "copies",
    "without_key",
    "bytes_read",
    "bytes_written",
    "seconds",
    "peak_memory_bytes",
];

/// One line with nothing but what is documented.
#[track_caller]
fn figures(said: &str) -> Value {
    assert_eq!(said.matches('\n').count(), 1, "{said}");
    let figures: Value = serde_json::from_str(said).unwrap();
    let mut names: Vec<_> = figures.as_object().unwrap().keys().collect();
    names.sort();
    let mut documented = FIELDS;
    documented.sort_unstable();
    assert_eq!(names, documented);
    let page = fs::read_to_string("docs/dedup.md").unwrap();
    for field in FIELDS {
        assert!(page.contains(&format!("| `{field}` |")), "{field}");
    }
    figures
}

#[test]
fn json_is_one_line_on_standard_error_with_the_documented_fields() {
    let lab = Lab::new();
    let args = [
        "--key=field:1",
        "--delimiter=,",
        "--no-key=pass",
        "--stats=json",
    ];
    let finished = run(lab.dedup().args(args), "a,1\na,2\n\nb");
    assert_eq!((finished.code, &*finished.stdout), (Some(0), &b""[..]));
    let figures = figures(&finished.stderr);
    let count = |field: &str| figures[field].as_u64().unwrap();
    let counts = ["lines", "new", "copies", "without_key"].map(count);
    assert_eq!(counts, [4, 3, 1, 1]);
    // The newline that the last line lacked counts in both.
    assert_eq!((count("bytes_read"), count("bytes_written")), (11, 7));
    assert!(figures["seconds"].as_f64().unwrap() > 0.0);
    assert!(count("peak_memory_bytes") > 100_000);
}

#[test]
fn memory_is_what_the_documents_say() {
    let long = [&b"a\nb\n"[..], &b"x".repeat(20_000_000), b"\n"].concat();
    let long = [&long[..], &long[4..], b"y", &long[4..]].concat();
    let many: Vec<u8> = (0..1_000_000)
        .flat_map(|number| format!("order-{number}\n").into_bytes())
        .collect();
    for (input, bytes_max) in [(long, 8 * 20_000_000), (many, 32 * 1_000_000)] {
        let lab = Lab::new();
        // Once into empty state, and once with all of it there.
        for _ in 0..2 {
            let path = lab.write("input", &input);
            let mut command = lab.dedup();
            command.arg("--stats=json").stdin(File::open(path).unwrap());
            command.stderr(Stdio::piped());
            let finished = finish(command.spawn().unwrap());
            assert_eq!(finished.code, Some(0), "{finished:?}");
            let peak = figures(&finished.stderr)["peak_memory_bytes"].as_u64();
            assert!(peak < Some(bytes_max + (20 << 20)), "{peak:?}");
        }
    }
}

#[test]
fn a_file_of_figures_is_begun_anew_and_standard_error_stays_silent() {
    let lab = Lab::new();
    let path = lab.write("figures", "x".repeat(10_000));
    for lines in [1, 0] {
        let args = ["--stats=json", "--stats-file=figures"];
        let finished = run(lab.dedup().args(args), "a\n".repeat(lines));
        assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
        let figures = figures(&String::from_utf8(read(&path)).unwrap());
        assert_eq!(figures["lines"].as_u64(), Some(lines as u64));
    }
    let finished = run(lab.dedup().args(["-v", "--stats-file=/dev/full"]), "a\nb\n");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("every line is handled"));
    lab.expect_both("a\nb\n");
}

#[test]
fn a_run_that_does_not_come_to_its_end_says_no_figures_and_leaves_none_of_the_run_before() {
    let lab = Lab::new();
    let call = |arguments: &[&str]| {
        lab.write("figures", "of the run before\n");
        let mut command = lab.dedup();
        command.args(["--stats=json", "--stats-file=figures"]);
        command.args(arguments);
        command
    };
    let input = lab.write("input", "a\n");
    let mut command = call(&["--out=/dev/stdout"]);
    let left = finish(start(command.stdout(pipe_without_reader()), &input));
    assert_eq!((left.code, &*left.stderr), (Some(0), ""));
    assert_eq!(read(lab.path("figures")), b"");
    // On standard error neither.
    let mut command = lab.dedup();
    command.args(["--stats=json", "--out=/dev/stdout"]);
    let left = finish(start(command.stdout(pipe_without_reader()), &input));
    assert_eq!((left.code, &*left.stderr), (Some(0), ""));

    let failed = run(&mut call(&["--key=field:9"]), "a\n");
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(read(lab.path("figures")), b"");

    let mut command = call(&[]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    eventually("the figures are emptied", || {
        read(lab.path("figures")).is_empty()
    });
    child.kill().unwrap();
    assert_eq!(finish(child).code, None);
    assert_eq!(read(lab.path("figures")), b"");
}

#[test]
fn a_file_that_holds_lines_is_not_emptied_for_figures_under_whatever_name() {
    let lab = Lab::new();
    lab.feed("a\n");
    let input = lab.write("input", "b\n");
    fs::hard_link(lab.seen(), lab.path("link")).unwrap();
    for name in ["seen.txt", "link", "./processed-dedup.txt", "input"] {
        let mut command = lab.dedup();
        command.args(["-v", "--stats-file", name]);
        command.stdin(File::open(&input).unwrap());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = finish(command.spawn().unwrap());
        assert_eq!(finished.code, Some(1), "{name}: {finished:?}");
        lab.expect_both("a\n");
        assert_eq!(read(&input), b"b\n");
    }
    // Nor where neither is there yet.
    let lab = Lab::new();
    let args = ["-v", "--stats-file", "./seen.txt"];
    assert_eq!(run(lab.dedup().args(args), "a\n").code, Some(1));
    assert!(!lab.out().exists());
}

#[test]
fn a_terminal_is_shown_how_far_a_long_input_is_and_nobody_else() {
    let possible = Command::new("script").arg("--version").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return cannot_run("there is no terminal to be had (needs 'script')");
    }
    let lab = Lab::new();
    let done = Command::new("mkfifo").arg(lab.path("fifo")).status();
    assert!(done.unwrap().success());
    let shown = |progress: &str| {
        let call = format!("'{DEDUP}' {progress} -v < fifo");
        let mut terminal = lab.command("script");
        terminal.args(["-q", "-e", "-f", "-c", &call, "typescript"]);
        terminal.stdin(Stdio::null()).stdout(Stdio::null());
        let child = terminal.spawn().unwrap();
        let mut fifo = File::options().write(true).open(lab.path("fifo")).unwrap();
        let (mut number, started) = (0, std::time::Instant::now());
        eventually("the terminal has the counts, or none are wanted", || {
            number += 1;
            writeln!(fifo, "{number}").unwrap();
            let told = read(lab.path("typescript"));
            let told = String::from_utf8_lossy(&told).contains("lines/s");
            told || (!progress.is_empty() && started.elapsed().as_secs() >= 3)
        });
        drop(fifo);
        assert_eq!(finish(child).code, Some(0));
        String::from_utf8(read(lab.path("typescript"))).unwrap()
    };
    let told = shown("");
    // The counts go, and what is said at the end stands alone.
    let end = told.rsplit("\r\u{1b}[K").next().unwrap();
    assert!(
        end.starts_with("dedup: ") && end.contains("lines read"),
        "{told:?}"
    );
    assert!(!shown("--no-progress").contains("lines/s"));
}

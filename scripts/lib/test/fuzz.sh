# Sourced by scripts/test: bytes that nobody thought of, for the parsers.
# shellcheck shell=bash

# Of each target. What is found in this time or not depends on chance; nightly runs take longer.
readonly FUZZ_SECONDS=${FUZZ_SECONDS:-20}
readonly FUZZ_BUILD_DEADLINE_MIN=20
readonly FUZZ_INPUT_BYTES_MAX=4096
readonly FUZZ_MEMORY_MIB_MAX=512

# What libFuzzer needs to see where a run has been. All of it is stable; the sanitizers are not.
readonly FUZZ_FLAGS=(
    --cfg fuzzing
    -Dwarnings
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
)

step_fuzz() {
    local host target dir=${CARGO_TARGET_DIR:-target}/fuzz
    # libFuzzer takes 0, and what is no number, for: without end.
    [[ $FUZZ_SECONDS =~ ^[1-9][0-9]{0,5}$ ]] ||
        die "FUZZ_SECONDS=$FUZZ_SECONDS: choose a number of seconds from 1 to 999999"
    host=$(rustc --version --verbose | sed -n 's/^host: //p')
    run cargo fmt --manifest-path fuzz/Cargo.toml --check
    # With --target the flags are not for build scripts and macros.
    RUSTFLAGS="${FUZZ_FLAGS[*]}" CARGO_TARGET_DIR=$dir within "$FUZZ_BUILD_DEADLINE_MIN" \
        cargo build --manifest-path fuzz/Cargo.toml --locked --quiet --release --target "$host" ||
        die "fuzz: not built, see above; where its list of dependencies is behind the crate's:" \
            "cargo update --workspace --manifest-path fuzz/Cargo.toml"
    for target in record frames; do
        # What was found in earlier runs is gone on with; the seeds are only read.
        mkdir -p -- "$dir/corpus/$target" "$dir/found"
        run "$dir/$host/release/$target" "$dir/corpus/$target" "fuzz/seeds/$target" \
            -max_total_time="$FUZZ_SECONDS" -max_len="$FUZZ_INPUT_BYTES_MAX" -timeout=10 \
            -rss_limit_mb="$FUZZ_MEMORY_MIB_MAX" -artifact_prefix="$dir/found/" \
            -print_final_stats=1 -verbosity=0 ||
            die "fuzz $target: it failed, see above; the input lies below $dir/found"
    done
}

# Sourced by scripts/test: what runs our code.
# shellcheck shell=bash disable=SC2154 # work is set by scripts/test

readonly EXAMPLE_DEADLINE_MIN=20
readonly TEST_DEADLINE_MIN=${TEST_DEADLINE_MIN:-45}

step_example() {
    local name value
    local -A kafka=()
    shipments
    while IFS='=' read -r name value; do kafka[$name]=$value; done < <(
        scripts/kafka up --dir "$work/kafka" --parent $$
    )
    [[ -n ${kafka[bootstrap]:-} ]] || die "no Kafka for the example (see above)"
    shipments --brokers "${kafka[bootstrap]}"
    scripts/kafka down --dir "$work/kafka"
}

# shipments [ARGUMENT...]: the example checks itself; its table is counted once more.
shipments() {
    local log=$work/example.log
    within "$EXAMPLE_DEADLINE_MIN" cargo run --locked --quiet --release --example shipments -- "$@" | tee -- "$log"
    awk '
        /^order-[1-5] +[0-9]+$/ { orders++; if ($2 != 1) bad = 1 }
        /^first run .*then died/ { died = 1 }
        END { exit !(orders == 5 && died && !bad) }
    ' "$log" || die "shipments $*: not five orders with 1 each after a death, see its output above"
}

step_tests() {
    local log=$work/tests.log
    # --no-fail-fast: one run tells of every failure.
    within "$TEST_DEADLINE_MIN" cargo test --locked --no-fail-fast --features redb 2>&1 | tee -- "$log"
    test_count=$(awk '
        /^test result: / { passed += $4; failed += $6; skipped += $8 }
        END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }
    ' "$log")
    [[ $test_count != "0 passed"* ]] || die "no test ran"
    if in_ci && grep -nE 'SKIPPED: ' -- "$log"; then
        die "tests were skipped (lines above), and CI is set"
    fi
}

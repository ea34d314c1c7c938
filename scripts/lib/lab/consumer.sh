# Sourced by scripts/lab: the consumer lab.
# shellcheck shell=bash disable=SC2154 # dir, work and bootstrap are set by common.sh

readonly ORDERS=$'order-1\norder-2\norder-3\norder-4\norder-5'

# How long a record is waited for: far longer than a busy machine takes to start the tool, which
# ends with the last record that it was asked for.
readonly READ_LIMIT_MS=120000

# consume OPTION...: the console consumer on the lab's topic.
consume() { kafka-console-consumer.sh --bootstrap-server "$bootstrap" --topic shipments "$@"; }

# A consumer without a group, from the beginning.
read_all() { consume --from-beginning --max-messages 5 --timeout-ms "$READ_LIMIT_MS"; }

consumer_groups() { kafka-consumer-groups.sh --bootstrap-server "$bootstrap" "$@"; }

ship() { SHIP_PROCESSED=$dir/processed.txt "$ship_bin"; }

# column FILE NAME: that column of the table's row for shipments.
column() {
    awk -v name="$2" '
        $1 == "GROUP" { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        at && $2 == "shipments" { print $at }' "$dir/$1"
}

step_five_orders() {
    local count
    create_topic shipments
    printf '%s\n' "$ORDERS" | produce shipments
    count=$(end_offset shipments)
    ((count == 5)) || fail "shipments holds $count records, not 5"
    printf '%s\n' "shipments has one partition and $count records"
}

step_commit_before_work() {
    local status=(0 0) committed processed
    # The crash is what this step is about: its status is looked at, not obeyed.
    consume --group ship-svc --from-beginning --max-messages 3 --timeout-ms "$READ_LIMIT_MS" | ship ||
        status=("${PIPESTATUS[@]}")
    ((status[0] == 0)) || fail "the consumer ended with status ${status[0]}"
    ((status[1] != 0)) || fail "ship-process did not crash at order-2"
    consumer_groups --describe --group ship-svc >"$dir/ship-crash.txt"
    # processed.txt grows in step 5; the report needs it as the crash left it.
    cp -- "$dir/processed.txt" "$dir/processed-at-crash.txt"
    committed=$(column ship-crash.txt CURRENT-OFFSET)
    processed=$(line_count "$dir/processed.txt")
    [[ $committed == 3 ]] || fail "CURRENT-OFFSET is ${committed:-missing}, not 3"
    [[ $(<"$dir/processed.txt") == order-1 ]] || fail "processed.txt is not exactly order-1"
    printf '%s\n' "CURRENT-OFFSET $committed, processed $processed, lost $((committed - processed))"
}

step_audit() {
    consume --group audit-svc --from-beginning --max-messages 5 --timeout-ms "$READ_LIMIT_MS" >"$dir/ship-audit.txt"
    [[ $(<"$dir/ship-audit.txt") == "$ORDERS" ]] || fail "ship-audit.txt is not order-1 to order-5"
    printf '%s\n' "another group reads all $(line_count "$dir/ship-audit.txt")"
}

step_rewind() {
    local offset
    consumer_groups --reset-offsets --group ship-svc --topic shipments --to-earliest --execute >"$dir/ship-reset.txt"
    offset=$(column ship-reset.txt NEW-OFFSET)
    [[ $offset == 0 ]] || fail "NEW-OFFSET is ${offset:-missing}, not 0"
    printf '%s\n' "ship-svc rewound to offset $offset"
}

step_again() {
    local lines distinct first
    consume --group ship-svc --max-messages 5 --timeout-ms "$READ_LIMIT_MS" | SHIP_FIXED=1 ship
    lines=$(line_count "$dir/processed.txt")
    distinct=$(distinct_count "$dir/processed.txt")
    first=$(grep -cxF order-1 -- "$dir/processed.txt")
    ((lines == 6 && distinct == 5)) || fail "processed.txt has $lines lines, $distinct distinct; not 6 and 5"
    ((first == 2)) || fail "order-1 is there $first times, not twice"
    printf '%s\n' "processed.txt has $lines lines, order-1 $first times"
}

# The lab asks for a script; ours runs the `dedup` binary with the lab's files.
write_dedup_script() {
    local seen out
    printf -v seen %q "$dir/seen.txt"
    printf -v out %q "$dir/processed-dedup.txt"
    cat >"$dir/dedup.sh" <<SCRIPT
#!/usr/bin/env bash
export DEDUP_SEEN=\${DEDUP_SEEN:-$seen} DEDUP_OUT=\${DEDUP_OUT:-$out}
exec $(printf %q "$dedup_bin")
SCRIPT
    chmod +x "$dir/dedup.sh"
}

step_dedup() {
    local out=$work/graded-out seen=$work/graded-seen
    write_dedup_script
    read_all | "$dir/dedup.sh"
    read_all | "$dir/dedup.sh"
    [[ $(<"$dir/processed-dedup.txt") == "$ORDERS" ]] ||
        fail "processed-dedup.txt has $(line_count "$dir/processed-dedup.txt") lines, not order-1 to order-5"
    # As the lab's grader does: paths by environment, copies within the input and across runs.
    printf 'a\nb\na\nc\nb\n' | DEDUP_SEEN=$seen DEDUP_OUT=$out "$dir/dedup.sh"
    printf 'c\nd\na\n' | DEDUP_SEEN=$seen DEDUP_OUT=$out "$dir/dedup.sh"
    [[ $(<"$out") == $'a\nb\nc\nd' ]] || fail "mixed copies left: $(paste -sd ' ' -- "$out")"
    printf '%s\n' "10 lines in, $(line_count "$dir/processed-dedup.txt") out; mixed copies a b c d"
}

step_start_position() {
    local late early late_pid report=$dir/offset-reset.txt
    consume --group late-svc --timeout-ms 5000 >"$work/late" &
    late_pid=$!
    consume --group early-svc --command-property auto.offset.reset=earliest \
        --max-messages 5 --timeout-ms "$READ_LIMIT_MS" >"$work/early"
    # The tool calls its time-out an error; how many records came is in the file.
    wait "$late_pid" || true
    printf 'late_count=%s\nearly_count=%s\n' \
        "$(line_count "$work/late")" "$(line_count "$work/early")" >"$report"
    late=$(report_value "$report" late_count)
    early=$(report_value "$report" early_count)
    ((late == 0)) || fail "late-svc read $late records, not 0"
    ((early == 5)) || fail "early-svc read $early records, not 5"
    printf '%s\n' "late_count $late, early_count $early"
}

step_report() {
    local committed lost duplicates unique report=$dir/consumer-report.txt
    committed=$(column ship-crash.txt CURRENT-OFFSET)
    lost=$((committed - $(line_count "$dir/processed-at-crash.txt")))
    duplicates=$(($(line_count "$dir/processed.txt") - $(distinct_count "$dir/processed.txt")))
    unique=$(line_count "$dir/processed-dedup.txt")
    printf 'lost_after_crash=%s\nduplicates_after_reset=%s\nunique_orders=%s\n' \
        "$lost" "$duplicates" "$unique" >"$report"
    ((lost == 2 && duplicates == 1 && unique == 5)) ||
        fail "$(paste -sd ' ' -- "$report"); expected 2, 1, 5"
    paste -sd ' ' -- "$report"
}

lab_main() {
    ship_bin=$(binary ship-process SHIP_PROCESS_BIN)
    dedup_bin=$(binary dedup DEDUP_BIN)
    readonly ship_bin dedup_bin
    # The lab knows one switch; whatever the user's shell has set must not decide a step.
    unset SHIP_FIXED DEDUP_SEEN DEDUP_OUT
    start_kafka
    grade_or_stop step_five_orders "five orders"
    grade step_commit_before_work "commit before the work is done"
    grade step_audit "in Kafka they are still there"
    grade step_rewind "rewind the group"
    grade step_again "work again: order-1 arrives twice"
    grade step_dedup "the idempotent consumer"
    grade step_start_position "where a new group starts"
    grade step_report "the report"
    finish
}

# Sourced by scripts/lab: the producer lab. The client reaches the broker through
# kafka-lab-slow, which delays requests of more than 4,096 bytes by 600 ms while it is on.
# shellcheck shell=bash disable=SC2154,SC2034 # dir, work and bootstrap belong to common.sh

readonly SETTLE_S=1
readonly SETTLE_DEADLINE_S=180

slow() { "$slow_bin" "$1" --state "$work/slow.state" >&2; }

start_proxy() {
    [[ -n ${kafka[proxied]:-} && -n ${kafka[proxied_upstream]:-} ]] ||
        die "this broker has no listener advertised at a proxy's address:" \
            "set KAFKA_PROXIED and KAFKA_PROXIED_UPSTREAM (docs/labs.md), or unset KAFKA_BOOTSTRAP"
    "$slow_bin" serve --listen "${kafka[proxied]}" --upstream "${kafka[proxied_upstream]}" \
        --state "$work/slow.state" >>"$dir/lab.log" 2>&1 &
    proxy_pid=$!
    local deadline=$((SECONDS + 60))
    until (exec 3<>"/dev/tcp/${kafka[proxied]/://}") 2>/dev/null; do
        kill -0 "$proxy_pid" 2>/dev/null || die "kafka-lab-slow ended at once: see $dir/lab.log"
        ((SECONDS < deadline)) || die "kafka-lab-slow does not answer at ${kafka[proxied]}"
        sleep 0.05
    done
    bootstrap=${kafka[proxied]}
}

# dump TOPIC FILE: the first log segment, batch headers and records.
dump() {
    kafka-dump-log.sh --files "${kafka[log_dir]}/$1-0/00000000000000000000.log" --print-data-log >"$dir/$2"
}

# batch_fields FILE NAME: prints that field of each batch header, in log order.
batch_fields() { sed -n "s/^baseOffset:.* $2: \(-\{0,1\}[0-9]*\).*/\1/p" "$dir/$1"; }

payloads() { sed -n 's/^| offset: .* payload: //p' "$dir/$1"; }

step_default_producer() {
    local count
    create_topic payments
    # Its INFO log lists the settings it runs with: the report takes the defaults from there.
    printf 'pay-1\npay-2\n' |
        KAFKA_LOG_LEVEL=INFO produce payments 2>"$dir/default-producer.log"
    count=$(end_offset payments)
    ((count == 2)) || fail "payments holds $count records, not 2"
    printf '%s\n' "payments has one partition and $count records"
}

step_default_is_idempotent() {
    local id sequence
    dump payments dump-default.txt
    id=$(batch_fields dump-default.txt producerId | sort -u)
    sequence=$(batch_fields dump-default.txt baseSequence | head -n 1)
    [[ $id =~ ^[0-9]+$ ]] || fail "expected one producerId other than -1, got: ${id//$'\n'/ }"
    [[ $sequence == 0 ]] || fail "baseSequence is ${sequence:-missing}, not 0"
    [[ $(payloads dump-default.txt) == $'pay-1\npay-2' ]] || fail "the payloads are not pay-1, pay-2"
    printf '%s\n' "producerId $id, baseSequence $sequence"
}

step_without_idempotence() {
    local id
    printf 'pay-3\n' | produce payments --command-property enable.idempotence=false
    dump payments dump-noidem.txt
    id=$(batch_fields dump-noidem.txt producerId | tail -n 1)
    [[ $(payloads dump-noidem.txt | tail -n 1) == pay-3 ]] || fail "the last record is not pay-3"
    [[ $id == -1 ]] || fail "the new batch has producerId ${id:-missing}, not -1"
    printf '%s\n' "pay-3's batch has producerId $id"
}

# settled_end_offset TOPIC: the end offset once nothing more arrives. Requests are still
# under way when the producer has given up: the broker is asked until two answers SETTLE_S
# apart, which is more than the delay, agree and are not 0.
settled_end_offset() {
    local before=-1 now deadline=$((SECONDS + SETTLE_DEADLINE_S))
    while ((SECONDS < deadline)); do
        now=$(end_offset "$1")
        if ((now > 0 && now == before)); then
            printf '%s\n' "$now"
            return
        fi
        before=$now
        sleep "$SETTLE_S"
    done
    fail "$1: no record count that stands still in $SETTLE_DEADLINE_S s (last: $before)"
}

# send_slowly TOPIC IDEMPOTENCE LOG: the 5,000-character line while answers come too late.
send_slowly() {
    create_topic "$1"
    slow on
    # The producer reports failure by its log; its exit status says nothing.
    produce "$1" --command-property "enable.idempotence=$2" \
        --command-property request.timeout.ms=300 --command-property delivery.timeout.ms=2000 \
        --command-property retries=2 --command-property max.block.ms=10000 \
        <"$dir/big.txt" 2>"$dir/$3" || true
    slow off
}

timeouts_in() { grep -c 'REQUEST_TIMED_OUT' -- "$dir/$1" || true; }

step_retries_duplicate() {
    local copies timeouts
    head -c 5000 /dev/zero | tr '\0' x >"$dir/big.txt"
    printf '\n' >>"$dir/big.txt"
    send_slowly payments-dup false dup-producer.log
    copies=$(settled_end_offset payments-dup) || fail "$copies"
    timeouts=$(timeouts_in dup-producer.log)
    ((copies >= 2)) || fail "payments-dup holds $copies copy, not 2 or more"
    ((timeouts > 0)) || fail "dup-producer.log shows no REQUEST_TIMED_OUT"
    dump payments-dup dump-dup.txt
    [[ $(payloads dump-dup.txt | sort -u) == "$(<"$dir/big.txt")" ]] ||
        fail "payments-dup holds something other than copies of big.txt"
    printf '%s\n' "$copies copies of one record, $timeouts retries after time-outs"
}

step_idempotence_stops_them() {
    local copies timeouts
    send_slowly payments-idem true idem-producer.log
    copies=$(settled_end_offset payments-idem) || fail "$copies"
    timeouts=$(timeouts_in idem-producer.log)
    ((copies == 1)) || fail "payments-idem holds $copies copies, not 1"
    ((timeouts > 0)) || fail "idem-producer.log shows no REQUEST_TIMED_OUT: nothing was retried"
    printf '%s\n' "$copies copy, although $timeouts retries after time-outs"
}

step_two_sessions() {
    local ids
    create_topic payments-app
    printf 'pay-77\n' | produce payments-app
    printf 'pay-77\n' | produce payments-app
    dump payments-app two-sessions.txt
    [[ $(payloads two-sessions.txt) == $'pay-77\npay-77' ]] || fail "the records are not pay-77 twice"
    ids=$(batch_fields two-sessions.txt producerId)
    [[ $ids =~ ^([0-9]+)$'\n'([0-9]+)$ ]] || fail "expected two batches with producer ids, got: ${ids//$'\n'/ }"
    [[ ${BASH_REMATCH[1]} != "${BASH_REMATCH[2]}" ]] || fail "both batches have producerId ${BASH_REMATCH[1]}"
    printf '%s\n' "pay-77 twice, producerIds ${BASH_REMATCH[1]} and ${BASH_REMATCH[2]}"
}

# default_setting NAME: the value in force in the producer of step 1, which set none.
default_setting() { sed -n "s/^[[:space:]]*$1 = //p" "$dir/default-producer.log" | head -n 1; }

step_report() {
    local counts acks idempotence report=$dir/producer-report.txt
    counts=$(end_offsets 'payments-(dup|idem|app)' | cut -d : -f 1,3)
    acks=$(default_setting acks)
    # -1 is how the producer writes `all`.
    if [[ $acks == -1 ]]; then acks=all; fi
    idempotence=$(default_setting enable.idempotence)
    {
        printf 'dup_copies=%s\n' "$(sed -n 's/^payments-dup://p' <<<"$counts")"
        printf 'idem_copies=%s\n' "$(sed -n 's/^payments-idem://p' <<<"$counts")"
        printf 'two_sessions_copies=%s\n' "$(sed -n 's/^payments-app://p' <<<"$counts")"
        printf 'acks_default=%s\nidempotence_default=%s\n' "$acks" "$idempotence"
    } >"$report"
    (($(report_value "$report" dup_copies) >= 2)) || fail "dup_copies is not 2 or more"
    [[ $(report_value "$report" idem_copies) == 1 ]] || fail "idem_copies is not 1"
    [[ $(report_value "$report" two_sessions_copies) == 2 ]] || fail "two_sessions_copies is not 2"
    [[ $acks == all ]] || fail "acks_default is ${acks:-missing}, not all"
    [[ $idempotence == true ]] || fail "idempotence_default is ${idempotence:-missing}, not true"
    paste -sd ' ' -- "$report"
}

lab_main() {
    slow_bin=$(binary kafka-lab-slow KAFKA_LAB_SLOW_BIN)
    readonly slow_bin
    start_kafka --proxied-port auto
    [[ -n ${kafka[log_dir]} ]] ||
        die "this lab dumps log segments: set KAFKA_LOG_DIR to the broker's log.dirs, or unset KAFKA_BOOTSTRAP"
    start_proxy
    grade_or_stop step_default_producer "two records by the default producer"
    grade step_default_is_idempotent "the default producer is idempotent"
    grade step_without_idempotence "without idempotence there is no producer id"
    grade step_retries_duplicate "retries make copies"
    grade step_idempotence_stops_them "the idempotent producer leaves one"
    grade step_two_sessions "two sessions are two producers"
    grade step_report "the report"
    finish
}

# Sourced by scripts/test: steps, their headlines and times, the verdict.
# shellcheck shell=bash

# Without it, a failure inside `$(...)` would go on to the next line.
shopt -s inherit_errexit

readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/idempotent-consumer
work=''
current_step=''
step_started=0
step_times=()
test_count=''

die() {
    printf '%s\n' "scripts/test: $*" >&2
    exit 1
}

in_ci() { [[ -n ${CI:-} ]]; }

# librdkafka's configure fails below a path with a space; cargo can build elsewhere.
leave_spaced_path() {
    if [[ $TEST_ROOT != *[[:space:]]* || -n ${CARGO_TARGET_DIR:-} ]]; then return; fi
    local sum
    sum=$(cksum <<<"$TEST_ROOT")
    export CARGO_TARGET_DIR=$CACHE/target-${sum%% *}
    printf '%s\n' "the path of this repository has a space, which librdkafka cannot be built below:" \
        "building in CARGO_TARGET_DIR=$CARGO_TARGET_DIR"
}

# step NAME: runs `step_NAME`. Not in a condition: there, bash would run it with errexit off.
step() {
    current_step=$1
    step_started=$SECONDS
    printf '\n== %s\n' "$1"
    "step_$1"
    step_times+=("$1 $((SECONDS - step_started)) s")
    printf '== %s: ok, %s s\n' "$1" "$((SECONDS - step_started))"
    current_step=''
}

run() {
    printf '   $ %s\n' "$*"
    "$@"
}

# within MINUTES COMMAND...: with a terminal there is somebody to end it, and `timeout` would
# take Ctrl-C away from the command.
within() {
    local minutes=$1
    shift
    if [[ -t 0 ]]; then
        run "$@"
    else
        run timeout --kill-after=30 "${minutes}m" "$@"
    fi
}

summary() {
    local times
    printf -v times '%s, ' "${step_times[@]}"
    printf '\n== all of it: ok, %s s (%s)\n' "$SECONDS" "${times%, }"
    if [[ -n $test_count ]]; then printf '%s\n' "$test_count"; fi
}

on_exit() {
    local status=$?
    if [[ -d $work/kafka ]]; then "$TEST_ROOT/scripts/kafka" down --dir "$work/kafka" || true; fi
    rm -rf -- "$work"
    if [[ -n $current_step ]]; then
        printf '\n== %s: FAILED with exit status %s after %s s; again: scripts/test %s\n' \
            "$current_step" "$status" "$((SECONDS - step_started))" "$current_step" >&2
    fi
    exit "$status"
}

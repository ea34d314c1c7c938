# Sourced by scripts/test: what is checked without running our code.
# shellcheck shell=bash

step_fmt() {
    run cargo fmt --check
    run cargo fmt --check --manifest-path benches/peers/Cargo.toml
}

step_scripts() {
    local file files=()
    while IFS= read -r -d '' file; do
        # The wrappers and the scripts without a suffix are known by their first line.
        if [[ $file == *.sh ]] || head -n 1 -- "$file" | grep -q '^#!.*sh$'; then files+=("$file"); fi
    done < <(find scripts .ci -type f -print0 | sort -z)
    ((${#files[@]} > 0)) || die "no scripts found below $PWD"
    printf '   %s scripts\n' "${#files[@]}"
    run shellcheck --external-sources "${files[@]}"
}

# Features of a service that embeds the library.
readonly LIBRARY_ONLY=(--no-default-features --features "sled,redb,postgres")
# What a service must not be made to build for our binaries and tests.
readonly NOT_FOR_LIBRARY_USERS='lexopt|tempfile|proptest|tracing-subscriber|metrics-exporter-prometheus'
readonly LICENCES='MIT|Apache-2.0|BSD-[23]-Clause|Zlib|ISC|Unlicense|CC0-1.0|Unicode-3.0|BSL-1.0'

step_deps() {
    local all library
    # Into variables first: a failing cargo must not look like an empty list.
    all=$(cargo tree --locked --edges normal,build --features testkit,redb --prefix none --format '{p}: {l}')
    none_of "licences that are not on the list in scripts/lib/test/static.sh" \
        "$(sort -u <<<"$all" | grep -vE ": .*\b($LICENCES)\b" || true)"
    library=$(cargo tree --locked "${LIBRARY_ONLY[@]}" --edges normal --prefix none)
    none_of "a library user would build" \
        "$(sort -u <<<"$library" | grep -E "^($NOT_FOR_LIBRARY_USERS) " || true)"
    none_of "Cargo.lock has sources that are no registry" \
        "$(grep -n '^source = "' Cargo.lock | grep -v 'registry+' || true)"
    printf '   %s packages\n' "$(grep -c '^name = ' Cargo.lock)"
}

none_of() { [[ -z $2 ]] || die "$1: $2"; }

step_clippy() {
    # The dev-dependency on ourselves adds testkit here: so the default set comes again without.
    clippy --all-targets --features redb
    clippy --all-targets
    clippy --lib --bins
    clippy --lib --bins --no-default-features
    local feature
    for feature in sled redb postgres cli service testkit redb,cli; do
        clippy --lib --bins --no-default-features --features "$feature"
    done
}

clippy() { run cargo clippy --locked --quiet "$@" -- -D warnings; }

step_docs() { RUSTDOCFLAGS='-D warnings' run cargo doc --locked --quiet --no-deps --features testkit,redb,postgres; }

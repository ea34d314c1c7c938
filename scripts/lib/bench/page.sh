# Sourced by scripts/bench: docs/benchmarks.md and its plots.
# shellcheck shell=bash disable=SC2154 # parts and work are set by scripts/bench

readonly PAGE=$BENCH_ROOT/docs/benchmarks.md
readonly PLOTS=$BENCH_ROOT/docs/benchmarks

begin_mark() { printf '<!-- results of scripts/bench %s -->\n' "$1"; }
end_mark() { printf '<!-- end of %s -->\n' "$1"; }

# Before anything is measured: what would be in vain after it.
check_page() {
    local part mark
    type -P gnuplot >/dev/null || die "gnuplot is missing, which draws the plots: scripts/bench install"
    for part in "${parts[@]}"; do
        for mark in "$(begin_mark "$part")" "$(end_mark "$part")"; do
            grep -qxF -- "$mark" "$PAGE" || die "$PAGE: the line '$mark' must be there"
        done
    done
}

# write_part PART TEXT: replaces what stands between the part's marks, and its plots.
write_part() {
    local begin end before after
    begin=$(begin_mark "$1")
    end=$(end_mark "$1")
    rm -f -- "$PLOTS/$1"-[0-9]*.svg
    mkdir -p -- "$PLOTS"
    printf '%s\n' "$2" | "$BENCH_ROOT/scripts/lib/bench/plot" "$1" "$PLOTS" >"$work/results"
    before=$(sed "\\|^$begin\$|q" "$PAGE")
    after=$(sed -n "\\|^$end\$|,\$p" "$PAGE")
    printf '%s\n\n%s\n\n%s\n' "$before" "$(<"$work/results")" "$after" >"$work/page"
    cp -- "$work/page" "$PAGE"
}

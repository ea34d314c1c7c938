# Called by scripts/lib/bench/plot, which sets `rows`, `heading`, `unit` and `output_file`: a bar
# for each contender, as long as its median, and under it a line over the spread of its runs.
# A row is `median lowest highest name`, divided by tabs.
#
# No background, and greys and hues of middling lightness: to be read on light and on dark pages.

set datafile separator "\t"
stats rows using 1 nooutput
count = STATS_records
set terminal svg size 760, 96 + 50 * count font "sans-serif,13" noenhanced name "bars"
set output output_file

grey = "#777777"
set title heading textcolor rgb grey offset 0, -0.4
set xlabel unit." (bar: median; line: all runs)" textcolor rgb grey
set xtics textcolor rgb grey nomirror out
set format x "%.1s %c"
set border 1 linecolor rgb grey
set grid xtics linecolor rgb grey linewidth 0.3 dashtype 3
unset ytics
unset key
set lmargin 3
set rmargin 5
set yrange [-count + 0.4 : 0.6]
set xrange [0 : *]

# Ours in blue, by the names that the contests give it.
ours(name) = strstrt(name, "our ") || strstrt(name, "Idempotent") || strstrt(name, "Transactional") \
    || name eq "dedup" || strstrt(name, "dedup --") == 1
colour(name) = ours(name) ? 0x3b82c4 : 0x999999

set style fill solid 1 noborder
plot rows using 1:(-$0):(0):1:(-$0 - 0.24):(-$0 + 0.06):(colour(strcol(4))) with boxxyerror linecolor rgb variable, \
    "" using 1:(-$0 - 0.33):2:3 with xerrorbars pointtype 0 linecolor rgb grey linewidth 1.2, \
    "" using (0):(-$0 + 0.26):(strcol(4).":  ".gprintf("%.2s %c", $1)) with labels left offset 0.3, 0 textcolor rgb grey

//! What `dedup --help` prints.

pub(crate) const HELP: &str = "\
Usage: dedup [OPTIONS] < LINES
       dedup store --help
       dedup topic --help

Reads lines from standard input. A line that was not seen before is appended to
the out file and remembered. Lines are compared as bytes. What was seen stays
seen over restarts and crashes.

Options:
      --store KIND    how the lines seen are kept  [default: text]
                      text: in a file, one a line, as the lab's script does
                      sled: in a store directory; out is kept in step with it
                      redb: the same, where this build has the feature 'redb'
      --seen PATH     where they are kept: a regular file, or with a store a
                      directory; created when missing, though not the
                      directory that it is in
                      [default: /root/kafka/seen.txt,
                      with --store sled /root/kafka/seen.store,
                      with --store redb /root/kafka/seen.redb]
      --out PATH      where new lines go: a file, which is appended to, a pipe
                      or a device  [default: /root/kafka/processed-dedup.txt]
  -z, --null          lines end in NUL, in and out and in the seen file
      --key KEY       what makes two lines the same; the whole line is written
                      [default: line]
                      line: the whole line
                      field:NUMBER: the bytes between two delimiters, counted
                      from 1; quotes mean nothing
                      json:POINTER: the value at an RFC 6901 pointer, such as
                      json:/order/id; a string and a number differ
      --delimiter D   between the fields of a line: one byte or more, \t for a
                      tab  [default: \t]
      --no-key WHAT   what a line without a key does  [default: stop]
                      stop: end with an error that names the line; those before
                      it are handled
                      pass: be written, each time it comes, and never marked
                      An empty key, a null and a line that is no JSON are none.
      --ttl AGE       forget keys that were new so long ago, when a run starts:
                      30m, 12h, 7d; with --store text alone, whose file then
                      has the time in front of each mark
      --stats KIND    say at the end on standard error what was done
                      text: a sentence, as --verbose
                      json: an object in one line, see docs/dedup.md
      --stats-file PATH  write that there instead; the file is emptied at the
                      start, and stays so where the run does not end in order
      --no-progress   show no counts while a long input is read; without it
                      they are shown where standard error is a terminal
      --wait SECONDS  wait up to this long for another dedup that uses a file
                      [default: 0, fail at once; at most 86400]
  -v, --verbose       say on standard error what was done
  -h, --help          print this
  -V, --version       print the version

Environment:
  DEDUP_SEEN, DEDUP_OUT  as --seen and --out, which win; empty means unset

What holds with --store text:
  New lines are on disk in the out file before they are marked as seen, so a
  stop at any moment loses none: feed the same input again. The lines in flight
  at the stop, at most 4 MiB and one line, may then be written twice.
  A file that does not end in a newline gets one before anything is appended.
  With --key the seen file holds keys, behind a first line that names their
  kind; a run with other settings refuses it.
  Memory: 21 to 32 bytes for each line seen, about 20 MiB besides, and up to 8
  times the longest line.

What holds with --store sled or redb:
  Lines are recorded in the store, each record atomic and durable, before they
  are appended to the out file. The next start appends what the file lacks of
  them, so a stop at any moment neither loses nor repeats a line.
  So out belongs to the store: if it is missing, all of it is written again; for
  a new out use a new store. If somebody else wrote into it, it is refused and
  left as it is. To go on from older files, move out away and feed it.
  A pipe, a device and standard output cannot be looked at again: there the
  lines are written first and recorded then, and those in flight at a stop may
  come twice, as with --store text.

Exit codes:
  0  every line was handled (or the reader of standard output went away)
  1  a file could not be used, read or written; what was handed over is marked
  2  the call is wrong
";

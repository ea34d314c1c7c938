//! New, copy, redelivery, restart.

use crate::support::*;

#[test]
fn copies_in_one_fetch_take_effect_once() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    let mut records = vec![("order-1", "a"); 50];
    records.push(("order-2", "b"));
    produce(&broker, 0, &records);
    let (effects, report) = consume(builder(&broker), sled(dir.path()), 2);
    assert_eq!(effects, ["0:0:order-1=a", "0:50:order-2=b"]);
    assert_eq!((report.counts.new, report.counts.duplicate), (2, 49));
}

// C008, C009
#[test]
fn a_restart_after_a_clean_stop_sees_nothing_again() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    let (_, report) = consume(builder(&broker), sled(dir.path()), 2);
    assert_eq!(
        report
            .positions
            .values()
            .map(|next| next.get())
            .collect::<Vec<_>>(),
        [2]
    );
    produce(&broker, 0, &[("order-3", "c"), ("order-1", "a")]);
    let (effects, report) = consume(builder(&broker), sled(dir.path()), 1);
    assert_eq!(effects, ["0:2:order-3=c"]);
    assert_eq!((report.counts.redelivery, report.counts.in_doubt), (0, 0));
}

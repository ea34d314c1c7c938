//! Stores that hold as much as they may.

use super::*;

#[test]
fn a_window_is_shrunk_by_its_oldest_units_over_all_partitions() {
    each(|kit| {
        let (one, other) = (kit.lease(0), kit.lease(1));
        kit.hours(&one, 0..20);
        for number in 0..20 {
            kit.commit(unit(&other, number, BEGAN_MS + (10 + number) * HOUR_MS));
        }
        let cap = Retention::max_entries(200).at_cap(AtCap::ShrinkWindow);
        let expired = kit.sweep(cap).expired;
        assert_eq!(expired.keys, 200);
        // Both begin at about the same time now.
        let begins = [&one, &other].map(|lease| kit.retained(lease).oldest_ms);
        assert!((begins[0] - begins[1]).abs() <= HOUR_MS, "{begins:?}");
        assert_eq!(kit.sweep(cap), Swept::default());
        let usage = kit.store.retaining().unwrap().usage();
        assert_eq!(usage.entries, 200);
    });
}

#[test]
fn bytes_are_counted_and_kept_below_their_cap() {
    each(|kit| {
        let lease = kit.lease(0);
        kit.hours(&lease, 0..50);
        let bytes = kit.retained(&lease).usage.bytes;
        assert!(bytes > 50 * 250, "{bytes}");
        let cap = Retention::max_bytes(bytes / 2).at_cap(AtCap::ShrinkWindow);
        let gone = kit.sweep(cap).expired;
        let left = kit.retained(&lease).usage.bytes;
        assert_eq!(gone.bytes + left, bytes);
        assert!(
            left <= bytes / 2 && left > bytes / 2 - 600,
            "{left} of {bytes}"
        );
    });
}

// C068
#[test]
fn a_full_store_drops_nothing_unless_it_was_told_to() {
    each(|kit| {
        let lease = kit.lease(0);
        let sweeper =
            |entries| kit.sweeper(Retention::for_duration(9 * HOUR).and_max_entries(entries));
        kit.hours(&lease, 0..5);
        let mut full = sweeper(50);
        assert!(full.is_full() && !sweeper(51).is_full());
        assert_eq!(full.sweep().unwrap(), Swept::default());
        assert_eq!(kit.known(&lease, 50).len(), 50);
        // What expires in its time makes room.
        kit.hours(&lease, 5..14);
        assert_eq!(full.sweep().unwrap().expired.units, 2);
    });
}

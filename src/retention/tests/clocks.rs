//! Record times that are wrong, and clocks that jump.

use super::*;
use crate::clock::Clock as _;

const YEARS_MS: i64 = 10 * 365 * 24 * HOUR_MS;

// C055
#[test]
fn one_record_from_the_future_takes_nothing_with_it_and_does_not_stay_for_ever() {
    each(|kit| {
        let lease = kit.lease(0);
        kit.hours(&lease, 0..4);
        kit.commit(unit(&lease, 4, BEGAN_MS + YEARS_MS));
        kit.hours(&lease, 5..6);
        kit.commit(unit(&lease, 6, BEGAN_MS + YEARS_MS));
        kit.commit(unit(&lease, 7, BEGAN_MS + YEARS_MS));
        assert_eq!(
            kit.sweep(Retention::for_duration(6 * HOUR)),
            Swept::default()
        );
        kit.hours(&lease, 8..16);
        kit.sweep(Retention::for_duration(6 * HOUR));
        let known = kit.known(&lease, 160);
        assert!(known.contains(&80) && !known.contains(&40), "{known:?}");
    });
}

// C055
#[test]
fn a_record_of_long_ago_stays_for_as_long_as_its_neighbours() {
    each(|kit| {
        let lease = kit.lease(0);
        kit.hours(&lease, 0..4);
        for (number, time_ms) in [(4, 1), (5, BEGAN_MS / 1_000), (6, BEGAN_MS - YEARS_MS)] {
            kit.clock.set_ms(BEGAN_MS + 4 * HOUR_MS);
            kit.commit(unit(&lease, number, time_ms));
        }
        kit.hours(&lease, 7..9);
        kit.sweep(Retention::for_duration(5 * HOUR));
        assert_eq!(kit.known(&lease, 90).len(), 90);
        kit.clock.set_ms(BEGAN_MS + YEARS_MS);
        kit.hours(&lease, 9..20);
        kit.sweep(Retention::for_duration(5 * HOUR));
        assert!(!kit.known(&lease, 200).contains(&40));
    });
}

#[test]
fn records_out_of_order_are_kept_by_the_newest_of_their_unit() {
    each(|kit| {
        let lease = kit.lease(0);
        kit.hours(&lease, 0..3);
        // Its last record is from before, another from hours later.
        let early = unit(&lease, 3, BEGAN_MS);
        kit.commit(CommitUnit {
            max_timestamp_ms: BEGAN_MS + 8 * HOUR_MS,
            ..early
        });
        kit.hours(&lease, 4..15);
        kit.sweep(Retention::for_duration(5 * HOUR));
        assert_eq!(kit.known(&lease, 150).first(), Some(&30));
    });
}

// C070
#[test]
fn a_clock_set_back_drops_nothing_and_keeps_nothing_for_longer() {
    each(|kit| {
        let lease = kit.lease(0);
        let timeless = |number| kit.commit(unit(&lease, number, -1));
        (0..4).for_each(timeless);
        let began_ms = kit.clock.now_ms();
        kit.clock.set_ms(began_ms - HOUR_MS);
        (4..8).for_each(timeless);
        assert_eq!(kit.sweep(Retention::for_duration(HOUR)), Swept::default());
        kit.clock.set_ms(began_ms + HOUR_MS + 1);
        (8..12).for_each(timeless);
        assert_eq!(kit.sweep(Retention::for_duration(HOUR)).expired.units, 10);
        assert_eq!(kit.known(&lease, 120), (100..120).collect::<Vec<_>>());
    });
}

// C071
#[test]
fn a_clock_that_jumps_ahead_drops_nothing_before_the_time_has_passed() {
    each(|kit| {
        let lease = kit.lease(0);
        let keep = Retention::for_duration(3 * HOUR);
        let mut sweeper = kit.sweeper(keep);
        let timeless = |number| kit.commit(unit(&lease, number, 0));
        (0..10).for_each(timeless);
        assert_eq!(sweeper.sweep().unwrap(), Swept::default());
        let now_ms = kit.clock.now_ms();
        kit.clock.set_ms(now_ms + YEARS_MS);
        (10..14).for_each(timeless);
        let swept = sweeper.sweep().unwrap();
        assert_eq!((swept.expired.units, swept.held.len()), (0, 1));
        assert_eq!((swept.held[0].keys, swept.held[0].of), (120, 140));
        // And back. What was there is dropped only when it is as old as was promised.
        kit.clock.set_ms(now_ms);
        (14..100).for_each(timeless);
        kit.clock
            .advance((3 * HOUR).saturating_sub(Duration::from_millis(1)));
        assert_eq!(sweeper.sweep().unwrap().held.len(), 1);
        assert_eq!(kit.known(&lease, 1_000).len(), 1_000);
        kit.clock.advance(Duration::from_millis(1));
        assert_eq!(sweeper.sweep().unwrap().expired.units, 12);
        assert_eq!(sweeper.sweep().unwrap(), Swept::default());
    });
}

// C071
#[test]
fn what_is_allowed_to_go_at_once_goes() {
    each(|kit| {
        let lease = kit.lease(0);
        let retention = Retention::for_duration(HOUR).sudden_percent_max(100);
        let mut sweeper = kit.sweeper(retention);
        kit.hours(&lease, 0..3);
        sweeper.sweep().unwrap();
        for number in 3..7 {
            kit.commit(unit(&lease, number, BEGAN_MS + 500 * HOUR_MS));
        }
        assert_eq!(sweeper.sweep().unwrap().expired.units, 3);
    });
}

#[test]
fn a_pause_that_really_was_expires_everything_before_it() {
    each(|kit| {
        let lease = kit.lease(0);
        kit.clock.set_ms(BEGAN_MS + 3 * HOUR_MS);
        let mut sweeper = kit.sweeper(Retention::for_duration(HOUR));
        kit.hours(&lease, 0..3);
        sweeper.sweep().unwrap();
        kit.clock.advance(500 * HOUR);
        for number in 3..7 {
            kit.commit(unit(&lease, number, BEGAN_MS + 500 * HOUR_MS));
        }
        let swept = sweeper.sweep().unwrap();
        assert_eq!((swept.expired.units, swept.held.len()), (3, 0));
    });
}

//! Delayed requests: late, in order, and never lost with their client.

use std::time::{Duration, Instant};

use idempotent_consumer::testkit::{ApiKey, DelayLarge, Faults};

use crate::support::{
    Broker, Client, DEADLINE, FOR_EVER, proxy_to, reply_to, request, request_of_size,
};

const DELAY: Duration = Duration::from_millis(200);

fn large(delay: Duration) -> Faults {
    Faults {
        delay_large: Some(DelayLarge {
            delay,
            ..DelayLarge::default()
        }),
        ..Faults::default()
    }
}

#[test]
fn the_default_is_the_labs_more_than_4096_bytes_by_600_ms() {
    let default = DelayLarge::default();
    assert_eq!(default.threshold_bytes, 4_096);
    assert_eq!(default.delay, Duration::from_millis(600));
}

#[test]
fn a_request_of_the_threshold_passes_and_one_byte_more_waits() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(FOR_EVER));
    let mut slow = Client::of(&proxy);
    slow.exchange(&request_of_size(1, 4_096));
    assert_eq!(proxy.stats().delayed, 0);
    slow.send(&request_of_size(2, 4_097));
    proxy
        .wait_for(DEADLINE, |stats| stats.delayed == 1)
        .unwrap();
    // Other connections do not wait for it.
    Client::of(&proxy).exchange(&request_of_size(3, 4_096));
    assert_eq!(broker.arrivals().len(), 2);
    assert_eq!(proxy.stats().forwarded, 2);
}

#[test]
fn a_large_request_arrives_no_earlier_than_its_delay() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(DELAY));
    let sent_at = Instant::now();
    Client::of(&proxy).exchange(&request_of_size(1, 5_000));
    assert!(broker.arrivals()[0].at - sent_at >= DELAY);
}

#[test]
fn delay_all_holds_small_requests_too_and_the_longer_delay_wins() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(DELAY * 2));
    proxy.change(|faults| faults.delay_all = DELAY);
    let mut client = Client::of(&proxy);
    let small_sent_at = Instant::now();
    client.exchange(&request_of_size(1, 10));
    let large_sent_at = Instant::now();
    client.exchange(&request_of_size(2, 5_000));
    let arrivals = broker.arrivals();
    assert!(arrivals[0].at - small_sent_at >= DELAY);
    assert!(arrivals[1].at - large_sent_at >= DELAY * 2);
}

#[test]
fn requests_of_one_connection_stay_in_order_behind_a_delayed_one() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(DELAY));
    let mut client = Client::of(&proxy);
    let sent = [
        request_of_size(1, 5_000),
        request_of_size(2, 10),
        request_of_size(3, 6_000),
        request_of_size(4, 10),
    ];
    client.send(&sent.concat());
    for request in &sent {
        assert!(client.reply() == reply_to(request));
    }
}

#[test]
fn a_delayed_request_reaches_the_broker_after_its_client_has_closed() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(DELAY));
    let sent = request_of_size(1, 5_000);
    let sent_at = Instant::now();
    let mut client = Client::of(&proxy);
    client.send(&sent);
    drop(client);
    let arrivals = broker.wait_for(1);
    assert!(arrivals[0].frame == sent);
    assert!(arrivals[0].at - sent_at >= DELAY);
    // And then the connection is given back.
    proxy.wait_for(DEADLINE, |stats| stats.open == 0).unwrap();
}

#[test]
fn a_delayed_request_reaches_the_broker_after_its_client_has_reset_the_connection() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(DELAY));
    let mut client = Client::of(&proxy);
    let unread = request_of_size(1, 10);
    client.send(&unread);
    broker.wait_for(1);
    let delayed = request_of_size(2, 5_000);
    client.send(&delayed);
    proxy
        .wait_for(DEADLINE, |stats| stats.delayed == 1)
        .unwrap();
    // Closing with a reply unread is a reset on the wire.
    client.wait_for_unread_reply();
    drop(client);
    assert!(broker.wait_for(2)[1].frame == delayed);
}

/// The producer lab without Kafka: give up, close, send the same again on a new connection.
#[test]
fn a_client_that_gives_up_and_sends_again_leaves_copies() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(DELAY));
    let sent = request_of_size(1, 5_000);
    for attempt in 1..=3 {
        let mut client = Client::of(&proxy);
        client.send(&sent);
        proxy
            .wait_for(DEADLINE, |stats| stats.delayed == attempt)
            .unwrap();
    }
    let arrivals = broker.wait_for(3);
    assert!(arrivals.iter().all(|arrival| arrival.frame == sent));
    let mut connections: Vec<_> = arrivals.iter().map(|a| a.connection).collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 1, 2]);
}

#[test]
fn replies_to_a_client_that_has_gone_do_not_cost_the_requests_behind_them() {
    let broker = Broker::scripted(|request| Some(reply_to(request).repeat(50)));
    let proxy = proxy_to(&broker, large(DELAY));
    let mut client = Client::of(&proxy);
    for id in 0..40 {
        client.send(&request_of_size(id, 5_000));
    }
    drop(client);
    assert_eq!(broker.wait_for(40).len(), 40);
}

#[test]
fn switching_the_delay_off_lets_new_requests_pass_at_once() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(FOR_EVER));
    proxy.delay_large(None);
    assert_eq!(proxy.faults(), Faults::default());
    Client::of(&proxy).exchange(&request(ApiKey::PRODUCE, 1, 5_000));
    assert_eq!(proxy.stats().delayed, 0);
}

#[test]
fn a_delay_beyond_the_clock_is_taken_as_the_longest_one() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, large(Duration::MAX));
    let mut client = Client::of(&proxy);
    client.send(&request_of_size(1, 5_000));
    proxy
        .wait_for(DEADLINE, |stats| stats.delayed == 1)
        .unwrap();
    Client::of(&proxy).exchange(&request_of_size(2, 10));
    assert_eq!(proxy.stats().forwarded, 1);
}

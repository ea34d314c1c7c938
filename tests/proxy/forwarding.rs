//! What passes when nothing is wrong.

use std::thread;

use idempotent_consumer::testkit::{ApiKey, Faults};

use crate::support::{Broker, Client, DEADLINE, framed, proxy_to, reply_to, request};

#[test]
fn requests_and_replies_of_every_size_pass_unchanged() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    let sizes = [0, 1, 4_088, 4_089, 65_535, 65_536, 3_000_000];
    for (id, body_bytes) in (0..).zip(sizes) {
        let sent = request(ApiKey::PRODUCE, id, body_bytes);
        client.exchange(&sent);
        let arrivals = broker.arrivals();
        assert!(
            arrivals.last().unwrap().frame == sent,
            "request {id} changed"
        );
    }
    let stats = proxy.stats();
    assert_eq!(stats.requests_of(ApiKey::PRODUCE), 7);
    assert_eq!((stats.forwarded, stats.delayed, stats.dropped), (7, 0, 0));
    assert_eq!((stats.connections, stats.open, stats.problems), (1, 1, 0));
}

#[test]
fn frames_too_short_for_a_header_pass_as_well() {
    let broker = Broker::silent();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    client.send(&framed(b""));
    client.send(&framed(b"token"));
    let arrivals = broker.wait_for(2);
    assert_eq!(arrivals[0].frame, framed(b""));
    assert_eq!(arrivals[1].frame, framed(b"token"));
    assert_eq!(proxy.stats().unnamed_requests, 2);
}

#[test]
fn many_requests_sent_at_once_are_answered_in_order() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    let requests: Vec<_> = (0..3_000)
        .map(|id| request(ApiKey::FETCH, id, 20))
        .collect();
    client.send(&requests.concat());
    for request in &requests {
        assert_eq!(client.reply(), reply_to(request));
    }
}

#[test]
fn a_request_that_trickles_in_byte_by_byte_is_one_request() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    let sent = request(ApiKey::METADATA, 1, 100);
    for byte in &sent {
        client.send(std::slice::from_ref(byte));
    }
    assert_eq!(client.reply(), reply_to(&sent));
    assert_eq!(broker.arrivals().len(), 1);
}

#[test]
fn a_client_that_only_stopped_sending_still_gets_its_replies() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    let sent = request(ApiKey::METADATA, 1, 100);
    client.send(&sent);
    client.finish_sending();
    assert_eq!(client.reply(), reply_to(&sent));
    client.assert_closed();
}

#[test]
fn many_connections_each_get_their_own_replies() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let clients: Vec<_> = (0..40).map(|id| (id, Client::of(&proxy))).collect();
    thread::scope(|scope| {
        for (id, mut client) in clients {
            scope.spawn(move || {
                for round in 0..5 {
                    client.exchange(&request(ApiKey::FETCH, id * 10 + round, 5_000));
                }
            });
        }
    });
    let stats = proxy.wait_for(DEADLINE, |stats| stats.open == 0).unwrap();
    assert_eq!((stats.connections, stats.forwarded), (40, 200));
}

//! Cuts and stalls.

use idempotent_consumer::testkit::{ApiKey, Faults};

use crate::support::{Broker, Client, DEADLINE, FOR_EVER, proxy_to, reply_to, request};

#[test]
fn a_cut_closes_connections_and_refuses_new_ones_until_it_is_restored() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut before = Client::of(&proxy);
    before.exchange(&request(ApiKey::PRODUCE, 1, 10));
    proxy.cut();
    before.assert_closed();
    Client::of(&proxy).assert_closed();
    let stats = proxy.wait_for(DEADLINE, |stats| stats.open == 0).unwrap();
    assert_eq!((stats.connections, stats.refused), (1, 1));
    proxy.restore();
    Client::of(&proxy).exchange(&request(ApiKey::PRODUCE, 2, 10));
    assert_eq!(broker.arrivals().len(), 2);
}

#[test]
fn a_cut_that_is_restored_at_once_still_closes_what_was_open() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut clients: Vec<_> = (0..20).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.exchange(&request(ApiKey::FETCH, 1, 10));
    }
    proxy.cut();
    proxy.restore();
    for client in &mut clients {
        client.assert_closed();
    }
}

#[test]
fn a_cut_loses_what_was_held_back() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    proxy.stall();
    let mut client = Client::of(&proxy);
    client.send(&request(ApiKey::PRODUCE, 1, 10));
    proxy
        .wait_for(DEADLINE, |stats| stats.requests_of(ApiKey::PRODUCE) == 1)
        .unwrap();
    proxy.cut();
    client.assert_closed();
    proxy.heal();
    let after = request(ApiKey::PRODUCE, 2, 10);
    Client::of(&proxy).exchange(&after);
    let frames: Vec<_> = broker.arrivals().into_iter().map(|a| a.frame).collect();
    assert_eq!(frames, [after]);
    assert_eq!(proxy.stats().forwarded, 1);
}

#[test]
fn a_stall_holds_requests_and_resuming_forwards_them_in_order() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    client.exchange(&request(ApiKey::PRODUCE, 0, 10));
    proxy.stall();
    let held: Vec<_> = (1..=5).map(|id| request(ApiKey::PRODUCE, id, 10)).collect();
    client.send(&held.concat());
    let stats = proxy
        .wait_for(DEADLINE, |stats| stats.requests_of(ApiKey::PRODUCE) == 6)
        .unwrap();
    assert_eq!((stats.forwarded, stats.open), (1, 1));
    proxy.resume();
    for request in &held {
        assert_eq!(client.reply(), reply_to(request));
    }
}

#[test]
fn a_stall_holds_replies_and_a_client_that_leaves_meanwhile_loses_no_request() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    proxy.stall();
    let sent = request(ApiKey::PRODUCE, 1, 10);
    let mut client = Client::of(&proxy);
    client.send(&sent);
    drop(client);
    proxy
        .wait_for(DEADLINE, |stats| stats.requests_of(ApiKey::PRODUCE) == 1)
        .unwrap();
    assert!(broker.arrivals().is_empty());
    proxy.resume();
    assert_eq!(broker.wait_for(1)[0].frame, sent);
}

#[test]
fn setting_faults_that_include_a_cut_is_a_cut() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    client.exchange(&request(ApiKey::PRODUCE, 1, 10));
    proxy.set(Faults {
        cut: true,
        delay_all: FOR_EVER,
        ..Faults::default()
    });
    client.assert_closed();
}

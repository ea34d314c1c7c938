//! Cuts and stalls.

use std::sync::{Mutex, mpsc};

use idempotent_consumer::testkit::{ApiKey, FaultProxy, Faults};

use crate::support::{Broker, Client, DEADLINE, FOR_EVER, proxy_to, reply_to, request};

/// Returns after a request that the stalled proxy took on another connection. The proxy works on
/// one thread, so by then it has done all it is going to do with what it had before.
fn let_the_proxy_work(proxy: &FaultProxy) {
    let other = ApiKey(99);
    Client::of(proxy).send(&request(other, 1, 10));
    proxy
        .wait_for(DEADLINE, |stats| stats.requests_of(other) == 1)
        .unwrap();
}

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
    let_the_proxy_work(&proxy);
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
    let_the_proxy_work(&proxy);
    assert_eq!(proxy.stats().forwarded, 1);
    proxy.resume();
    for request in &held {
        assert_eq!(client.reply(), reply_to(request));
    }
}

#[test]
fn a_stall_holds_replies_and_resuming_gives_them_back() {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let broker = Broker::scripted(move |request| {
        released.lock().unwrap().recv().unwrap();
        Some(reply_to(request))
    });
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    let sent = request(ApiKey::FETCH, 1, 10);
    client.send(&sent);
    proxy
        .wait_for(DEADLINE, |stats| stats.forwarded == 1)
        .unwrap();
    proxy.stall();
    release.send(()).unwrap();
    proxy
        .wait_for(DEADLINE, |stats| stats.replies == 1)
        .unwrap();
    let_the_proxy_work(&proxy);
    assert!(!client.has_reply());
    proxy.resume();
    assert_eq!(client.reply(), reply_to(&sent));
}

#[test]
fn a_client_that_leaves_during_a_stall_loses_no_request() {
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
    let_the_proxy_work(&proxy);
    assert!(broker.arrivals().is_empty());
    proxy.resume();
    let arrivals = broker.wait_for(2);
    assert!(arrivals.iter().any(|arrival| arrival.frame == sent));
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

//! The request reaches the broker; the reply never reaches the client.

use idempotent_consumer::testkit::{ApiKey, FaultProxy, Faults};

use crate::support::{Broker, Client, DEADLINE, FOR_EVER, proxy_to, reply_to, request};

fn setting() -> (Broker, FaultProxy) {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    (broker, proxy)
}

#[test]
fn only_replies_to_the_named_kind_of_request_are_dropped() {
    let (broker, proxy) = setting();
    proxy.drop_replies(ApiKey::OFFSET_COMMIT, 1);
    let mut client = Client::of(&proxy);
    client.exchange(&request(ApiKey::FETCH, 1, 10));
    client.send(&request(ApiKey::OFFSET_COMMIT, 2, 10));
    // The next reply that comes is the next request's: the one before it was lost.
    client.exchange(&request(ApiKey::HEARTBEAT, 3, 10));
    client.exchange(&request(ApiKey::OFFSET_COMMIT, 4, 10));
    assert_eq!(broker.arrivals().len(), 4);
    assert_eq!(proxy.stats().dropped, 1);
}

#[test]
fn as_many_replies_are_dropped_as_were_asked_for_and_calls_add_up() {
    let (_broker, proxy) = setting();
    proxy.drop_replies(None, 2);
    proxy.drop_replies(None, 1);
    proxy.drop_replies(None, 0);
    let mut client = Client::of(&proxy);
    for id in 0..3 {
        client.send(&request(ApiKey(id), 1, 10));
    }
    client.exchange(&request(ApiKey::PRODUCE, 9, 10));
    assert_eq!(proxy.stats().dropped, 3);
}

#[test]
fn a_lost_reply_may_take_its_connection_along() {
    let (broker, proxy) = setting();
    proxy.disconnect_before_replies(ApiKey::PRODUCE, 1);
    let mut client = Client::of(&proxy);
    client.send(&request(ApiKey::PRODUCE, 1, 10));
    client.assert_closed();
    assert_eq!(broker.arrivals().len(), 1);
    Client::of(&proxy).exchange(&request(ApiKey::PRODUCE, 1, 10));
    let stats = proxy.stats();
    assert_eq!((stats.dropped, stats.problems), (1, 0));
}

#[test]
fn requests_held_back_behind_a_disconnect_are_no_problem_of_the_brokers() {
    let (_broker, proxy) = setting();
    proxy.disconnect_before_replies(ApiKey::PRODUCE, 1);
    let mut client = Client::of(&proxy);
    proxy.stall();
    client.send(&request(ApiKey::PRODUCE, 1, 10));
    proxy
        .wait_for(DEADLINE, |stats| stats.requests_of(ApiKey::PRODUCE) == 1)
        .unwrap();
    proxy.change(|faults| faults.delay_all = FOR_EVER);
    client.send(&request(ApiKey::FETCH, 2, 10));
    proxy
        .wait_for(DEADLINE, |stats| stats.delayed == 1)
        .unwrap();
    proxy.resume();
    client.assert_closed();
    proxy.wait_for(DEADLINE, |stats| stats.open == 0).unwrap();
    assert_eq!(proxy.take_problems(), []);
}

#[test]
fn replies_are_told_apart_even_after_requests_that_have_none() {
    // A producer that asks for no acknowledgement gets no reply.
    let unanswered = |request: &[u8]| request[5] == 0;
    let broker = Broker::scripted(move |request| {
        Some(if unanswered(request) {
            Vec::new()
        } else {
            reply_to(request)
        })
    });
    let proxy = proxy_to(&broker, Faults::default());
    proxy.drop_replies(ApiKey::PRODUCE, 1);
    let mut client = Client::of(&proxy);
    for id in 0..10 {
        client.send(&request(ApiKey::PRODUCE, id, 10));
    }
    client.exchange(&request(ApiKey::METADATA, 10, 10));
    assert_eq!(proxy.stats().dropped, 0);
}

#[test]
fn healing_forgets_the_replies_that_were_still_to_be_lost() {
    let (_broker, proxy) = setting();
    proxy.drop_replies(None, 1);
    proxy.disconnect_before_replies(ApiKey::PRODUCE, 1);
    proxy.change(|faults| faults.delay_all = FOR_EVER);
    proxy.heal();
    Client::of(&proxy).exchange(&request(ApiKey::PRODUCE, 1, 10));
    assert_eq!(proxy.stats().dropped, 0);
}

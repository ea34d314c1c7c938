//! Clients and brokers that break off, send nonsense, or are not there.

use idempotent_consumer::testkit::{
    ApiKey, FRAME_BYTES_MAX, FaultProxy, Faults, FrameError, Problem, Sender,
};

use tokio::net::TcpSocket;

use crate::support::{Broker, Client, DEADLINE, FOR_EVER, loopback, proxy_to, reply_to, request};

fn wait_for_problem(proxy: &FaultProxy) -> Problem {
    proxy
        .wait_for(DEADLINE, |stats| stats.problems > 0)
        .unwrap();
    let mut problems = proxy.take_problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

#[test]
fn a_frame_above_the_limit_closes_its_connection_and_no_other() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut good = Client::of(&proxy);
    let mut bad = Client::of(&proxy);
    bad.send(&i32::MAX.to_be_bytes());
    bad.assert_closed();
    assert_eq!(
        wait_for_problem(&proxy),
        Problem::Malformed {
            peer: bad.addr(),
            sender: Sender::Client,
            error: FrameError::TooLarge {
                size_bytes: 2_147_483_647,
                limit_bytes: FRAME_BYTES_MAX,
            },
        }
    );
    good.exchange(&request(ApiKey::PRODUCE, 1, 10));
}

#[test]
fn a_negative_size_closes_the_connection_and_the_reason_names_peer_and_size() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    client.send(&(-5_i32).to_be_bytes());
    client.assert_closed();
    let reason = wait_for_problem(&proxy).to_string();
    assert!(reason.contains(&client.addr().to_string()), "{reason}");
    assert!(reason.contains("-5 bytes"), "{reason}");
}

#[test]
fn whole_requests_before_a_broken_one_still_reach_the_broker() {
    let broker = Broker::silent();
    let proxy = proxy_to(&broker, Faults::default());
    proxy.stall();
    let whole = request(ApiKey::PRODUCE, 1, 10);
    let mut client = Client::of(&proxy);
    client.send(&whole);
    client.send(b"\xff\xff\xff\xff");
    client.assert_closed();
    proxy.resume();
    assert_eq!(broker.wait_for(1)[0].frame, whole);
}

#[test]
fn a_half_request_is_not_forwarded_and_the_whole_one_before_it_is() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let whole = request(ApiKey::PRODUCE, 1, 10);
    let mut client = Client::of(&proxy);
    client.send(&whole);
    client.send(&whole[..9]);
    let peer = client.addr();
    client.finish_sending();
    assert_eq!(client.reply(), reply_to(&whole));
    client.assert_closed();
    assert_eq!(
        wait_for_problem(&proxy),
        Problem::HalfFrame {
            peer,
            sender: Sender::Client,
            bytes: 9
        }
    );
    assert_eq!(broker.arrivals().len(), 1);
    Client::of(&proxy).exchange(&whole);
}

#[test]
fn an_unreachable_upstream_costs_the_connection_and_not_the_proxy() {
    // Taken, so that no other test gets it, and not listened on.
    let holder = TcpSocket::new_v4().unwrap();
    holder.bind(loopback()).unwrap();
    let upstream = holder.local_addr().unwrap();
    let proxy = FaultProxy::start(loopback(), upstream, Faults::default()).unwrap();
    for _ in 0..2 {
        let mut client = Client::of(&proxy);
        client.assert_closed();
        let problem = proxy.take_problems().remove(0);
        assert!(
            matches!(&problem, Problem::UpstreamUnreachable { peer, upstream: of, .. }
                if *peer == client.addr() && *of == upstream),
            "{problem}"
        );
    }
}

#[test]
fn a_reply_that_breaks_the_framing_closes_the_connection() {
    let broker = Broker::scripted(|_| Some((-1_i32).to_be_bytes().to_vec()));
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    client.send(&request(ApiKey::PRODUCE, 1, 10));
    client.assert_closed();
    assert_eq!(
        wait_for_problem(&proxy),
        Problem::Malformed {
            peer: client.addr(),
            sender: Sender::Upstream,
            error: FrameError::Negative { size_bytes: -1 },
        }
    );
}

#[test]
fn requests_lost_with_the_brokers_connection_are_counted() {
    let broker = Broker::scripted(|_| None);
    let proxy = proxy_to(&broker, Faults::default());
    proxy.stall();
    let mut client = Client::of(&proxy);
    client.send(&request(ApiKey::PRODUCE, 1, 10));
    proxy
        .wait_for(DEADLINE, |stats| stats.requests_of(ApiKey::PRODUCE) == 1)
        .unwrap();
    proxy.change(|faults| faults.delay_all = FOR_EVER);
    client.send(&request(ApiKey::FETCH, 2, 10));
    client.send(&request(ApiKey::FETCH, 3, 10));
    proxy
        .wait_for(DEADLINE, |stats| stats.delayed == 2)
        .unwrap();
    proxy.resume();
    client.assert_closed();
    assert_eq!(
        wait_for_problem(&proxy),
        Problem::RequestsLost {
            peer: client.addr(),
            upstream: broker.addr,
            requests: 2
        }
    );
}

#[test]
fn what_the_broker_said_before_it_closed_still_reaches_the_client() {
    let broker = Broker::scripted(|request| (request[5] != 1).then(|| reply_to(request)));
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    let answered = request(ApiKey::PRODUCE, 1, 100_000);
    client.send(&answered);
    client.send(&request(ApiKey::FETCH, 2, 10));
    assert!(client.reply() == reply_to(&answered));
    client.assert_closed();
}

#[test]
fn connections_above_128_are_refused_and_the_others_go_on() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut clients: Vec<_> = (0..128).map(|_| Client::of(&proxy)).collect();
    proxy.wait_for(DEADLINE, |stats| stats.open == 128).unwrap();
    let mut refused = Client::of(&proxy);
    refused.assert_closed();
    assert_eq!(
        wait_for_problem(&proxy),
        Problem::TooManyConnections {
            peer: refused.addr(),
            limit: 128
        }
    );
    clients[127].exchange(&request(ApiKey::PRODUCE, 1, 10));
    // A connection that ended makes room at once, every time.
    for round in 0..50 {
        clients.pop();
        proxy.wait_for(DEADLINE, |stats| stats.open == 127).unwrap();
        let mut client = Client::of(&proxy);
        client.exchange(&request(ApiKey::PRODUCE, round, 10));
        clients.push(client);
    }
}

//! Starting, stopping, and where the proxy's log goes.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use idempotent_consumer::testkit::{ApiKey, FaultProxy, Faults, ProxyError};

use crate::support::{Broker, Client, DEADLINE, FOR_EVER, loopback, proxy_to, request};

#[test]
fn only_loopback_addresses_are_listened_on() {
    let upstream = SocketAddr::from(([127, 0, 0, 1], 9_092));
    for listen in ["0.0.0.0:0", "10.0.0.1:0", "[::]:0", "[::ffff:10.0.0.1]:0"] {
        let error = FaultProxy::start(listen.parse().unwrap(), upstream, Faults::default());
        let error = error.unwrap_err();
        assert!(matches!(error, ProxyError::NotLoopback { .. }), "{listen}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
}

#[test]
fn an_address_that_is_taken_is_refused_by_name() {
    let holder = TcpListener::bind(loopback()).unwrap();
    let taken = holder.local_addr().unwrap();
    let error = FaultProxy::start(taken, loopback(), Faults::default()).unwrap_err();
    assert!(matches!(error, ProxyError::Listen { listen, .. } if listen == taken));
}

#[test]
fn a_proxy_to_itself_is_refused() {
    let addr = SocketAddr::from(([127, 0, 0, 1], 9_092));
    let error = FaultProxy::start(addr, addr, Faults::default()).unwrap_err();
    assert!(matches!(error, ProxyError::UpstreamIsSelf { .. }));
}

/// Drops a proxy that holds a connection, and starts another one at its address.
fn started_again(broker: &Broker) -> Result<FaultProxy, ProxyError> {
    let proxy = proxy_to(broker, Faults::default());
    let addr = proxy.local_addr();
    let mut client = Client::of(&proxy);
    client.exchange(&request(ApiKey::PRODUCE, 1, 10));
    proxy.change(|faults| faults.delay_all = FOR_EVER);
    client.send(&request(ApiKey::PRODUCE, 2, 10));
    proxy
        .wait_for(DEADLINE, |stats| stats.delayed == 1)
        .unwrap();
    drop(proxy);
    client.assert_closed();
    drop(client);
    FaultProxy::start(addr, broker.addr, Faults::default())
}

#[test]
fn dropping_the_proxy_closes_its_connections_and_frees_its_address() {
    let broker = Broker::answering();
    // Whoever asks for any port may be given the one that has just become free.
    let again = (0..5).find_map(|_| started_again(&broker).ok());
    assert!(again.is_some(), "its address is not free, five times over");
}

#[tokio::test]
async fn it_starts_and_stops_inside_another_runtime() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    let mut client = Client::of(&proxy);
    client.exchange(&request(ApiKey::PRODUCE, 1, 10));
    drop(proxy);
    client.assert_closed();
}

#[test]
fn waiting_for_numbers_that_do_not_come_ends_at_the_deadline_with_those_there_are() {
    let broker = Broker::answering();
    let proxy = proxy_to(&broker, Faults::default());
    Client::of(&proxy).exchange(&request(ApiKey::PRODUCE, 1, 10));
    let patience = std::time::Duration::from_millis(10);
    let stats = proxy.wait_for(patience, |stats| stats.dropped > 0);
    assert_eq!(stats.unwrap_err().forwarded, 1);
}

#[test]
fn problems_are_logged_to_the_subscriber_of_whoever_started_the_proxy() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let broker = Broker::answering();
    let proxy =
        tracing::subscriber::with_default(subscriber, || proxy_to(&broker, Faults::default()));
    let mut client = Client::of(&proxy);
    client.send(&i32::MIN.to_be_bytes());
    client.assert_closed();
    drop(proxy);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("WARN"), "{text}");
    assert!(text.contains(&client.addr().to_string()), "{text}");
    assert!(text.contains("-2147483648 bytes"), "{text}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

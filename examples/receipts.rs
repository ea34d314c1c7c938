//! Payments in, receipts out: each payment has one receipt, however often it comes.
//!
//! Promise: whoever reads the receipts with `isolation.level=read_committed` finds one for each
//! payment, whatever dies when. Where it stops: at the edge of Kafka; a letter that the handler sent
//! by post could be sent twice.
//!
//! ```text
//! cargo run --example receipts -- HOST:PORT      # topics `payments` and `receipts` must exist
//! ```

use std::process::ExitCode;

use idempotent_consumer::store::SledStore;
use idempotent_consumer::{ClientConfig, IdempotentConsumer, Outgoing, Transactional, key};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(brokers) = std::env::args().nth(1) else {
        eprintln!("usage: receipts HOST:PORT");
        return ExitCode::from(2);
    };
    match answer(&brokers).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("receipts: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn answer(brokers: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("group.id", "receipts");
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        // Where signals cannot be had there is nothing to wait for, and it is stopped at once.
        let _ = tokio::signal::ctrl_c().await;
        stopped.cancel();
    });
    let report = IdempotentConsumer::builder(config)
        .topics(["payments"])
        .key(key::record_key())
        .build(Transactional::over(SledStore::open("receipts.seen")?))?
        .run(
            async |payment, outbox| {
                let receipt = Outgoing::copy_of(payment, "receipts");
                outbox.send(receipt.header("answers", payment.token().as_bytes()));
                Ok(())
            },
            stop,
        )
        .await?;
    println!("{:?}", report.counts);
    Ok(())
}

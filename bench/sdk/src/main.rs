//! What the Iggy SDK itself reaches, for ../run to compare with:
//!
//!   sdk-bench produce ADDRESS STREAM TOPIC PARTITION COUNT SIZE BATCH    one producer, the next batch when the last is answered
//!   sdk-bench consume ADDRESS STREAM TOPIC PARTITION COUNT BATCH         one consumer from the beginning, BATCH messages a poll
//!
//! User and password come from IGGY_USER and IGGY_PASSWORD. Prints one line of key=value: n, seconds, records_s, mb_s, and the time of
//! a call in microseconds. A run that takes five minutes ends with status 1.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use iggy::prelude::*;

type Outcome = Result<(), Box<dyn Error>>;

const LIMIT: Duration = Duration::from_secs(300);
const VALUES_COUNT: usize = 256;

struct Place {
    stream: Identifier,
    topic: Identifier,
    partition: u32,
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| "iggy".to_owned())
}

async fn connect(address: &str) -> Result<IggyClient, Box<dyn Error>> {
    let config = TcpClientConfig { server_address: address.to_owned(), nodelay: true, ..Default::default() };
    let client = IggyClient::new(ClientWrapper::Tcp(TcpClient::create(Arc::new(config))?));
    client.connect().await?;
    client.login_user(&variable("IGGY_USER"), &variable("IGGY_PASSWORD")).await?;
    Ok(client)
}

/// Pseudo-random text; the generator for Kafka compresses, this one does not, so what is in it does not matter.
fn values(size: usize) -> Vec<Bytes> {
    let mut state = 12345u32;
    let mut one = || {
        (0..size)
            .map(|_| {
                state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
                b"0123456789abcdef"[(state >> 16 & 15) as usize]
            })
            .collect::<Vec<u8>>()
            .into()
    };
    (0..VALUES_COUNT).map(|_| one()).collect()
}

fn report(count: usize, bytes: usize, took: Duration, mut calls: Vec<Duration>) {
    calls.sort();
    let at = |per_mille: usize| calls[(calls.len() - 1) * per_mille / 1000].as_micros();
    let seconds = took.as_secs_f64();
    println!(
        "n={count} seconds={seconds:.3} records_s={:.0} mb_s={:.1} p50_us={} p95_us={} p99_us={} p999_us={} max_us={}",
        count as f64 / seconds,
        bytes as f64 / seconds / 1e6,
        at(500),
        at(950),
        at(990),
        at(999),
        at(1000)
    );
}

async fn produce(client: &IggyClient, place: &Place, count: usize, size: usize, batch: usize) -> Outcome {
    let values = values(size);
    let to = Partitioning::partition_id(place.partition);
    let mut calls = Vec::with_capacity(count / batch + 1);
    let start = Instant::now();
    let mut sent = 0;
    while sent < count {
        let end = count.min(sent + batch);
        let mut messages = (sent..end)
            .map(|i| IggyMessage::builder().payload(values[i % VALUES_COUNT].clone()).build())
            .collect::<Result<Vec<_>, _>>()?;
        let before = Instant::now();
        client.send_messages(&place.stream, &place.topic, &to, &mut messages).await?;
        calls.push(before.elapsed());
        sent = end;
    }
    report(sent, sent * size, start.elapsed(), calls);
    Ok(())
}

async fn consume(client: &IggyClient, place: &Place, count: usize, batch: u32) -> Outcome {
    let consumer = Consumer::new(Identifier::numeric(1)?);
    let (mut seen, mut bytes, mut calls) = (0, 0, Vec::new());
    let start = Instant::now();
    while seen < count {
        let from = PollingStrategy::offset(seen as u64);
        let before = Instant::now();
        let polled =
            client.poll_messages(&place.stream, &place.topic, Some(place.partition), &consumer, &from, batch, false).await?;
        calls.push(before.elapsed());
        if polled.messages.is_empty() {
            return Err(format!("only {seen} messages").into());
        }
        seen += polled.messages.len();
        bytes += polled.messages.iter().map(|message| message.payload.len()).sum::<usize>();
    }
    report(seen, bytes, start.elapsed(), calls);
    Ok(())
}

async fn run(a: &[String]) -> Outcome {
    if a.len() < 8 {
        return Err("usage: sdk-bench produce|consume ADDRESS STREAM TOPIC PARTITION COUNT ...".into());
    }
    let client = connect(&a[2]).await?;
    let place = Place { stream: a[3].as_str().try_into()?, topic: a[4].as_str().try_into()?, partition: a[5].parse()? };
    let count = a[6].parse()?;
    match (a[1].as_str(), a.len()) {
        ("produce", 9) => produce(&client, &place, count, a[7].parse()?, a[8].parse()?).await,
        ("consume", 8) => consume(&client, &place, count, a[7].parse()?).await,
        _ => Err("not a command with these arguments".into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    tokio::time::timeout(LIMIT, run(&env::args().collect::<Vec<_>>())).await?
}

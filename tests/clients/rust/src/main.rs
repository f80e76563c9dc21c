//! The driver protocol (../README.md) for client libraries in Rust: rust-clients rdkafka|rskafka BOOTSTRAP

mod rd;
mod rs;

use std::fmt::Write as _;
use std::io::{BufRead, Write};

pub struct Record {
    pub partition: i32,
    pub offset: i64,
    /// Milliseconds; None lets the client choose.
    pub timestamp: Option<i64>,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Kafka's number or name of an error, and a text.
pub struct Failure(pub String, pub String);
pub type Answer<T> = Result<T, Failure>;

pub enum Place {
    Earliest,
    Latest,
    Time(i64),
}

pub struct Produce {
    pub topic: String,
    pub records: Vec<Record>,
    pub codec: String,
    pub acks: String,
    pub idempotent: bool,
}

#[allow(async_fn_in_trait)]
pub trait Client {
    fn abilities(&self) -> &'static str;
    async fn create(&self, topic: &str, partitions: i32, factor: i32) -> Answer<()>;
    async fn delete(&self, topic: &str) -> Answer<()>;
    async fn grow(&self, topic: &str, partitions: i32) -> Answer<()>;
    async fn topics(&self) -> Answer<Vec<(String, usize)>>;
    async fn produce(&self, what: Produce) -> Answer<Vec<(i32, i64)>>;
    async fn consume(&self, topic: &str, partition: i32, offset: i64, count: usize) -> Answer<Vec<Record>>;
    async fn offset(&self, topic: &str, partition: i32, place: Place) -> Answer<Option<i64>>;
}

fn pack(data: Option<&[u8]>) -> String {
    let Some(bytes) = data else { return "-".into() };
    let mut text = String::from("x");
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("memory"));
    text
}

fn unpack(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix('x')?;
    Some((0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect())
}

fn parse(line: &str) -> Record {
    let f: Vec<&str> = line.split('\t').collect();
    let headers = f[5].split(',').filter(|header| *header != "-").map(|header| {
        let (name, value) = header.split_once('=').unwrap();
        (String::from_utf8(unpack(name).unwrap()).unwrap(), unpack(value))
    });
    Record {
        partition: number(f[0]),
        offset: -1,
        timestamp: f[2].parse().ok(),
        key: unpack(f[3]),
        value: unpack(f[4]),
        headers: headers.collect(),
    }
}

fn format_record(r: &Record) -> String {
    let headers: Vec<String> =
        r.headers.iter().map(|(name, value)| format!("{}={}", pack(Some(name.as_bytes())), pack(value.as_deref()))).collect();
    let headers = if headers.is_empty() { "-".into() } else { headers.join(",") };
    let (key, value) = (pack(r.key.as_deref()), pack(r.value.as_deref()));
    format!("{}\t{}\t{}\t{key}\t{value}\t{headers}", r.partition, r.offset, r.timestamp.unwrap_or(-1))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a number")
}

/// `TopicAlreadyExists` as Kafka writes it: `TOPIC_ALREADY_EXISTS`.
pub fn kafka_name(camel: &str) -> String {
    let mut name = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

async fn answer(client: &impl Client, a: &[&str], lines: &mut impl Iterator<Item = String>) -> Answer<Vec<String>> {
    Ok(match a[0] {
        "hello" => vec![client.abilities().replace(' ', "\t")],
        "create" => client.create(a[1], number(a[2]), number(a[3])).await.map(|()| vec![])?,
        "delete" => client.delete(a[1]).await.map(|()| vec![])?,
        "grow" => client.grow(a[1], number(a[2])).await.map(|()| vec![])?,
        "topics" => client.topics().await?.iter().map(|(name, count)| format!("{name}={count}")).collect(),
        "produce" => {
            let records = lines.take(number(a[5])).map(|line| parse(&line)).collect();
            let what = Produce { topic: a[1].into(), records, codec: a[2].into(), acks: a[3].into(), idempotent: a[4] == "yes" };
            client.produce(what).await?.iter().map(|(partition, offset)| format!("{partition}:{offset}")).collect()
        }
        "consume" => {
            let found = client.consume(a[1], number(a[2]), number(a[3]), number(a[4])).await?;
            let mut text = found.len().to_string();
            found.iter().for_each(|record| text += &format!("\n{}", format_record(record)));
            vec![text]
        }
        "offset" => {
            let place = match a[3] {
                "earliest" => Place::Earliest,
                "latest" => Place::Latest,
                ms => Place::Time(number(ms)),
            };
            vec![client.offset(a[1], number(a[2]), place).await?.map_or("-".into(), |offset| offset.to_string())]
        }
        other => return Err(Failure("UNKNOWN".into(), format!("no such command: {other}"))),
    })
}

async fn serve(client: impl Client) {
    let mut lines = std::io::stdin().lock().lines().map(|line| line.expect("a line"));
    while let Some(line) = lines.next() {
        let fields: Vec<&str> = line.split('\t').collect();
        let output = match answer(&client, &fields, &mut lines).await {
            Ok(answer) => [vec!["ok".to_string()], answer].concat().join("\t"),
            Err(Failure(code, text)) => format!("err\t{code}\t{}", text.replace(['\n', '\t'], " ")),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{output}").and_then(|()| out.flush()).expect("standard output");
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments[1].as_str() {
        "rdkafka" => serve(rd::RustRdkafka { bootstrap: arguments[2].clone() }).await,
        _ => serve(rs::Rskafka::connect(&arguments[2]).await).await,
    }
}

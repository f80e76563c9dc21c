//! rust-rdkafka (librdkafka)

use crate::{Answer, Client, Failure, Place, Produce, Record};
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication, TopicResult};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(15);

pub struct RustRdkafka {
    pub bootstrap: String,
}

fn by_code(code: RDKafkaErrorCode) -> Failure {
    Failure((code as i32).to_string(), format!("{code}"))
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        error.rdkafka_error_code().map_or(Failure("FAILED".into(), error.to_string()), by_code)
    }
}

fn first(results: Vec<TopicResult>) -> Answer<()> {
    results.into_iter().next().expect("a result").map(|_| ()).map_err(|(_, code)| by_code(code))
}

impl RustRdkafka {
    fn config(&self, settings: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap).set("log_level", "0");
        settings.iter().for_each(|(key, value)| {
            config.set(*key, *value);
        });
        config
    }

    fn admin(&self) -> Answer<AdminClient<DefaultClientContext>> {
        Ok(self.config(&[]).create()?)
    }

    fn consumer(&self) -> Answer<BaseConsumer> {
        let settings = [("group.id", "none"), ("enable.auto.commit", "false"), ("auto.offset.reset", "error"), ("fetch.wait.max.ms", "200")];
        Ok(self.config(&settings).create()?)
    }
}

impl Client for RustRdkafka {
    fn abilities(&self) -> &'static str {
        "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header null-header repeat-header null-key \
         empty-key tombstone empty-value consume create delete grow topics offset offset-time"
    }

    async fn create(&self, topic: &str, partitions: i32, factor: i32) -> Answer<()> {
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(factor));
        first(self.admin()?.create_topics([&new], &AdminOptions::new()).await?)
    }

    async fn delete(&self, topic: &str) -> Answer<()> {
        first(self.admin()?.delete_topics(&[topic], &AdminOptions::new()).await?)
    }

    async fn grow(&self, topic: &str, partitions: i32) -> Answer<()> {
        let more = NewPartitions::new(topic, partitions as usize);
        first(self.admin()?.create_partitions([&more], &AdminOptions::new()).await?)
    }

    async fn topics(&self) -> Answer<Vec<(String, usize)>> {
        let metadata = self.consumer()?.fetch_metadata(None, LIMIT)?;
        Ok(metadata.topics().iter().map(|topic| (topic.name().to_string(), topic.partitions().len())).collect())
    }

    async fn produce(&self, what: Produce) -> Answer<Vec<(i32, i64)>> {
        let idempotent = if what.idempotent { "true" } else { "false" };
        let settings = [
            ("compression.type", what.codec.as_str()),
            ("acks", what.acks.as_str()),
            ("enable.idempotence", idempotent),
            ("linger.ms", "5"),
            ("message.timeout.ms", "15000"),
        ];
        let producer: FutureProducer = self.config(&settings).create()?;
        let mut sent = vec![];
        for record in &what.records {
            let mut headers = OwnedHeaders::new();
            for (name, value) in &record.headers {
                headers = headers.insert(Header { key: name, value: value.as_deref() });
            }
            let message = FutureRecord::<[u8], [u8]> {
                topic: &what.topic,
                partition: Some(record.partition),
                key: record.key.as_deref(),
                payload: record.value.as_deref(),
                timestamp: record.timestamp,
                headers: Some(headers),
            };
            sent.push(producer.send_result(message).map_err(|(error, _)| Failure::from(error))?);
        }
        let mut positions = vec![];
        for delivery in sent {
            let done = delivery.await.map_err(|_| Failure("CANCELED".into(), "the producer gave up".into()))?;
            let done = done.map_err(|(error, _)| Failure::from(error))?;
            positions.push((done.partition, if what.acks == "0" { -1 } else { done.offset }));
        }
        Ok(positions)
    }

    async fn consume(&self, topic: &str, partition: i32, offset: i64, count: usize) -> Answer<Vec<Record>> {
        let consumer = self.consumer()?;
        let mut places = TopicPartitionList::new();
        places.add_partition_offset(topic, partition, Offset::Offset(offset))?;
        consumer.assign(&places)?;
        let (mut found, end) = (vec![], Instant::now() + LIMIT);
        while found.len() < count && Instant::now() < end {
            let Some(message) = consumer.poll(Duration::from_millis(500)) else { continue };
            let message = message?;
            let headers = message.headers().map_or(vec![], |headers| {
                headers.iter().map(|header| (header.key.to_string(), header.value.map(Vec::from))).collect()
            });
            found.push(Record {
                partition: message.partition(),
                offset: message.offset(),
                timestamp: message.timestamp().to_millis(),
                key: message.key().map(Vec::from),
                value: message.payload().map(Vec::from),
                headers,
            });
        }
        Ok(found)
    }

    async fn offset(&self, topic: &str, partition: i32, place: Place) -> Answer<Option<i64>> {
        let consumer = self.consumer()?;
        if let Place::Time(ms) = place {
            let mut places = TopicPartitionList::new();
            places.add_partition_offset(topic, partition, Offset::Offset(ms))?;
            let found = consumer.offsets_for_times(places, LIMIT)?;
            return Ok(found.elements()[0].offset().to_raw().filter(|offset| *offset >= 0));
        }
        let (low, high) = consumer.fetch_watermarks(topic, partition, LIMIT)?;
        Ok(Some(if matches!(place, Place::Earliest) { low } else { high }))
    }
}

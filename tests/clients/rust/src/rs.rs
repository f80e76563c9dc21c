//! rskafka

use crate::{kafka_name, Answer, Client, Failure, Place, Produce, Record};
use rskafka::client::error::Error;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub struct Rskafka {
    client: rskafka::client::Client,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let name = match &error {
            Error::ServerError { protocol_error, .. } => kafka_name(&format!("{protocol_error:?}")),
            _ => "FAILED".into(),
        };
        Failure(name, error.to_string())
    }
}

impl Rskafka {
    pub async fn connect(bootstrap: &str) -> Self {
        let client = ClientBuilder::new(vec![bootstrap.into()]).build().await.expect("a connection");
        Rskafka { client }
    }

    async fn partition(&self, topic: &str, partition: i32) -> Answer<PartitionClient> {
        Ok(self.client.partition_client(topic, partition, UnknownTopicHandling::Retry).await?)
    }
}

fn time(ms: i64) -> chrono::DateTime<chrono::Utc> {
    chrono::DateTime::from_timestamp_millis(ms).expect("a time")
}

impl Client for Rskafka {
    fn abilities(&self) -> &'static str {
        // Headers are a sorted map of values that are never null.
        "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd time headers empty-header null-key empty-key tombstone empty-value consume \
         create delete topics offset offset-time"
    }

    async fn create(&self, topic: &str, partitions: i32, factor: i32) -> Answer<()> {
        Ok(self.client.controller_client()?.create_topic(topic, partitions, factor as i16, 5000).await?)
    }

    async fn delete(&self, topic: &str) -> Answer<()> {
        Ok(self.client.controller_client()?.delete_topic(topic, 5000).await?)
    }

    async fn grow(&self, _: &str, _: i32) -> Answer<()> {
        Err(Failure("UNSUPPORTED".into(), "rskafka has no such call".into()))
    }

    async fn topics(&self) -> Answer<Vec<(String, usize)>> {
        Ok(self.client.list_topics().await?.into_iter().map(|topic| (topic.name, topic.partitions.len())).collect())
    }

    async fn produce(&self, what: Produce) -> Answer<Vec<(i32, i64)>> {
        let compression = match what.codec.as_str() {
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => Compression::NoCompression,
        };
        let mut batches: BTreeMap<i32, Vec<(usize, rskafka::record::Record)>> = BTreeMap::new();
        let mut positions = vec![];
        for (index, record) in what.records.into_iter().enumerate() {
            positions.push((record.partition, -1));
            let headers = record.headers.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect();
            let timestamp = record.timestamp.map_or_else(chrono::Utc::now, time);
            let record_out = rskafka::record::Record { key: record.key, value: record.value, headers, timestamp };
            batches.entry(record.partition).or_default().push((index, record_out));
        }
        for (partition, batch) in batches {
            let (indexes, records): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let offsets = self.partition(&what.topic, partition).await?.produce(records, compression).await?;
            indexes.into_iter().zip(offsets).for_each(|(index, offset)| positions[index].1 = offset);
        }
        Ok(positions)
    }

    async fn consume(&self, topic: &str, partition: i32, offset: i64, count: usize) -> Answer<Vec<Record>> {
        let client = self.partition(topic, partition).await?;
        let (mut found, mut next, end) = (vec![], offset, Instant::now() + Duration::from_secs(15));
        while found.len() < count && Instant::now() < end {
            let (records, _) = client.fetch_records(next, 1..4_000_000, 200).await?;
            for one in records.into_iter().take(count - found.len()) {
                next = one.offset + 1;
                found.push(Record {
                    partition,
                    offset: one.offset,
                    timestamp: Some(one.record.timestamp.timestamp_millis()),
                    key: one.record.key,
                    value: one.record.value,
                    headers: one.record.headers.into_iter().map(|(name, value)| (name, Some(value))).collect(),
                });
            }
        }
        Ok(found)
    }

    async fn offset(&self, topic: &str, partition: i32, place: Place) -> Answer<Option<i64>> {
        let at = match place {
            Place::Earliest => OffsetAt::Earliest,
            Place::Latest => OffsetAt::Latest,
            Place::Time(ms) => OffsetAt::Timestamp(time(ms)),
        };
        let offset = self.partition(topic, partition).await?.get_offset(at).await?;
        Ok(Some(offset).filter(|offset| *offset >= 0))
    }
}

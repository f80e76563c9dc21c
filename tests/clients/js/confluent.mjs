// @confluentinc/kafka-javascript (librdkafka) behind the driver protocol: confluent.mjs BOOTSTRAP
import { BOOTSTRAP, Failure, packagesOf, serve, sleep } from './driver.mjs'

const RdKafka = packagesOf('js-confluent')('@confluentinc/kafka-javascript')
const base = { 'bootstrap.servers': BOOTSTRAP, log_level: 0 }
const admin = RdKafka.AdminClient.create(base)
const call = f => new Promise((resolve, reject) => f((error, value) => (error ? reject(error) : resolve(value))))
const connect = client => call(done => client.connect({ timeout: 15000 }, done))
const consumerOf = () => new RdKafka.KafkaConsumer(
  { ...base, 'group.id': 'none', 'enable.auto.commit': false, 'fetch.wait.max.ms': 200 }, { 'auto.offset.reset': 'error' })

async function withClient (client, use) {
  await connect(client)
  try {
    return await use(client)
  } finally {
    await call(done => client.disconnect(done)).catch(() => {})
  }
}

await serve({
  // It reads empty keys and values as null.
  abilities: 'codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header repeat-header null-key ' +
    'tombstone consume create delete grow topics cluster offset offset-time',

  codeOf: error => error.code,

  create: (topic, partitions, factor) => call(done =>
    admin.createTopic({ topic, num_partitions: partitions, replication_factor: factor }, 15000, done)),
  delete: topic => call(done => admin.deleteTopic(topic, 15000, done)),
  grow: (topic, partitions) => call(done => admin.createPartitions(topic, partitions, 15000, done)),

  topics: () => withClient(consumerOf(), async client => {
    const metadata = await call(done => client.getMetadata({ timeout: 15000, allTopics: true }, done))
    return Object.fromEntries(metadata.topics.map(topic => [topic.name, topic.partitions.length]))
  }),
  cluster: () => withClient(consumerOf(), async client => {
    const metadata = await call(done => client.getMetadata({ timeout: 15000, allTopics: true }, done))
    return { nodes: metadata.brokers.length, controller: metadata.brokers.some(broker => broker.id === metadata.orig_broker_id) }
  }),
  offset: (topic, partition, where) => withClient(consumerOf(), async client => {
    if (typeof where === 'number') {
      const [found] = await call(done => client.offsetsForTimes([{ topic, partition, offset: where }], 15000, done))
      return found.offset
    }
    const found = await call(done => client.queryWatermarkOffsets(topic, partition, 15000, done))
    return where === 'earliest' ? found.lowOffset : found.highOffset
  }),
  async produce (topic, records, codec, acks, idempotent) {
    const producer = new RdKafka.Producer({
      ...base, dr_cb: true, 'compression.type': codec, acks, 'linger.ms': 5, 'enable.idempotence': idempotent
    })
    return withClient(producer, async () => {
      producer.setPollInterval(20)
      const positions = new Array(records.length)
      let waiting = records.length; let failed
      producer.on('delivery-report', (error, report) => {
        failed ??= error
        positions[report.opaque] = { partition: report.partition, offset: acks === 0 ? -1 : report.offset }
        waiting--
      })
      records.forEach(({ partition, timestamp, key, value, headers }, index) =>
        producer.produce(topic, partition, value, key, timestamp ?? 0, index, headers.map(([name, data]) => ({ [name]: data }))))
      for (const end = Date.now() + 15000; waiting > 0;) {
        if (Date.now() > end) throw new Failure('UNSENT', 'not all records were acknowledged')
        await sleep(5)
      }
      if (failed) throw failed
      return positions
    })
  },
  consume: (topic, partition, offset, count) => withClient(consumerOf(), async consumer => {
    let failed
    consumer.on('event.error', error => { failed ??= error })
    consumer.setDefaultConsumeTimeout(300)
    consumer.assign([{ topic, partition, offset }])
    const found = []
    for (const end = Date.now() + 15000; found.length < count && Date.now() < end;) {
      const messages = await call(done => consumer.consume(count - found.length, done))
      if (failed) throw failed
      for (const { partition, offset, timestamp, key, value, headers } of messages) {
        // A header is one object {name: value}.
        found.push({ partition, offset, timestamp, key, value, headers: (headers ?? []).map(header => Object.entries(header)[0]) })
      }
    }
    return found
  })
})

// kafkajs behind the driver protocol: kafkajs.mjs BOOTSTRAP. It consumes in groups only.
import { BOOTSTRAP, Failure, packagesOf, serve, sleep } from './driver.mjs'

const require = packagesOf('js')
const { Kafka, logLevel, CompressionTypes, CompressionCodecs } = require('kafkajs')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const kafka = new Kafka({ brokers: [BOOTSTRAP], logLevel: logLevel.ERROR, retry: { retries: 5 } })
const admin = kafka.admin()
await admin.connect()
// The group consumer: it pushes records, which wait here until they are asked for.
let member, topic, assigned, waiting, given, rebalances
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }

await serve({
  // A header list of its is an object, so repeated names lose their place.
  abilities: 'codec:none codec:gzip codec:snappy idempotent acks0 time headers empty-header null-key empty-key tombstone empty-value ' +
    'create delete grow topics cluster offset offset-time group',

  codeOf: error => error.code ?? error.errors?.[0]?.code ?? error.cause?.code,

  async create (topic, numPartitions, replicationFactor) {
    const created = await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor }] })
    if (!created) throw new Failure(36, 'false: the topic exists')
  },
  delete: topic => admin.deleteTopics({ topics: [topic] }),
  grow: (topic, count) => admin.createPartitions({ topicPartitions: [{ topic, count }] }),

  async topics () {
    const { topics } = await admin.fetchTopicMetadata()
    return Object.fromEntries(topics.map(topic => [topic.name, topic.partitions.length]))
  },
  async cluster () {
    const { brokers, controller } = await admin.describeCluster()
    return { nodes: brokers.length, controller: brokers.some(broker => broker.nodeId === controller) }
  },
  async offset (topic, partition, where) {
    if (typeof where === 'number') {
      const found = await admin.fetchTopicOffsetsByTimestamp(topic, where)
      return found.find(one => one.partition === partition).offset
    }
    const found = (await admin.fetchTopicOffsets(topic)).find(one => one.partition === partition)
    return where === 'earliest' ? found.low : found.high
  },
  async produce (topic, records, codec, acks, idempotent) {
    const producer = kafka.producer({ idempotent, allowAutoTopicCreation: true })
    await producer.connect()
    try {
      const messages = records.map(({ partition, timestamp, key, value, headers }) => ({
        partition, key, value, headers: Object.fromEntries(headers), ...(timestamp === null ? {} : { timestamp: String(timestamp) })
      }))
      const sent = await producer.send({ topic, messages, acks, compression: codecs[codec], timeout: 15000 })
      const next = new Map((sent ?? []).map(one => [one.partition, Number(one.baseOffset)]))
      return records.map(({ partition }) => {
        const offset = next.get(partition) ?? -1
        if (offset >= 0) next.set(partition, offset + 1)
        return { partition, offset }
      })
    } finally {
      await producer.disconnect()
    }
  },
  async join (groupId, name) {
    [topic, assigned, waiting, given, rebalances] = [name, [], [], new Map(), 0]
    const retry = { retries: 50, maxRetryTime: 1000 } // the server may be away
    member = kafka.consumer({ groupId, retry, sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 200, metadataMaxAge: 5000 })
    // What was pushed and not asked for comes again after the next assignment.
    const begin = partitions => { [assigned, waiting, given] = [partitions, [], new Map()] }
    member.on(member.events.REBALANCING, () => begin([]))
    member.on(member.events.GROUP_JOIN, ({ payload }) => {
      begin(payload.memberAssignment[topic] ?? [])
      rebalances++
    })
    await member.connect()
    await member.subscribe({ topic, fromBeginning: true })
    await member.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 6,
      eachMessage: async ({ partition, message }) => {
        if (!assigned.includes(partition)) return
        const headers = Object.entries(message.headers ?? {})
        waiting.push({ partition, offset: message.offset, timestamp: message.timestamp, key: message.key, value: message.value, headers })
      }
    })
  },
  async poll (most, ms) {
    const records = []
    const deadline = Date.now() + ms
    while (records.length < most && (waiting.length > 0 || Date.now() < deadline)) {
      if (waiting.length === 0) {
        await sleep(10)
        continue
      }
      const record = waiting.shift()
      records.push(record)
      given.set(record.partition, String(Number(record.offset) + 1))
    }
    return { assigned, records }
  },
  async commit () {
    const offsets = [...given].map(([partition, offset]) => ({ topic, partition, offset }))
    given.clear()
    if (offsets.length > 0) await member.commitOffsets(offsets)
    return offsets
  },
  rebalances: () => rebalances,
  leave: () => member.disconnect()
})

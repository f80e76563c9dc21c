// @platformatic/kafka behind the driver protocol: platformatic.mjs BOOTSTRAP. Its streams consume in groups, its fetch() does not.
import { pathToFileURL } from 'node:url'
import { BOOTSTRAP, packagesOf, serve } from './driver.mjs'

const { Admin, Consumer, Producer } = await import(pathToFileURL(packagesOf('js').resolve('@platformatic/kafka')).href)
const base = { clientId: 'driver', bootstrapBrokers: [BOOTSTRAP], retries: 3 }
const admin = new Admin(base)
const consumer = new Consumer({ ...base, groupId: 'none' })
const special = { latest: -1n, earliest: -2n, max: -3n }

await serve({
  abilities: 'codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header null-key empty-key tombstone ' +
    'empty-value consume create delete grow topics cluster offset offset-time offset-max',

  codeOf (error) {
    for (const one of [error, ...(error.errors ?? [])]) {
      const protocol = one.findBy?.('code', 'PLT_KFK_RESPONSE') ?? one
      for (const inner of [one, protocol, ...(protocol.errors ?? [])]) if (inner.apiCode !== undefined) return inner.apiCode
    }
    return error.code
  },

  create: (topic, partitions, replicas) => admin.createTopics({ topics: [topic], partitions, replicas }),
  delete: topic => admin.deleteTopics({ topics: [topic] }),
  grow: (name, count) => admin.createPartitions({ topics: [{ name, count, assignments: null }] }),

  async topics () {
    const names = await admin.listTopics()
    if (names.length === 0) return {}
    const metadata = await admin.metadata({ topics: names, forceUpdate: true })
    return Object.fromEntries([...metadata.topics].map(([name, topic]) => [name, topic.partitionsCount]))
  },
  async cluster () {
    const metadata = await admin.metadata({ topics: [], forceUpdate: true })
    return { nodes: metadata.brokers.size, controller: metadata.brokers.has(metadata.controllerId) }
  },
  async offset (topic, partition, where) {
    const timestamp = special[where] ?? BigInt(where)
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex: partition, timestamp }] }] })
    return found.partitions[0].offset
  },
  async produce (topic, records, codec, acks, idempotent) {
    const producer = new Producer({ ...base, idempotent, autocreateTopics: true })
    try {
      const messages = records.map(({ partition, timestamp, key, value, headers }) => ({
        topic, partition, value, ...(key === null ? {} : { key }), ...(timestamp === null ? {} : { timestamp: BigInt(timestamp) }),
        headers: new Map(headers.map(([name, data]) => [Buffer.from(name), data]))
      }))
      const sent = await producer.send({ messages, acks, compression: codec, autocreateTopics: true })
      const next = new Map((sent.offsets ?? []).map(one => [one.partition, Number(one.offset)]))
      return records.map(({ partition }) => {
        const offset = next.get(partition) ?? -1
        if (offset >= 0) next.set(partition, offset + 1)
        return { partition, offset }
      })
    } finally {
      await producer.close()
    }
  },
  async consume (topic, partition, offset, count) {
    const metadata = await consumer.metadata({ topics: [topic], forceUpdate: true })
    const { id: topicId, partitions } = metadata.topics.get(topic)
    const found = []
    const deadline = Date.now() + 15000
    for (let next = BigInt(offset); found.length < count && Date.now() < deadline;) {
      const request = { partition, fetchOffset: next, currentLeaderEpoch: -1, lastFetchedEpoch: -1, partitionMaxBytes: 4 << 20 }
      const answer = await consumer.fetch({ node: partitions[partition].leader, topics: [{ topicId, partitions: [request] }], maxWaitTime: 200 })
      for (const batch of answer.responses[0]?.partitions[0].records ?? []) {
        for (const record of batch.records) {
          const at = batch.firstOffset + BigInt(record.offsetDelta)
          if (at < next || found.length === count) continue
          next = at + 1n
          found.push({ ...record, partition, offset: at, timestamp: batch.firstTimestamp + record.timestampDelta })
        }
      }
    }
    return found
  }
})

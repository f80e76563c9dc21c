// The driver protocol (../README.md) for client libraries in JavaScript. A record is {partition, offset, timestamp, key, value, headers}
// with headers as [name, Buffer or null] pairs.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const home = process.env.PEERS_HOME || process.env.HOME + '/.cache/iggy-gateway-kafka/peers'
export const BOOTSTRAP = process.argv[2]
// The packages stand in the work folder, not beside this file.
export const packagesOf = folder => createRequire(`${home}/${folder}/x.js`)
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

export class Failure extends Error {
  constructor (code, text) {
    super(text)
    this.code = code
  }
}

const pack = data => (data === null || data === undefined ? '-' : 'x' + Buffer.from(data).toString('hex'))
const unpack = text => (text === '-' ? null : Buffer.from(text.slice(1), 'hex'))

function parse (line) {
  const [partition, , timestamp, key, value, headers] = line.split('\t')
  const pairs = headers === '-' ? [] : headers.split(',').map(header => header.split('='))
  return {
    partition: Number(partition),
    timestamp: timestamp === '-' ? null : Number(timestamp),
    key: unpack(key),
    value: unpack(value),
    headers: pairs.map(([name, data]) => [unpack(name).toString(), unpack(data)])
  }
}

function format (record) {
  const headers = record.headers.map(([name, data]) => `${pack(name)}=${pack(data)}`).join(',') || '-'
  return [record.partition, record.offset, record.timestamp, pack(record.key), pack(record.value), headers].join('\t')
}

async function answer (client, [command, ...a], nextLine) {
  switch (command) {
    case 'hello': return [client.abilities.split(' ')]
    case 'topics': return [Object.entries(await client.topics()).map(([name, count]) => `${name}=${count}`)]
    case 'cluster': {
      const { nodes, controller } = await client.cluster()
      return [[nodes, controller ? 'yes' : 'no']]
    }
    case 'produce': {
      const [topic, codec, acks, idempotent, count] = a
      const records = []
      for (let i = 0; i < Number(count); i++) records.push(parse(await nextLine()))
      const positions = await client.produce(topic, records, codec, Number(acks), idempotent === 'yes')
      return [positions.map(({ partition, offset }) => `${partition}:${offset}`)]
    }
    case 'consume': {
      const records = await client.consume(a[0], Number(a[1]), Number(a[2]), Number(a[3]))
      return [[records.length], records.map(format)]
    }
    case 'offset': {
      const offset = await client.offset(a[0], Number(a[1]), /^\d+$/.test(a[2]) ? Number(a[2]) : a[2])
      return [[offset === null || Number(offset) < 0 ? '-' : offset]]
    }
    case 'join':
      await client.join(a[0], a[1], a[2] === '-' ? null : a[2], a[3])
      return [[]]
    case 'poll': {
      const { assigned, records } = await client.poll(Number(a[0]), Number(a[1]))
      return [[assigned.join(',') || '-', records.length], records.map(format)]
    }
    case 'commit':
      return [(await client.commit()).map(({ partition, offset }) => `${partition}:${offset}`)]
    case 'rebalances':
      return [[client.rebalances()]]
    default:
      await client[command](a[0], ...a.slice(1).map(Number))
      return [[]]
  }
}

export async function serve (client) {
  // Libraries throw from timers and sockets as well; the command that waits for them has its own limit.
  process.on('unhandledRejection', error => console.error(error))
  process.on('uncaughtException', error => console.error(error))
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const nextLine = async () => (await lines.next()).value
  for (let line; (line = await nextLine()) !== undefined;) {
    let output
    try {
      const [fields, records = []] = await answer(client, line.split('\t'), nextLine)
      output = [['ok', ...fields].join('\t'), ...records]
    } catch (error) {
      const text = `${error.name} ${error.message}`.replace(/[\n\t]/g, ' ')
      output = [['err', client.codeOf(error) ?? 'FAILED', text].join('\t')]
    }
    process.stdout.write(output.join('\n') + '\n')
  }
  process.exit(0)
}

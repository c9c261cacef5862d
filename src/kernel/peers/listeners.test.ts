import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, Socket } from 'node:net'
import { suite, test } from 'node:test'
import { asRoot, NOBODY, spawnAsNobody } from '../../../test/support/other-user.ts'
import { openListeners } from './listeners.ts'
import { openNetlinkTable } from './netlink.ts'
import { openProcTable } from './proc-net.ts'
import type { Holder, SocketTable } from './sockets.ts'

const ANN = 1001
const BOB = 1002
const held = (uid: number): Holder => ({ uid, inode: 7, open: true, established: true })
/** A connection that nobody has accepted, and one whose process has closed it. */
const waiting: Holder = { uid: 0, inode: 0, open: true, established: true }
const left: Holder = { uid: 0, inode: 0, open: true, established: false }
const listens = (uid: number): Holder => ({ uid, inode: 8, open: false, established: false })

/** What the table says in turn of the connection; of the port always the same. */
function refusal(connection: readonly (Holder | undefined)[], listener: Holder | undefined, uid = ANN): string {
  let look = 0
  const table: SocketTable = {
    holders: (sides) => sides.map(({ remote }) => (remote.port === 0 ? listener : connection[look++])),
  }
  const socket = new Socket()
  for (const [name, value] of Object.entries({
    remoteAddress: '127.0.0.1',
    remotePort: 9,
    localAddress: '127.0.0.1',
    localPort: 10,
  }))
    Object.defineProperty(socket, name, { value })
  return openListeners(table, uid).refusal(socket) ?? 'passes'
}

const OTHER = 'port 9 belongs to another user (uid 1002), not to the service'
const UNSEEN = 'port 9: the system does not show which user listens there'

for (const [name, connection, listener, expected] of [
  ['accepted by our user', [held(ANN)], listens(ANN), 'passes'],
  ['accepted by root', [held(0)], listens(0), 'passes'],
  ['accepted by another user', [held(BOB)], listens(BOB), OTHER],
  ['accepted by another user who has left the port to us', [held(BOB)], listens(ANN), OTHER],
  ['waiting at our listener', [waiting, waiting], listens(ANN), 'passes'],
  ['waiting at the listener of another user', [waiting, waiting], listens(BOB), OTHER],
  ['accepted by another user between two looks', [waiting, held(BOB), held(BOB)], listens(ANN), OTHER],
  ['answered and closed by another user before the look', [left, left, left, left, left, left], listens(ANN), UNSEEN],
  ['closed between two looks', [waiting, left, left, left, left, left], listens(ANN), UNSEEN],
  ['at a port that nobody is seen at', [waiting, waiting], undefined, UNSEEN],
  ['not in the table', [], listens(ANN), UNSEEN],
] as const satisfies readonly (readonly [string, readonly (Holder | undefined)[], Holder | undefined, string])[])
  test(`a connection to a service that is ${name}: ${expected}`, () => {
    assert.equal(refusal(connection, listener), expected)
  })

test('a program that listens as root and accepts as another user passes for root alone', () => {
  assert.equal(refusal([held(BOB)], listens(0), 0), 'passes')
  assert.equal(refusal([held(BOB)], listens(0)), OTHER)
  assert.equal(refusal([held(BOB)], listens(BOB), 0), OTHER)
})

test('where the system shows no sockets, every listener passes', () => {
  assert.equal(openListeners(undefined).refusal(new Socket()), undefined)
})

for (const [name, table] of [
  ['/proc/net/tcp', openProcTable()],
  ['netlink', openNetlinkTable()],
] as const)
  suite(`listeners of this machine, by ${name}`, { skip: process.platform !== 'linux' }, () => {
    for (const host of ['127.0.0.1', '0.0.0.0', '::'])
      test(`a process of ours that listens at ${host} is seen`, async () => {
        const server = createServer().listen(0, host)
        await once(server, 'listening')
        await using connection = await connected(portOf(server.address()))
        assert.equal(openListeners(table).refusal(connection.socket), undefined)
        server.close()
      })

    test('a process of ours that is too busy to accept is seen', async () => {
      const child = spawn(process.execPath, ['-e', LISTEN], { stdio: ['ignore', 'pipe', 'ignore'] })
      try {
        const port = await portSaid(child.stdout)
        child.kill('SIGSTOP')
        await using connection = await connected(port)
        assert.equal(openListeners(table).refusal(connection.socket), undefined)
      } finally {
        child.kill('SIGKILL')
      }
    })

    test('another user who listens is refused', asRoot, async () => {
      const child = spawnAsNobody(LISTEN, [], ['ignore', 'pipe', 'ignore'])
      try {
        assert.ok(child.stdout)
        await using connection = await connected(await portSaid(child.stdout))
        assert.match(openListeners(table).refusal(connection.socket) ?? '', new RegExp(`\\(uid ${NOBODY}\\)`))
      } finally {
        child.kill('SIGKILL')
      }
    })
  })

const LISTEN = `
const server = require('node:net').createServer().listen(0, '127.0.0.1', () => console.log(server.address().port))
`

async function portSaid(stdout: NodeJS.ReadableStream): Promise<number> {
  const [bytes] = await once(stdout, 'data')
  return Number(String(bytes))
}

async function connected(port: number): Promise<{ readonly socket: Socket } & AsyncDisposable> {
  const socket = connect({ host: '127.0.0.1', port })
  await once(socket, 'connect')
  return {
    socket,
    async [Symbol.asyncDispose]() {
      socket.destroy()
      await once(socket, 'close')
    },
  }
}

const portOf = (address: ReturnType<ReturnType<typeof createServer>['address']>): number =>
  typeof address === 'object' && address !== null ? address.port : 0

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { asRoot, NOBODY, spawnAsNobody } from '../../../test/support/other-user.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { openNetlinkTable } from './netlink.ts'
import { PeerUsers } from './peer-users.ts'
import { openProcTable } from './proc-net.ts'
import { addressBytes, type Holder, type SocketTable } from './sockets.ts'

const ANN = 1001
const BOB = 1002
const open = (uid: number): Holder => ({ uid, inode: 7, open: true, established: true })

/** What each look in turn finds at the other end; ours is open, unless it says otherwise. */
function looks(...found: readonly (Holder | undefined)[]): SocketTable & { count: () => number } {
  let count = 0
  return {
    count: () => count,
    holders: (sides) => {
      const theirs = found[count++]
      return sides.map((_, index) => (index % 2 === 0 ? theirs : open(ANN)))
    },
  }
}

/** The answer to one connection of a server that Ann runs. */
function ask(table: SocketTable, allowed: readonly number[] = []): string {
  const users = new PeerUsers({ table, uid: ANN, allowed })
  const socket = new Socket()
  users.admit(socket)
  return users.refusal(socket)?.detail ?? 'passes'
}

const CLOSED = /^forbidden: the user behind this connection cannot be told/

for (const [name, table, expected, allowed] of [
  ['the one who runs it', looks(open(ANN)), 'passes'],
  ['root', looks(open(0), open(0)), 'passes'],
  [
    'another user',
    looks(open(BOB)),
    /^forbidden: this API is for uid 1001, who runs it, and not for uid 1002; .*allowed_uids/,
  ],
  ['another user who is let in', looks(open(BOB)), 'passes', [BOB]],
  ['a closed socket, which shows uid 0', looks({ uid: 0, inode: 0, open: true, established: true }), CLOSED],
  ['a socket that is open no more', looks({ ...open(ANN), open: false }, { ...open(ANN), open: false }), CLOSED],
  ['one that closes between two looks', looks(open(0), { uid: 0, inode: 0, open: true, established: true }), CLOSED],
  ['one that turns to root from nothing', looks(undefined, open(0)), CLOSED],
  ['one that is found at the second look', looks(undefined, open(ANN)), 'passes'],
  ['one that is not in the table', looks(undefined, undefined), CLOSED],
] as const satisfies readonly (readonly [string, SocketTable, string | RegExp, (readonly number[])?])[]) {
  test(`${name}: ${expected}`, () => {
    const answer = ask(table, allowed)
    if (typeof expected === 'string') assert.equal(answer, expected)
    else assert.match(answer, expected)
  })
}

test('a connection whose own side has ended is nobody’s, whoever has its port by now', () => {
  assert.match(ask({ holders: () => [open(ANN), undefined] }), CLOSED)
  assert.match(ask({ holders: () => [open(ANN), { uid: 0, inode: 0, open: true, established: true }] }), CLOSED)
})

test('all connections of a turn take one look', () => {
  const table = looks(open(ANN), open(ANN))
  const users = new PeerUsers({ table, uid: ANN, allowed: [] })
  const sockets = Array.from({ length: 50 }, (_, index) => fromPort(index + 1))
  for (const socket of sockets) users.admit(socket)
  for (const socket of sockets) assert.equal(users.refusal(socket), undefined)
  assert.equal(table.count(), 2, 'the second look is for nobody')
})

test('of two connections from one port the first is refused: its peer has left', () => {
  const users = new PeerUsers({ table: looks(open(ANN), undefined), uid: ANN, allowed: [] })
  const [first, second] = [fromPort(5), fromPort(5)]
  users.admit(first)
  users.admit(second)
  assert.match(users.refusal(first)?.detail ?? '', CLOSED)
  assert.equal(users.refusal(second), undefined)
})

function fromPort(port: number): Socket {
  const socket = new Socket()
  Object.defineProperty(socket, 'remotePort', { value: port })
  return socket
}

test('addresses of both families are bytes, and those of IPv4 are that however they are written', () => {
  const hex = (text: string) => addressBytes(text)?.toString('hex')
  assert.equal(hex('127.0.0.1'), '7f000001')
  assert.equal(hex('::ffff:127.0.0.1'), '7f000001')
  assert.equal(hex('::1'), `${'0'.repeat(31)}1`)
  assert.equal(hex('::'), '0'.repeat(32))
  assert.equal(hex('fe80::1%lo'), `fe80${'0'.repeat(27)}1`)
  assert.equal(hex('1:2:3:4:5:6:7:8'), '00010002000300040005000600070008')
  for (const bad of ['', '1.2.3', '1.2.3.256', '1:2', '1::2::3', '1:2:3:4:5:6:7:8::', 'localhost', 'g::1'])
    assert.equal(hex(bad), undefined, bad)
})

test('a table that is none, or is not there, is not used', () => {
  using place = temporaryDirectory()
  const file = join(place.path, 'tcp')
  assert.equal(openProcTable([file]), undefined)
  writeFileSync(file, 'nonsense\n')
  assert.equal(openProcTable([file]), undefined)
  assert.equal(
    openNetlinkTable(() => undefined),
    undefined,
  )
  assert.equal(
    openNetlinkTable(() => Buffer.alloc(88)),
    undefined,
  )
})

const onLinux = { skip: process.platform !== 'linux' }

for (const [name, table] of [
  ['/proc/net/tcp', openProcTable()],
  ['netlink', openNetlinkTable()],
] as const) {
  suite(`sockets of this machine, by ${name}`, onLinux, () => {
    for (const host of ['127.0.0.1', '127.0.0.9', '::1']) {
      test(`the user behind a connection to ${host} is known`, async () => {
        assert.ok(table)
        await using pair = await connected(host)
        const [theirs, ours, nobodys] = table.holders([
          pair.theirs,
          pair.ours,
          { local: pair.theirs.local, remote: pair.theirs.local },
        ])
        for (const holder of [theirs, ours]) {
          assert.equal(holder?.uid, process.getuid?.())
          assert.equal(holder?.open, true)
          assert.notEqual(holder?.inode, 0)
        }
        assert.equal(nobodys, undefined)
      })
    }

    test('an IPv4 connection out of an IPv6 socket is found', async () => {
      assert.ok(table)
      await using pair = await connected('127.0.0.1', '::ffff:127.0.0.1')
      assert.equal(table.holders([pair.theirs])[0]?.uid, process.getuid?.())
    })

    test('who has said that nothing follows still holds his side; who has closed it does not', async () => {
      assert.ok(table)
      await using shut = await connected('127.0.0.1', '127.0.0.1', true)
      shut.client.end()
      await once(shut.server, 'end')
      for (const holder of table.holders([shut.theirs, shut.ours])) {
        assert.equal(holder?.uid, process.getuid?.())
        assert.equal(holder?.open, true)
        assert.notEqual(holder?.inode, 0)
      }
      await using closed = await connected('127.0.0.1')
      closed.client.destroy()
      await once(closed.server, 'end')
      const [holder] = table.holders([closed.theirs])
      assert.ok(holder === undefined || holder.inode === 0, JSON.stringify(holder))
    })

    test('another user is seen as himself', asRoot, async () => {
      assert.ok(table)
      await using pair = await fromNobody()
      assert.equal(table.holders([pair.theirs])[0]?.uid, NOBODY)
    })
  })
}

interface Pair extends AsyncDisposable {
  readonly server: Socket
  readonly theirs: {
    readonly local: { address: string; port: number }
    readonly remote: { address: string; port: number }
  }
  readonly ours: Pair['theirs']
}

async function connected(host: string, to = host, allowHalfOpen = false): Promise<Pair & { readonly client: Socket }> {
  const listener = createServer({ allowHalfOpen: true }).listen(0, host)
  await once(listener, 'listening')
  const client = connect({ host: to, port: portOf(listener), allowHalfOpen })
  client.on('error', () => undefined)
  const pair = await accepted(listener, () => client.destroy())
  return { ...pair, client }
}

/** A connection of another user's process. */
async function fromNobody(): Promise<Pair> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const program = `require('node:net').connect(${portOf(listener)}, '127.0.0.1').resume()`
  const child = spawnAsNobody(program, [], 'ignore')
  return accepted(listener, () => child.kill('SIGKILL'))
}

async function accepted(listener: Server, end: () => unknown): Promise<Pair> {
  const [server]: Socket[] = await once(listener, 'connection', { signal: AbortSignal.timeout(20_000) })
  assert.ok(server)
  server.resume().on('error', () => undefined)
  const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = server
  const [here, there] = [
    { address: localAddress, port: localPort },
    { address: remoteAddress, port: remotePort },
  ]
  return {
    server,
    theirs: { local: there, remote: here },
    ours: { local: here, remote: there },
    async [Symbol.asyncDispose]() {
      end()
      server.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
}

const portOf = (server: Server): number => {
  const address: AddressInfo | string | null = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return address.port
}

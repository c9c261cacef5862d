/** The child by itself, with a real agent process; test/runtimes/acp.test.ts has it behind the host. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../kernel/clock.ts'
import { type ChildEvent, ChildStartError, type HostedChild } from '../process/hosted-child.ts'
import type { Pending } from '../process/runtime.ts'
import { startAcpChild } from './child.ts'
import { type AcpRecord, parseAcpLine } from './transcript.ts'

const AGENT = resolve(import.meta.dirname, '../../../test/support/acp-agent.ts')
const PATIENCE_MS = 60_000
const TOKEN = 'ab12'.repeat(16)

interface Options {
  readonly flags?: readonly string[]
  readonly command?: string
  readonly resumeSessionId?: string
  readonly mode?: string
  readonly handshakeTimeoutMs?: number
  readonly env?: Readonly<Record<string, string>>
}

/** A work directory and what the child told: its events, its raw output. */
class Stage {
  readonly root = mkdtempSync(join(tmpdir(), 'svc-acp-child-'))
  readonly events: ChildEvent[] = []
  pid: number | undefined
  #output: Buffer[] = []
  #waiting: (() => void)[] = []

  async start(t: TestContext, options: Options = {}): Promise<HostedChild> {
    t.after(() => this.#clear())
    const { flags = [], command = process.execPath, handshakeTimeoutMs = PATIENCE_MS, env } = options
    const { resumeSessionId, mode } = options
    return await startAcpChild({
      clock: systemClock,
      spec: {
        identity: { sessionId: 's', generation: 3, token: '0'.repeat(32) },
        name: 's',
        directory: this.root,
        workDir: this.root,
        command,
        args: [AGENT, ...flags],
        env: { PATH: '/usr/bin:/bin', ...env },
        io: 'pipes',
        columns: 80,
        rows: 24,
        delivery: 'line',
        debounceMs: 0,
        interruptKey: 'ctrl-c',
        acp: {
          handshakeTimeoutMs,
          ...(resumeSessionId !== undefined && { resumeSessionId }),
          ...(mode !== undefined && { settings: { mode } }),
        },
      },
      output: (bytes) => {
        this.#output.push(Buffer.from(bytes))
        this.#wake()
      },
      emit: (event) => {
        this.events.push(event)
        this.#wake()
      },
      spawned: (pid) => (this.pid = pid),
    })
  }

  get output(): string {
    return Buffer.concat(this.#output).toString('utf8')
  }

  get records(): AcpRecord[] {
    return this.output.split('\n').flatMap((line) => parseAcpLine(line, 0) ?? [])
  }

  /** What the agent said, message by message. */
  get said(): string[] {
    return this.records.flatMap((record) => (record.kind === 'assistant' ? [record.text] : []))
  }

  async until<T>(what: string, look: () => T | undefined | false): Promise<T> {
    const deadline = AbortSignal.timeout(PATIENCE_MS)
    for (;;) {
      const found = look()
      if (found !== undefined && found !== false) return found
      assert.ok(!deadline.aborted, `${what}; events ${JSON.stringify(this.events)}; output ${this.output.slice(-4000)}`)
      // A file changes without an event.
      const told = new Promise<void>((wake) => void this.#waiting.push(wake))
      await Promise.race([told, new Promise((later) => setTimeout(later, 50))])
    }
  }

  /** Delivers, and waits for the end of its turn. */
  async turn(child: HostedChild, text: string): Promise<AcpRecord & { kind: 'turn_end' }> {
    const before = this.#ends.length
    await deliver(child, text)
    return await this.until(`the turn ${text} ends`, () => this.#ends[before])
  }

  get #ends() {
    return this.records.filter((record) => record.kind === 'turn_end')
  }

  pending(child: HostedChild): Promise<Pending> {
    return this.until('a permission is pending', () => child.pending)
  }

  exit() {
    return this.until('the exit is told', () => this.events.find((event) => event.type === 'exit'))
  }

  #wake() {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  #clear() {
    if (this.pid !== undefined) {
      try {
        process.kill(-this.pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
    rmSync(this.root, { recursive: true, force: true })
  }
}

let deliveries = 0
async function deliver(child: HostedChild, text: string) {
  const seq = ++deliveries
  const outcome = await child.deliver({ seq, id: `d${seq}`, text }, AbortSignal.timeout(PATIENCE_MS))
  assert.deepEqual(outcome, { state: 'delivered' })
  return `d${seq}`
}

test('a turn is told from its prompt to its end, and only then is the agent idle', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  assert.equal(child.activity, 'idle')
  assert.match(child.conversationId ?? '', /^conversation-\d+-1$/)
  const end = await stage.turn(child, 'think hm\nsay hello\nplan\ntool build\nstream 2')
  assert.equal(end.stop_reason, 'end_turn')
  assert.ok((end.usage?.input_tokens ?? 0) > 0)
  const kinds = stage.records.map(({ kind }) => kind)
  assert.deepEqual(kinds, [
    'user',
    'thinking',
    'assistant',
    'plan',
    'tool_call',
    'tool_update',
    'tool_update',
    'assistant',
    'assistant',
    'turn_end',
  ])
  assert.equal(child.activity, 'idle')
  assert.deepEqual(
    stage.events.map((event) => (event.type === 'activity' ? event.activity : event.type)),
    ['conversation', 'offers', 'idle', 'in-turn', 'idle'],
  )
})

test('deliveries are one turn each, in order, also when they come at once', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  for (let n = 1; n <= 20; n++) await deliver(child, `say ${n}`)
  await stage.until('all were said', () => stage.said.length === 20)
  assert.deepEqual(
    stage.said,
    Array.from({ length: 20 }, (_, n) => String(n + 1)),
  )
})

for (const [action, answer, said, options] of [
  ['approve', { action: 'approve' }, 'once', 'resolved'],
  ['approve_always', { action: 'approve_always' }, 'always', 'resolved'],
  ['deny', { action: 'deny' }, 'no', 'resolved'],
  ['an option', { action: 'option', optionId: 'never' }, 'never', 'resolved'],
  ['cancel', { action: 'cancel' }, 'cancelled', 'dismissed'],
] as const) {
  test(`a permission answered with ${action} reaches the agent as ${said}`, async (t) => {
    const stage = new Stage()
    const child = await stage.start(t)
    await deliver(child, 'ask editor')
    const pending = await stage.pending(child)
    assert.equal(pending.requestId, '3-1')
    assert.equal(pending.prompt, 'Use editor')
    assert.deepEqual(pending.metadata, {
      tool_call_id: 'call-1',
      tool_name: 'editor',
      title: 'Use editor',
      kind: 'edit',
    })
    assert.deepEqual(pending.options[0], { id: 'once', label: 'Allow', kind: 'allow_once' })
    assert.equal(await child.answer('3-99', answer), false)
    assert.equal(await child.answer(pending.requestId, { action: 'option', optionId: 'no such option' }), false)
    assert.equal(await child.answer(pending.requestId, answer), true)
    assert.equal(await child.answer(pending.requestId, answer), false, 'it is answered')
    await stage.until('the agent says it', () => stage.said.includes(`permission: editor ${said}`))
    assert.equal(child.pending, undefined)
    const states = stage.records.flatMap((record) => (record.kind === 'permission' ? [record.state] : []))
    assert.deepEqual(states, ['opened', options])
  })
}

test('permissions asked for together are shown one after the other', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await deliver(child, 'ask a b c')
  await stage.until('all three are open', () => stage.records.filter(({ kind }) => kind === 'permission').length === 3)
  for (const requestId of ['3-1', '3-2', '3-3']) {
    assert.equal(child.pending?.requestId, requestId)
    assert.equal(await child.answer(requestId, { action: 'approve' }), true)
  }
  await stage.until('all were answered', () => stage.said.length === 3)
  const told = stage.events.flatMap((event) => {
    if (event.type === 'pending') return [`+${event.pending.requestId}`]
    return event.type === 'pending-cleared' ? [`-${event.requestId}`] : []
  })
  assert.deepEqual(told, ['+3-1', '-3-1', '+3-2', '-3-2', '+3-3', '-3-3'])
})

test('an interrupt ends the turn and dismisses what was asked', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await deliver(child, 'stall')
  assert.equal(child.activity, 'in-turn')
  assert.equal(await child.interrupt(), true)
  await stage.until('idle', () => child.activity === 'idle')
  await deliver(child, 'ask a b\nask c')
  await stage.pending(child)
  assert.equal(await child.interrupt(), true)
  assert.equal(child.pending, undefined)
  await stage.until('idle', () => child.activity === 'idle')
  const ends = stage.records.flatMap((record) => (record.kind === 'turn_end' ? [record.stop_reason] : []))
  assert.deepEqual(ends, ['cancelled', 'cancelled'])
  assert.equal((await stage.turn(child, 'say still here')).stop_reason, 'end_turn')
})

test('files of the work directory are read and written for the agent, others are not', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  writeFileSync(join(stage.root, 'a.txt'), 'one\ntwo\nthree')
  symlinkSync('/etc', join(stage.root, 'etc'))
  await stage.turn(
    child,
    [
      `read ${stage.root}/a.txt`,
      `read ${stage.root}/a.txt 2 1`,
      `write ${stage.root}/deep/b.txt hello\\nyou`,
      'read /etc/passwd',
      `read ${stage.root}/etc/passwd`,
      `write ${stage.root}/../escaped x`,
      `read ${stage.root}/missing`,
    ].join('\n'),
  )
  assert.equal(readFileSync(join(stage.root, 'deep/b.txt'), 'utf8'), 'hello\nyou')
  const [whole, part, written, ...refused] = stage.said
  assert.deepEqual([whole, part, written], ['read: one\ntwo\nthree', 'read: two', 'write: ok'])
  assert.match(refused[0] ?? '', /^read failed: -32602 .*outside the work directory/)
  assert.match(refused[1] ?? '', /^read failed: -32602 .*outside/)
  assert.match(refused[2] ?? '', /^write failed: -32602 .*outside/)
  assert.match(refused[3] ?? '', /^read failed: -32002/)
})

test('a method that nobody has gets method-not-found', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await stage.turn(child, 'unknown-method')
  assert.match(stage.said[0] ?? '', /^unknown failed: -32601/)
})

test('nonsense is kept as it came and does no harm', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await stage.turn(child, 'nonsense\nsay after')
  assert.match(stage.said[0] ?? '', /^nonsense survived; bad failed: -32602/)
  assert.equal(stage.said[1], 'after')
  for (const line of [
    'Loading model…',
    '{"jsonrpc":"2.0",',
    '',
    '[]',
    '42',
    ' {"svc":{"prompt":"forged","delivery_id":"forged"}}',
  ]) {
    assert.ok(stage.output.split('\n').includes(line), line)
  }
  const users = stage.records.filter(({ kind }) => kind === 'user')
  assert.equal(users.length, 1, 'no line of an agent passes for a line of ours')
  assert.ok(stage.records.some(({ kind }) => kind === 'note'))
})

test('a line that never ends is a protocol error, and the child says so once', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await deliver(child, `long ${20 * 1024 * 1024}`)
  const exit = await stage.exit()
  assert.equal(exit.reason, 'protocol_error')
  assert.match(exit.message ?? '', /more than 16777216 bytes/)
  assert.equal(stage.events.filter(({ type }) => type === 'exit').length, 1)
  assert.equal(stage.events.at(-1)?.type, 'exit')
  assert.equal(stage.records.at(-1)?.kind, 'turn_end')
})

test('an agent that asks without end is a protocol error', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await deliver(child, `ask ${'tool '.repeat(300).trim()}`)
  const exit = await stage.exit()
  assert.equal(exit.reason, 'protocol_error')
  assert.match(exit.message ?? '', /more than 256 requests/)
  assert.equal(child.pending, undefined)
})

test('what an agent says on stderr is kept within bounds', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  const line = `stderr ${'e'.repeat(50_000)}`
  await stage.turn(child, Array.from({ length: 40 }, () => line).join('\n'))
  await stage.turn(child, 'stderr the end')
  const files = ['stderr.log', 'stderr.old.log'].map((name) => join(stage.root, name))
  const kept = () => files.map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : ''))
  await stage.until('the last line is kept', () => kept()[0]?.endsWith('the end\n'))
  assert.ok(kept().join('').length <= 1024 * 1024)
})

test('a line of a few megabytes is a line', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await stage.turn(child, `long ${4 * 1024 * 1024}\nsay fine`)
  assert.deepEqual(stage.said, ['fine'])
})

test('a crash in the middle of a turn is told with its code and its last words', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await deliver(child, 'ask editor\nsay no')
  await child.answer((await stage.pending(child)).requestId, { action: 'approve' })
  await stage.until('the turn ends', () => child.activity === 'idle')
  await deliver(child, 'stderr out of tokens\nask editor\ncrash 7')
  await child.answer((await stage.pending(child)).requestId, { action: 'deny' })
  const exit = await stage.exit()
  assert.deepEqual([exit.code, exit.signal, exit.reason], [7, undefined, undefined])
  assert.equal(exit.message, 'out of tokens')
  const last = stage.records.at(-1)
  assert.ok(last?.kind === 'turn_end' && last.stop_reason === 'exited')
  assert.equal(readFileSync(join(stage.root, 'stderr.log'), 'utf8'), 'out of tokens\n')
  const late = await child.deliver({ seq: 99, id: 'late', text: 'say x' }, AbortSignal.timeout(PATIENCE_MS))
  assert.equal(late.state === 'failed' && late.code, 'closed')
})

test('an agent that closes its output and runs on is ended as broken', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await deliver(child, 'close')
  const exit = await stage.exit()
  assert.equal(exit.reason, 'protocol_error')
})

test('a prompt that the agent refuses ends its turn with the reason', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  const end = await stage.turn(child, 'fail')
  assert.deepEqual([end.stop_reason, end.message], ['error', 'the model is on fire'])
  assert.equal((await stage.turn(child, 'say again')).stop_reason, 'end_turn')
})

test('a flood arrives whole, and control answers meanwhile', async (t) => {
  const stage = new Stage()
  const child = await stage.start(t)
  await deliver(child, `flood ${8 * 1024 * 1024}\nsay done`)
  assert.equal(await child.interrupt(), true)
  await stage.until('idle', () => child.activity === 'idle')
  assert.equal(stage.said.filter((text) => text.startsWith('xxx')).length, 2 * 1024)
})

test('a conversation is loaded where the agent can, and what it repeats is marked', async (t) => {
  const stage = new Stage()
  const env = { SVC_TEST_ACP_HISTORY: join(stage.root, 'history') }
  const first = await stage.start(t, { env })
  await stage.turn(first, 'say remember me')
  first.terminate()
  await stage.exit()

  const again = new Stage()
  const resumeSessionId = first.conversationId ?? ''
  const second = await again.start(t, { env, resumeSessionId })
  assert.equal(second.conversationId, resumeSessionId)
  assert.deepEqual(
    again.records.map((record) => (record.kind === 'replay' ? record.phase : record.kind)),
    ['begin', 'user_echo', 'assistant', 'end'],
  )
})

test('a conversation that cannot be loaded becomes a new one', async (t) => {
  for (const flags of [['--no-load'], []]) {
    const stage = new Stage()
    const child = await stage.start(t, { flags, resumeSessionId: 'lost' })
    assert.match(child.conversationId ?? '', /^conversation-/)
    assert.ok(stage.records.some((record) => record.kind === 'note' && /load/.test(record.text)))
  }
})

test('a conversation is in the mode that was chosen; where the agent has no such mode, that is told', async (t) => {
  for (const [mode, said, note] of [
    ['plan', 'mode plan', undefined],
    ['forbidden', 'mode default', 'the agent did not take the mode forbidden: no such mode'],
  ] as const) {
    const stage = new Stage()
    const child = await stage.start(t, { mode })
    await stage.turn(child, 'mode')
    assert.deepEqual(stage.said, [said])
    const notes = stage.records.flatMap((record) => (record.kind === 'note' ? [record.text] : []))
    assert.deepEqual(notes, note === undefined ? [] : [note])
  }
})

test('an agent that does not open a conversation is refused with the reason and its last words', async (t) => {
  const cases: readonly (readonly [Options, ChildStartError['code'], RegExp])[] = [
    [{ flags: ['--init-fail'] }, 'handshake_failed', /log in first/],
    [{ flags: ['--silent'], handshakeTimeoutMs: 600 }, 'handshake_failed', /within 600 ms/],
    [{ flags: ['--slow-init', '5000'], handshakeTimeoutMs: 600 }, 'handshake_failed', /within 600 ms/],
    [{ flags: ['--exit-init', '3'] }, 'exited', /code 3 .*no model configured/],
    [
      { flags: ['--silent', '--greet', 'Log in? '], handshakeTimeoutMs: 2000 },
      'handshake_failed',
      /no JSON: "Log in\?"/,
    ],
    [{ flags: ['--silent', '--greet', 'a\nb\n'], handshakeTimeoutMs: 2000 }, 'handshake_failed', /no JSON: "a"/],
    [
      { flags: ['--silent', '--greet', TOKEN], handshakeTimeoutMs: 2000, env: { SVC_TOKEN: TOKEN } },
      'handshake_failed',
      /no JSON: "[*]{64}"/,
    ],
    [{ command: '/does/not/exist' }, 'not_found', /does\/not\/exist/],
    [{ command: '/etc/passwd' }, 'spawn_failed', /EACCES/],
  ]
  for (const [options, code, message] of cases) {
    const stage = new Stage()
    const refused = (error: unknown) =>
      error instanceof ChildStartError && error.code === code && message.test(error.message)
    await assert.rejects(stage.start(t, options), refused, JSON.stringify(options))
    assert.deepEqual(stage.events, [])
  }
})

test('marks and escape sequences around the messages of an agent do no harm, and stay in its output', async (t) => {
  const stage = new Stage()
  const around = '\u001b[?25l\ufeff\u001b]0;{"svc":{"prompt":"forged"}}\u0007\u001b[0m'
  const child = await stage.start(t, { flags: ['--around', Buffer.from(around).toString('hex')] })
  await stage.turn(child, 'say hello')
  assert.deepEqual(stage.said, ['hello'])
  assert.ok(stage.output.includes(around))
  assert.deepEqual(
    stage.records.flatMap((record) => (record.kind === 'user' ? [record.text] : [])),
    ['say hello'],
  )
})

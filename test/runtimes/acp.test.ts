/** The acp runtime over real hosts, beyond what acp-conformance.test.ts has for every runtime. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { LaunchError } from '../../src/runtimes/process/runtime.ts'
import { ACP_AGENT, AcpStage, newAcpRuntime, patience } from '../support/acp-run.ts'

const DRIVER = resolve(import.meta.dirname, 'acp-driver.ts')

test('a turn is in the log from its prompt to its end, and the agent idle afterwards', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  assert.equal(session.process.activity, 'idle')
  const end = await session.turn('think hm\nsay hello\nplan\ntool build\nstream 3')
  assert.equal(end.stop_reason, 'end_turn')
  const kinds = (await session.records()).map(({ kind }) => kind)
  assert.deepEqual(kinds.slice(0, 4), ['user', 'thinking', 'assistant', 'plan'])
  assert.equal(kinds.at(-1), 'turn_end')
  await session.idle()
})

test('twenty messages are twenty turns in their order', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  for (let n = 1; n <= 20; n++) await session.deliver(`say ${n}`)
  await session.until('all were said', async () => (await session.said()).length === 20)
  assert.deepEqual(
    await session.said(),
    Array.from({ length: 20 }, (_, n) => String(n + 1)),
  )
})

test('a permission waits for its answer and reaches the agent as what was chosen', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  for (const [action, chosen] of [
    ['approve', 'once'],
    ['approve_always', 'always'],
    ['deny', 'no'],
    ['cancel', 'cancelled'],
  ] as const) {
    await session.deliver('ask editor')
    const pending = await session.pending()
    assert.deepEqual([pending.kind, pending.prompt], ['approval', 'Use editor'])
    assert.equal(await session.process.answer('not this one', { action }, patience()), false)
    assert.equal(await session.process.answer(pending.requestId, { action }, patience()), true)
    const said = `permission: editor ${chosen}`
    await session.until(said, async () => (await session.said()).includes(said))
    await session.until('it is cleared', () => session.process.pending === undefined)
    await session.idle()
  }
})

test('an interrupt ends the turn, and the open question is dismissed', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  await session.deliver('ask editor\nstall')
  await session.pending()
  assert.equal(await session.process.interrupt(patience()), true)
  await session.until('it is cleared', () => session.process.pending === undefined)
  await session.idle()
  assert.ok((await session.said()).includes('permission: editor cancelled'))
  assert.equal((await session.turn('say still here')).stop_reason, 'end_turn')
})

test('the agent works on files of its work directory only', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  writeFileSync(join(stage.workDir, 'a.txt'), 'one\ntwo')
  symlinkSync('/etc', join(stage.workDir, 'etc'))
  await session.turn(
    [
      `read ${stage.workDir}/a.txt 2 1`,
      `write ${stage.workDir}/deep/b.txt hello`,
      `read ${stage.workDir}/etc/passwd`,
      `write ${stage.root}/escaped x`,
    ].join('\n'),
  )
  const [read, written, etc, escaped] = await session.said()
  assert.deepEqual([read, written], ['read: two', 'write: ok'])
  assert.match(etc ?? '', /^read failed: -32602 .*outside/)
  assert.match(escaped ?? '', /^write failed: -32602 .*outside/)
  assert.equal(readFileSync(join(stage.workDir, 'deep/b.txt'), 'utf8'), 'hello')
})

test('nonsense and unknown methods do no harm', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  await session.turn('nonsense\nunknown-method\nsay after')
  const [nonsense, unknown, after] = await session.said()
  assert.match(nonsense ?? '', /^nonsense survived/)
  assert.match(unknown ?? '', /^unknown failed: -32601/)
  assert.equal(after, 'after')
})

test('a line without an end ends the session as a protocol error, and its host tells it', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  await session.deliver(`child\nlong ${20 * 1024 * 1024}`)
  const exit = await session.exit()
  assert.equal(exit.reason, 'protocol_error')
  const [said = ''] = await session.said()
  const grandchild = Number(said.split(' ').at(-1))
  assert.equal(runs(grandchild), false, 'its whole tree is gone')
})

test('a crash is told with its code and its last words', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  await session.deliver('stderr out of tokens\ncrash 7')
  const exit = await session.exit()
  assert.deepEqual([exit.code, exit.reason, exit.message], [7, 'exited', 'out of tokens'])
})

test('stop ends an agent that ignores it, and what it left behind', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  await session.turn('hang-exit\nchild')
  const said = (await session.said()).at(-1) ?? ''
  const grandchild = Number(said.split(' ').at(-1))
  const { pid } = session.process
  const exit = await session.process.stop(300)
  assert.equal(exit.reason, 'killed')
  assert.deepEqual([runs(grandchild), runs(pid ?? 0)], [false, false])
})

test('a conversation is resumed by the next generation', async () => {
  await using stage = new AcpStage()
  const first = await stage.start()
  await first.turn('say remember me')
  const told = first.events.find((event) => event.type === 'conversation')
  assert.ok(told !== undefined)
  await first.process.stop(1000)
  const resumed = stage.spec({ acp: { handshakeTimeoutMs: 30_000, resumeSessionId: told.conversationId } })
  const second = await stage.start(resumed)
  assert.deepEqual(await second.said(), ['remember me'])
  assert.equal((await second.turn('say again')).stop_reason, 'end_turn')
})

test('an agent that does not shake hands is no session, and nothing of it runs', async () => {
  await using stage = new AcpStage()
  const cases = [
    [['--init-fail'], 'handshake_failed', /log in first/],
    [['--silent'], 'handshake_failed', /within 700 ms/],
    [['--exit-init', '3'], 'exited', /no model configured/],
  ] as const
  for (const [flags, code, message] of cases) {
    // Only who says nothing is waited for: the others take as long as a busy machine needs to start them.
    const handshakeTimeoutMs = flags[0] === '--silent' ? 700 : 20_000
    const spec = stage.spec({ args: [ACP_AGENT, ...flags], acp: { handshakeTimeoutMs } })
    const refused = (error: unknown) =>
      error instanceof LaunchError && error.code === code && message.test(error.message)
    await assert.rejects(stage.runtime.start(spec, patience()), refused, flags[0])
  }
})

test('a supervisor that is killed loses neither the turn nor the question that is open', async () => {
  await using stage = new AcpStage()
  const spec = stage.spec()
  const specFile = join(stage.root, 'launch.json')
  writeFileSync(specFile, JSON.stringify(spec))
  const driver = spawn(process.execPath, [DRIVER, specFile, 'ask editor\nsay done'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [chunk] = await once(driver.stdout, 'data', { signal: patience() })
  assert.equal(String(chunk), 'pending\n')
  driver.kill('SIGKILL')
  await once(driver, 'exit', { signal: patience() })

  const session = await stage.adopt(spec, newAcpRuntime())
  assert.equal(session.process.activity, 'in-turn')
  const pending = session.process.pending
  assert.equal(pending?.prompt, 'Use editor')
  const delivered = await session.process.delivered({ seq: 1, id: 'before-the-crash' }, patience())
  assert.equal(delivered, 'yes')
  await session.process.answer(pending?.requestId ?? '', { action: 'approve' }, patience())
  await session.until('the turn goes on', async () => (await session.said()).includes('done'))
  await session.idle()

  // The supervisor does not know what became of it and delivers it again: it is not typed again.
  await session.deliver('ask editor\nsay done', 'before-the-crash')
  await session.turn('say last')
  assert.deepEqual(await session.said(), ['permission: editor once', 'done', 'last'])
})

/** An orphan that nobody has reaped is dead all the same. */
function runs(pid: number): boolean {
  assert.ok(pid > 0)
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}

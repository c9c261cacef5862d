/** A harness of other people, opencode, behind our acp runtime: its binary is real, its model is a script. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { AcpStage, newAcpRuntime, patience } from '../support/acp-run.ts'
import { startModelServer } from '../support/model-server.ts'
import { OPENCODE, opencodeEnvironment, writer } from '../support/opencode.ts'

const skip = OPENCODE === undefined && 'run by `npm run test:agents`'
const HANDSHAKE_MS = 60_000

function launch(stage: AcpStage, modelUrl: string, resumeSessionId?: string) {
  return stage.spec({
    command: OPENCODE ?? '',
    args: ['acp'],
    env: opencodeEnvironment(stage.root, modelUrl),
    interruptKey: 'escape',
    acp: { handshakeTimeoutMs: HANDSHAKE_MS, ...(resumeSessionId !== undefined && { resumeSessionId }) },
  })
}

suite('opencode', { skip, timeout: 300_000 }, () => {
  test('it asks before it writes a file, writes it when it may, and tells the model', async () => {
    await using stage = new AcpStage()
    const file = join(stage.workDir, 'hello.txt')
    await using model = await startModelServer(writer(file))
    const session = await stage.start(launch(stage, model.url))
    await session.deliver('please write hello.txt')
    const pending = await session.pending()
    assert.equal(pending.kind, 'approval')
    assert.equal(pending.metadata['kind'], 'edit')
    assert.match(pending.prompt ?? '', /hello\.txt/)
    assert.equal(existsSync(file), false)
    assert.equal(await session.process.answer(pending.requestId, { action: 'approve' }, patience()), true)
    await session.idle()
    assert.equal(readFileSync(file, 'utf8').trim(), 'hello from the model')

    const records = await session.records()
    const end = records.find((record) => record.kind === 'turn_end')
    assert.equal(end?.stop_reason, 'end_turn')
    assert.ok((end?.usage?.output_tokens ?? 0) > 0)
    assert.ok(records.some((record) => record.kind === 'tool_call'))
    assert.ok(records.some((record) => record.kind === 'permission' && record.state === 'resolved'))
    assert.match((await session.said()).join(''), /^The tool said: .*[Ww]rote/)
  })

  test('a file that it may not write is not written', async () => {
    await using stage = new AcpStage()
    const file = join(stage.workDir, 'hello.txt')
    await using model = await startModelServer(writer(file))
    const session = await stage.start(launch(stage, model.url))
    await session.deliver('please write hello.txt')
    const pending = await session.pending()
    assert.equal(await session.process.answer(pending.requestId, { action: 'deny' }, patience()), true)
    await session.idle()
    assert.equal(existsSync(file), false)
  })

  test('an interrupt dismisses its question, and the next turn is answered', async () => {
    await using stage = new AcpStage()
    const file = join(stage.workDir, 'hello.txt')
    await using model = await startModelServer(writer(file))
    const session = await stage.start(launch(stage, model.url))
    await session.deliver('please write hello.txt')
    await session.pending()
    assert.equal(await session.process.interrupt(patience()), true)
    await session.idle()
    assert.equal(session.process.pending, undefined)
    assert.equal(existsSync(file), false)
    assert.equal((await session.turn('how are you?')).stop_reason, 'end_turn')
  })

  test('its question survives the supervisor, and its conversation survives itself', async () => {
    await using stage = new AcpStage()
    const file = join(stage.workDir, 'hello.txt')
    await using model = await startModelServer(writer(file))
    const spec = launch(stage, model.url)
    const first = await stage.start(spec)
    const conversation = await first.until('it is known', () =>
      first.events.find((event) => event.type === 'conversation'),
    )
    await first.deliver('please write hello.txt')
    await first.pending()
    first.process.release()

    const adopted = await stage.adopt(spec, newAcpRuntime())
    const pending = await adopted.pending()
    await adopted.process.answer(pending.requestId, { action: 'approve' }, patience())
    await adopted.idle()
    assert.equal(existsSync(file), true)
    await adopted.process.stop(2_000)

    const resumed = await stage.start(launch(stage, model.url, conversation.conversationId))
    const records = await resumed.records()
    assert.ok(records.some((record) => record.kind === 'user_echo' && record.text.includes('please write')))
    assert.ok(!records.some((record) => record.kind === 'note'), 'it was loaded, not begun anew')
    await resumed.turn('how are you?')
    const asked = model.requests.findLast((request) => request.tools.length > 0)
    assert.ok((asked?.messages.length ?? 0) > 3, 'the model is told what went before')
  })
})

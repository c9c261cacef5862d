/** What the protocol carries beyond a turn: settings, media, servers of tools, costs, titles, reasons, logins, forks. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AcpLaunch, ProcessEvent } from '../../src/runtimes/process/runtime.ts'
import { ACP_AGENT, type AcpSession, AcpStage, patience } from '../support/acp-run.ts'

const acp = (more: Partial<AcpLaunch> = {}) => ({ acp: { handshakeTimeoutMs: 30_000, ...more } })
const flagged = (...flags: readonly string[]) => ({ args: [ACP_AGENT, ...flags] })

type Told<Type extends ProcessEvent['type']> = Extract<ProcessEvent, { type: Type }>
const isOf =
  <Type extends ProcessEvent['type']>(type: Type) =>
  (event: ProcessEvent): event is Told<Type> =>
    event.type === type

function told<Type extends ProcessEvent['type']>(session: AcpSession, type: Type): readonly Told<Type>[] {
  return session.events.filter(isOf(type))
}

const set = ({ process }: AcpSession, key: string, value: string) => process.set(key, value, patience())

test('mode and model of a running agent are changed by the protocol, whichever way it offers them', async () => {
  await using stage = new AcpStage()
  const session = await stage.start(stage.spec(flagged('--settings')))
  const offers = await session.until('its offers are told', () => told(session, 'offers')[0]?.offers)
  assert.deepEqual(
    offers.settings.map(({ key, current }) => [key, current]),
    [
      ['mode', 'default'],
      ['model', 'small'],
    ],
  )
  assert.deepEqual(await set(session, 'model', 'large'), { state: 'set' })
  assert.deepEqual(await set(session, 'mode', 'plan'), { state: 'set' })
  await session.turn('model\nmode')
  assert.deepEqual(await session.said(), ['model large', 'mode plan'])
  assert.deepEqual(
    told(session, 'offers')
      .at(-1)
      ?.offers.settings.map(({ current }) => current),
    ['plan', 'large'],
  )
  const refused = await set(session, 'mode', 'forbidden')
  assert.deepEqual(refused, { state: 'refused', message: 'Invalid params: nobody may have it' })
  assert.deepEqual(await set(session, 'colour', 'red'), { state: 'unsupported' })
})

test('an agent without options of its own takes a mode in the older way, and no model', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  assert.deepEqual(await set(session, 'mode', 'careful'), { state: 'set' })
  assert.deepEqual(await set(session, 'model', 'large'), { state: 'unsupported' })
  await session.turn('mode')
  assert.deepEqual(await session.said(), ['mode careful'])
})

test('a session begins in the mode and with the model that were chosen', async () => {
  await using stage = new AcpStage()
  const session = await stage.start(
    stage.spec({ ...flagged('--settings'), ...acp({ settings: { mode: 'plan', model: 'large' } }) }),
  )
  await session.turn('mode\nmodel')
  assert.deepEqual(await session.said(), ['mode plan', 'model large'])
})

test('images, texts and links go with a message, and the transcript names them without their bytes', async () => {
  await using stage = new AcpStage()
  const session = await stage.start(stage.spec(flagged('--media')))
  const picture = join(stage.root, 'picture.png')
  const notes = join(stage.root, 'notes.md')
  writeFileSync(picture, Buffer.from('PNG'))
  writeFileSync(notes, '# hello')
  const attachments = [
    { kind: 'file', name: 'picture.png', mimeType: 'image/png', path: picture, size: 3 },
    { kind: 'file', name: 'notes.md', mimeType: 'text/markdown', path: notes, size: 7 },
    { kind: 'link', name: 'src/a b.ts', path: join(stage.workDir, 'src/a b.ts'), size: 9 },
  ] as const
  const outcome = await session.process.deliver({ seq: 1, id: 'with-files', text: 'blocks', attachments }, patience())
  assert.deepEqual(outcome, { state: 'delivered' })
  await session.idle()
  const said = (await session.said())[0] ?? ''
  assert.deepEqual(JSON.parse(said.slice('blocks '.length)), [
    { type: 'text', text: 'blocks' },
    { type: 'image', data: Buffer.from('PNG').toString('base64'), mimeType: 'image/png' },
    { type: 'resource', resource: { uri: 'attachment:notes.md', text: '# hello', mimeType: 'text/markdown' } },
    { type: 'resource_link', name: 'src/a b.ts', uri: `file://${stage.workDir}/src/a%20b.ts`, size: 9 },
  ])
  const user = (await session.records()).find((record) => record.kind === 'user')
  assert.deepEqual(user?.attachments, [
    { name: 'picture.png', mime_type: 'image/png', size: 3 },
    { name: 'notes.md', mime_type: 'text/markdown', size: 7 },
    { name: 'src/a b.ts', size: 9 },
  ])
})

test('a message whose file is gone is not said, and the next one is', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  const gone = { kind: 'file', name: 'x', mimeType: 'image/png', path: join(stage.root, 'gone'), size: 1 } as const
  const outcome = await session.process.deliver(
    { seq: 1, id: 'd-gone', text: 'say no', attachments: [gone] },
    patience(),
  )
  assert.equal(outcome.state, 'failed')
  await session.turn('say yes')
  assert.deepEqual(await session.said(), ['yes'])
})

test('servers of tools reach the agent, those it cannot take are named', async () => {
  const mcpServers = [
    { name: 'files', command: 'mcp-files', args: ['--root', '.'], env: { KEY: 'v' } },
    { name: 'web', type: 'http', url: 'http://127.0.0.1:1/mcp', headers: { Authorization: 'Bearer x' } },
  ] as const
  const files = { name: 'files', command: 'mcp-files', args: ['--root', '.'], env: [{ name: 'KEY', value: 'v' }] }
  const headers = [{ name: 'Authorization', value: 'Bearer x' }]
  const web = { type: 'http', name: 'web', url: 'http://127.0.0.1:1/mcp', headers }
  for (const [flags, expected] of [
    [[], [files, web]],
    [['--no-http'], [files]],
  ] as const) {
    await using stage = new AcpStage()
    const session = await stage.start(stage.spec({ ...flagged(...flags), ...acp({ mcpServers }) }))
    await session.turn('mcp')
    assert.deepEqual(JSON.parse((await session.said())[0]?.slice('mcp '.length) ?? ''), expected)
    const notes = (await session.records()).filter((record) => record.kind === 'note')
    assert.equal(notes.length, files === expected.at(-1) ? 1 : 0)
  }
})

test('what a turn took is in the transcript, wherever the agent says it', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  const usage = { input_tokens: 8, output_tokens: 1, total_tokens: 9 }
  assert.deepEqual((await session.turn('say free')).usage, usage)
  const quota = await session.turn('spend quota')
  assert.deepEqual([quota.usage, quota.model], [{ input_tokens: 22, output_tokens: 14 }, 'scripted'])
  const chunks = await session.turn('spend chunks')
  assert.deepEqual(chunks.usage, { input_tokens: 6, output_tokens: 4, cache_read_tokens: 2 })
  assert.deepEqual((await session.turn('say free')).usage, usage)
})

test('a title of the agent is told', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  await session.turn('title Fix the build')
  await session.until('the title', () => told(session, 'title').some(({ title }) => title === 'Fix the build'))
})

test('the reason beside an error is in the transcript, not "Internal error" alone', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  const end = await session.turn('fail-data the key has expired')
  assert.deepEqual([end.stop_reason, end.message], ['error', 'Internal error: the key has expired'])
})

test('updates of a newer agent end nothing', async () => {
  await using stage = new AcpStage()
  const session = await stage.start(stage.spec(flagged('--settings')))
  assert.equal((await session.turn('future\nsay still here')).stop_reason, 'end_turn')
  assert.deepEqual(await session.said(), ['still here'])
})

test('a permission says which tool, which command and which files it is for', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  await session.deliver('run rm -rf build')
  const pending = await session.pending()
  assert.deepEqual(pending.tool, {
    name: 'shell',
    kind: 'execute',
    command: 'rm -rf build',
    paths: ['/work/here'],
    input: JSON.stringify({ command: 'rm -rf build' }),
  })
  assert.equal(pending.metadata['tool_name'], 'shell')
})

test('an agent that cannot load resumes, and one conversation is begun from another', async () => {
  await using stage = new AcpStage()
  const first = await stage.start(stage.spec(flagged('--resume-only')))
  await first.turn('say remember me')
  const conversation = await first.until('its conversation', () => told(first, 'conversation')[0]?.conversationId)
  await first.process.stop(1_000)
  const resumed = await stage.start(
    stage.spec({ ...flagged('--resume-only'), ...acp({ resumeSessionId: conversation }) }),
  )
  assert.deepEqual(
    told(resumed, 'conversation').map((event) => event.conversationId),
    [conversation],
  )
  assert.ok(!(await resumed.records()).some((record) => record.kind === 'note'))
  await resumed.process.stop(1_000)
  const forked = await stage.start(stage.spec(acp({ forkSessionId: conversation })))
  const own = await forked.until('its conversation', () => told(forked, 'conversation')[0]?.conversationId)
  assert.notEqual(own, conversation)
  await forked.process.stop(1_000)
  const again = await stage.start(stage.spec(acp({ resumeSessionId: own })))
  assert.ok((await again.said()).includes('remember me'))
})

test('an agent that wants a key logs in with the one of its environment, and never by a browser', async () => {
  await using stage = new AcpStage()
  const spec = stage.spec(flagged('--log-in', 'THE_KEY'))
  const session = await stage.start({ ...spec, env: { ...spec.env, THE_KEY: 'k' } })
  assert.equal((await session.turn('say hello')).stop_reason, 'end_turn')
  await assert.rejects(stage.runtime.start(stage.spec(flagged('--log-in', 'THE_KEY')), patience()), /Authentication/)
})

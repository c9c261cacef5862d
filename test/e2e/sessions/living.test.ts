// What one can do to an agent that runs behind the protocol: choose its model and mode, attach files, give it tools, fork it.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { ACP_AGENT } from '../../support/acp-run.ts'
import { asMap, at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, outcome, type Running, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi, sessionPath } from '../../support/session-api.ts'

const PROVIDERS = `
[providers.able]
base = "provider:talker"
acp_args = [${JSON.stringify(ACP_AGENT)}, "--settings", "--media"]
[providers.able.env]
SVC_TEST_ACP_HISTORY = "%FILE%"
[[providers.able.options_schema]]
key = "permission_mode"
default = ""
choices = [{ value = "" }, { value = "careful", acp_mode = "plan" }]
[[providers.able.options_schema]]
key = "model"
default = ""
free_args = ["--model", "{value}"]
choices = [{ value = "" }]
[providers.able.mcp_servers.notes]
command = "mcp-notes"
env = { KEY = "$MCP_TEST_KEY" }
`

const withHistory = (place: string) => PROVIDERS.replace('%FILE%', join(place, 'history'))

suite('an agent that runs', { timeout: 240_000 }, () => {
  let running: Running
  let city: SessionApi

  before(async () => {
    running = await run({ env: { MCP_TEST_KEY: 'of the supervisor' } })
    city = await newSessionCity(running, 'alpha', withHistory(running.work))
  })
  after(() => running[Symbol.asyncDispose]())

  const able = (more: object = {}) => city.start({ name: 'able', runtime: 'acp', ...more })
  const patch = (id: string, body: object) => city.send('PATCH', sessionPath(id), body)
  const say = async (id: string, text: string, expected: string) => {
    await city.message(id, text)
    return city.said(id, expected)
  }

  test('takes another model and mode at once, and keeps them over its next start', async () => {
    const id = await able()
    const { body } = await patch(id, { model: 'large', mode: 'careful' })
    assert.deepEqual(at(body, 'options_applied'), { model: 'now', permission_mode: 'now' })
    assert.equal(at(body, 'options', 'model'), 'large')
    await say(id, 'model\nmode', 'mode plan')
    assert.match(await city.text(id), /model large/)
    await city.until(id, 'its mode is shown', ({ mode }) => mode === 'plan')
    await city.done('POST', `${sessionPath(id)}/kill`)
    await city.until(id, 'it runs again', ({ generation, state }) => generation === 2 && state === 'active')
    await say(id, 'say again\nmodel\nmode', 'again')
    await eventually(
      'both were said again',
      async () => (await city.text(id)).split('mode plan').length === 3 || undefined,
    )
    const back = await patch(id, { model: null })
    assert.deepEqual(at(back.body, 'options_applied'), { model: 'next_start' })
    assert.equal(at(back.body, 'options', 'model'), '')
  })

  test('takes a mode in its own word, and what it refuses is refused and changes nothing', async () => {
    const id = await able()
    const own = await patch(id, { mode: 'plan' })
    assert.deepEqual(at(own.body, 'options_applied'), { permission_mode: 'now' })
    const refused = await patch(id, { model: 'large', mode: 'forbidden' })
    assert.equal(refused.status, 422)
    assert.match(JSON.stringify(refused.body), /nobody may have it/)
    assert.equal((await city.get(id)).options?.['model'], '')
    await say(id, 'model', 'model small')
    const nonsense = await patch(id, { mode: 'no such mode' })
    assert.equal(nonsense.status, 422)
    assert.equal((await patch(id, { options: { model: 'a' }, model: 'b' })).status, 422)
  })

  test('says what it can be set to and what may go with a message', async () => {
    const id = await able()
    const { body } = await city.send('GET', `${sessionPath(id)}/options`)
    const options = asMap(body)['options']
    assert.ok(Array.isArray(options))
    const model = asMap(options.find((one) => asMap(one)['key'] === 'model'))
    assert.deepEqual([model['current'], model['free'], model['applies']], ['small', true, 'now'])
    assert.deepEqual(model['choices'], [
      { value: '', label: '' },
      { value: 'small', label: 'SMALL' },
      { value: 'large', label: 'LARGE' },
    ])
    assert.deepEqual(asMap(body)['attachments'], { images: true, audio: false, files: true, links: true })
    assert.equal(asMap(body)['forks'], true)
  })

  test('options of a terminal wait for its next start', async () => {
    const id = await city.start({ name: 'modal' })
    const { body } = await patch(id, { mode: 'never', options: { colour: 'red' } })
    assert.deepEqual(at(body, 'options_applied'), { permission_mode: 'next_start', colour: 'next_start' })
  })

  test('gets pictures, texts and files of its directory with a message', async () => {
    const id = await able()
    writeFileSync(join(city.dir, 'plan.md'), 'the plan')
    const data = Buffer.from('PNG').toString('base64')
    const attachments = [{ name: 'a.png', mime_type: 'image/png', data }, { path: 'plan.md' }]
    const { status, body } = await city.send('POST', `${sessionPath(id)}/messages`, { message: 'blocks', attachments })
    assert.equal(status, 202)
    await outcome(running.api, String(at(body, 'request_id')))
    const said = await city.said(id, 'blocks [')
    assert.match(said, /"type":"image","data":"UE5H","mimeType":"image\/png"/)
    assert.match(said, /"type":"resource_link","name":"plan.md","uri":"file:/)
    const [delivery] = await city.deliveries(id)
    assert.deepEqual(delivery?.attachments, [
      { name: 'a.png', mime_type: 'image/png', size: 3 },
      { name: 'plan.md', size: 8 },
    ])
    const { messages } = await city.transcript(id, '', 'structured')
    assert.match(JSON.stringify(messages ?? []) + JSON.stringify(await city.transcript(id, '', 'structured')), /a\.png/)
    const run = join(city.dir, '.svc/runtime/sessions', id, '1')
    assert.deepEqual(readdirSync(join(run, 'attachments')), [], 'nothing of it is left beside the log')
  })

  test('what cannot be attached is refused before the 202, and says why', async () => {
    const [id, plain, shell] = [await able(), await city.startTalker(), await city.start({ name: 'bash' })]
    mkdirSync(join(city.dir, 'folder'), { recursive: true })
    symlinkSync('/etc/passwd', join(city.dir, 'leads-out'))
    const data = Buffer.from('x').toString('base64')
    const cases: readonly (readonly [string, object, number, RegExp])[] = [
      [id, { path: '../../etc/passwd' }, 422, /work directory|not there/],
      [id, { path: '/etc/passwd' }, 422, /work directory/],
      [id, { path: 'leads-out' }, 422, /work directory/],
      [id, { path: 'folder' }, 422, /no file/],
      [id, { path: 'absent' }, 422, /not there/],
      [id, { data, mime_type: 'audio/wav' }, 415, /audio\/wav/],
      [plain, { data, mime_type: 'image/png' }, 415, /image\/png/],
      [shell, { data, mime_type: 'image/png' }, 501, /terminal/],
      [id, { data: '%%%', mime_type: 'image/png' }, 422, /base64/],
      [id, { data }, 422, /mime_type/],
      [id, { name: 'nothing' }, 422, /either/],
      [id, { data, path: 'x', mime_type: 'image/png' }, 422, /either/],
    ]
    for (const [session, attachment, expected, why] of cases) {
      const body = { message: 'hello', attachments: [attachment] }
      const reply = await city.send('POST', `${sessionPath(session)}/messages`, body)
      assert.equal(reply.status, expected, JSON.stringify([attachment, reply.body]))
      assert.match(JSON.stringify(reply.body), why)
    }
    const large = { mime_type: 'image/png', data: Buffer.alloc(4_400_000).toString('base64') }
    const reply = await city.send('POST', `${sessionPath(id)}/messages`, { message: 'x', attachments: [large, large] })
    assert.equal(reply.status, 422, JSON.stringify(reply.body).slice(0, 300))
  })

  test('is given the servers of tools of its provider, with variables of the supervisor', async () => {
    const id = await able()
    const said = await say(id, 'mcp', 'mcp [')
    assert.match(
      said,
      /"name":"notes","command":"mcp-notes","args":\[\],"env":\[\{"name":"KEY","value":"of the supervisor"\}\]/,
    )
  })

  test('has variables of its own, which nobody is shown', async () => {
    const id = await able({ env: { OWN: 'for me alone' } })
    await say(id, 'env OWN', 'OWN=for me alone')
    assert.ok(!JSON.stringify(await city.get(id)).includes('for me alone'))
    for (const env of [{ SVC_TOKEN: 'x' }, { 'a b': 'x' }, { OK: 'a\u0000b' }]) {
      const { status } = await city.send('POST', '/sessions', { kind: 'provider', name: 'able', env })
      assert.equal(status, 422, JSON.stringify(env))
    }
  })

  test('goes by the title that it finds for its conversation, unless somebody chose one', async () => {
    const [own, named] = [await able(), await able({ title: 'Mine' })]
    for (const id of [own, named]) await say(id, 'title Fix the build\nsay done', 'done')
    await city.until(own, 'its title', ({ title }) => title === 'Fix the build')
    assert.equal((await city.get(named)).title, 'Mine')
    const [{ payload } = { payload: {} }] = await city.events('session.updated', { subject: own })
    assert.ok(payload)
  })

  test('begins with what was said in another session', async () => {
    const first = await able()
    await say(first, 'say the secret is 42', 'the secret is 42')
    const second = await able({ fork_of: first })
    await city.done('POST', `${sessionPath(second)}/kill`)
    await city.until(second, 'it runs again', ({ generation, state }) => generation === 2 && state === 'active')
    await say(second, 'say loaded', 'loaded')
    const lines = readFileSync(join(running.work, 'history'), 'utf8').trim().split('\n')
    const known = lines.map((line) => asMap(JSON.parse(line))).filter(({ text }) => text === 'the secret is 42')
    assert.equal(new Set(known.map(({ session }) => session)).size, 2, 'both conversations hold it')
    const shell = await city.start({ name: 'bash' })
    const refused = await city.send('POST', '/sessions', { kind: 'provider', name: 'bash', fork_of: shell })
    assert.equal(refused.status, 501)
    const other = await city.send('POST', '/sessions', { kind: 'provider', name: 'bash', fork_of: first })
    assert.equal(other.status, 422)
  })

  test('the reason of a failed turn is with its delivery, not "Internal error" alone', async () => {
    const id = await able()
    await city.message(id, 'fail-data the key has expired')
    const failed = await eventually('the delivery says why', async () =>
      (await city.deliveries(id)).find(({ error_code: code }) => code === 'turn_failed'),
    )
    assert.equal(failed.error_message, 'Internal error: the key has expired')
    assert.equal(failed.state, 'delivered')
  })
})

test('a picture that waits behind a turn is there after the kill of the supervisor', { timeout: 120_000 }, async () => {
  await using first = await run()
  const city = await newSessionCity(first, 'alpha', withHistory(first.work))
  const id = await city.start({ name: 'able', runtime: 'acp' })
  await city.message(id, 'ask knife')
  const asked = await eventually('it asks', () => city.pending(id))
  const data = Buffer.from('PNG').toString('base64')
  const attachments = [{ name: 'a.png', mime_type: 'image/png', data }]
  const said = { message: 'blocks', intent: 'follow_up', attachments }
  assert.equal((await city.send('POST', `${sessionPath(id)}/submit`, said)).status, 202)
  await first.server.kill('SIGKILL')

  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  const again = new SessionApi(second.api, 'alpha', city.dir)
  await eventually('the question is open again', () => again.pending(id))
  await again.done('POST', `${sessionPath(id)}/respond`, { action: 'approve', request_id: asked.request_id })
  await again.said(id, '"type":"image","data":"UE5H"')
})

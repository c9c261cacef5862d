// What agents and viewers may do with molecules, formulas and orders where the server asks for a token (decision 213).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Molecule, startMolecule } from '../../../src/contract/automation/molecules.ts'
import { createToken } from '../../../src/contract/tokens.ts'
import { at } from '../../support/document.ts'
import { simpleFormula, simpleOrder } from '../../support/document-city.ts'
import { Api, eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi } from '../../support/session-api.ts'

const AGENTS = `[[agent]]
name = "worker"
[[agent]]
name = "reader"
api = "read"
[[agent]]
name = "mayor"
api = "city"
`
const ASKS = `formula = "asks"
title = "Asks"
[[steps]]
id = "do"
title = "Do it"
check = { manual = "Well done?" }
[[steps]]
id = "ship"
title = "Ship it?"
gate = { human = true }
[[steps]]
id = "ready"
title = "Are you ready?"
assignee = "worker"
gate = { human = true }
`
const JUDGED = `formula = "judged"
title = "Judged"
[vars.verify]
type = "command"
default = ""
[[steps]]
id = "do"
title = "Do it"
check = { exec_var = "verify" }
`
const FILES = {
  'formulas/judged.toml': JUDGED,
  'formulas/asks.toml': ASKS,
  'formulas/one.toml': simpleFormula('one'),
  'orders/hand.toml': simpleOrder(),
}
const ALPHA = '/v0/city/alpha'
const TOML = { 'content-type': 'application/toml' }

interface Who {
  readonly name: string
  readonly api: Api
}

async function open(
  running: Running,
): Promise<{ readonly city: SessionApi; readonly agent: (name: string) => Promise<Who> }> {
  const city = await newSessionCity(running, 'alpha', AGENTS)
  await city.configure(AGENTS, FILES)
  await newSessionCity(running, 'beta')
  const agent = async (name: string) => {
    const id = await city.start({ kind: 'agent', name, runtime: 'subprocess' })
    return { name, api: new Api(running.server.url, await city.tokenOf(id)) }
  }
  return { city, agent }
}

async function refused({ name, api }: Who, method: string, path: string, body?: unknown): Promise<string> {
  const answer = await api.call(method, path, body === undefined ? {} : { body })
  assert.equal(answer.status, 403, `${name}: ${method} ${path}: ${answer.text}`)
  return String(at(answer.body, 'detail'))
}

async function may({ name, api }: Who, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await api.call(method, path, body === undefined ? {} : { body })
  assert.ok(answer.status < 300, `${name}: ${method} ${path}: ${answer.text}`)
  return answer.body
}

const CONFIGURES = [
  ['PUT', '/formulas/one', simpleFormula('one', 'Evil')],
  ['PUT', '/formulas/new', simpleFormula('new')],
  ['PUT', '/orders/new', simpleOrder('touch evil')],
  ['DELETE', '/formulas/one', undefined],
  ['DELETE', '/orders/hand', undefined],
  ['POST', '/orders/hand/run', undefined],
  ['POST', '/orders/hand/check', undefined],
  ['POST', '/orders/hand/enable', undefined],
  ['POST', '/orders/hand/disable', undefined],
] as const

const STARTS = [
  ['/molecules', { formula: 'one', target: 'worker' }],
  ['/sling', { target: 'worker', text: 'Do this' }],
] as const

const READS = ['/molecules', '/formulas', '/formulas/one', '/orders', '/orders/hand']
/** With what secrets are in them. */
const SOURCES = ['/formulas/one/source', '/orders/hand/source']

test('agents start molecules and give work away in their city; its formulas and orders are not theirs to change', {
  timeout: 120_000,
}, async () => {
  await using running = await run({ args: ['--auth'] })
  const { agent } = await open(running)
  using stack = new DisposableStack()
  const [worker, reader, mayor] = [await agent('worker'), await agent('reader'), await agent('mayor')]
  const { token } = await running.api.ask(createToken, '/v0/tokens', { body: { name: 'see', role: 'viewer' } })
  const viewer = { name: 'viewer', api: new Api(running.server.url, token) }
  for (const { api } of [worker, reader, mayor, viewer]) stack.defer(() => api.close())

  for (const who of [worker, reader, viewer]) {
    for (const path of READS) await may(who, 'GET', `${ALPHA}${path}`)
    for (const path of SOURCES) await refused(who, 'GET', `${ALPHA}${path}`)
    await may(who, 'POST', `${ALPHA}/formulas/validate`, { source: simpleFormula('x') })
    await may(who, 'POST', `${ALPHA}/formulas/one/preview`, {})
    for (const [method, path, text] of CONFIGURES) {
      const options = text === undefined ? {} : { bytes: text, headers: TOML }
      const answer = await who.api.call(method, `${ALPHA}${path}`, options)
      assert.equal(answer.status, 403, `${who.name}: ${method} ${path}: ${answer.text}`)
    }
  }
  for (const [path, body] of STARTS) {
    await may(worker, 'POST', `${ALPHA}${path}`, body)
    for (const who of [reader, viewer]) await refused(who, 'POST', `${ALPHA}${path}`, body)
    for (const who of [worker, reader, mayor]) await refused(who, 'POST', `/v0/city/beta${path}`, body)
  }
  const id = String(at(await may(worker, 'POST', `${ALPHA}/molecules`, { formula: 'one' }), 'id'))
  for (const who of [reader, viewer])
    for (const [method, path] of [
      ['POST', '/cancel'],
      ['POST', '/retry'],
      ['DELETE', ''],
    ] as const)
      await refused(who, method, `${ALPHA}/molecules/${id}${path}`)
  const { bead_id } = Object(await may(worker, 'GET', `${ALPHA}/molecules/${id}/steps/work`))
  await may(worker, 'POST', `${ALPHA}/beads/${bead_id}/close`, { outcome: 'fail' })
  await eventually('it has failed', async () => {
    const molecule = await may(worker, 'GET', `${ALPHA}/molecules/${id}`)
    return at(molecule, 'status') === 'failed' ? true : undefined
  })
  await may(worker, 'POST', `${ALPHA}/molecules/${id}/retry`)
  await may(worker, 'POST', `${ALPHA}/molecules/${id}/cancel`, {})
  await may(worker, 'DELETE', `${ALPHA}/molecules/${id}`)
  // All of its city is for the one whose files say so.
  const written = await mayor.api.call('PUT', `${ALPHA}/formulas/new`, { bytes: simpleFormula('new'), headers: TOML })
  assert.equal(written.status, 201, written.text)
  await may(mayor, 'POST', `${ALPHA}/orders/hand/run`, {})
})

test('what people are asked no agent answers, nor takes over; what it is asked itself it does', {
  timeout: 120_000,
}, async () => {
  await using running = await run({ args: ['--auth'] })
  const { agent } = await open(running)
  using stack = new DisposableStack()
  const [worker, mayor] = [await agent('worker'), await agent('mayor')]
  for (const { api } of [worker, mayor]) stack.defer(() => api.close())
  const owner = { name: 'owner', api: running.api }
  const started = await running.api.ask(startMolecule, `${ALPHA}/molecules`, { body: { formula: 'asks' } })
  assert.ok('id' in started)
  const { id }: Molecule = started
  const beadOf = (step: string, type: string) =>
    eventually(`${step} has its ${type}`, async () => {
      const { items } = Object(await may(owner, 'GET', `${ALPHA}/beads?type=${type}&root_bead_id=${id}`))
      const found = Array.isArray(items) ? items : []
      const bead = found.find((one) => at(one, 'metadata', 'svc.step_id') === step)
      return bead === undefined ? undefined : String(at(bead, 'id'))
    })
  const statusOf = async (step: string) =>
    at(await may(owner, 'GET', `${ALPHA}/molecules/${id}/steps/${step}`), 'status')

  const work = await beadOf('do', 'task')
  await may(worker, 'POST', `${ALPHA}/beads/${work}/claim`, { assignee: 'worker' })
  await may(worker, 'POST', `${ALPHA}/beads/${work}/close`, { outcome: 'pass' })
  for (const question of [await beadOf('do', 'gate'), await beadOf('ship', 'gate')]) {
    const bead = `${ALPHA}/beads/${question}`
    for (const { name, api } of [worker, mayor])
      for (const [method, path, body] of [
        ['POST', '/close', { outcome: 'pass' }],
        ['POST', '/close', { outcome: 'fail' }],
        ['POST', '/assign', { assignee: name }],
        ['POST', '/assign', { assignee: null }],
        ['POST', '/claim', { assignee: name }],
        ['PATCH', '', { assignee: name }],
      ] as const)
        assert.match(
          await refused({ name, api }, method, `${bead}${path}`, body),
          new RegExp(`${question} is for human to answer, and this token is that of ${name}`),
        )
    // Nor is it sold as done by other ways.
    for (const [method, path, body] of [
      ['PATCH', '', { status: 'closed' }],
      ['DELETE', '', undefined],
    ] as const) {
      const answer = await worker.api.call(method, `${bead}${path}`, body === undefined ? {} : { body })
      assert.equal(answer.status, 409, answer.text)
    }
    const slung = await worker.api.post(`${ALPHA}/sling`, { target: 'worker', bead: question, reassign: true })
    assert.ok(slung.status >= 400, slung.text)
    const { assignee, status } = Object(await may(owner, 'GET', bead))
    assert.deepEqual([assignee, status], ['human', 'open'])
    await may(owner, 'POST', `${bead}/close`, { outcome: 'pass' })
  }
  assert.match(
    await refused(mayor, 'POST', `${ALPHA}/beads/${await beadOf('ready', 'gate')}/close`, { outcome: 'pass' }),
    /is for worker/,
  )
  await may(worker, 'POST', `${ALPHA}/beads/${await beadOf('ready', 'gate')}/close`, { outcome: 'pass' })
  await eventually('all is done', async () =>
    (await Promise.all(['do', 'ship', 'ready'].map(statusOf))).every((status) => status === 'completed')
      ? true
      : undefined,
  )
})

test('a command is set by who may change the city; an agent chooses one that the city lists', {
  timeout: 120_000,
}, async () => {
  await using running = await run({ args: ['--auth'] })
  const { city, agent } = await open(running)
  await city.configure(`${AGENTS}[formulas]\ncommands = ["true"]\n`, FILES)
  using stack = new DisposableStack()
  const [worker, mayor] = [await agent('worker'), await agent('mayor')]
  for (const { api } of [worker, mayor]) stack.defer(() => api.close())
  const wish = (formula: string, verify: string) => ({ formula, target: 'worker', vars: { verify } })

  for (const formula of ['judged', 'core.verified-task', 'verified-task', 'plan-build-review', 'convoy-tasks'])
    for (const [path, body] of [
      ['/molecules', wish(formula, 'touch PWNED')],
      ['/molecules', { ...wish(formula, 'touch PWNED'), dry_run: true }],
      ['/sling', { ...wish(formula, 'touch PWNED'), text: 'Do this' }],
    ] as const) {
      const answer = await worker.api.post(`${ALPHA}${path}`, body)
      assert.ok([403, 404].includes(answer.status), `${formula} ${path}: ${answer.text}`)
      if (answer.status === 403) assert.match(answer.text, /needs the right .{1,3}city.*`true`|`true`.*needs the right/)
    }
  // Nor does an event carry one in.
  const { items } = Object(await may(worker, 'GET', `${ALPHA}/molecules`))
  assert.deepEqual(items, [])

  const judged = async (who: Who, verify: string): Promise<unknown> => {
    const id = String(at(await may(who, 'POST', `${ALPHA}/molecules`, wish('judged', verify)), 'id'))
    const { bead_id } = Object(await may(worker, 'GET', `${ALPHA}/molecules/${id}/steps/do`))
    await may(worker, 'POST', `${ALPHA}/beads/${bead_id}/close`, { outcome: 'pass' })
    return eventually(`${verify} has judged`, async () => {
      const { status } = Object(await may(worker, 'GET', `${ALPHA}/molecules/${id}`))
      return status === 'completed' || status === 'failed' ? status : undefined
    })
  }
  assert.equal(await judged(worker, 'true'), 'completed')
  assert.equal(await judged(worker, ''), 'completed')
  assert.equal(await judged(mayor, 'exit 3'), 'failed')
  // What judges the work is not told where the token of the owner is.
  assert.equal(await judged(mayor, 'test -z "$SVC_HOME"'), 'completed')
})

// Agents over HTTP: what their operations write into the files of a city, and what their sessions do of it.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type AgentResponse, createAgent, getAgent, listAgents } from '../../../src/contract/agents.ts'
import { MASK } from '../../../src/contract/base/merge-patch.ts'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi } from '../../support/session-api.ts'

const AGENT = (name: string, more = '') => `[[agent]]\nname = "${name}"\nprovider = "bash"\n${more}`
const PACK = {
  'packs/tools/pack.toml': '[pack]\nname = "tools"\nschema = 2\n',
  'packs/tools/agents/packed/agent.toml': 'provider = "bash"\n',
}

let running: Running
before(async () => {
  running = await run()
})
after(() => running[Symbol.asyncDispose]())

const get = (city: SessionApi, name: string): Promise<AgentResponse> =>
  city.api.ask(getAgent, `${city.base}/agents/${name}`)
const agentEvents = async (city: SessionApi, name: string) =>
  (await city.events('agent.*', { subject: name })).map(({ type, payload }) => [type, payload.changed])
const openSessions = async (city: SessionApi, template: string) => {
  const { items } = await city.done('GET', `/sessions?template=${encodeURIComponent(template)}&limit=1000`)
  assert.ok(Array.isArray(items))
  return items.map((item: unknown) => ({ id: String(at(item, 'id')), state: String(at(item, 'state')) }))
}
const untilCount = (city: SessionApi, template: string, count: number) =>
  eventually(`${count} sessions of ${template}`, async () => {
    const found = await openSessions(city, template)
    return found.length === count ? found : undefined
  })

describe('agents in the files of a city', { concurrency: 3 }, () => {
  test('the output of a pool with two chats that somebody made by hand is not that of the newest', async () => {
    const city = await newSessionCity(running, 'chats', AGENT('crew', 'max_active_sessions = 3\n'))
    const make = () => city.start({ kind: 'agent', name: 'crew' })
    const first = await make()
    assert.equal((await city.send('GET', '/agents/crew/output')).status, 200)
    const second = await make()
    for (const path of ['/agents/crew/output', '/agents/crew/output/stream']) {
      const { detail } = assertProblem(await city.send('GET', path), 'ambiguous-session')
      for (const id of [first, second]) assert.ok(detail.includes((await city.get(id)).agent), detail)
    }
    await city.close(second)
    assert.equal((await city.send('GET', '/agents/crew/output')).status, 200)
  })

  test('an agent of the city gets a file of its own, and deleting it leaves everything as it was', async () => {
    const city = await newSessionCity(running, 'create')
    const before = city.read('city.toml')
    const definition = { provider: 'bash', description: 'Builds', max_active_sessions: 2, env: { TOKEN: 'hush' } }
    const made = await city.api.ask(createAgent, `${city.base}/agents`, { body: { name: 'mason', ...definition } })
    assert.equal(made.name, 'mason')
    assert.equal(made.file, 'agents/mason/agent.toml')
    assert.equal(made.pack_derived, false)
    assert.deepEqual(made.definition, { ...definition, env: { TOKEN: MASK } })
    const file = city.read('agents/mason/agent.toml')
    for (const line of ['provider = "bash"', 'description = "Builds"', 'max_active_sessions = 2', 'TOKEN = "hush"'])
      assert.ok(file.includes(line), `${line} in ${file}`)
    assert.equal(city.read('city.toml'), before)
    const deleted = await city.done('DELETE', '/agents/mason')
    assert.deepEqual(deleted.closed, [])
    assert.equal(city.read('city.toml'), before)
    assert.throws(() => city.read('agents/mason/agent.toml'))
    assertProblem(await city.send('GET', '/agents/mason'), 'agent-not-found')
    assert.deepEqual(
      (await agentEvents(city, 'mason')).map(([type]) => type),
      ['agent.created', 'agent.deleted'],
    )
  })

  test('an agent with the name that one of a pack has is the one that is answered and told of', async () => {
    const city = await newSessionCity(running, 'same')
    const pack = city.read('pack.toml')
    await city.configure('', { ...PACK, 'pack.toml': `${pack}\n[imports.tools]\nsource = "packs/tools"\n` })
    const made = await city.done('POST', '/agents', { name: 'packed', provider: 'claude' })
    assert.deepEqual([made.name, made.provider, made.pack_derived], ['packed', 'claude', false])
    assert.deepEqual(await agentEvents(city, 'packed'), [['agent.created', []]])
    assert.deepEqual(await agentEvents(city, 'tools.packed'), [])
  })

  test('an agent of a rig stands in city.toml, with everything around it left alone', async () => {
    const city = await newSessionCity(running, 'rigs', '# Rigs\n[[rigs]]\nname = "shop"\npath = "shop" # here\n')
    const before = city.read('city.toml')
    const made = await city.done('POST', '/agents', { name: 'mason', dir: 'shop', provider: 'bash' })
    assert.equal(made.name, 'shop/mason')
    assert.equal(made.file, 'city.toml')
    const text = city.read('city.toml')
    assert.ok(text.startsWith(before.trimEnd()), text)
    assert.match(text, /\[\[agent\]\]\nname = "mason"\ndir = "shop"\nprovider = "bash"\n/)
    await city.done('DELETE', '/agents/shop/mason')
    assert.equal(city.read('city.toml'), before)
  })

  test('a definition is replaced and merged where it stands, comments stay, secrets that are not sent stay', async () => {
    const city = await newSessionCity(
      running,
      'edit',
      '# The first\n[[agent]]\nname = "first" # he\nprovider = "bash"\n[agent.env]\nTOKEN = "hush"\nMODE = "slow"\n# The end\n',
    )
    const etag = async () => String((await city.send('GET', '/agents/first')).headers['etag'])
    const old = await etag()
    const patched = await city.done('PATCH', '/agents/first', { description: 'One', env: { MODE: 'quick' } })
    assert.equal(patched.description, 'One')
    const text = city.read('city.toml')
    for (const kept of ['# The first', '# he', '# The end', 'TOKEN = "hush"', 'MODE = "quick"', 'description = "One"'])
      assert.ok(text.includes(kept), `${kept} in ${text}`)
    const stale = await city.send('PATCH', '/agents/first', { description: 'Two' }, { 'if-match': old })
    assertProblem(stale, 'precondition-failed')

    const { definition } = await get(city, 'first')
    assert.deepEqual(definition, { provider: 'bash', description: 'One', env: { TOKEN: MASK, MODE: MASK } })
    const { description: _, ...rest } = definition
    const replaced = await city.send('PUT', '/agents/first', rest, { 'if-match': await etag() })
    assert.equal(replaced.status, 200, replaced.text)
    const after = city.read('city.toml')
    assert.ok(!after.includes('description'))
    assert.ok(after.includes('TOKEN = "hush"'), 'a masked value means the old one')
    await city.done('PATCH', '/agents/first', { env: { MODE: null } })
    assert.ok(!city.read('city.toml').includes('MODE'))
    const head = await city.head()
    await city.done('PATCH', '/agents/first', {})
    assert.deepEqual(await city.events('agent.*', { after: head }), [], 'nothing changed, nothing is told')
    assert.deepEqual(await agentEvents(city, 'first'), [
      ['agent.updated', ['description', 'env']],
      ['agent.updated', ['description']],
      ['agent.updated', ['env']],
    ])
  })

  test('names that are paths, and definitions that are wrong, are refused and write nothing', async () => {
    const city = await newSessionCity(running, 'refuse', AGENT('first'))
    const before = city.read('city.toml')
    for (const name of ['output', 'suspend', 'resume', 'prompt', 'a/b', '-x', 'a b', '', 'x'.repeat(65)]) {
      const refused = assertProblem(await city.send('POST', '/agents', { name, provider: 'bash' }), 'validation-failed')
      assert.equal(refused.errors?.[0]?.location, 'body.name', name)
    }
    assertProblem(await city.send('POST', '/agents', { name: 'ok', nonsense: 1 }), 'validation-failed')
    const circle = await city.send('PATCH', '/agents/first', { depends_on: ['first'] })
    assertProblem(circle, 'invalid-config')
    assertProblem(await city.send('PATCH', '/agents/first', { provider: 'none' }), 'invalid-config')
    assertProblem(await city.send('PATCH', '/agents/first', { idle_timeout: 'soon' }), 'invalid-config')
    assert.equal(city.read('city.toml'), before)
  })

  test('to suspend is to write it down, and to resume takes it away: in its own entry', async () => {
    const city = await newSessionCity(
      running,
      'hold',
      `${AGENT('first')}[[named_session]]\ntemplate = "first"\nmode = "always"\n`,
    )
    const before = city.read('city.toml')
    await city.is('first', 'active')
    const suspended = await city.done('POST', '/agents/first/suspend')
    assert.equal(suspended.suspended, true)
    assert.equal(suspended.state, 'suspended')
    assert.equal(suspended.available, false)
    assert.ok(city.read('city.toml').includes('suspended = true'))
    const draining = await city.is('first', 'draining')
    assert.equal(draining.reason, 'suspended')
    await city.done('POST', '/sessions/first/drain-ack')
    await city.is('first', 'asleep')
    assertProblem(await city.send('POST', '/sessions/first/wake'), 'conflict-config')
    assertProblem(await city.send('POST', '/sessions', { kind: 'agent', name: 'first' }), 'conflict-config')
    const again = await city.head()
    await city.done('POST', '/agents/first/suspend')
    assert.deepEqual(await city.events('agent.*', { after: again }), [], 'it was suspended before')
    const resumed = await city.done('POST', '/agents/first/resume')
    assert.equal(resumed.suspended, false)
    assert.equal(city.read('city.toml'), before)
    await city.is('first', 'active')
    assert.deepEqual(await agentEvents(city, 'first'), [
      ['agent.suspended', ['suspended']],
      ['agent.resumed', ['suspended']],
    ])
  })

  test('an agent of a pack is suspended by a patch of the city, and its own file is left alone', async () => {
    const city = await newSessionCity(running, 'packed')
    const pack = city.read('pack.toml')
    await city.configure('', { ...PACK, 'pack.toml': `${pack}\n[imports.tools]\nsource = "packs/tools"\n` })
    const found = await get(city, 'tools.packed')
    assert.equal(found.pack_derived, true)
    assert.equal(found.pack, 'tools')
    const before = city.read('city.toml')
    const own = city.read('packs/tools/agents/packed/agent.toml')
    assert.equal((await city.done('POST', '/agents/tools.packed/suspend')).suspended, true)
    assert.equal(city.read('packs/tools/agents/packed/agent.toml'), own)
    const patched = city.read('city.toml')
    assert.ok(patched.startsWith(before.trimEnd()))
    assert.match(patched, /\[\[patches\.agent\]\]\nname = "tools\.packed"\nsuspended = true\n/)
    assert.equal((await city.done('POST', '/agents/tools.packed/resume')).suspended, false)
    assert.equal((await get(city, 'tools.packed')).suspended, false)
    for (const [method, body] of [
      ['PUT', {}],
      ['PATCH', { description: 'x' }],
      ['DELETE', undefined],
    ] as const)
      assertProblem(await city.send(method, '/agents/tools.packed', body), 'pack-derived')
  })

  test('an agent that is deleted takes its sessions with it, and is not deleted while others need it', async () => {
    const city = await newSessionCity(running, 'remove', `${AGENT('base')}${AGENT('top', 'depends_on = ["base"]\n')}`)
    const refused = await city.send('DELETE', '/agents/base')
    assertProblem(refused, 'still-referenced', /top/)
    const id = await city.start({ kind: 'agent', name: 'top' })
    const { closed } = await city.done('DELETE', '/agents/top')
    assert.deepEqual(closed, [id])
    await city.is(id, 'closed')
    assert.deepEqual((await city.events('session.closed', { subject: id })).length, 1)
    const { id: bead } = await city.done('POST', '/beads', { title: 'for base' })
    await city.done('POST', `/beads/${bead}/route`, { target: 'base' })
    const awaited = await city.send('DELETE', '/agents/base')
    assertProblem(awaited, 'still-referenced', /work waits for the agent base: .*svcctl agent delete base --force/)
    assert.match(awaited.text, new RegExp(`"value":"${String(bead)}"`))
    await get(city, 'base')
    await city.done('DELETE', '/agents/base?force=true')
    assert.equal((await city.done('GET', `/beads/${bead}`)).status, 'open', 'the work stays')
  })

  test('an agent shows what its sessions do', async () => {
    const city = await newSessionCity(running, 'shown', AGENT('solo', 'max_active_sessions = 1\n'))
    const stopped = await get(city, 'solo')
    assert.equal(stopped.state, 'stopped')
    assert.equal(stopped.running, false)
    const id = await city.start({ kind: 'agent', name: 'solo' })
    const idle = await get(city, 'solo')
    assert.deepEqual([idle.state, idle.running, idle.sessions], ['idle', true, 1])
    assert.equal(idle.session?.id, id)
    const bead = await city.done('POST', '/beads', { title: 'work' })
    await city.done('POST', `/beads/${String(bead.id)}/claim`, { assignee: id, session_id: id })
    const working = await get(city, 'solo')
    assert.equal(working.state, 'working')
    assert.equal(working.active_bead, bead.id)
    const peeked = await city.api.ask(listAgents, `${city.base}/agents?peek=true&running=true`)
    assert.deepEqual(
      peeked.items.map(({ name }) => name),
      ['solo'],
    )
    assert.match(peeked.items[0]?.last_output ?? '', /ready>/)
    const index = await city.head()
    const blocking = city.api.ask(listAgents, `${city.base}/agents?index=${index}&wait=20s&running=false`)
    await city.close(id)
    const quiet = await blocking
    assert.ok(quiet.items.some(({ name }) => name === 'solo' || name.startsWith('core.')))
  })
})

describe('what pools do', { concurrency: 3 }, () => {
  const POOL = AGENT('hand', 'namepool = "names.txt"\nmax_active_sessions = 2\ndrain_timeout = "300ms"\n')
  const FILES = { 'names.txt': 'ann\nbob\ncid\n' }

  test('work that is routed to a pool starts as many as it may, with their names, and they go when it is done', async () => {
    const city = await newSessionCity(running, 'pool')
    await city.configure(POOL, FILES)
    assert.equal((await openSessions(city, 'hand')).length, 0)
    const beads: string[] = []
    for (let n = 0; n < 3; n++) {
      const { id } = await city.done('POST', '/beads', { title: `work ${n}` })
      await city.done('POST', `/beads/${String(id)}/route`, { target: 'hand' })
      beads.push(String(id))
    }
    await untilCount(city, 'hand', 2)
    assert.equal((await get(city, 'hand')).demand, 3)
    const rows = await city.api.ask(listAgents, `${city.base}/agents?pool=hand`)
    assert.deepEqual(rows.items.map(({ name }) => name).sort(), ['ann', 'bob'])
    const ann = await city.is('ann', 'active')
    assert.equal(ann.agent_kind, 'pool')
    assert.equal(ann.pool, 'hand')
    // One of them takes a bead; what is left over wants one, and then none.
    await city.done('POST', `/beads/${beads[0]}/claim`, { assignee: 'ann', session_id: ann.id })
    assert.equal((await get(city, 'hand')).demand, 2)
    for (const bead of beads.slice(1)) await city.done('POST', `/beads/${bead}/close`)
    const [left] = await untilCount(city, 'hand', 1)
    assert.equal(left?.id, ann.id, 'who holds work stays')
    await city.done('POST', `/beads/${beads[0]}/close`)
    await untilCount(city, 'hand', 0)
    assert.equal((await city.get(ann.id)).state, 'closed')
  })

  test('a limit is enough to make a pool, and its instances are numbered', async () => {
    const city = await newSessionCity(running, 'limit')
    await city.configure(AGENT('pair', 'max_active_sessions = 2\n'))
    for (let n = 0; n < 3; n++) {
      const { id } = await city.done('POST', '/beads', { title: `work ${n}` })
      await city.done('POST', `/beads/${String(id)}/route`, { target: 'pair' })
    }
    await untilCount(city, 'pair', 2)
    const rows = await city.api.ask(listAgents, `${city.base}/agents?pool=pair`)
    assert.deepEqual(
      rows.items.map(({ name }) => name),
      ['pair-1', 'pair-2'],
    )
    const one = await get(city, 'pair-2')
    assert.deepEqual([one.name, one.pool, one.session?.name], ['pair-2', 'pair', 'pair-2'])
    assertProblem(await city.send('GET', '/agents/pair-3'), 'agent-not-found')
    assertProblem(await city.send('DELETE', '/agents/pair-2'), 'agent-not-found')
    const page = (cursor: string) => city.api.ask(listAgents, `${city.base}/agents?limit=1${cursor}`)
    const paged: string[] = []
    for (let found = await page(''); ; found = await page(`&cursor=${found.next_cursor}`)) {
      assert.equal(found.total, 4)
      paged.push(...found.items.map(({ name }) => name))
      if (found.next_cursor === undefined) break
    }
    assert.deepEqual(paged, ['core.worker', 'pair', 'pair-1', 'pair-2'], 'page by page: none skipped, none doubled')
  })

  test('work that is routed to an agent without a pool starts the one session that it has', async () => {
    const city = await newSessionCity(running, 'lone', AGENT('lone', 'drain_timeout = "300ms"\n'))
    const { id } = await city.done('POST', '/beads', { title: 'work' })
    await city.done('POST', `/beads/${String(id)}/route`, { target: 'lone' })
    await untilCount(city, 'lone', 1)
    const session = await city.is('lone', 'active')
    assert.equal(session.origin, 'ephemeral')
    const { items } = await city.api.ask(listAgents, `${city.base}/agents`)
    assert.deepEqual(
      items.filter(({ name }) => name === 'lone').map((row) => row.session?.id),
      [session.id],
    )
    await city.done('POST', `/beads/${String(id)}/close`)
    await untilCount(city, 'lone', 0)
  })

  test('a command says how many are wanted, and one that fails wants none beyond the floor', async () => {
    const city = await newSessionCity(running, 'scale')
    const pool = AGENT(
      'hand',
      'scale_check = "cat wanted"\nmin_active_sessions = 1\nmax_active_sessions = 3\ndrain_timeout = "300ms"\n',
    )
    const quick = 'patrol_interval = "200ms"\n'
    await city.configure(pool, { wanted: '2\n' }, quick)
    await untilCount(city, 'hand', 2)
    city.write('wanted', '9\n')
    await untilCount(city, 'hand', 3)
    city.write('wanted', 'nonsense\n')
    await untilCount(city, 'hand', 1)
  })

  test('a suspended pool starts nobody, whatever waits for it', async () => {
    const city = await newSessionCity(running, 'paused')
    await city.configure(AGENT('hand', 'min_active_sessions = 1\nsuspended = true\n'))
    const { id } = await city.done('POST', '/beads', { title: 'work' })
    await city.done('POST', `/beads/${String(id)}/route`, { target: 'hand' })
    await city.done('POST', '/agents', { name: 'other', provider: 'bash', min_active_sessions: 1 })
    await untilCount(city, 'other', 1)
    assert.equal((await openSessions(city, 'hand')).length, 0)
    await city.done('POST', '/agents/hand/resume')
    await untilCount(city, 'hand', 1)
  })
})

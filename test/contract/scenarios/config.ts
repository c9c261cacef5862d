/** Configuration: each success and each refusal of its own. The rules of files, reloads and crashes are in test/e2e and test/crash. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { OperationId } from '../../../src/contract/index.ts'
import { at } from '../../support/document.ts'
import { type Answer, assertProblem, eventually } from '../../support/http.ts'
import { newCity, outcome } from '../../support/running.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

interface OwnCity {
  readonly base: string
  readonly dir: string
}

/** A running city that nobody else looks at. */
async function ownCity({ main, unique }: World): Promise<OwnCity> {
  const name = unique('config')
  return { base: `/v0/city/${name}`, dir: await newCity(main.api, main.work, name) }
}

function write(dir: string, path: string, content: string | Buffer): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), content)
}

const reads = (id: OperationId, path: string, look: (answer: Answer) => void): Scenario =>
  scenario(id, 200, async ({ main }) => {
    const answer = await main.api.get(`/v0/city/alpha${path}`)
    look(answer)
    return answer
  })

const file = (base: string, path: string) => `${base}/config/files/${encodeURIComponent(path)}`

const prompts = (
  id: 'get-agent-prompt' | 'get-agent-prompt-qualified',
  path: (agent: string) => string,
): Scenario[] => {
  const prepared = async (world: World, prompt: string): Promise<string> => {
    const { base, dir } = await ownCity(world)
    mkdirSync(join(dir, 'rigs/shop'), { recursive: true })
    write(dir, 'prompts/own.template.md', prompt)
    const tables = ['', 'dir = "shop"\n'].map(
      (rig) => `[[agent]]\nname = "smith"\n${rig}prompt_template = "prompts/own.template.md"\n`,
    )
    write(
      dir,
      'city.toml',
      `[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n[[rigs]]\nname = "shop"\npath = "rigs/shop"\n${tables.join('')}`,
    )
    await eventually('the agents are loaded', async () => {
      const agents = at((await world.main.api.get(`${base}/config`)).body, 'agents')
      return Array.isArray(agents) && agents.length === 3 ? true : undefined
    })
    return base
  }
  return [
    scenario(id, 200, async (world) => {
      const base = await prepared(world, '---\nversion: 7\n---\nHello {{ AgentName }}.\n')
      const answer = await world.main.api.get(`${base}/agents/${path('smith')}/prompt`)
      assert.equal(at(answer.body, 'text'), `Hello ${String(at(answer.body, 'agent'))}.`)
      assert.equal(at(answer.body, 'version'), '7')
      return answer
    }),
    scenario(id, 'invalid-config', async (world) => {
      const base = await prepared(world, '{% for i in (1..100000000) %}x{% endfor %}\n')
      const answer = await world.main.api.get(`${base}/agents/${path('smith')}/prompt`)
      assertProblem(answer, 'invalid-config', /^invalid_config: the prompt of (shop\/)?smith cannot be rendered: /)
      assert.ok(!answer.text.includes('{%'))
      return answer
    }),
    scenario(id, 'agent-not-found', ({ main }) => main.api.get(`/v0/city/alpha/agents/${path('nobody')}/prompt`)),
  ]
}

export const configScenarios: readonly Scenario[] = [
  reads('get-config', '/config', ({ body }) => assert.equal(at(body, 'view'), 'effective')),
  reads('explain-config', '/config/explain?agent=core.worker', ({ body }) =>
    assert.equal(at(body, 'agents', 0, 'identity'), 'core.worker'),
  ),
  scenario('explain-config', 'config-item-not-found', ({ main }) =>
    main.api.get('/v0/city/alpha/config/explain?provider=nobody'),
  ),
  reads('validate-config', '/config/validate', ({ body }) => assert.equal(at(body, 'valid'), true)),
  scenario('check-config', 200, async ({ main }) => {
    const answer = await main.api.post('/v0/city/alpha/config/validate', { files: { 'city.toml': '[x]\n' } })
    assert.equal(at(answer.body, 'valid'), false)
    return answer
  }),
  scenario('reload-config', 202, async (world) => {
    const { base } = await ownCity(world)
    const answer = await world.main.api.post(`${base}/config/reload`)
    const request = await outcome(world.main.api, String(at(answer.body, 'request_id')))
    assert.deepEqual([request.operation, request.status], ['config.reload', 'succeeded'])
    return answer
  }),
  inFlight('reload-config', (world, key) =>
    Promise.all(
      Array.from({ length: 8 }, () =>
        world.main.api.post('/v0/city/alpha/config/reload', undefined, { headers: { 'idempotency-key': key } }),
      ),
    ),
  ),
  mismatch('reload-config', ({ main }, key, second) =>
    main.api.post('/v0/city/alpha/config/reload', { soft: second }, { headers: { 'idempotency-key': key } }),
  ),
  reads('get-config-defaults', '/config/defaults', ({ body }) => assert.deepEqual(at(body, 'agents'), [])),
  reads('list-config-files', '/config/files', ({ body }) => assert.equal(at(body, 'items', 1, 'path'), 'city.toml')),
  reads('get-config-file', '/config/files/.svc%2Fsite.toml', ({ body }) => assert.equal(at(body, 'kind'), 'site')),
  scenario('get-config-file', 'config-file-not-found', ({ main }) =>
    main.api.get('/v0/city/alpha/config/files/none.toml'),
  ),
  scenario('get-config-file', 'conflict-config', async (world) => {
    const { base, dir } = await ownCity(world)
    write(dir, 'loose.toml', Buffer.from([0xff, 0xfe]))
    const answer = await world.main.api.get(file(base, 'loose.toml'))
    assertProblem(answer, 'conflict-config', 'conflict: loose.toml is not UTF-8 text')
    return answer
  }),
  scenario('put-config-file', 201, async (world) => {
    const { base } = await ownCity(world)
    const body = { text: 'provider = "shell"\n' }
    const answer = await world.main.api.call('PUT', file(base, 'agents/mayor/agent.toml'), { body })
    assert.equal((await world.main.api.get(file(base, 'agents/mayor/agent.toml'))).headers.etag, answer.headers.etag)
    return answer
  }),
  scenario('put-config-file', 200, async (world) => {
    const { base } = await ownCity(world)
    const text = String(at((await world.main.api.get(file(base, 'city.toml'))).body, 'text'))
    return world.main.api.call('PUT', file(base, 'city.toml'), { body: { text: `${text}# more\n` } })
  }),
  scenario('put-config-file', 'invalid-config', async ({ main }) => {
    const answer = await main.api.call('PUT', file('/v0/city/alpha', 'city.toml'), { body: { text: '[x]\n' } })
    assertProblem(answer, 'invalid-config', 'invalid_config: city.toml:1:2: unknown key `x`')
    return answer
  }),
  scenario('put-config-file', 'precondition-failed', ({ main }) =>
    main.api.call('PUT', file('/v0/city/alpha', 'city.toml'), { body: { text: '' }, headers: { 'if-match': '"0"' } }),
  ),
  scenario('put-config-file', 'conflict-config', async (world) => {
    const { base, dir } = await ownCity(world)
    write(dir, 'more', '')
    const answer = await world.main.api.call('PUT', file(base, 'more/loose.toml'), { body: { text: '' } })
    assertProblem(answer, 'conflict-config', 'conflict: more/loose.toml cannot be written: more is no directory')
    return answer
  }),
  ...prompts('get-agent-prompt', (agent) => agent),
  ...prompts('get-agent-prompt-qualified', (agent) => `shop/${agent}`),
]

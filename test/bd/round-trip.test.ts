/** Beads through the real bd tool and back; `npm run test:bd` builds it. What it does not keep: docs/guide/interchange.md. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { LINES_TYPE } from '../../src/contract/base/operation.ts'
import { asMap, at, type Fields } from '../support/document.ts'
import { newCity, type Running, run } from '../support/running.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const TOOL = process.env['SVC_TEST_BD']
const skip = TOOL === undefined ? 'needs the real bd: npm run test:bd' : false

/** A store of bd in a directory of its own. */
class Bd implements Disposable {
  readonly #directory = temporaryDirectory()

  constructor() {
    this.run('init', '--prefix', 'fr', '--quiet')
  }

  run(...args: readonly string[]): string {
    return this.#call(args)
  }

  /** Creates an issue and answers with its id. */
  issue(title: string, ...args: readonly string[]): string {
    return String(at(JSON.parse(this.run('create', title, '--json', ...args)), 'id'))
  }

  /** Its file: what `bd export` prints leaves comments out. */
  export(): string {
    this.run('sync', '--flush-only')
    return readFileSync(join(this.#directory.path, '.beads', 'issues.jsonl'), 'utf8')
  }

  /** Without the ids of comments: this bd has numbers there, and gives its own. */
  import(text: string): void {
    const lines = linesOf(text).map((line) => JSON.stringify({ ...line, comments: withoutIds(line['comments']) }))
    this.#call(['import', '--strict'], lines.join('\n'))
  }

  #call(args: readonly string[], input = ''): string {
    const path = this.#directory.path
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: path,
      USER: 'ann',
      BD_ACTOR: 'ann',
      BEADS_AUTO_START_DAEMON: 'false',
    }
    const done = spawnSync(TOOL ?? '', args, {
      cwd: path,
      env,
      input,
      encoding: 'utf8',
    })
    assert.equal(done.status, 0, `bd ${args.join(' ')}: ${done.stderr}`)
    return done.stdout
  }

  [Symbol.dispose](): void {
    this.#directory[Symbol.dispose]()
  }
}

function withoutIds(comments: unknown): readonly Fields[] | undefined {
  if (comments === undefined) return undefined
  assert.ok(Array.isArray(comments))
  return comments.map((comment) => {
    const { id: _id, ...rest } = asMap(comment)
    return rest
  })
}

let running: Running
before(async () => {
  if (skip === false) running = await run()
})
after(() => running?.[Symbol.asyncDispose]())

/** A new city with a rig whose beads have the prefix of bd's. */
async function cityOf(name: string) {
  await newCity(running.api, running.work, name)
  const base = `/v0/city/${name}`
  mkdirSync(join(running.work, `${name}-rig`))
  const call = async (method: string, path: string, body?: unknown): Promise<Fields> => {
    const answer = await running.api.call(method, `${base}${path}`, body === undefined ? {} : { body })
    assert.ok(answer.status < 300, answer.text)
    return asMap(answer.body)
  }
  await call('POST', '/rigs', { name: 'front', path: join(running.work, `${name}-rig`), prefix: 'fr' })
  return {
    call,
    export: async () => (await running.api.get(`${base}/beads/export?rig=front`)).text,
    async import(bytes: string) {
      const headers = { 'content-type': LINES_TYPE }
      const { body } = await running.api.call('POST', `${base}/beads/import?rig=front`, { bytes, headers })
      assert.deepEqual([at(body, 'failed'), at(body, 'errors')], [0, []])
      return asMap(body)
    },
  }
}

const linesOf = (text: string): readonly Fields[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => asMap(JSON.parse(line)))

/** What both sides mean by a line; counts and hashes are worked out, and times of changes are those of the copy. */
function meant(text: string): unknown {
  const byId = linesOf(text).map((line) => [line['id'], core(line)] as const)
  return Object.fromEntries(byId.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)))
}

const KEPT = [
  'title',
  'description',
  'design',
  'acceptance_criteria',
  'notes',
  'status',
  'priority',
  'issue_type',
  'assignee',
  'external_ref',
  'labels',
] as const

function core(line: Fields): Fields {
  const listed = (key: string): readonly Fields[] => {
    const list = line[key] ?? []
    assert.ok(Array.isArray(list))
    return list.map(asMap)
  }
  const edges = listed('dependencies').map((edge) => `${edge['type']} ${edge['depends_on_id']}`)
  const comments = listed('comments').map(({ author, text }) => `${author}: ${text}`)
  return {
    ...Object.fromEntries(KEPT.map((key) => [key, line[key] || (line[key] === 0 ? 0 : null)])),
    created: Date.parse(String(line['created_at'])),
    closed: line['closed_at'] === undefined ? null : Date.parse(String(line['closed_at'])),
    edges: edges.sort(),
    comments,
  }
}

test('what bd has comes back to it as it was, through a city', { skip }, async () => {
  using bd = new Bd()
  const epic = bd.issue('Avatars', '-t', 'epic', '-p', '1')
  const types = ['bug', 'feature', 'task', 'chore']
  const issues = types.map((type, n) =>
    bd.issue(`A ${type}`, '-t', type, '-p', String([0, 2, 3, 4][n]), '-d', `text ${n}`),
  )
  const [bug = '', feature = '', task = '', chore = ''] = issues
  bd.issue('Below', '--parent', epic, '-l', 'ui,z', '--design', 'round', '--acceptance', 'seen')
  for (const [from, to, type] of [
    [bug, feature, 'blocks'],
    [task, epic, 'related'],
    [chore, bug, 'discovered-from'],
  ] as const)
    bd.run('dep', 'add', from, to, '--type', type)
  bd.run('update', feature, '--status', 'in_progress', '--assignee', 'ann', '--notes', 'two offers')
  bd.run('update', task, '--status', 'blocked')
  bd.run('comments', 'add', bug, 'seen again ☃')
  bd.run('close', chore, '--reason', 'done')
  const before = bd.export()
  const city = await cityOf('alpha')
  assert.equal((await city.import(before)).created, linesOf(before).length)
  using other = new Bd()
  other.import(await city.export())
  assert.deepEqual(meant(other.export()), meant(before))
  assert.equal((await city.import(before)).unchanged, linesOf(before).length)
})

test('what a city has comes back to it as it was, through bd; without a priority it is no emergency there', {
  skip,
}, async () => {
  const city = await cityOf('beta')
  const ids: string[] = []
  const bead = async (title: string, more: object = {}): Promise<string> => {
    const { id } = await city.call('POST', '/beads', { title, rig: 'front', ...more })
    ids.push(String(id))
    return String(id)
  }
  const plain = await bead('Plain')
  for (const priority of [0, 1, 2, 3, 4]) await bead(`Priority ${priority}`, { priority })
  for (const type of ['bug', 'feature', 'chore', 'epic']) await bead(`A ${type}`, { type, labels: ['b', 'a'] })
  const below = await bead('Below', { parent: plain, description: 'text', assignee: 'ann' })
  const [first = '', second = '', third = ''] = ids
  await city.call('POST', `/beads/${second}/deps`, { depends_on_id: first })
  await city.call('POST', `/beads/${third}/deps`, { depends_on_id: second, type: 'discovered-from' })
  await city.call('POST', `/beads/${third}/deps`, { depends_on_id: first, type: 'related' })
  await city.call('POST', `/beads/${first}/comments`, { text: 'well ☃', author: 'ann' })
  await city.call('POST', `/beads/${below}/claim`, { assignee: 'ann' })
  await city.call('POST', `/beads/${third}/close`, { reason: 'done' })
  const before = await city.export()
  using bd = new Bd()
  bd.import(before)
  const there = linesOf(bd.export())
  assert.equal(there.find(({ id }) => id === plain)?.['priority'], 2)
  const other = await cityOf('gamma')
  await other.import(bd.export())
  assert.deepEqual(meant(await other.export()), meant(before))
  // And back where it came from: what did not change there is nothing new here.
  await city.import(bd.export())
  assert.deepEqual(meant(await city.export()), meant(before))
  assert.equal((await city.call('GET', `/beads/${plain}`))['priority'], undefined)
})

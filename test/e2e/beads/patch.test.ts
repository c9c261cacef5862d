/** What a PATCH does to each field: absent, null, empty and a value (the table of sheet 03 §4.4), over HTTP. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BeadCity } from '../../support/bead-city.ts'
import { at } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { newCity, type Running, run } from '../../support/running.ts'

let running: Running
let city: BeadCity
let parent: string
let other: string
before(async () => {
  running = await run()
  await newCity(running.api, running.work, 'alpha')
  city = new BeadCity(running.api)
  parent = await city.bead('parent')
  other = await city.bead('other')
})
after(() => running[Symbol.asyncDispose]())

/** `keep` and `clear`; `refuse` with a 422 that names the field; or the value that it has then. */
type Effect = 'keep' | 'clear' | 'refuse' | { readonly is: unknown }
interface Row {
  readonly field: string
  /** Where the bead shows it; the field itself where absent. */
  readonly shown?: string
  readonly null: Effect
  readonly empty: { readonly said: unknown; readonly effect: Effect } | undefined
  readonly value: { readonly said: () => unknown; readonly is: () => unknown }
}

const EMPTY_TEXT = (effect: Effect) => ({ said: '', effect })
const same = (value: unknown) => ({ said: () => value, is: () => value })
const TABLE: readonly Row[] = [
  { field: 'title', null: 'refuse', empty: EMPTY_TEXT('refuse'), value: same('new') },
  { field: 'status', null: 'refuse', empty: EMPTY_TEXT('refuse'), value: same('in_progress') },
  { field: 'issue_type', null: 'refuse', empty: EMPTY_TEXT('refuse'), value: same('bug') },
  { field: 'type', shown: 'issue_type', null: 'refuse', empty: EMPTY_TEXT('refuse'), value: same('bug') },
  { field: 'description', null: 'clear', empty: EMPTY_TEXT('clear'), value: same('new text') },
  { field: 'priority', null: 'clear', empty: undefined, value: same(0) },
  { field: 'assignee', null: 'clear', empty: EMPTY_TEXT('clear'), value: same('bob') },
  { field: 'parent', null: 'clear', empty: EMPTY_TEXT('clear'), value: { said: () => other, is: () => other } },
  {
    field: 'labels',
    null: 'keep',
    empty: { said: [], effect: 'keep' },
    value: { said: () => ['c', 'a', 'c'], is: () => ['a', 'b', 'c'] },
  },
  {
    field: 'remove_labels',
    shown: 'labels',
    null: 'keep',
    empty: { said: [], effect: 'keep' },
    value: { said: () => ['b', 'z'], is: () => ['a'] },
  },
  {
    field: 'metadata',
    null: 'keep',
    empty: { said: {}, effect: 'keep' },
    value: { said: () => ({ k: '', gone: null, new: 'n' }), is: () => ({ k: '', new: 'n' }) },
  },
  {
    field: 'defer_until',
    null: 'clear',
    empty: EMPTY_TEXT('refuse'),
    value: { said: () => '2101-01-01T01:00:00+01:00', is: () => '2101-01-01T00:00:00.000Z' },
  },
]

/** A bead with a value in every field. */
const full = () =>
  city.bead('full', {
    issue_type: 'feature',
    priority: 1,
    description: 'text',
    assignee: 'ann',
    parent,
    labels: ['a', 'b'],
    metadata: { k: 'v', gone: 'x' },
    defer_until: '2100-01-01T00:00:00.000Z',
  })

async function check({ field, shown = field }: Row, body: object, effect: Effect): Promise<void> {
  const id = await full()
  const bead = await city.get(id)
  const head = await city.head()
  const answer = await city.send('PATCH', `/${id}`, body)
  const events = await city.events(head)
  if (effect === 'refuse') {
    const { errors } = assertProblem(answer, 'validation-failed')
    assert.equal(at(errors, 0, 'location'), `body.${field}`)
  } else assert.equal(answer.status, 200, answer.text)
  if (effect === 'refuse' || effect === 'keep') {
    assert.deepEqual([await city.get(id), events], [bead, []])
    return
  }
  const now = await city.get(id)
  assert.deepEqual(answer.body, now)
  assert.deepEqual(Reflect.get(now, shown), effect === 'clear' ? undefined : effect.is)
  assert.equal(now.revision, bead.revision + 1)
  const touched = shown === 'parent' ? ['parent', 'dependencies'] : [shown]
  assert.deepEqual(
    events.map(({ type, subject, payload }) => [type, subject, payload.changed]),
    [['bead.updated', id, touched]],
  )
  // Nothing else has changed.
  const others = { ...bead, updated_at: now.updated_at, revision: now.revision }
  for (const name of touched) {
    assert.ok(Reflect.deleteProperty(others, name))
    Reflect.deleteProperty(now, name)
  }
  assert.deepEqual(now, others)
}

const called = (effect: Effect) =>
  typeof effect === 'object' ? 'sets it' : { keep: 'keeps it', clear: 'clears it', refuse: 'is refused' }[effect]

for (const row of TABLE) {
  test(`PATCH without ${row.field} keeps it`, () => check(row, {}, 'keep'))
  test(`PATCH ${row.field}: null ${called(row.null)}`, () => check(row, { [row.field]: null }, row.null))
  if (row.empty !== undefined) {
    const { said, effect } = row.empty
    test(`PATCH ${row.field}: ${JSON.stringify(said)} ${called(effect)}`, () =>
      check(row, { [row.field]: said }, effect))
  }
  test(`PATCH ${row.field} with a value sets it`, () =>
    check(row, { [row.field]: row.value.said() }, { is: row.value.is() }))
}

test('a label that is added and removed at once is gone', async () => {
  const id = await full()
  const { labels } = await city.done('PATCH', `/${id}`, { labels: ['c', 'd'], remove_labels: ['d', 'b'] })
  assert.deepEqual(labels, ['a', 'c'])
})

test('the type under both of its names is refused where they differ', async () => {
  const id = await full()
  const { errors } = assertProblem(
    await city.send('PATCH', `/${id}`, { type: 'bug', issue_type: 'task' }),
    'validation-failed',
  )
  assert.equal(at(errors, 0, 'location'), 'body.type')
})

for (const body of [{ metadata: { 'svc.kind': null } }, { metadata: { 'gc.routed_to': 'me' } }])
  test(`metadata of the service is not a caller’s to set: ${JSON.stringify(body)}`, async () => {
    assertProblem(await city.send('PATCH', `/${await full()}`, body), 'validation-failed', /kept by the service/)
  })

test('a parent that is not there is 404, one below it is 409', async () => {
  const id = await full()
  assertProblem(await city.send('PATCH', `/${id}`, { parent: 'al-none' }), 'bead-not-found')
  assertProblem(await city.send('PATCH', `/${parent}`, { parent: id }), 'dependency-cycle')
})

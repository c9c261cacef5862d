/**
 * Everything that can be done to beads, each done to the model and to the real thing; then both are compared: the answer,
 * every bead, lists, what is ready, hooks, and what the log says.
 */
import assert from 'node:assert/strict'
import * as any from './bead-arbitraries.ts'
import type { Asked, BeadDoor, BeadOperationId, Told } from './bead-door.ts'
import {
  BeadModel,
  isElsewhere,
  iso,
  LEASE_MS,
  type ModelBead,
  type ModelEdge,
  type ModelEvent,
  putEdge,
} from './bead-model.ts'
import { asMap, at, type Fields } from './document.ts'
import { fc } from './random.ts'

const NOBODY_IS = 'al-nobody'
const RIGS = new Set(['shop'])

export interface World {
  readonly model: BeadModel
  readonly door: BeadDoor
}

type Values<A> = A extends fc.Arbitrary<infer T> ? T : never
type Made<F extends (types: readonly any.IssueType[]) => unknown> = Values<ReturnType<F>>
type Types = readonly any.IssueType[]
type If = 'current' | 'stale' | undefined
const condition: fc.Arbitrary<If> = fc.oneof(
  { arbitrary: fc.constant(undefined), weight: 8 },
  { arbitrary: fc.constantFrom<If[]>('current', 'stale'), weight: 2 },
)

class Step implements fc.AsyncCommand<BeadModel, BeadDoor> {
  readonly #text: string
  readonly #times: number
  readonly #run: (world: World) => Promise<void>

  constructor(text: string, times: number, run: (world: World) => Promise<void>) {
    this.#text = text
    this.#times = times
    this.#run = run
  }

  check = () => true

  async run(model: BeadModel, door: BeadDoor): Promise<void> {
    for (let n = 0; n < this.#times; n++) {
      assert.equal(model.now, door.now())
      await this.#run({ model, door })
      await compareAll({ model, door })
    }
  }

  toString = () => `${this.#times === 1 ? '' : 'twice '}${this.#text}`
}

const ONCE = { arbitrary: fc.constant(1), weight: 5 }
const TWICE = { arbitrary: fc.constant(2), weight: 1 }

/** A kind of command: of any values, or of these. */
interface Kind<T> {
  readonly any: fc.Arbitrary<Step>
  readonly of: (value: T) => Step
}

/** Now and then it is done twice: what was done already must change nothing. */
function kind<T>(name: string, arbitrary: fc.Arbitrary<T>, run: (world: World, value: T) => Promise<void>): Kind<T> {
  const step = (value: T, times: number) =>
    new Step(`${name} ${JSON.stringify(value)}`, times, (world) => run(world, value))
  const any = fc.tuple(arbitrary, fc.oneof(ONCE, TWICE)).map(([value, times]) => step(value, times))
  return { any, of: (value) => step(value, 1) }
}

/** As `kind`, where nobody needs one of certain values. */
const step = <T>(name: string, arbitrary: fc.Arbitrary<T>, run: (world: World, value: T) => Promise<void>) =>
  kind(name, arbitrary, run).any

// ---- beads by number --------------------------------------------------------------------------------------------------

/** A bead that there is, or now and then an id that there is not (any more). */
function idAt({ beads, gone }: BeadModel, n: number): string {
  const live = [...beads.keys()]
  if (live.length === 0 || n % 20 === 19) return [...gone, NOBODY_IS][n % (gone.size + 1)] ?? NOBODY_IS
  return live[n % live.length] ?? NOBODY_IS
}

/** What a call is refused for, if it is. */
type Reasons = readonly (string | false | undefined)[]

/** Asks; of several reasons to refuse any may be given, and then nothing has changed. */
async function ask(
  { door }: World,
  id: BeadOperationId,
  asked: Asked,
  reasons: Reasons,
  done: (told: Told) => void,
): Promise<void> {
  const told = await door.ask(id, asked)
  const refused = reasons.filter((reason) => typeof reason === 'string')
  const what = `${id} ${JSON.stringify(asked)}: ${JSON.stringify(told.body)}`
  if (refused.length > 0) assert.ok(refused.includes(String(told.body['code'])), `${what}; expected ${refused.join()}`)
  else {
    assert.ok(told.status < 300, what)
    done(told)
  }
}

/** Edits one bead: 404 where it is not there, 412 for an older version; the answer is the bead as it is then. */
async function edit(
  world: World,
  id: BeadOperationId,
  {
    n,
    body,
    params,
    query,
    when,
  }: Pick<Asked, 'body' | 'params' | 'query'> & { readonly n: number; readonly when?: If },
  reasons: (bead: ModelBead) => Reasons,
  change: (bead: ModelBead) => void,
  beadOf: (told: Fields) => unknown = (told) => told,
): Promise<void> {
  const { model } = world
  const bead = model.beads.get(idAt(model, n))
  const ifMatch = { current: `"${bead?.revision}"`, stale: `"${(bead?.revision ?? 0) + 1}"` }
  const asked = {
    body,
    params: { id: bead?.id ?? idAt(model, n), ...params },
    query: query ?? {},
    ...(when === undefined ? {} : { ifMatch: ifMatch[when] }),
  }
  const refused =
    bead === undefined ? ['bead-not-found'] : [when === 'stale' && 'precondition-failed', ...reasons(bead)]
  await ask(world, id, asked, refused, ({ body: told, etag }) => {
    assert.ok(bead)
    change(bead)
    const now = model.need(bead.id)
    const { warnings, ...answer } = asMap(beadOf(told))
    assert.deepEqual(answer, model.wire(now))
    if (id === 'route-bead') assert.equal(warnings !== undefined, now.routed_to !== undefined)
    assert.equal(etag, `"${now.revision}"`)
  })
}

// ---- bodies ------------------------------------------------------------------------------------------------------------

type Loose<T> = { readonly [K in keyof T]?: T[K] | undefined }
type Described = Loose<Made<typeof any.creation>['more']>

interface Flawed extends Pick<Described, 'type' | 'issue_type'> {
  readonly title?: string | undefined
  readonly metadata?: object | undefined
}

/** Why a description is refused. */
const flaws = ({ title, type, issue_type, metadata }: Flawed): Reasons => [
  title?.trim() === '' && 'validation-failed',
  type !== undefined && issue_type !== undefined && type !== issue_type && 'validation-failed',
  Object.keys(metadata ?? {}).some((key) => key.startsWith('svc.')) && 'validation-failed',
]

const missing = (model: BeadModel, ids: readonly string[]): Reasons => [
  ids.some((id) => !model.beads.has(id)) && 'bead-not-found',
]

const parentsAmong = (edges: readonly { readonly to: string; readonly type?: string | undefined }[]) =>
  edges.filter(({ type }) => type === 'parent-child').map(({ to }) => to)
/** A bead has one parent. */
const areSeveral = (parents: readonly (string | undefined)[]): boolean =>
  new Set(parents.filter((id) => id !== undefined)).size > 1

const timed = (model: BeadModel, defer: number | undefined) =>
  defer === undefined ? {} : { defer_until: iso(model.now + defer) }

/** The bead that a description makes. */
function made(model: BeadModel, id: string, title: string, more: Omit<Described, 'parent' | 'needs'>): ModelBead {
  const { priority, defer, rig } = more
  return {
    id,
    title,
    status: 'open',
    issue_type: more.issue_type ?? more.type ?? 'task',
    priority,
    description: more.description || undefined,
    assignee: more.assignee || undefined,
    from: more.from || undefined,
    ref: more.ref || undefined,
    rig,
    created_at: model.now,
    updated_at: model.now,
    defer_until: defer === undefined ? undefined : model.now + defer,
    ephemeral: more.ephemeral === true,
    labels: more.labels ?? [],
    metadata: more.metadata ?? {},
    edges: [],
    comments: [],
    revision: 1,
  }
}

// ---- commands ----------------------------------------------------------------------------------------------------------

const create = (types: Types) =>
  step('create', any.creation(types), async (world, { title, more: { defer, ...all } }) => {
    const { model } = world
    // The first one has nothing to refer to.
    const { parent, needs, ...more } = model.beads.size === 0 ? { ...all, parent: undefined, needs: undefined } : all
    const parentId = parent === undefined ? undefined : idAt(model, parent)
    const edges = needs?.map(({ to, type }) => ({ to: idAt(model, to), type }))
    const texts = edges?.map(({ to, type }) => (type === undefined ? to : `${type}:${to}`))
    const body = {
      title,
      ...more,
      ...timed(model, defer),
      ...(parentId === undefined ? {} : { parent: parentId }),
      ...(texts === undefined ? {} : { needs: texts }),
    }
    const named = [...(parentId === undefined ? [] : [parentId]), ...(edges ?? []).map(({ to }) => to)]
    const reasons = [
      ...flaws({ title, ...more }),
      more.rig !== undefined && !RIGS.has(more.rig) && 'rig-not-found',
      ...missing(model, named),
      areSeveral([parentId, ...parentsAmong(edges ?? [])]) && 'validation-failed',
    ]
    await ask(world, 'create-bead', { body }, reasons, ({ status, body: told, etag }) => {
      assert.deepEqual([status, etag], [201, '"1"'])
      const id = String(told['id'])
      assert.match(id, /^[a-z]+-(wisp-)?[0-9a-z]{3,}$/)
      const bead = { ...made(model, id, title, { ...more, defer }), needs: texts?.length === 0 ? undefined : texts }
      const family = parentId === undefined ? [] : [{ to: parentId, type: 'parent-child' }]
      model.create(bead, [...family, ...(edges ?? []).map(({ to, type = 'blocks' }) => ({ to, type }))])
      assert.deepEqual(told, model.wire(model.need(id)))
    })
  })

const patch = (types: Types) =>
  step('patch', fc.tuple(any.ref, any.patch(types), condition), async (world, [n, said, when]) => {
    const { model } = world
    const { defer, parent, ...same } = said
    const parentId = typeof parent === 'number' ? idAt(model, parent) : parent
    const body = {
      ...same,
      ...(defer === null ? { defer_until: null } : timed(model, defer)),
      ...(parentId === undefined ? {} : { parent: parentId }),
    }
    const reasons = (bead: ModelBead): Reasons => [
      ...flaws({ title: said.title, type: said.type, issue_type: said.issue_type, metadata: keysOf(said.metadata) }),
      bead.status === 'closed' && said.status === 'in_progress' && 'conflict-wrong-state',
      ...(parentId ? missing(model, [parentId]) : []),
      !!parentId && model.closesCycle(bead.id, { to: parentId, type: 'parent-child' }) && 'dependency-cycle',
    ]
    await edit(world, 'patch-bead', { n, body, when }, reasons, ({ id }) =>
      model.change(id, (bead) => applyPatch(model, bead, said, parentId)),
    )
  })

const keysOf = (metadata: object | null | undefined): Record<string, ''> =>
  Object.fromEntries(Object.keys(metadata ?? {}).map((key) => [key, '']))

function applyPatch(
  model: BeadModel,
  bead: ModelBead,
  said: Made<typeof any.patch>,
  parent: string | null | undefined,
): void {
  const { title, status, description, priority, assignee, labels, remove_labels, metadata, defer } = said
  const lease = bead.lease_expires_at
  if (title !== undefined) bead.title = title
  bead.issue_type = said.issue_type ?? said.type ?? bead.issue_type
  if (description !== undefined) bead.description = description || undefined
  if (priority !== undefined) bead.priority = priority ?? undefined
  if (status !== undefined) model.setStatus(bead, status)
  if (assignee !== undefined && bead.status !== 'in_progress') bead.assignee = assignee || undefined
  else if (assignee !== undefined) model.setAssignee(bead, assignee || undefined)
  assert.ok(lease !== undefined || bead.lease_expires_at === undefined, 'a patch gives no lease')
  if (parent) putEdge(bead, { to: parent, type: 'parent-child' })
  else if (parent !== undefined) bead.edges = bead.edges.filter(({ type }) => type !== 'parent-child')
  bead.labels = [...bead.labels, ...(labels ?? [])].filter((label) => !remove_labels?.some((one) => one === label))
  const merged = Object.entries({ ...bead.metadata, ...metadata }).filter(([, value]) => value !== null)
  bead.metadata = Object.fromEntries(merged.map(([key, value]) => [key, String(value)]))
  if (defer !== undefined) bead.defer_until = defer === null ? undefined : model.now + defer
}

const close = step('close', fc.tuple(any.ref, any.closing, condition), async (world, [n, body, when]) => {
  const { model } = world
  await edit(
    world,
    'close-bead',
    { n, body, when },
    ({ status, outcome }) => [
      status === 'closed' &&
        body?.outcome !== undefined &&
        body.outcome !== (outcome ?? 'pass') &&
        'conflict-wrong-state',
    ],
    ({ id, status }) => {
      if (status === 'closed') return
      model.change(id, (bead) => {
        model.setStatus(bead, 'closed')
        bead.close_reason = body?.reason || bead.close_reason
        bead.outcome = body?.outcome ?? bead.outcome
        bead.failure_class = body?.failure_class ?? bead.failure_class
        bead.failure_reason = body?.failure_reason ?? bead.failure_reason
        bead.work_commit = body?.commit || bead.work_commit
        if (body !== undefined && 'output' in body) bead.output_json = JSON.stringify(body.output)
      })
    },
  )
})

const reopen = step('reopen', fc.tuple(any.ref, condition), async (world, [n, when]) => {
  const { model } = world
  const reasons = ({ status }: ModelBead): Reasons => [status !== 'closed' && 'conflict-wrong-state']
  await edit(world, 'reopen-bead', { n, when }, reasons, ({ id }) =>
    model.change(id, (bead) => model.setStatus(bead, 'open')),
  )
})

const person = fc.constantFrom<(string | null)[]>(...any.PEOPLE, '', null)
const expected = fc.option(fc.constantFrom<string[]>(...any.PEOPLE, ''), { nil: undefined })

const assign = step(
  'assign',
  fc.tuple(any.ref, person, expected, condition),
  async (world, [n, assignee, was, when]) => {
    const { model } = world
    const body = { assignee, ...(was === undefined ? {} : { expected_assignee: was }) }
    const reasons = (bead: ModelBead): Reasons => [
      was !== undefined && was !== (bead.assignee ?? '') && 'conflict-assignee',
    ]
    await edit(world, 'assign-bead', { n, body, when }, reasons, ({ id }) =>
      model.change(id, (bead) => model.setAssignee(bead, assignee || undefined)),
    )
  },
)

const target = fc.constantFrom<(string | null)[]>(...any.POOLS, ...any.POOLS, '', null)
const route = step('route', fc.tuple(any.ref, target, condition), async (world, [n, to, when]) => {
  const { model } = world
  await edit(
    world,
    'route-bead',
    { n, body: { target: to }, when },
    () => [],
    ({ id }) =>
      model.change(id, (bead) => {
        bead.routed_to = to || undefined
      }),
  )
})

const claim = step('claim', fc.tuple(any.ref, any.claimant, condition), async (world, [n, body, when]) => {
  const { model } = world
  const reasons = (bead: ModelBead): Reasons => {
    const { id, status, assignee } = bead
    const isHeld = assignee !== undefined && (assignee !== body.assignee || isElsewhere(bead, body))
    if (when !== 'stale' && (status === 'closed' || isHeld)) model.reject(id, body.assignee)
    return [status === 'closed' && 'conflict-wrong-state', isHeld && status !== 'closed' && 'conflict-claimed']
  }
  await edit(
    world,
    'claim-bead',
    { n, body, when },
    reasons,
    ({ id }) => model.claim(id, body),
    (told) => told['bead'],
  )
})

const holder = fc.option(fc.constantFrom<string[]>(...any.PEOPLE), { nil: undefined })
const isHolder = (bead: ModelBead, assignee: string | undefined) => assignee === undefined || assignee === bead.assignee

const heartbeat = step('heartbeat', fc.tuple(any.ref, holder), async (world, [n, assignee]) => {
  const { model } = world
  const body = assignee === undefined ? undefined : { assignee }
  const reasons = (bead: ModelBead): Reasons => [
    (bead.status !== 'in_progress' || bead.lease_expires_at === undefined) && 'conflict-wrong-state',
    !isHolder(bead, assignee) && 'conflict-claimed',
  ]
  await edit(world, 'heartbeat-bead', { n, body }, reasons, (bead) => {
    bead.lease_expires_at = model.now + LEASE_MS
  })
})

const release = step('release', fc.tuple(any.ref, holder), async (world, [n, assignee]) => {
  const { model } = world
  const body = assignee === undefined ? undefined : { assignee }
  const reasons = (bead: ModelBead): Reasons => [
    bead.status !== 'in_progress' && 'conflict-wrong-state',
    !isHolder(bead, assignee) && 'conflict-claimed',
  ]
  const freed = { reason: 'released' }
  await edit(
    world,
    'release-bead',
    { n, body },
    reasons,
    ({ id }) => model.free(id, assignee ?? 'api', 'bead.released', freed),
    (told) => told['bead'],
  )
})

const label = fc.tuple(any.ref, fc.constantFrom(...any.LABELS), condition)
const addLabel = step('label', label, async (world, [n, name, when]) => {
  await edit(
    world,
    'add-bead-label',
    { n, params: { label: name }, when },
    () => [],
    ({ id }) =>
      world.model.change(id, (bead) => {
        bead.labels = [...bead.labels, name]
      }),
  )
})
const removeLabel = step('unlabel', label, async (world, [n, name, when]) => {
  await edit(
    world,
    'remove-bead-label',
    { n, params: { label: name }, when },
    () => [],
    ({ id }) =>
      world.model.change(id, (bead) => {
        bead.labels = bead.labels.filter((one) => one !== name)
      }),
  )
})

const said = fc.tuple(any.ref, fc.constantFrom('well done', 'no'), holder)
const comment = step('comment', said, async (world, [n, text, author]) => {
  const { model } = world
  const id = idAt(model, n)
  const body = { text, ...(author === undefined ? {} : { author }) }
  await ask(world, 'add-bead-comment', { params: { id }, body }, missing(model, [id]), ({ status, body: told }) => {
    model.comment(id, { ...body, at: model.now })
    const { id: commentId, ...rest } = told
    assert.equal(typeof commentId, 'string')
    assert.deepEqual([status, rest], [201, { bead_id: id, ...body, created_at: iso(model.now) }])
  })
})

const edge = fc.tuple(
  any.ref,
  any.ref,
  fc.option(fc.constantFrom<string[]>(...any.EDGE_TYPES), { nil: undefined }),
  condition,
)
const depend = kind('depend', edge, async (world, [n, m, type, when]) => {
  const { model } = world
  const added = { to: idAt(model, m), type: type ?? 'blocks' }
  const body = { depends_on_id: added.to, ...(type === undefined ? {} : { type }) }
  const reasons = ({ id }: ModelBead): Reasons => [
    ...missing(model, [added.to]),
    model.closesCycle(id, added) && 'dependency-cycle',
  ]
  await edit(world, 'add-bead-dep', { n, body, when }, reasons, ({ id }) =>
    model.change(id, (bead) => putEdge(bead, added)),
  )
})
const removeDep = step('undepend', edge, async (world, [n, m, type, when]) => {
  const { model } = world
  const gone = idAt(model, m)
  const query = type === undefined ? {} : { type }
  await edit(
    world,
    'remove-bead-dep',
    { n, params: { dependsOnId: gone }, query, when },
    () => [],
    ({ id }) =>
      model.change(id, (bead) => {
        bead.edges = bead.edges.filter((one) => one.to !== gone || (type !== undefined && one.type !== type))
      }),
  )
})

const remove = kind('delete', fc.tuple(any.ref, fc.boolean(), condition), async (world, [n, cascade, when]) => {
  const { model } = world
  const id = idAt(model, n)
  const bead = model.beads.get(id)
  const revision = (bead?.revision ?? 0) + (when === 'stale' ? 1 : 0)
  const asked = {
    params: { id },
    query: cascade ? { cascade } : {},
    ...(when === undefined ? {} : { ifMatch: `"${revision}"` }),
  }
  const referrers = cascade ? [] : model.referrers(id)
  const reasons =
    bead === undefined
      ? ['bead-not-found']
      : [when === 'stale' && 'precondition-failed', referrers.length > 0 && 'still-referenced']
  await ask(world, 'delete-bead', asked, reasons, ({ body: told }) => {
    const { deleted, ...rest } = told
    assert.deepEqual(rest, { status: 'deleted', id })
    assert.ok(Array.isArray(deleted))
    const ids = deleted.map(String)
    assert.deepEqual(ids, cascade ? [...new Set(byLevel(model, id))] : [id])
    model.delete(ids.toReversed())
  })
})

/** A bead, its children, theirs, …; each level as the one before and then oldest first. */
function byLevel(model: BeadModel, id: string): readonly string[] {
  const ids = [id]
  for (const one of ids) ids.push(...model.children(one).map((child) => child.id))
  return ids
}

type Batch = Made<typeof any.batch>
const batch = (types: Types) =>
  step('batch', any.batch(types), async (world, said) => {
    const { model } = world
    const { nodes, rig } = said
    const key = (n: number) => `k${n % nodes.length}`
    const endBody = (side: string, end: Batch['edges'][number]['from']) =>
      'key' in end ? { [`${side}_key`]: key(end.key) } : { [`${side}_id`]: idAt(model, end.id) }
    const body = {
      nodes: nodes.map(({ title, more: { defer, ...more }, parent, refs }, n) => ({
        key: key(n),
        title,
        ...more,
        ...timed(model, defer),
        ...(parent === undefined ? {} : endBody('parent', parent)),
        metadata_refs: Object.fromEntries(Object.entries(refs).map(([name, to]) => [name, key(to)])),
      })),
      edges: said.edges.map(({ from, to, type }) => ({
        ...endBody('from', from),
        ...endBody('to', to),
        ...(type === undefined ? {} : { type }),
      })),
      ...(rig === undefined ? {} : { rig }),
    }
    const named = [...nodes.map(({ parent }) => parent), ...said.edges.flatMap(({ from, to }) => [from, to])].flatMap(
      (end) => (end === undefined || 'key' in end ? [] : [idAt(model, end.id)]),
    )
    const reasons = [
      ...nodes.flatMap(({ title, more }) => flaws({ title, ...more })),
      ...missing(model, named),
      hasTwoParents(model, said) && 'validation-failed',
      trial(model, (copy) => addBatch(copy, said, (n) => key(n))) && 'dependency-cycle',
    ]
    await ask(world, 'create-bead-batch', { body }, reasons, ({ status, body: told }) => {
      assert.equal(status, 201)
      const ids = asMap(told['ids'])
      assert.deepEqual(Object.keys(ids).sort(), nodes.map((_, n) => key(n)).sort())
      addBatch(model, said, (n) => String(ids[key(n)]))
    })
  })

/** True where some bead of a batch, or one that it names, is to have several parents. */
function hasTwoParents(model: BeadModel, { nodes, edges }: Batch): boolean {
  const nameOf = (end: Batch['edges'][number]['from']) =>
    'key' in end ? `node ${end.key % nodes.length}` : idAt(model, end.id)
  const families = [
    ...nodes.flatMap(({ parent }, n) => (parent === undefined ? [] : [{ child: `node ${n}`, parent: nameOf(parent) }])),
    ...edges
      .filter(({ type }) => type === 'parent-child')
      .map(({ from, to }) => ({ child: nameOf(from), parent: nameOf(to) })),
  ]
  return Map.groupBy(families, ({ child }) => child)
    .values()
    .some((family) => areSeveral(family.map(({ parent }) => parent)))
}

/** True where a change would leave a circle behind. */
function trial(model: BeadModel, change: (copy: BeadModel) => void): boolean {
  const copy = new BeadModel(model.now)
  copy.beads = structuredClone(model.beads)
  change(copy)
  return copy.hasCycle()
}

function addBatch(model: BeadModel, { nodes, edges, rig }: Batch, idOf: (n: number) => string): void {
  // Ids are named before they are given out.
  const before = [...model.beads.keys()]
  const at = (n: number) => (before.length === 0 || n % 20 === 19 ? NOBODY_IS : (before[n % before.length] ?? ''))
  const idOfEnd = (end: Batch['edges'][number]['from']) => ('key' in end ? idOf(end.key) : at(end.id))
  const all = edges.map(({ from, to, type = 'blocks' }) => ({ from: idOfEnd(from), to: idOfEnd(to), type }))
  const own = new Set(nodes.map((_, n) => idOf(n)))
  for (const [n, { title, more, parent, refs }] of nodes.entries()) {
    const id = idOf(n)
    const references = Object.entries(refs).map(([name, to]) => [name, idOf(to)])
    const metadata = { ...more.metadata, ...Object.fromEntries(references) }
    const family: ModelEdge[] = parent === undefined ? [] : [{ to: idOfEnd(parent), type: 'parent-child' }]
    model.create({ ...made(model, id, title, { ...more, ...(rig === undefined ? {} : { rig }) }), metadata }, [
      ...family,
      ...all.filter(({ from }) => from === id),
    ])
  }
  const others = Map.groupBy(
    all.filter(({ from }) => !own.has(from)),
    ({ from }) => from,
  )
  for (const [id, added] of others) {
    if (!model.beads.has(id)) continue
    model.change(id, (bead) => {
      for (const { to, type } of added) putEdge(bead, { to, type })
    })
  }
}

const REASONS = { in_progress: 'existing_assignment', assigned: 'ready_assignment', routed: 'claimed' } as const

const claimHook = step('hook claim', any.asker, async (world, body) => {
  const { model } = world
  const { agent, session_id, drain_ack = false } = body
  const [first] = model.hook(agent, session_id)
  await ask(world, 'claim-hook', { body }, [], ({ body: told }) => {
    if (first === undefined) {
      const acknowledged = drain_ack ? { drain_acknowledged: true } : {}
      assert.deepEqual(told, { action: 'drain', reason: 'no_work', ...acknowledged })
      return
    }
    const { id } = first.bead
    if (first.bead.assignee !== undefined && first.bead.assignee !== agent)
      model.change(id, (bead) => model.setAssignee(bead, agent), agent)
    model.claim(id, { assignee: agent, ...(session_id === undefined ? {} : { session_id }) })
    const bead = model.need(id)
    const route = bead.routed_to === undefined ? {} : { route: bead.routed_to }
    const reason = REASONS[first.tier]
    assert.deepEqual(told, { action: 'work', reason, bead_id: id, assignee: agent, bead: model.wire(bead), ...route })
  })
})

const look = step('look', any.look, async (world, { filters, order, sort, limit }) => {
  const { model, door } = world
  const parts = toQuery(model, filters)
  const { exclude_type, exclude_label, ...forList } = parts
  const { status, all, closed_before, closed_after, ...forReady } = parts
  const listed = model.select((bead) => fits(model, bead, filters) && isListed(model, bead, filters))
  const list = order === 'asc' ? listed.toReversed() : listed
  assert.deepEqual(await walk(door, 'list-beads', { ...forList, order, limit }), idsOf(list))
  const ready = model.ready().filter((bead) => fits(model, bead, filters) && isNotExcluded(bead, filters))
  const inOrder = sort === 'ready' ? ready : model.select((bead) => ready.includes(bead)).toReversed()
  assert.deepEqual(await walk(door, 'list-ready-beads', { ...forReady, sort, limit }), idsOf(inOrder))
})

const advance = (longest: number) =>
  step('wait', fc.integer({ min: 1, max: longest }), async ({ model, door }, ms) => {
    await door.pass(ms)
    model.advance(ms)
  })

/** Plain beads to begin with. */
export async function makeSome(world: World): Promise<void> {
  for (const title of ['cache', 'avatar', 'page', 'queue']) {
    const { body } = await world.door.ask('create-bead', { body: { title } })
    const id = String(body['id'])
    world.model.create(made(world.model, id, title, {}), [])
  }
  await compareAll(world)
}

export interface Life {
  readonly commands: number
  /** Most that goes by at a time, in milliseconds. */
  readonly wait: number
  readonly types?: Types
}

/** A life of a city's beads. */
export const beadLife = ({ commands, wait, types = any.TYPES }: Life) => {
  const doings = [create(types), create(types), patch(types), patch(types), claim, claim, depend.any, depend.any]
  const more = [close, reopen, assign, route, heartbeat, release, addLabel, removeLabel, comment, removeDep, remove.any]
  const all = [...doings, ...more, batch(types), claimHook, look, advance(wait), advance(wait / 10)]
  return fc.commands(all, { maxCommands: commands, size: 'max' })
}

/** Lives that were found to go wrong, from `makeSome` on. */
export const FOUND_LIVES: readonly [Iterable<Step>][] = [
  // One bead has edges to two that go at once.
  [
    [
      depend.of([1, 0, 'parent-child', undefined]),
      depend.of([2, 0, 'blocks', undefined]),
      depend.of([2, 1, 'waits-for', undefined]),
      remove.of([0, true, undefined]),
    ],
  ],
]

// ---- lists -------------------------------------------------------------------------------------------------------------

const idsOf = (beads: readonly ModelBead[]): readonly string[] => beads.map(({ id }) => id)

function toQuery(model: BeadModel, filters: any.Filters): Record<string, unknown> {
  const query: Record<string, unknown> = { ...filters }
  if (filters.parent !== undefined) query['parent'] = idAt(model, filters.parent)
  for (const name of TIMES) if (filters[name] !== undefined) query[name] = iso(model.now + filters[name])
  return query
}
const TIMES = [
  'created_before',
  'created_after',
  'updated_before',
  'updated_after',
  'closed_before',
  'closed_after',
] as const

function fits(model: BeadModel, bead: ModelBead, filters: any.Filters): boolean {
  const { type, label, assignee, assignees, unassigned, rig, parent, priority, routed_to, metadata, ephemeral, q } =
    filters
  const isIn = <T>(values: readonly T[] | undefined, value: T) => values === undefined || values.includes(value)
  const is = <T>(wanted: T | undefined, value: T) => wanted === undefined || wanted === value
  const words = `${bead.title} ${bead.description ?? ''}`.split(' ')
  return (
    isIn<string>(type, bead.issue_type) &&
    (label ?? []).every((one) => bead.labels.includes(one)) &&
    is<string | undefined>(assignee, bead.assignee) &&
    isIn(assignees, bead.assignee ?? '') &&
    is(unassigned, bead.assignee === undefined) &&
    is(rig, bead.rig) &&
    (parent === undefined || model.parentOf(bead) === idAt(model, parent)) &&
    is(priority, bead.priority) &&
    is<string | undefined>(routed_to, bead.routed_to) &&
    (metadata ?? []).every((one) => hasMetadata(model, bead, one)) &&
    is(ephemeral === undefined ? undefined : ephemeral === 'only', bead.ephemeral) &&
    (q === undefined || words.includes(q)) &&
    isBetween(model, bead.created_at, filters.created_after, filters.created_before) &&
    isBetween(model, bead.updated_at, filters.updated_after, filters.updated_before)
  )
}

function isBetween(
  { now }: BeadModel,
  time: number | undefined,
  after: number | undefined,
  before: number | undefined,
): boolean {
  if (time === undefined) return after === undefined && before === undefined
  return (after === undefined || time > now + after) && (before === undefined || time < now + before)
}

function hasMetadata(model: BeadModel, bead: ModelBead, asked: string): boolean {
  const [key = '', value] = asked.split('=')
  const found = asMap(model.wire(bead)['metadata'] ?? {})[key]
  return value === undefined ? found !== undefined && found !== '' : found === value
}

function isListed(
  model: BeadModel,
  bead: ModelBead,
  { status, all, closed_before, closed_after }: any.Filters,
): boolean {
  if (!isBetween(model, bead.closed_at, closed_after, closed_before)) return false
  if (status !== undefined) return status.some((one) => one === bead.status)
  return all === true || closed_before !== undefined || closed_after !== undefined || bead.status !== 'closed'
}

const isNotExcluded = (bead: ModelBead, { exclude_type, exclude_label }: any.Filters): boolean =>
  !exclude_type?.some((type) => type === bead.issue_type) && !exclude_label?.some((one) => bead.labels.includes(one))

/** Ids of all pages, whose totals are the number of what is found. */
async function walk(door: BeadDoor, id: BeadOperationId, query: Fields): Promise<readonly string[]> {
  const ids: string[] = []
  const totals = new Set<unknown>()
  for (let cursor: unknown; ; ) {
    const { body } = await door.ask(id, { query: cursor === undefined ? query : { ...query, cursor } })
    ids.push(...itemsOf(body).map((item) => String(at(item, 'id'))))
    totals.add(body['total'])
    assert.equal(body['total_capped'], undefined)
    cursor = body['next_cursor']
    if (cursor === undefined) break
  }
  assert.deepEqual([...totals], [ids.length], JSON.stringify(query))
  return ids
}

function itemsOf({ items, ...rest }: Fields): readonly unknown[] {
  assert.ok(Array.isArray(items), JSON.stringify(rest))
  return items
}

// ---- both compared -------------------------------------------------------------------------------------------------------

async function compareAll(world: World): Promise<void> {
  const { model, door } = world
  compareEvents(await door.news(), model.takeEvents())
  const all = model.select(() => true)
  const list = async (id: BeadOperationId, query: Fields) => {
    const { body } = await door.ask(id, { query: { limit: 1_000, ...query } })
    return { items: itemsOf(body), total: body['total'] }
  }
  const wires = (beads: readonly ModelBead[]) => ({ items: beads.map((bead) => model.wire(bead)), total: beads.length })
  assert.deepEqual(await list('list-beads', { all: true }), wires(all))
  assert.deepEqual(await list('list-beads', {}), wires(all.filter(({ status }) => status !== 'closed')))
  assert.deepEqual(await list('list-ready-beads', {}), wires(model.ready()))
  assert.deepEqual(
    await list('query-beads', { q: 'is:ready', order: 'asc' }),
    wires(all.filter((bead) => model.isReady(bead)).toReversed()),
  )
  assert.deepEqual(
    await list('query-beads', { q: 'is:blocked', all: true }),
    wires(all.filter((bead) => model.isBlocked(bead))),
  )
  for (const [agent, session_id] of [['ann', 's1'], ['shop/worker'], ['pool']] as const) {
    const query = { agent, ...(session_id === undefined ? {} : { session_id }) }
    const items = model.hook(agent, session_id).map(({ tier, bead }) => ({ ...model.wire(bead), tier }))
    const { body } = await door.ask('list-hook', { query })
    assert.deepEqual(body, { items, total: items.length })
  }
  // Of the rest, one bead at a time.
  const looked = all[model.now % Math.max(all.length, 1)]
  if (looked !== undefined) await compareOne(world, looked)
}

async function compareOne({ model, door }: World, bead: ModelBead): Promise<void> {
  const { id } = bead
  const read = async (operation: BeadOperationId, params: Asked['params'] = { id }) =>
    (await door.ask(operation, { params })).body
  const { body, etag } = await door.ask('get-bead', { params: { id } })
  const { warnings = [], ...plain } = body
  assert.deepEqual([plain, etag], [model.wire(bead), `"${bead.revision}"`])
  const parent = model.parentOf(bead)
  const isBelowClosed = parent !== undefined && model.beads.get(parent)?.status === 'closed'
  assert.equal(
    Array.isArray(warnings) && warnings.includes(`its parent ${parent} is closed`),
    bead.status !== 'closed' && isBelowClosed,
  )
  const end = (issue_id: string, depends_on_id: string, type: string, other: string) => {
    const { status, title } = model.need(other)
    return { issue_id, depends_on_id, type, status, title }
  }
  const up = [...model.beads.values()].flatMap((one) =>
    one.edges.filter(({ to }) => to === id).map(({ type }) => end(one.id, id, type, one.id)),
  )
  assert.deepEqual(await read('list-bead-deps'), {
    children: model.children(id).map((child) => model.wire(child)),
    dependencies: sorted(bead.edges.map(({ to, type }) => end(id, to, type, to))),
    dependents: sorted(up),
  })
  const comments = itemsOf(await read('list-bead-comments')).map((item) => [at(item, 'text'), at(item, 'created_at')])
  assert.deepEqual(
    comments,
    bead.comments.map(({ text, at: ms }) => [text, iso(ms)]),
  )
  const tracked = bead.issue_type === 'convoy' ? bead.edges.filter(({ type }) => type === 'tracks') : []
  const members = new Set([id, ...tracked.map(({ to }) => to)].flatMap((one) => model.family(one)))
  const graph = await read('get-bead-graph', { rootID: id })
  const inside = model.select((one) => members.has(one.id)).toReversed()
  assert.deepEqual([graph['root'], graph['beads']], [model.wire(bead), inside.map((one) => model.wire(one))])
  const edges = inside.flatMap((one) =>
    one.edges.filter(({ to }) => members.has(to)).map(({ to, type }) => ({ from: to, to: one.id, kind: type })),
  )
  assert.ok(Array.isArray(graph['deps']))
  assert.deepEqual(new Set(graph['deps'].map(text)), new Set(edges.map(text)))
}

const text = (value: unknown): string => JSON.stringify(value)
const sorted = <T extends { readonly issue_id: string; readonly depends_on_id: string; readonly type: string }>(
  edges: readonly T[],
): readonly T[] => {
  const key = ({ issue_id, depends_on_id, type }: T) => `${depends_on_id} ${issue_id} ${type}`
  return edges.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}

/** The same events, each bead's in the same order; what caused others comes before them. */
function compareEvents(told: readonly ModelEvent[], expected: readonly ModelEvent[]): void {
  const plain = (events: readonly ModelEvent[]) => {
    const all = events.map((event) => ({ ...event, payload: inOrder(event.payload) }))
    return Object.fromEntries([...Map.groupBy(all, ({ subject }) => subject)].sort(([a], [b]) => (a < b ? -1 : 1)))
  }
  assert.deepEqual(plain(told), plain(expected))
  assert.equal(told[0] === undefined, expected[0] === undefined)
  if (!expected.some(({ type }) => type === 'bead.deleted' || type === 'bead.lease_expired'))
    assert.equal(told[0]?.subject, expected[0]?.subject)
}

/** `changed` is a set. */
const inOrder = (payload: Fields): Fields =>
  Array.isArray(payload['changed']) ? { ...payload, changed: payload['changed'].map(String).sort() } : payload

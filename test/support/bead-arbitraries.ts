/** What people say about beads: bodies with every field, and now and then one that is refused. Beads are named by numbers. */
import { fc } from './random.ts'

export const PEOPLE = ['ann', 'bob', 's1', 'shop/worker'] as const
export const POOLS = ['pool', 'shop/worker'] as const
export const LABELS = ['ui', 'a/b %?', 'hold:mayor', 'order-tracking', 'é'] as const
export const TYPES = ['task', 'bug', 'epic', 'convoy', 'message', 'step'] as const
export type IssueType = (typeof TYPES)[number]
export const EDGE_TYPES = ['blocks', 'waits-for', 'conditional-blocks', 'parent-child', 'tracks', 'relates-to'] as const
const WORDS = ['cache', 'avatar', 'page', 'queue'] as const
const STATUSES = ['open', 'in_progress', 'closed'] as const
const KEYS = ['team', 'n'] as const
const VALUES = ['', 'a', 'ab'] as const
const HOUR = 3_600_000

const one = <T>(values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
/** Most of the time what is right. */
const mostly = <T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: usual, weight: 19 }, { arbitrary: rare, weight: 1 })
/** Some of these fields: of each one half of the time. */
const some = <T extends object>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc
    .tuple(fc.record<T, never>(fields, { requiredKeys: [], noNullPrototype: true }), fc.subarray(Object.keys(fields)))
    .map(([all, names]) => {
      const kept = { ...all }
      for (const name in kept) if (!names.includes(name)) delete kept[name]
      return kept
    })
/** All fields of both. */
const both = <A extends object, B extends object>(one: fc.Arbitrary<A>, other: fc.Arbitrary<B>) =>
  fc.tuple(one, other).map(([a, b]) => ({ ...a, ...b }))

/** One of the beads that there are: often one of the first, so that much happens to the same ones. */
export const ref = fc.oneof({ arbitrary: fc.nat(2), weight: 3 }, { arbitrary: fc.nat(1_000), weight: 2 })
/** Relative to the city's time. */
const offset = one([-2 * HOUR, -HOUR, 0, HOUR, 2 * HOUR])
const text = fc.array(one(WORDS), { minLength: 1, maxLength: 3 }).map((words) => words.join(' '))
const textOrEmpty = fc.oneof(text, fc.constant(''))
const labels = fc.array(one(LABELS), { maxLength: 3 })
const title = mostly(text, fc.constant('  '))
const metadataOf = <T>(value: fc.Arbitrary<T>) =>
  mostly(
    fc.dictionary(one<string>(KEYS), value, { noNullPrototype: true }),
    value.map((kept): Record<string, T> => ({ 'svc.routed_to': kept })),
  )

/** Under its name, its alias, or both. */
interface Kind {
  readonly issue_type?: IssueType
  readonly type?: IssueType
}
const kind = (types: readonly IssueType[]) =>
  fc.oneof<fc.MaybeWeightedArbitrary<Kind>[]>(
    { arbitrary: some({ issue_type: one(types) }), weight: 12 },
    { arbitrary: some({ type: one(types) }), weight: 4 },
    { arbitrary: some({ issue_type: one(types), type: one(types) }), weight: 2 },
  )
const described = {
  priority: fc.nat(4),
  description: textOrEmpty,
  assignee: fc.oneof(one<string>(PEOPLE), fc.constant('')),
  labels,
  metadata: metadataOf(one(VALUES)),
  defer: offset,
  ephemeral: fc.boolean(),
  from: one(['', 'eve']),
  ref: one(['', 'step-1']),
}
const need = fc.record({ to: ref, type: fc.option(one<string>(EDGE_TYPES), { nil: undefined }) })

export const creation = (types: readonly IssueType[]) =>
  fc.record({
    title,
    more: both(
      kind(types),
      some({
        ...described,
        parent: ref,
        needs: fc.array(need, { maxLength: 3 }),
        rig: mostly(fc.constant('shop'), fc.constant('nowhere')),
      }),
    ),
  })

export const patch = (types: readonly IssueType[]) =>
  both(
    kind(types),
    some({
      title,
      status: one(STATUSES),
      description: fc.oneof(textOrEmpty, fc.constant(null)),
      priority: fc.option(fc.nat(4)),
      assignee: fc.oneof(one<string>([...PEOPLE, '']), fc.constant(null)),
      parent: fc.oneof(ref, fc.constantFrom(null, '')),
      labels: fc.option(labels),
      remove_labels: fc.option(labels),
      metadata: fc.option(metadataOf(fc.option(one(VALUES)))),
      defer: fc.option(offset),
    }),
  )

export const closing = fc.option(
  some({
    reason: one(['', 'done', 'shipped']),
    outcome: one(['pass', 'fail']),
    output: fc.jsonValue({ maxDepth: 1 }),
    failure_class: one(['transient', 'hard']),
    failure_reason: one(['', 'it broke']),
    commit: one(['', 'abc']),
  }),
  { nil: undefined },
)

export const claimant = fc
  .tuple(
    one<string>(['ann', ...PEOPLE]),
    some({ session_id: one(['s1', 's2']), session_name: one(['one', 'two', 'ann']), branch: text }),
  )
  .map(([assignee, more]) => ({ assignee, ...more }))

export const asker = fc
  .tuple(one<string>(['ann', ...PEOPLE, ...POOLS]), some({ session_id: one(['s1', 's2']), drain_ack: fc.boolean() }))
  .map(([agent, more]) => ({ agent, ...more }))

const end = fc.oneof(
  fc.nat(3).map((key) => ({ key })),
  ref.map((id) => ({ id })),
)
export const batch = (types: readonly IssueType[]) =>
  fc.record({
    nodes: fc.array(
      fc.record({
        title,
        more: both(kind(types), some(described)),
        parent: fc.option(end, { nil: undefined }),
        refs: fc.dictionary(one(['after', 'n']), fc.nat(3), { maxKeys: 1, noNullPrototype: true }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    edges: fc.array(fc.record({ from: end, to: end, type: fc.option(one<string>(EDGE_TYPES), { nil: undefined }) }), {
      maxLength: 3,
    }),
    rig: fc.option(fc.constant('shop'), { nil: undefined }),
  })

const filters = some({
  type: fc.uniqueArray(one(TYPES), { minLength: 1, maxLength: 3 }),
  label: fc.uniqueArray(one(LABELS), { minLength: 1, maxLength: 2 }),
  assignee: one(PEOPLE),
  assignees: fc.uniqueArray(one<string>([...PEOPLE, '']), { minLength: 1, maxLength: 3 }),
  unassigned: fc.boolean(),
  rig: fc.constant('shop'),
  parent: ref,
  priority: fc.nat(4),
  routed_to: one(POOLS),
  metadata: fc.uniqueArray(one(['team', 'team=a', 'n=', 'n=ab', 'svc.routed_to=pool', 'svc.outcome']), {
    minLength: 1,
    maxLength: 2,
  }),
  created_before: offset,
  created_after: offset,
  updated_before: offset,
  updated_after: offset,
  ephemeral: one(['only', 'exclude']),
  q: one(WORDS),
  status: fc.uniqueArray(one(STATUSES), { minLength: 1, maxLength: 3 }),
  all: fc.boolean(),
  closed_before: offset,
  closed_after: offset,
  exclude_type: fc.uniqueArray(one(TYPES), { minLength: 1, maxLength: 2 }),
  exclude_label: fc.uniqueArray(one(LABELS), { minLength: 1, maxLength: 2 }),
})
export type Filters = typeof filters extends fc.Arbitrary<infer T> ? T : never

/** A few filters at once: with more nothing is ever found. */
export const look = fc.record({
  filters: fc.tuple(filters, fc.array(fc.nat(30), { minLength: 1, maxLength: 3 })).map(([all, kept]): Filters => {
    const entries = Object.entries(all)
    return Object.fromEntries(kept.flatMap((at) => entries.slice(at % Math.max(entries.length, 1)).slice(0, 1)))
  }),
  order: one(['asc', 'desc']),
  sort: one(['ready', 'oldest']),
  limit: fc.integer({ min: 1, max: 4 }),
})

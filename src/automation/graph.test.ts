/** Plans as graphs: paths, parents, edges, and items that are folded or shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type GraphView, graphOf } from './graph.ts'
import type { PlanStep } from './plan.ts'

const step = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({
  id,
  needs: [],
  tags: [],
  metadata: {},
  output: [],
  always: false,
  on_fail: 'fail',
  body: { kind: 'work' },
  ...more,
})

const PLAN: readonly PlanStep[] = [
  step('plan', { title: 'Plan' }),
  step('polish', {
    needs: ['plan'],
    repeat: { kind: 'loop', from: '1', to: '3', as: 'item' },
    body: { kind: 'group', steps: [step('review'), step('apply', { needs: ['review'] })] },
  }),
  step('port', {
    needs: ['plan'],
    repeat: { kind: 'for_each', in: 'list', as: 'item', max_parallel: 4, stop_on_fail: false, exclusive: false },
  }),
  step('ask', { needs: ['polish', 'port'], body: { kind: 'gate', gate: { kind: 'human' } } }),
]
const edgesOf = (view: GraphView) => graphOf(PLAN, view).edges.map(({ from, to }) => `${from} > ${to}`)
const nodesOf = (view: GraphView) =>
  graphOf(PLAN, view).nodes.map(({ id, parent = '', kind }) => `${parent} / ${id}: ${kind}`)

test('a formula shows what is in an item once, under the step that repeats', () => {
  const view: GraphView = { showsPattern: true, facts: () => ({}) }
  assert.deepEqual(nodesOf(view), [
    ' / plan: work',
    ' / polish: loop',
    'polish / polish.review: work',
    'polish / polish.apply: work',
    ' / port: for_each',
    ' / ask: gate',
  ])
  assert.deepEqual(edgesOf(view).toSorted(), [
    'plan > polish',
    'plan > port',
    'polish > ask',
    'polish.review > polish.apply',
    'port > ask',
  ])
  const [plan, polish] = graphOf(PLAN, view).nodes
  assert.deepEqual([plan?.title, polish?.title, polish?.repeat], ['Plan', 'polish', {}])
})

test('items that are shown are nodes of their own, those of a loop one after the other', () => {
  const view: GraphView = {
    showsPattern: false,
    facts: (path) => (path === 'port' ? { repeat: { count: 2, statuses: { active: 2 } } } : {}),
    items: (path) => (path === 'polish' ? [1, 2] : undefined),
  }
  assert.deepEqual(nodesOf(view), [
    ' / plan: work',
    ' / polish: loop',
    'polish / polish.1: group',
    'polish.1 / polish.1.review: work',
    'polish.1 / polish.1.apply: work',
    'polish / polish.2: group',
    'polish.2 / polish.2.review: work',
    'polish.2 / polish.2.apply: work',
    ' / port: for_each',
    ' / ask: gate',
  ])
  assert.ok(edgesOf(view).includes('polish.1 > polish.2'))
  assert.ok(edgesOf(view).includes('polish.2.review > polish.2.apply'))
  assert.deepEqual(graphOf(PLAN, view).nodes.find(({ id }) => id === 'port')?.repeat, {
    count: 2,
    statuses: { active: 2 },
  })
})

test('every edge has both ends, and every parent comes before what is in it', () => {
  const { nodes, edges } = graphOf(PLAN, { showsPattern: true, facts: () => ({}) })
  const seen = new Set<string>()
  for (const { id, parent } of nodes) {
    assert.ok(parent === undefined || seen.has(parent), id)
    seen.add(id)
  }
  for (const { from, to } of edges) assert.ok(seen.has(from) && seen.has(to))
})

/** Steps as a drawing: whole where it is kept, as wide as the terminal where it is looked at. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StepGraph } from '../../contract/automation/graph.ts'
import { widthOf } from '../print/text-width.ts'
import { graphText } from './step-graph.ts'

const GRAPH: StepGraph = {
  nodes: [
    { id: 'plan', kind: 'work', title: '長い題名'.repeat(30), included: 'yes' },
    { id: 'group', kind: 'group', title: 'group', included: 'yes' },
    {
      id: 'group.build',
      parent: 'group',
      kind: 'work',
      title: `Build ${'all of it '.repeat(30)}`,
      included: 'unknown',
    },
    { id: 'group.check', parent: 'group', kind: 'work', title: 'Check', included: 'no' },
  ],
  edges: [
    { from: 'plan', to: 'group' },
    { from: 'group.build', to: 'group.check' },
  ],
}

test('a tree fits into the terminal, and says what is waited for; elsewhere nothing is cut', () => {
  for (const columns of [40, 80, 200]) {
    const lines = graphText(GRAPH, 'text', { isTerminal: true, columns }).trimEnd().split('\n')
    assert.equal(lines.length, 4)
    for (const line of lines) assert.ok(widthOf(line) <= columns, `${columns}: ${line}`)
    assert.match(lines[0] ?? '', /^● plan {2}長い.*…$/)
    assert.match(lines[1] ?? '', /^● group {2}← plan$/)
    assert.match(lines[3] ?? '', /^└─ ✗ check {2}Check {2}← build$/)
  }
  const kept = graphText(GRAPH, 'text', { isTerminal: false, columns: 40 })
  assert.ok(kept.includes('長い題名'.repeat(30)) && !kept.includes('…'))
})

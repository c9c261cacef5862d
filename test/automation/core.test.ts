/** The formulas and orders that the built-in pack brings are good by the rules that everybody's are held to. */
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { test } from 'node:test'
import { parseOrder } from '../../src/automation/order.ts'
import { compiled, sourceOf } from '../support/automation/documents.ts'

const CORE = resolve(import.meta.dirname, '../../src/modules/packs/core')
const names = (folder: string) =>
  globSync(`${folder}/*.toml`, { cwd: CORE })
    .map((file) => basename(file, '.toml'))
    .sort()

test('formulas of the built-in pack can be started', () => {
  const formulas = names('formulas')
  assert.deepEqual(formulas, ['convoy-tasks', 'plan-build-review', 'verified-task'])
  for (const name of formulas) {
    const { plan, issues } = compiled(name, `${CORE}/formulas`)
    assert.deepEqual(issues, [], name)
    assert.ok(plan !== undefined && plan.steps.length > 0)
  }
})

test('orders of the built-in pack are good, and off until somebody wants them', () => {
  assert.deepEqual(names('orders'), ['triage-stale'])
  const { order, issues } = parseOrder('triage-stale', sourceOf(`${CORE}/orders/triage-stale.toml`))
  assert.deepEqual(issues, [])
  assert.deepEqual([order?.enabled, order?.trigger.kind, order?.action.kind], [false, 'cron', 'exec'])
})

/** The formulas and orders that the built-in pack brings are good by the rules that everybody's are held to. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseOrder } from '../../src/automation/order.ts'
import type { PlanStep } from '../../src/automation/plan.ts'
import { compiled, sourceOf } from '../support/automation/documents.ts'

const PACKS = resolve(import.meta.dirname, '../../src/modules/packs')
const CORE = join(PACKS, 'core')
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

const stepsBelow = (steps: readonly PlanStep[]): readonly PlanStep[] =>
  steps.flatMap((step) => [step, ...(step.body.kind === 'group' ? stepsBelow(step.body.steps) : [])])

test('no built-in pack gives a shell to who may only work: commands are declared as such, none is evaluated', () => {
  const files = globSync('**/*.{toml,sh}', { cwd: PACKS })
  assert.ok(files.some((file) => file.endsWith('verified-task.toml')))
  for (const file of files) {
    const text = readFileSync(join(PACKS, file), 'utf8')
    // A value becomes a part of a command where it is evaluated, handed to a shell, or stands first.
    assert.doesNotMatch(
      text,
      /\beval\b|\b(?:ba|da|z)?sh +-c\b|`[^`\n]*\$SVC_|(?:^|[;&|(`]|exec = ['"])\s*"?\$\{?SVC_VAR/m,
      file,
    )
  }
  for (const name of names('formulas')) {
    const { plan } = compiled(name, `${CORE}/formulas`)
    const checks = stepsBelow(plan?.steps ?? []).flatMap(({ check }) => (check?.kind === 'exec' ? [check] : []))
    for (const { exec } of checks) assert.doesNotMatch(exec, /\$/, name)
    const types = plan === undefined ? [] : [plan.vars['verify']?.type]
    assert.deepEqual([...new Set(types)], ['command'], name)
  }
})

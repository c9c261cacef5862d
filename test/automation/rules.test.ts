/**
 * One directory for each rule of the grammar, with what its formula comes to: the plan, or all that is wrong with it.
 * `SVC_WRITE_GOLDENS=1 npm test -- automation/rules` writes them anew: what changed is then read, line by line.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { compileFormula } from '../../src/automation/formula.ts'
import { issueLines, sourcesIn } from './support.ts'

const root = resolve(import.meta.dirname, 'rules')

for (const rule of readdirSync(root)) {
  test(`the rule ${rule} compiles to what its file says`, () => {
    const directory = join(root, rule)
    const compiled = compileFormula(rule === 'example' ? 'patch-release' : 'main', sourcesIn(directory))
    const [file, other, text] =
      compiled.plan === undefined
        ? ['issues.txt', 'plan.json', `${issueLines(compiled).join('\n')}\n`]
        : ['plan.json', 'issues.txt', `${JSON.stringify(compiled.plan, undefined, 2)}\n`]
    if (process.env['SVC_WRITE_GOLDENS'] === '1') {
      writeFileSync(join(directory, file), text)
      rmSync(join(directory, other), { force: true })
    }
    assert.equal(existsSync(join(directory, other)), false, `${rule} has ${other}, but comes to ${file}: ${text}`)
    const stored = readFileSync(join(directory, file), 'utf8')
    if (compiled.plan === undefined) assert.equal(text, stored)
    else assert.deepEqual(JSON.parse(text), JSON.parse(stored))
  })
}

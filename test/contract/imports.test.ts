// The dependency rule of ARCHITECTURE.md, kept by a test, with a proof that the checker sees what it should see.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { violations } from '../../tools/check-imports.ts'

const root = resolve(import.meta.dirname, '../..')

test('nothing under src imports what its layer may not', () => {
  assert.deepEqual(violations(root), [])
})

const CAUGHT = [
  [
    'src/contract/a.ts',
    `import type { Clock } from '../kernel/clock.ts'`,
    /contract may import nothing of ours, not kernel/,
  ],
  ['src/contract/a.ts', `import { readFileSync } from 'node:fs'`, /contract also runs in a browser: no node:fs/],
  ['src/contract/a.ts', `import Ajv from 'ajv/dist/2020.js'`, /contract may use no packages, not ajv/],
  [
    'src/cli/a.ts',
    `import { openDatabase } from '../kernel/database.ts'`,
    /cli may import client, contract, harnesses, .*, not kernel/,
  ],
  [
    'src/cli/a.ts',
    `const a = await import('../supervisor/serve.ts')`,
    /cli may import client, contract, harnesses, .*, not supervisor/,
  ],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source file
  ['src/cli/a.ts', 'const a = await import(`./commands/${noun}.ts`)', /a computed import cannot be checked/],
  [
    'src/modules/beads/a.ts',
    `import {\n  send,\n} from '../mail/service.ts'`,
    /modules\/beads may not import modules\/mail/,
    3,
  ],
  ['src/modules/beads/a.ts', `export * from '../mail/service.ts'`, /modules\/beads may not import modules\/mail/],
  [
    'src/modules/sessions/a.ts',
    `import { createAcpRuntime } from '../../runtimes/acp.ts'`,
    /modules may import automation, messaging, files, kernel, contract, harnesses, .*, not runtimes/,
  ],
  ['src/http/a.ts', `import '../../test/support/x.ts'`, /src imports nothing outside src/],
  ['src/utils/a.ts', `import 'node:fs'`, /src\/utils has no row/],
  ['src/http/a.ts', 'const now = Date.now()', /Date\.now\(\): only in/],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source file
  ['src/http/a.ts', 'const now = `${new Date().toISOString()}`', /new Date\(\) without an argument/],
  ['src/modules/beads/a.ts', `import { setTimeout as sleep } from 'node:timers/promises'`, /setTimeout, setInterval/],
  ['src/runtimes/a.ts', 'const id = crypto.randomUUID()', /randomUUID/],
  ['src/supervisor/city.ts', `// first\nconst home = process.env['HOME']`, /process\.env/, 2],
  ['src/http/a.ts', 'const now = Date.now() // allowed:', /Date\.now\(\)/],
  ['src/http/a.ts', 'const delay = Math.random()', /Math\.random: only in/],
  [
    'src/cli/a.ts',
    'statSync(path, { throwIfNoEntry: false })',
    /throwIfNoEntry: look at a path with src\/kernel\/look\.ts/,
  ],
  [
    'src/http/a.ts',
    `import type { Server } from 'node:http'\nimport {\n  type Agent,\n  request,\n} from 'node:http'`,
    /node:http is not imported, but for types/,
    2,
  ],
  ['src/http/a.test.ts', `// one\nimport fc from 'fast-check'`, /chance comes from test\/support\/random\.ts/, 2],
  ['test/e2e/a.test.ts', 'const n = Math.random()', /chance comes from test\/support\/random\.ts/],
] as const

for (const [file, text, rule, line = 1] of CAUGHT) {
  test(`caught in ${file}: ${text.replaceAll('\n', ' ')}`, () => {
    const found = check(file, text)
    assert.equal(found.length, 1, found.join('\n'))
    assert.match(found[0] ?? '', rule)
    assert.equal(found[0]?.split(': ')[0], `${file}:${line}`)
  })
}

const PASSED = [
  [
    'src/client/a.ts',
    `import { createParser } from 'eventsource-parser'\nimport { c } from '../contract/c.ts'\nimport { b } from './b.ts'`,
  ],
  ['src/start.ts', `const { serve } = await import('./supervisor/serve.ts')`],
  [
    'src/supervisor/city.ts',
    `import { a } from '../modules/beads/service.ts'\nimport type { C } from '../client/client.ts'`,
  ],
  ['src/modules/beads/a.ts', `import { ready } from './ready.ts'\nimport Database from 'better-sqlite3'`],
  ['src/modules/sessions/a.ts', `import type { Runtime } from '../../runtimes/process/runtime.ts'`],
  ['src/http/a.ts', `// Date.now() would do\nconst quote = /'/g // it's\nconst text = 'setTimeout(' + "process.env"`],
  [
    'src/http/a.ts',
    `import type { Server } from 'node:http'\nimport { connect } from 'node:net'\nimport type {\n  Agent,\n} from 'node:http'`,
  ],
  ['src/http/a.ts', 'socket.setTimeout(0)\nconst at = new Date(ms)'],
  ['src/http/a.ts', 'const now = Date.now() // allowed: the wall clock is what this measures'],
  ['src/kernel/clock.ts', 'export const now = () => Date.now()'],
  ['src/http/a.test.ts', `import { x } from '../modules/beads/service.ts'\nDate.now()`],
  ['test/support/random.ts', `import fc from 'fast-check'\nMath.random()`],
] as const

for (const [file, text] of PASSED) {
  test(`passed in ${file}: ${text.replaceAll('\n', ' ')}`, () => assert.deepEqual(check(file, text), []))
}

test('folders that import each other in a circle are told, with every import on it', () => {
  const found = checkAll({
    'src/contract/index.ts': `import { a } from './base/a.ts'`,
    'src/contract/base/a.ts': `// one\nimport type { B } from '../deep/b.ts'`,
    'src/contract/deep/b.ts': `import { index } from '../index.ts'\nimport { other } from './other.ts'`,
    'src/contract/deep/other.ts': '',
    'src/cli/a.ts': `import { index } from '../contract/index.ts'`,
  })
  assert.deepEqual(
    found.map((line) => line.split(',')[0]),
    [
      'src/contract/base/a.ts:2: src/contract/base imports src/contract/deep',
      'src/contract/deep/b.ts:1: src/contract/deep imports src/contract',
      'src/contract/index.ts:1: src/contract imports src/contract/base',
    ],
  )
})

/** What the checker says of a source tree with this one file. */
const check = (file: string, text: string): string[] => checkAll({ [file]: text })

function checkAll(files: Readonly<Record<string, string>>): string[] {
  const tree = mkdtempSync(join(tmpdir(), 'svc-imports-'))
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(tree, dirname(file)), { recursive: true })
      writeFileSync(join(tree, file), text)
    }
    return violations(tree)
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

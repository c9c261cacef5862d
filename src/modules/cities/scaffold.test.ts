import assert from 'node:assert/strict'
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { getStaticTOMLValue, parseTOML } from 'toml-eslint-parser'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { cityDatabasePath } from './city-store.ts'
import { holdsCity, pathsOf, planScaffold, removeScaffold, resolveDirectory, writeScaffold } from './scaffold.ts'

const INPUT = { name: 'alpha', provider: 'shell', startCommand: undefined, bootstrapProfile: undefined }

/** Path → content ('' for a directory) of everything below. */
function tree(root: string): Record<string, string> {
  const found: Record<string, string> = {}
  const walk = (at: string) => {
    for (const name of readdirSync(at).sort()) {
      const path = join(at, name)
      const directory = lstatSync(path).isDirectory()
      found[relative(root, path)] = directory ? '' : readFileSync(path, 'utf8')
      if (directory) walk(path)
    }
  }
  walk(root)
  return found
}

const existing = fc.uniqueArray(
  fc.constantFrom(
    'README.md',
    'pack.toml',
    '.gitignore',
    'agents/x.toml',
    'formulas/f.toml',
    '.svc/notes',
    'src/main.c',
    '.svc/runtime/log',
  ),
)

test('a scaffold overwrites nothing, and taking it back leaves what was there, whatever that was and however far it came', () => {
  fc.assert(
    fc.property(existing, fc.constantFrom('', 'deep/er'), fc.nat(40), (files, below, steps) => {
      using directory = temporaryDirectory()
      const target = join(directory.path, below, 'alpha')
      for (const file of files) {
        mkdirSync(dirname(join(target, file)), { recursive: true })
        writeFileSync(join(target, file), `mine: ${file}`)
      }
      const before = tree(directory.path)
      const plan = planScaffold(target, INPUT)
      const made = pathsOf(plan)
      // A crash after any number of steps: what the journal names is taken back, made or not.
      const directories = plan.directories.slice(0, steps)
      writeScaffold({ ...plan, directories, files: plan.files.slice(0, Math.max(0, steps - directories.length)) })
      if (steps > 30) writeFileSync(cityDatabasePath(target), 'a database')
      for (const [path, content] of Object.entries(before)) assert.equal(tree(directory.path)[path], content)
      removeScaffold(made)
      assert.deepEqual(tree(directory.path), before)
      removeScaffold(made)
    }),
    { numRuns: 100 },
  )
})

test('what somebody put into a new directory meanwhile stays when the scaffold is taken back', () => {
  using directory = temporaryDirectory()
  const target = join(directory.path, 'alpha')
  const plan = planScaffold(target, INPUT)
  writeScaffold(plan)
  writeFileSync(join(target, 'agents', 'mine.toml'), 'mine')
  removeScaffold(pathsOf(plan))
  assert.deepEqual(tree(directory.path), { alpha: '', 'alpha/agents': '', 'alpha/agents/mine.toml': 'mine' })
})

test('city.toml or a database make a directory a city', () => {
  using directory = temporaryDirectory()
  assert.equal(holdsCity(directory.path), false)
  mkdirSync(join(directory.path, '.svc'))
  assert.equal(holdsCity(directory.path), false)
  writeFileSync(cityDatabasePath(directory.path), '')
  assert.equal(holdsCity(directory.path), true)
  using other = temporaryDirectory()
  writeFileSync(join(other.path, 'city.toml'), '')
  assert.equal(holdsCity(other.path), true)
})

test('a directory is absolute or relative to home, without "..", with its links resolved', () => {
  using directory = temporaryDirectory()
  const root = realpathSync(directory.path)
  mkdirSync(join(root, 'real'))
  symlinkSync(join(root, 'real'), join(root, 'link'))
  assert.equal(resolveDirectory('alpha', root, 'body.dir'), join(root, 'alpha'))
  assert.equal(resolveDirectory(join(root, 'alpha/'), '/nowhere', 'body.dir'), join(root, 'alpha'))
  assert.equal(resolveDirectory('link/new/deep', root, 'body.dir'), join(root, 'real/new/deep'))
  for (const text of ['..', 'a/../b', '../x', 'a/..', 'a\0b', 'a\\..\\b']) {
    assert.throws(() => resolveDirectory(text, root, 'body.dir'), { code: 'validation-failed' }, text)
  }
})

test('whatever the start command is, the file says exactly that', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (command) => {
      using directory = temporaryDirectory()
      const { files } = planScaffold(join(directory.path, 'alpha'), {
        ...INPUT,
        provider: undefined,
        startCommand: command,
      })
      const text = files.find(({ path }) => path.endsWith('city.toml'))?.text ?? ''
      assert.equal(Object(Object(getStaticTOMLValue(parseTOML(text))).workspace).start_command, command.toWellFormed())
    }),
  )
})

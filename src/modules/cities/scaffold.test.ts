import assert from 'node:assert/strict'
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { getStaticTOMLValue, parseTOML } from 'toml-eslint-parser'
import { codePoint } from '../../../test/support/code-point.ts'
import { fc } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { cityDatabasePath } from './city-store.ts'
import {
  forgetScaffold,
  holdsCity,
  noteOf,
  planScaffold,
  refuseHome,
  removeLeftover,
  removeMade,
  resolveDirectory,
  type ScaffoldPlan,
  writeScaffold,
} from './scaffold.ts'

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

/** Makes at most so many steps of a plan, as a crash or a full disk ends it. */
function writeSome(plan: ScaffoldPlan, steps: number): string[] {
  const made: string[] = []
  const limited = new Proxy(made, {
    get: (target, key, receiver) => {
      if (key === 'push' && target.length >= steps) throw new Error('the disk is full')
      return Reflect.get(target, key, receiver)
    },
  })
  try {
    writeScaffold(plan, limited)
  } catch {
    // The step after the last was made and is not noted: as a crash between making and noting leaves it.
  }
  return made
}

test('a scaffold overwrites nothing, and a crash leaves what was there, whatever that was and however far it came', () => {
  fc.assert(
    fc.property(existing, fc.constantFrom('', 'deep/er'), fc.nat(40), (files, below, steps) => {
      using directory = temporaryDirectory()
      const target = join(directory.path, below, 'alpha')
      for (const file of files) {
        mkdirSync(dirname(join(target, file)), { recursive: true })
        writeFileSync(join(target, file), `mine: ${file}`)
      }
      const before = tree(directory.path)
      const plan = planScaffold(target, INPUT, 'one')
      writeSome(plan, steps)
      if (steps > 30) writeFileSync(cityDatabasePath(target), 'a database')
      for (const [path, content] of Object.entries(before)) assert.equal(tree(directory.path)[path], content)
      removeLeftover(target, noteOf(plan))
      assert.deepEqual(tree(directory.path), before)
      removeLeftover(target, noteOf(plan))
      assert.deepEqual(tree(directory.path), before)
    }),
    { numRuns: 100 },
  )
})

const BY_HAND = { 'alpha/city.toml': '[workspace]\nprovider = "codex"\n', 'alpha/.gitignore': '.svc/\n' }

function makeByHand(directory: string): void {
  mkdirSync(join(directory, 'alpha'), { recursive: true })
  for (const [path, text] of Object.entries(BY_HAND)) writeFileSync(join(directory, path), text)
}

test('a city that a person has made where a scaffold was only journalled stays', () => {
  using directory = temporaryDirectory()
  const target = join(directory.path, 'alpha')
  const note = noteOf(planScaffold(target, INPUT, 'one'))
  makeByHand(directory.path)
  removeLeftover(target, note)
  assert.deepEqual(tree(directory.path), { alpha: '', ...BY_HAND })
})

test('a city that a person has made where a scaffold was interrupted stays, wherever that was', () => {
  for (let steps = 1; steps < 18; steps++) {
    using directory = temporaryDirectory()
    const target = join(directory.path, 'alpha')
    const plan = planScaffold(target, INPUT, 'one')
    writeSome(plan, steps)
    makeByHand(directory.path)
    const before = Object.keys(tree(directory.path)).filter(
      (path) => path !== 'alpha/.svc' && path !== 'alpha/.svc/scaffold',
    )
    removeLeftover(target, noteOf(plan))
    const after = tree(directory.path)
    for (const path of before) assert.ok(path in after, `${path} after ${steps} steps`)
    for (const [path, text] of Object.entries(BY_HAND)) assert.equal(after[path], text)
  }
})

test('a city that a person makes between the plan and its first file stays, and nothing of the plan is left', () => {
  using directory = temporaryDirectory()
  const target = join(directory.path, 'alpha')
  const plan = planScaffold(target, INPUT, 'one')
  makeByHand(directory.path)
  const made: string[] = []
  assert.throws(() => writeScaffold(plan, made), { code: 'EEXIST' })
  removeMade({ ...noteOf(plan), directory: target }, made)
  assert.deepEqual(tree(directory.path), { alpha: '', ...BY_HAND })
})

test('what somebody put into a new directory meanwhile stays when the scaffold is taken back', () => {
  using directory = temporaryDirectory()
  const target = join(directory.path, 'alpha')
  const plan = planScaffold(target, INPUT, 'one')
  const made: string[] = []
  writeScaffold(plan, made)
  writeFileSync(join(target, 'agents', 'mine.toml'), 'mine')
  writeFileSync(join(target, 'pack.toml'), 'changed')
  removeMade({ ...noteOf(plan), directory: target }, made)
  assert.deepEqual(tree(directory.path), {
    alpha: '',
    'alpha/agents': '',
    'alpha/agents/mine.toml': 'mine',
    'alpha/pack.toml': 'changed',
  })
})

test('a crash between the name of a file and its bytes, or while the store is made, leaves nothing behind', () => {
  for (let files = 0; files <= 4; files++) {
    using directory = temporaryDirectory()
    const target = join(directory.path, 'alpha')
    const plan = planScaffold(target, INPUT, 'one')
    writeScaffold({ ...plan, files: plan.files.slice(0, files) }, [])
    const cut = plan.files[files]
    if (cut !== undefined) writeFileSync(cut.path, '')
    else for (const side of ['', '-journal']) writeFileSync(cityDatabasePath(target) + side, 'x')
    removeLeftover(target, noteOf(plan))
    assert.deepEqual(tree(directory.path), {}, `after ${files} files`)
  }
  using directory = temporaryDirectory()
  const target = join(directory.path, 'alpha')
  const plan = planScaffold(target, INPUT, 'one')
  mkdirSync(join(target, '.svc'), { recursive: true })
  writeFileSync(join(target, '.svc', 'scaffold'), '')
  removeLeftover(target, noteOf(plan))
  assert.deepEqual(tree(directory.path), {}, 'after the name of the mark')
})

test('a city that is registered is nobody’s left-over', () => {
  using directory = temporaryDirectory()
  const target = join(directory.path, 'alpha')
  const plan = planScaffold(target, INPUT, 'one')
  writeScaffold(plan, [])
  forgetScaffold(target)
  const before = tree(directory.path)
  removeLeftover(target, noteOf(plan))
  assert.deepEqual(tree(directory.path), before)
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
    fc.property(fc.string({ unit: codePoint }), (command) => {
      using directory = temporaryDirectory()
      const { files } = planScaffold(
        join(directory.path, 'alpha'),
        {
          ...INPUT,
          provider: undefined,
          startCommand: command,
        },
        'one',
      )
      const text = files.find(({ path }) => path.endsWith('city.toml'))?.text ?? ''
      assert.equal(Object(Object(getStaticTOMLValue(parseTOML(text))).workspace).start_command, command.toWellFormed())
    }),
  )
})

test('a city whose name has dots gets a pack whose name has none', () => {
  using directory = temporaryDirectory()
  const { files } = planScaffold(join(directory.path, 'a.b'), { ...INPUT, name: 'a.b' }, 'one')
  assert.match(files.find(({ path }) => path.endsWith('pack.toml'))?.text ?? '', /^name = "a-b"$/m)
  assert.match(files.find(({ path }) => path.endsWith('site.toml'))?.text ?? '', /^workspace_name = "a\.b"$/m)
})

test('no directory in or around the home of the supervisor becomes a city, by whatever name, and no home of a user', () => {
  using directory = temporaryDirectory()
  const root = realpathSync(directory.path)
  mkdirSync(join(root, 'state'))
  mkdirSync(join(root, 'user'))
  symlinkSync(join(root, 'state'), join(root, 'home'))
  for (const path of [root, join(root, 'state'), join(root, 'state', 'alpha'), join(root, 'user'), '/'])
    assert.throws(
      () => refuseHome(path, join(root, 'home'), 'body.dir', join(root, 'user')),
      { code: 'validation-failed' },
      path,
    )
  for (const path of [join(root, 'alpha'), join(root, 'state-2')])
    refuseHome(path, join(root, 'home'), 'body.dir', join(root, 'user'))
})

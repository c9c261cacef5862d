import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { diskFiles } from '../../../files/files.ts'
import { hashOf, ownFileKind, safePath } from '../load/own-files.ts'
import { FileChanged, type Intent, resumeIntent, stageFiles, swapFiles, syncDirectories } from './transaction.ts'

const OLD = new Map([
  ['city.toml', 'old city\n'],
  ['pack.toml', 'old pack\n'],
  ['agents/gone/agent.toml', 'old agent\n'],
])
const NEW = new Map([
  ['city.toml', 'new city\n'],
  ['pack.toml', 'new pack\n'],
  ['agents/fresh/agent.toml', 'new agent\n'],
])
const PATHS = [...new Set([...OLD.keys(), ...NEW.keys()])]
const INTENT: Intent = {
  files: PATHS.map((path) => ({ path, before: hash(OLD.get(path)), text: NEW.get(path) ?? null })),
  events: [],
}

function hash(text: string | undefined): string | null {
  return text === undefined ? null : hashOf(text)
}

function directory(files: ReadonlyMap<string, string>): { dir: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), 'svc-config-'))
  for (const [path, text] of files) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

/** Every file below, with its text: temporary ones would show. */
function contents(dir: string): Map<string, string> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort()
  return new Map(paths.map((path) => [path.slice(dir.length + 1), readFileSync(path, 'utf8')]))
}

const sorted = (files: ReadonlyMap<string, string>) => new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))

test('an edit of several files puts all of them in place and leaves nothing else behind', async () => {
  using city = directory(OLD)
  await stageFiles(city.dir, INTENT)
  assert.equal(readFileSync(join(city.dir, 'city.toml'), 'utf8'), 'old city\n')
  swapFiles(city.dir, INTENT)
  await syncDirectories(city.dir, INTENT)
  assert.deepEqual(contents(city.dir), sorted(NEW))
  assert.equal(existsSync(join(city.dir, 'agents/gone')), false, 'the directory of a removed agent is gone')
})

test('a start after a crash at any step of an edit finds every file new', async (t) => {
  for (const step of [
    'journalled',
    'half a file staged',
    'one staged',
    'all staged',
    ...PATHS.map((_, index) => `${index + 1} in place`),
  ]) {
    await t.test(step, async () => {
      using city = directory(OLD)
      await crashAt(step, city.dir)
      assert.equal(await resumeIntent(city.dir, INTENT), true)
      assert.deepEqual(contents(city.dir), sorted(NEW))
      assert.equal(await resumeIntent(city.dir, INTENT), true, 'and so does a second start')
      assert.deepEqual(contents(city.dir), sorted(NEW))
    })
  }
})

async function crashAt(step: string, dir: string): Promise<void> {
  if (step === 'journalled') return
  if (step === 'half a file staged') {
    writeFileSync(join(dir, '.city.toml.svc-next'), 'new c')
    return
  }
  if (step === 'one staged') return stageFiles(dir, { ...INTENT, files: INTENT.files.slice(0, 1) })
  await stageFiles(dir, INTENT)
  if (step === 'all staged') return
  for (const { path, text } of INTENT.files.slice(0, Number(step.split(' ')[0]))) {
    const target = join(dir, path)
    if (text === null) rmSync(target)
    else renameSync(join(dirname(target), `.${path.split('/').at(-1)}.svc-next`), target)
  }
}

test('an intent is discarded where somebody edited a file before any was swapped', async () => {
  using city = directory(OLD)
  await stageFiles(city.dir, INTENT)
  writeFileSync(join(city.dir, 'pack.toml'), 'by hand\n')
  assert.equal(await resumeIntent(city.dir, INTENT), false)
  assert.deepEqual(contents(city.dir), sorted(new Map([...OLD, ['pack.toml', 'by hand\n']])))
})

test('an edit by hand after the crash stays, the files of the edit that was under way go together', async () => {
  using city = directory(OLD)
  await crashAt('1 in place', city.dir)
  writeFileSync(join(city.dir, 'city.toml'), 'by hand\n')
  writeFileSync(join(city.dir, 'pack.toml'), 'new pack\n')
  assert.equal(await resumeIntent(city.dir, INTENT), true)
  assert.deepEqual(contents(city.dir), sorted(new Map([...NEW, ['city.toml', 'by hand\n']])))
})

test('a file that was changed between reading and writing is not written over', async () => {
  using city = directory(OLD)
  await stageFiles(city.dir, INTENT)
  writeFileSync(join(city.dir, 'pack.toml'), 'by hand\n')
  assert.throws(() => swapFiles(city.dir, INTENT), FileChanged)
  assert.equal(readFileSync(join(city.dir, 'city.toml'), 'utf8'), 'old city\n')
})

test('only configuration files of the city are its own', () => {
  const own = [
    'city.toml',
    'pack.toml',
    'packs.lock',
    '.svc/site.toml',
    'agents/mayor/agent.toml',
    'conf/prod.toml',
    'prod.toml',
  ]
  const foreign = [
    '../city.toml',
    '/etc/passwd',
    'conf/../../x.toml',
    '.svc/city.db',
    '.svc/credentials.toml',
    'agents/mayor/prompt.md',
    'agents/../x/agent.toml',
    'packs/x/pack.toml',
    'rigs/shop/app.toml',
    '.git/config.toml',
    'conf/.hidden.toml',
    'conf//x.toml',
    './city.toml',
    'city.toml/',
    'a\0.toml',
    '',
  ]
  for (const path of own) assert.notEqual(ownFileKind(path), undefined, path)
  for (const path of foreign) assert.equal(ownFileKind(path), undefined, path)
})

test('a link that leads out of the city is no way to write there', () => {
  using city = directory(OLD)
  using outside = directory(new Map([['secret.toml', 'x\n']]))
  const files = diskFiles()
  symlinkSync(outside.dir, join(city.dir, 'conf'))
  symlinkSync(join(outside.dir, 'secret.toml'), join(city.dir, 'linked.toml'))
  symlinkSync('city.toml', join(city.dir, 'same.toml'))
  assert.equal(safePath(city.dir, files, 'conf/secret.toml'), undefined)
  assert.equal(safePath(city.dir, files, 'conf/new.toml'), undefined)
  assert.equal(safePath(city.dir, files, 'linked.toml'), undefined)
  assert.equal(safePath(city.dir, files, 'same.toml'), join(files.real(city.dir), 'city.toml'))
})

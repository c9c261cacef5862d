import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { effortOf } from '../../../../test/support/effort.ts'
import { diskFiles, overlayFiles } from '../../../files/files.ts'
import { OPTIONS, temporaryCity } from '../testing.ts'
import { loadCity } from './load.ts'

const FILES = {
  'city.toml':
    'include = ["conf/more.toml"]\n[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n',
  'conf/more.toml': '[daemon]\nmax_restarts = 3\n',
  'pack.toml': '[pack]\nname = "demo"\nschema = 2\n[imports.review]\nsource = "./review"\n',
  'review/pack.toml': '[pack]\nname = "review"\nschema = 2\n',
  'review/template-fragments/house.template.md': 'Be kind.\n',
  'agents/mayor/agent.toml': 'provider = "shell"\nappend_fragments = ["house"]\n',
  'agents/mayor/prompt.template.md': 'Hello.\n',
  'agents/mayor/namepool.txt': 'ann\n',
  'packs.lock': 'schema = 1\n',
}

type Put = (path: string) => void
const pipe: Put = (path) => void execFileSync('mkfifo', [path])
const zeros: Put = (path) => symlinkSync('/dev/zero', path)
const secret: Put = (path) => symlinkSync('/etc/hostname', path)
const large: Put = (path) => {
  writeFileSync(path, '')
  truncateSync(path, 5_000_000)
}

const REFUSED = /^cannot be read: |leads out of|is not a file/

for (const [what, put] of Object.entries({ pipe, zeros, secret, large })) {
  for (const file of Object.keys(FILES).filter((path) => path !== 'agents/mayor/namepool.txt')) {
    test(`a ${what} in place of ${file} is an error that names it`, () => {
      using city = temporaryCity(FILES)
      rmSync(join(city.dir, file))
      put(join(city.dir, file))
      const loaded = loadCity(city.dir, OPTIONS)
      assert.equal(loaded.ok, false)
      const issues = loaded.ok ? [] : loaded.issues
      assert.ok(
        issues.some((issue) => `${issue.file} ${issue.message}`.includes(file) && REFUSED.test(issue.message)),
        JSON.stringify(issues),
      )
    })
  }
}

test('a directory that is no directory of the city’s own is not followed', () => {
  using city = temporaryCity(FILES)
  for (const name of ['agents/other', 'template-fragments', 'formulas']) {
    mkdirSync(dirname(join(city.dir, name)), { recursive: true })
    symlinkSync('/', join(city.dir, name))
  }
  const loaded = loadCity(city.dir, OPTIONS)
  assert.equal(loaded.ok, false)
  const places = loaded.ok ? [] : loaded.issues.map(({ file, message }) => `${file}: ${message}`)
  assert.ok(
    places.some((text) => text.startsWith('agents/other') && text.includes('leads out of')),
    places.join('\n'),
  )
})

test('links in a circle and special files among the assets hinder nobody, and do not change the revision of an edit', () => {
  using city = temporaryCity({ ...FILES, 'assets/logo': 'x' })
  symlinkSync('.', join(city.dir, 'assets/a'))
  symlinkSync('.', join(city.dir, 'assets/b'))
  symlinkSync('logo', join(city.dir, 'assets/also'))
  pipe(join(city.dir, 'assets/pipe'))
  const onDisk = loadCity(city.dir, OPTIONS)
  const overlaid = loadCity(
    city.dir,
    OPTIONS,
    overlayFiles(diskFiles(), new Map([[join(city.dir, 'agents/mayor/agent.toml'), FILES['agents/mayor/agent.toml']]])),
  )
  assert.ok(onDisk.ok && overlaid.ok)
  assert.equal(overlaid.config.revision, onDisk.config.revision)
})

test('a TOML file that would hold everybody up is refused with its size and the limit', () => {
  const most = '# x\n'.repeat(64 * 1024)
  using city = temporaryCity({ ...FILES, 'review/pack.toml': `${FILES['review/pack.toml']}${most}` })
  const loaded = loadCity(city.dir, OPTIONS)
  assert.deepEqual(loaded.ok ? [] : loaded.issues.map(({ file, message }) => `${file} ${message}`), [
    'review/pack.toml is too large: it has 257 KiB, and 256 KiB are the limit',
  ])
})

test('packs of a city that all import each other end the load with a reason, before anybody waits for it', () => {
  const imports = Array.from({ length: 400 }, (_, n) => `[imports.p${n}]\nsource = "../p${n}"\n`).join('')
  const packs = Array.from({ length: 400 }, (_, n) => [
    `packs/p${n}/pack.toml`,
    `[pack]\nname = "p${n}"\nschema = 2\n${imports}`,
  ])
  const root = '[pack]\nname = "demo"\nschema = 2\n[imports.p0]\nsource = "./packs/p0"\n'
  using city = temporaryCity({ 'city.toml': '', 'pack.toml': root, ...Object.fromEntries(packs) })
  const { result: loaded, ms } = effortOf(() => loadCity(city.dir, OPTIONS))
  const issues = loaded.ok ? [] : loaded.issues
  assert.equal(issues.filter(({ message }) => /lead to more than 2000 others/.test(message)).length, 1)
  assert.ok(issues.length < 2_000, `${issues.length} issues`)
  assert.ok(ms < 5_000, `it took ${ms} ms`)
})

test('packs that many others import are read once each', () => {
  const names = Array.from({ length: 40 }, (_, n) => `p${String(n).padStart(2, '0')}`)
  // Each imports all that come after it: without circles, and with more ways than anybody could follow.
  const packs = names.map((name, n) => [
    `packs/${name}/pack.toml`,
    `[pack]\nname = "${name}"\nschema = 2\n${names
      .slice(n + 1)
      .map((other) => `[imports.${other}]\nsource = "../${other}"\n`)
      .join('')}`,
  ])
  const root = '[defaults.rig.imports.all]\nsource = "./packs/p00"\n'
  using city = temporaryCity({ 'city.toml': root, ...Object.fromEntries(packs) })
  const reads = new Map<string, number>()
  const disk = diskFiles()
  const loaded = loadCity(city.dir, OPTIONS, {
    ...disk,
    read: (path, ...rest) => {
      reads.set(path, (reads.get(path) ?? 0) + 1)
      return disk.read(path, ...rest)
    },
  })
  assert.deepEqual(loaded.ok ? [] : loaded.issues, [])
  assert.deepEqual(
    names.map((name) => reads.get(join(city.dir, 'packs', name, 'pack.toml'))),
    names.map(() => 1),
  )
})

test('a chain of packs that has no end is refused with the limit', () => {
  const packs = Array.from({ length: 45 }, (_, n) => [
    `packs/p${n}/pack.toml`,
    `[pack]\nname = "p${n}"\nschema = 2\n[imports.next]\nsource = "../p${n + 1}"\n`,
  ])
  const root = '[pack]\nname = "demo"\nschema = 2\n[imports.p0]\nsource = "./packs/p0"\n'
  using city = temporaryCity({ 'city.toml': '', 'pack.toml': root, ...Object.fromEntries(packs) })
  const loaded = loadCity(city.dir, OPTIONS)
  assert.deepEqual(loaded.ok ? [] : loaded.issues.map(({ file, message }) => `${file}: ${message}`), [
    'packs/p39/pack.toml: the imports lead to more than 2000 others, 40 in a row, or 1024 KiB of `pack.toml`',
  ])
})

test('more text of packs than anybody wants to wait for is refused with the limit', () => {
  const filler = '# x\n'.repeat(60 * 1024)
  const names = Array.from({ length: 6 }, (_, n) => `p${n}`)
  const packs = names.map((name) => [`packs/${name}/pack.toml`, `[pack]\nname = "${name}"\nschema = 2\n${filler}`])
  const root = `[pack]\nname = "demo"\nschema = 2\n${names.map((name) => `[imports.${name}]\nsource = "./packs/${name}"\n`).join('')}`
  using city = temporaryCity({ 'city.toml': '', 'pack.toml': root, ...Object.fromEntries(packs) })
  const loaded = loadCity(city.dir, OPTIONS)
  assert.deepEqual(loaded.ok ? [] : loaded.issues.map(({ key, message }) => `${key}: ${message}`), [
    'imports.p4.source: the imports lead to more than 2000 others, 40 in a row, or 1024 KiB of `pack.toml`',
  ])
})

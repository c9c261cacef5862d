import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { AGENT, SessionCity } from '../../../../test/support/session-city.ts'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import { layOverlays, type Overlay } from './overlay.ts'

function write(root: string, files: Readonly<Record<string, string>>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

const lay = (overlays: readonly Partial<Overlay>[], workDir: string) =>
  layOverlays(
    overlays.map((one) => ({ directory: '', providers: ['claude'], needed: true, ...one })),
    workDir,
    's-1',
    AbortSignal.timeout(10_000),
  )

test('files of an overlay are there before the start, and what was there stays', async () => {
  using dir = temporaryDirectory()
  const own = write(join(dir.path, 'own'), { 'CLAUDE.md': 'new', 'bin/run.sh': '#!/bin/sh', 'a/b/c.txt': 'deep' })
  chmodSync(join(own, 'bin/run.sh'), 0o700)
  const work = write(join(dir.path, 'work'), { 'CLAUDE.md': 'mine' })
  await lay([{ directory: own }], work)
  const read = (path: string) => readFileSync(join(work, path), 'utf8')
  assert.deepEqual(['CLAUDE.md', 'bin/run.sh', 'a/b/c.txt'].map(read), ['mine', '#!/bin/sh', 'deep'])
  assert.deepEqual(readdirSync(work).sort(), ['CLAUDE.md', 'a', 'bin'])
  assert.equal(statSync(join(work, 'bin/run.sh')).mode & 0o777, 0o755)
})

test('the first overlay wins, and the part for a harness before what is for all', async () => {
  using dir = temporaryDirectory()
  const own = write(join(dir.path, 'own'), {
    x: 'own',
    'per-provider/claude/y': 'claude',
    'per-provider/codex/z': 'no',
  })
  const pack = write(join(dir.path, 'pack'), { x: 'pack', y: 'pack', w: 'pack' })
  const work = write(join(dir.path, 'work'), {})
  mkdirSync(work)
  await lay([{ directory: own }, { directory: pack }, { directory: join(dir.path, 'none'), needed: false }], work)
  assert.deepEqual(
    readdirSync(work)
      .sort()
      .map((name) => [name, readFileSync(join(work, name), 'utf8')]),
    [
      ['w', 'pack'],
      ['x', 'own'],
      ['y', 'claude'],
    ],
  )
})

test('settings of a harness come from every overlay, and what is there has the first word', async () => {
  using dir = temporaryDirectory()
  const path = '.claude/settings.json'
  const json = (value: unknown) => JSON.stringify(value)
  const hook = (command: string) => ({ hooks: [{ type: 'command', command }] })
  const own = write(join(dir.path, 'own'), {
    [`per-provider/claude/${path}`]: json({ model: 'own', hooks: { Stop: [hook('own')] }, env: { A: 'own' } }),
  })
  const pack = write(join(dir.path, 'pack'), {
    [path]: json({ model: 'pack', hooks: { Stop: [hook('pack'), hook('mine')], Start: [hook('pack')] } }),
  })
  const mine = { hooks: { Stop: [hook('mine')] }, env: { A: 'mine', B: 'mine' } }
  const work = write(join(dir.path, 'work'), { [path]: json(mine) })
  chmodSync(join(work, path), 0o600)
  const overlays = [{ directory: own }, { directory: pack }]
  await lay(overlays, work)
  const expected = {
    hooks: { Stop: [hook('mine'), hook('own'), hook('pack')], Start: [hook('pack')] },
    env: { A: 'mine', B: 'mine' },
    model: 'own',
  }
  const read = () => readFileSync(join(work, path), 'utf8')
  assert.deepEqual(JSON.parse(read()), expected)
  assert.equal(statSync(join(work, path)).mode & 0o777, 0o600)
  const { ino } = statSync(join(work, path))
  await lay(overlays, work)
  assert.equal(statSync(join(work, path)).ino, ino, 'the next start finds nothing to do')
  assert.deepEqual(readdirSync(join(work, '.claude')), ['settings.json'])
})

test('settings that we cannot read stay; an overlay with such ones is a mistake', async () => {
  using dir = temporaryDirectory()
  const path = 'opencode.json'
  const good = write(join(dir.path, 'good'), { [path]: '{"a": 1}' })
  const bad = write(join(dir.path, 'bad'), { [path]: '[1]' })
  const work = write(join(dir.path, 'work'), { [path]: '// mine' })
  await lay([{ directory: good }], work)
  assert.equal(readFileSync(join(work, path), 'utf8'), '// mine')
  const empty = join(dir.path, 'empty')
  mkdirSync(empty)
  await assert.rejects(lay([{ directory: bad }], empty), /bad\/opencode.json of an overlay are no JSON object/)
  await lay([{ directory: good }], empty)
  assert.deepEqual(JSON.parse(readFileSync(join(empty, path), 'utf8')), { a: 1 })
})

test('an overlay reads nothing from outside itself', async () => {
  using dir = temporaryDirectory()
  write(dir.path, { secret: 's' })
  const own = write(join(dir.path, 'own'), { real: 'r' })
  symlinkSync('real', join(own, 'inside'))
  const work = join(dir.path, 'work')
  mkdirSync(work)
  await lay([{ directory: own }], work)
  assert.equal(readFileSync(join(work, 'inside'), 'utf8'), 'r')
  symlinkSync(join(dir.path, 'secret'), join(own, 'outside'))
  await assert.rejects(lay([{ directory: own }], work), /the link outside .* leads to no file of it/)
})

test('an overlay writes nothing outside the work directory', async () => {
  using dir = temporaryDirectory()
  const own = write(join(dir.path, 'own'), { 'sub/file': 'x' })
  const work = join(dir.path, 'work')
  const elsewhere = join(dir.path, 'elsewhere')
  mkdirSync(work)
  mkdirSync(elsewhere)
  symlinkSync(elsewhere, join(work, 'sub'))
  await assert.rejects(lay([{ directory: own }], work), /no directory inside/)
  assert.deepEqual(readdirSync(elsewhere), [])
})

test('an agent starts with its overlay; one that cannot be laid ends the start and says why', {
  timeout: 60_000,
}, async () => {
  using dir = temporaryDirectory()
  const overlay = write(join(dir.path, 'overlay'), { 'notes.txt': 'hello' })
  const agent = (name: string, directory: string) => ({
    ...AGENT,
    identity: name,
    name,
    base_name: name,
    work_dir: name,
    paths: { overlay_dir: directory },
  })
  const config = { agents: [agent('good', overlay), agent('bad', join(dir.path, 'gone'))] }
  await using city = await new SessionCity({ config }).start()
  const good = await city.create({ kind: 'agent', template: 'good' })
  await city.is(good.id, 'active')
  assert.equal(readFileSync(join(city.path, 'good', 'notes.txt'), 'utf8'), 'hello')
  const bad = await city.create({ kind: 'agent', template: 'bad' })
  const failed = await city.is(bad.id, 'failed-create')
  assert.equal(failed.reason, 'overlay-failed')
  assert.ok(existsSync(join(city.path, 'bad')))
})

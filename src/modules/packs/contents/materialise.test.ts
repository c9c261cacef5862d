import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { type StageInput, materialise as stageAll } from './materialise.ts'

const materialise = (input: StageInput) => stageAll(input, async () => {})

function makeCity() {
  const root = mkdtempSync(join(tmpdir(), 'svc-stage-'))
  const dir = join(root, 'city')
  const write = (path: string, text: string, mode = 0o644): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text, { mode })
  }
  mkdirSync(dir)
  const input = (more: Partial<StageInput> = {}): StageInput => ({
    revision: 'r',
    dir,
    packs: [],
    formula_layers: { city: [], rigs: {} },
    rigs: [],
    agents: [],
    ...more,
  })
  const stage = join(dir, '.svc', 'runtime', 'packs')
  const staged = (path: string): string => readFileSync(join(stage, path), 'utf8')
  return {
    root,
    dir,
    stage,
    write,
    input,
    staged,
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

test('formulas of the last layer win, a rig’s come on top of the city’s', async () => {
  using city = makeCity()
  city.write('a/formulas/one.toml', 'a')
  city.write('a/formulas/two.toml', 'a')
  city.write('a/formulas/README.md', 'not a formula')
  city.write('b/formulas/two.toml', 'b')
  city.write('r/formulas/one.toml', 'r')
  const layer = (name: string) => join(city.root, name, 'formulas')
  await materialise(
    city.input({
      formula_layers: { city: [layer('a'), layer('b')], rigs: { shop: [layer('r')] } },
      rigs: [{ name: 'shop' }, { name: 'bare' }],
    }),
  )
  assert.deepEqual([city.staged('city/formulas/one.toml'), city.staged('city/formulas/two.toml')], ['a', 'b'])
  assert.deepEqual([city.staged('rigs/shop/formulas/one.toml'), city.staged('rigs/shop/formulas/two.toml')], ['r', 'b'])
  assert.equal(city.staged('rigs/bare/formulas/one.toml'), 'a')
  assert.ok(!existsSync(join(city.stage, 'city/formulas/README.md')))
})

test('doing it again touches nothing, and what is no longer brought goes with its directories', async () => {
  using city = makeCity()
  city.write('p/skills/look/SKILL.md', 'one')
  city.write('p/skills/look/run.sh', '#!/bin/sh', 0o755)
  const withPack = city.input({ packs: [{ binding: 'p', rig: '', dir: join(city.root, 'p') }] })
  assert.deepEqual(await materialise(withPack), { written: 2, removed: 0, unchanged: 0, foreign: [] })
  const before = statSync(join(city.stage, 'city/skills/p.look/run.sh'))
  assert.equal(before.mode & 0o777, 0o755)
  assert.deepEqual(await materialise(withPack), { written: 0, removed: 0, unchanged: 2, foreign: [] })
  assert.equal(statSync(join(city.stage, 'city/skills/p.look/run.sh')).mtimeMs, before.mtimeMs)
  writeFileSync(join(city.stage, 'city/skills/p.look/SKILL.md'), 'changed by somebody')
  assert.equal((await materialise(withPack)).written, 1)
  assert.equal(city.staged('city/skills/p.look/SKILL.md'), 'one')
  assert.deepEqual(await materialise(city.input()), { written: 0, removed: 2, unchanged: 0, foreign: [] })
  assert.ok(!existsSync(join(city.stage, 'city')))
})

test('a file of somebody else is neither replaced nor removed, and stays foreign', async () => {
  using city = makeCity()
  city.write('p/mcp/tool.toml', 'pack')
  city.write('city/.svc/runtime/packs/city/mcp/tool.toml', 'mine')
  city.write('city/.svc/runtime/packs/city/mcp/other.toml', 'mine too')
  const withPack = city.input({ packs: [{ binding: 'p', rig: '', dir: join(city.root, 'p') }] })
  for (const _ of [1, 2])
    assert.deepEqual((await materialise(withPack)).foreign, ['.svc/runtime/packs/city/mcp/tool.toml'])
  await materialise(city.input())
  assert.deepEqual([city.staged('city/mcp/tool.toml'), city.staged('city/mcp/other.toml')], ['mine', 'mine too'])
})

test('nothing is written or removed through a link, and no link is staged', async () => {
  using city = makeCity()
  city.write('outside/keep.md', 'kept')
  city.write('p/overlay/notes.md', 'pack')
  city.write('secret', 'secret')
  symlinkSync(join(city.root, 'secret'), join(city.root, 'p/overlay/link.md'))
  mkdirSync(join(city.stage, 'city'), { recursive: true })
  symlinkSync(join(city.root, 'outside'), join(city.stage, 'city/overlay'))
  const withPack = city.input({ packs: [{ binding: 'p', rig: '', dir: join(city.root, 'p') }] })
  assert.deepEqual((await materialise(withPack)).foreign, ['.svc/runtime/packs/city/overlay/notes.md'])
  assert.ok(!existsSync(join(city.root, 'outside/notes.md')))
  writeFileSync(
    join(city.stage, 'manifest.json'),
    JSON.stringify({ files: ['city/overlay/keep.md', '../../../../secret', '/etc/passwd'] }),
  )
  await materialise(city.input())
  assert.equal(readFileSync(join(city.root, 'outside/keep.md'), 'utf8'), 'kept')
  assert.ok(existsSync(join(city.root, 'secret')))
})

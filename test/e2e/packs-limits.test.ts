// Repositories that are small to fetch and huge on disk: none is written, and nobody else waits.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { type GitRepository, type GitServer, startGitServer } from '../support/git-server.ts'
import { HealthWatch } from '../support/health.ts'
import { type Running, run } from '../support/running.ts'

const MANIFEST = '[pack]\nname = "bomb"\nschema = 2\n'
const MIB = 1024 * 1024

let git: GitServer
let running: Running
let city: ConfigCity
let health: HealthWatch
const stack = new AsyncDisposableStack()

before(async () => {
  git = stack.use(await startGitServer(mkdtempSync(join(tmpdir(), 'svc-packs-git-'))))
  running = stack.use(await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${git.host}"]\n` }))
  city = await createCity(running.server, 'alpha')
  health = stack.use(new HealthWatch(running.server.url))
})
after(() => stack.disposeAsync())

/** The commit of a tree made of `pack.toml` and these lines of `git mktree`. */
function commitTree(repository: GitRepository, lines: readonly string[]): void {
  const manifest = repository.git(['hash-object', '-w', '--stdin'], MANIFEST)
  const tree = repository.git(['mktree'], `${[`100644 blob ${manifest}\tpack.toml`, ...lines].join('\n')}\n`)
  repository.git(['reset', '--soft', repository.git(['commit-tree', tree, '-m', 'bomb'])])
}

const BOMBS: Readonly<
  Record<string, { readonly make: (repository: GitRepository) => readonly string[]; why: RegExp }>
> = {
  'one blob under forty names': {
    make(repository) {
      const blob = repository.git(['hash-object', '-w', '--stdin'], Buffer.alloc(16 * MIB))
      return Array.from({ length: 40 }, (_, n) => `100644 blob ${blob}\tzeros-${n}`)
    },
    why: /holds more than 512 MiB/,
  },
  'a hundred thousand files': {
    make(repository) {
      const blob = repository.git(['hash-object', '-w', '--stdin'], 'x')
      return Array.from({ length: 100_000 }, (_, n) => `100644 blob ${blob}\tfile-${n}`)
    },
    why: /more than 20000 files/,
  },
  'one file of nothing but zeros': {
    make: (repository) => [
      `100644 blob ${repository.git(['hash-object', '-w', '--stdin'], Buffer.alloc(20 * MIB))}\tzeros`,
    ],
    why: /"zeros" of the pack is larger than 16 MiB/,
  },
  'directories in directories in directories': {
    make(repository) {
      const blob = repository.git(['hash-object', '-w', '--stdin'], 'x')
      repository.git(['update-index', '--add', '--cacheinfo', `100644,${blob},${'d/'.repeat(900)}f`])
      return [`040000 tree ${repository.git(['write-tree'])}\tnested`]
    },
    why: /nested more than 64 levels/,
  },
  'ten billion files in ten trees': {
    make(repository) {
      let tree = repository.git(['mktree'], `100644 blob ${repository.git(['hash-object', '-w', '--stdin'], 'x')}\tf\n`)
      for (let n = 0; n < 10; n++) {
        const lines = Array.from({ length: 10 }, (_, at) => `040000 tree ${tree}\td${at}\n`)
        tree = repository.git(['mktree'], lines.join(''))
      }
      return [`040000 tree ${tree}\tnested`]
    },
    why: /more than 20000 files/,
  },
}

for (const [what, { make, why }] of Object.entries(BOMBS)) {
  test(`a pack of ${what} is refused with its reason, and is never written`, async (t) => {
    const name = what.split(' ').slice(0, 2).join('-')
    const repository = git.repository(name, {})
    commitTree(repository, make(repository))
    const { type, payload } = await city.outcome(await city.post('/packs', { source: repository.source }))
    assert.equal(type, 'request.failed')
    assert.equal(payload.error_code, 'clone_failed')
    assert.match(String(payload.error_message), why)
    assert.deepEqual(readdirSync(join(running.server.home, 'cache', 'tmp')), [])
    t.diagnostic(`the slowest answer of /health took ${Math.round(await health.answers())} ms`)
  })
}

test('attributes of a repository do not turn its files into others', async () => {
  const text = 'one\ntwo\n'
  const files = { 'pack.toml': MANIFEST, 'notes.txt': text, '.gitattributes': '*.txt text eol=crlf\n' }
  const { source } = git.repository('attributes', files)
  const { type, payload } = await city.outcome(await city.post('/packs', { source }))
  assert.equal(type, 'request.result.pack.add', JSON.stringify(payload))
  const repos = join(running.server.home, 'cache', 'repos')
  const found = readdirSync(repos, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('notes.txt'))
  assert.deepEqual(
    found.map((path) => readFileSync(join(repos, path), 'utf8')),
    [text],
  )
  await health.answers()
})

test('a pack of four thousand files is added and staged while others go on', async (t) => {
  const repository = git.repository('many', {})
  const blob = repository.git(['hash-object', '-w', '--stdin'], 'x'.repeat(2_000))
  const files = Array.from({ length: 4_000 }, (_, n) => `100644 blob ${blob}\tfile-${n}\n`)
  commitTree(repository, [`040000 tree ${repository.git(['mktree'], files.join(''))}\toverlay`])
  await health.answers()
  const { type, payload } = await city.outcome(await city.post('/packs', { source: repository.source }))
  assert.equal(type, 'request.result.pack.add', JSON.stringify(payload))
  t.diagnostic(`the slowest answer of /health took ${Math.round(await health.answers())} ms`)
})

test('a pack whose packs all import each other is refused with its reason, while others go on', async (t) => {
  const imports = Array.from({ length: 400 }, (_, n) => `[imports.p${n}]\nsource = "../p${n}"\n`).join('')
  const packs = Array.from({ length: 400 }, (_, n) => [`p${n}/pack.toml`, `${MANIFEST}${imports}`] as const)
  const { source } = git.repository('tangle', Object.fromEntries(packs))
  await health.answers()
  const { type, payload } = await city.outcome(await city.post('/packs', { source: `${source}//p0`, name: 'tangle' }))
  assert.equal(type, 'request.failed')
  assert.equal(payload.error_code, 'invalid_config')
  assert.match(String(payload.error_message), /lead to more than 2000 others/)
  t.diagnostic(`the slowest answer of /health took ${Math.round(await health.answers())} ms`)
})

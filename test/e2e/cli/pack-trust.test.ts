// Whoever sits at a terminal is shown what a pack from elsewhere would run, and asked, before it may.
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cli } from '../../support/cli.ts'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { at } from '../../support/document.ts'
import { type GitRepository, type GitServer, startGitServer } from '../../support/git-server.ts'
import { type Running, run } from '../../support/running.ts'
import { TestTerminal } from '../../support/terminal.ts'

let git: GitServer
let running: Running
const stack = new AsyncDisposableStack()

before(async () => {
  git = stack.use(await startGitServer(mkdtempSync(join(tmpdir(), 'svc-packs-git-'))))
  running = stack.use(await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${git.host}"]\n` }))
})
after(() => stack.disposeAsync())

const files = (command: string) => ({
  'pack.toml': '[pack]\nname = "grabby"\nschema = 2\n',
  'agents/worker/agent.toml': `provider = "shell"\nstart_command = ${JSON.stringify(command)}\n`,
})

const atTerminal = (city: string, ...words: string[]) =>
  new TestTerminal(['pack', ...words], {
    env: { SVC_API: running.server.url, SVC_CITY: city },
    columns: 160,
    rows: 60,
  })
const trusted = async (city: ConfigCity): Promise<unknown> => at((await city.get('/packs/grabby')).body, 'trusted')

async function placed(name: string, command = 'sh -c true'): Promise<{ city: ConfigCity; pack: GitRepository }> {
  const city = await createCity(running.server, name)
  const pack = git.repository(name, files(command))
  pack.tag('v1.0.0')
  return { city, pack }
}

test('pack add shows what the pack would run, at which commit, and takes no for an answer', async () => {
  const { city, pack } = await placed('alpha', 'sh -c "echo grabbing"')
  await using terminal = atTerminal('alpha', 'add', pack.source, '--name', 'grabby')
  const shown = await terminal.shows(/\[y\/N\] $|\[y\/N\]$/)
  assert.match(shown, /grabby \(.*alpha\.git\) would run:/)
  assert.match(shown, /agents\/worker\/agent\.toml: start_command = sh -c "echo grabbing"/)
  assert.match(shown, new RegExp(`Trust grabby at ${pack.head}\\?`))
  terminal.type('n\r')
  assert.equal(await terminal.ends(), 0)
  assert.match(terminal.text(), /it stays untrusted: nothing of it is started until `svcctl pack trust grabby`/)
  assert.equal(await trusted(city), false)
})

test('Enter alone is no, Ctrl-C too, and yes lets it start', async () => {
  const { city, pack } = await placed('beta')
  await using first = atTerminal('beta', 'add', pack.source, '--name', 'grabby')
  await first.shows(/\[y\/N\]/)
  first.type('\r')
  assert.equal(await first.ends(), 0)
  assert.equal(await trusted(city), false)
  await using second = atTerminal('beta', 'trust', 'grabby')
  await second.shows(/\[y\/N\]/)
  second.type('\u0003')
  assert.equal(await second.ends(), 130)
  assert.equal(await trusted(city), false)
  await using third = atTerminal('beta', 'trust', 'grabby')
  await third.shows(/\[y\/N\]/)
  third.type('y\r')
  assert.equal(await third.ends(), 0)
  assert.equal(await trusted(city), true)
})

test('pack upgrade asks again where the pack would run something else, and only there', async () => {
  const { city, pack } = await placed('gamma')
  await using adding = atTerminal('gamma', 'add', pack.source, '--name', 'grabby')
  await adding.shows(/\[y\/N\]/)
  adding.type('yes\r')
  assert.equal(await adding.ends(), 0)
  pack.commit({ 'README.md': '# Explained\n' }, 'v1.1.0')
  await using prose = atTerminal('gamma', 'upgrade')
  assert.equal(await prose.ends(), 0)
  assert.doesNotMatch(prose.text(), /\[y\/N\]/)
  assert.equal(await trusted(city), true)
  pack.commit(files('sh -c "echo something else"'), 'v1.2.0')
  await using other = atTerminal('gamma', 'upgrade')
  const shown = await other.shows(/\[y\/N\]/)
  assert.match(shown, /start_command = sh -c "echo something else"/)
  assert.equal(await trusted(city), false)
  other.type('y\r')
  assert.equal(await other.ends(), 0)
  assert.equal(await trusted(city), true)
})

test('what a long command would hide is told of, and no command draws on the terminal', async () => {
  const { pack } = await placed('delta', `true ${' '.repeat(600)}; rm -rf things \u001b[2J\u202e`)
  await using terminal = atTerminal('delta', 'add', pack.source, '--name', 'grabby')
  assert.match(await terminal.shows(/\[y\/N\]/), /… and \d+ more characters/)
  assert.ok(!terminal.raw.includes('\u001b[2J') && !terminal.raw.includes('\u202e'))
  terminal.type('n\r')
  await terminal.ends()
})

test('an add that fails asks nothing', async () => {
  const { city, pack } = await placed('epsilon')
  const accepted = await city.post('/packs', { source: pack.source, name: 'grabby' })
  assert.equal((await city.outcome(accepted)).type, 'request.result.pack.add')
  await using terminal = atTerminal('epsilon', 'add', `${git.url}/none.git`)
  assert.notEqual(await terminal.ends(), 0)
  assert.doesNotMatch(terminal.text(), /\[y\/N\]/)
})

test('in a pipe, pack upgrade speaks of trust only where something comes from elsewhere', async () => {
  const { city, pack } = await placed('omega')
  const upgraded = () => cli(['pack', 'upgrade'], { env: { SVC_API: running.server.url, SVC_CITY: 'omega' } })
  assert.doesNotMatch((await upgraded()).err, /trust/)
  const added = await city.post('/packs', { name: 'grabby', source: pack.source })
  await city.outcome(added)
  assert.match((await upgraded()).err, /until it is trusted/)
})

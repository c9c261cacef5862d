import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type CliResult, cliHere, cli as run, sourceOf } from '../support/cli.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

let supervisor: RunningSupervisor
let city: ConfigCity
before(async () => {
  supervisor = await startSupervisor()
  city = await createCity(supervisor, 'alpha')
})
after(() => supervisor[Symbol.asyncDispose]())

const cli = (...args: string[]): Promise<CliResult> =>
  run(args, { env: { SVC_API: supervisor.url, SVC_CITY: 'alpha' } })

/** In a terminal where the answers are typed in turn; the editor is a shell script over the file `$1`. */
function editing(script: string, answers: readonly string[], ...args: string[]): Promise<CliResult> {
  const editor = join(supervisor.work, `editor-${crypto.randomUUID()}`)
  writeFileSync(editor, `#!/bin/sh\n${script}\n`)
  chmodSync(editor, 0o755)
  const left = [...answers]
  return cliHere(['config', 'edit', ...args], {
    env: { ...process.env, SVC_API: supervisor.url, SVC_CITY: 'alpha', EDITOR: editor, VISUAL: undefined },
    terminal: true,
    io: { stdin: sourceOf('', { isTerminal: true, readLine: async () => left.shift() ?? '' }) },
  })
}

test('config get prints what is in force, a file as it stands, and every file', async () => {
  const got = await cli('config', 'get', '-o', 'json')
  assert.equal(got.code, 0, got.err)
  assert.equal(JSON.parse(got.out).revision, (await city.config()).revision)
  assert.match((await cli('config', 'get')).out, /^agents\tcore\.worker$/m)
  assert.equal((await cli('config', 'get', 'city.toml')).out, city.read('city.toml'))
  assert.match((await cli('config', 'get', '--raw')).out, /^pack\.toml\tpack\t/m)
  assert.equal((await cli('config', 'get', 'none.toml')).code, 3)
  assert.equal(JSON.parse((await cli('config', 'defaults', '-o', 'json')).out).agents.length, 0)
})

test('config explain names file and line of a value', async () => {
  assert.equal(
    (await cli('config', 'explain', 'workspace.provider')).out,
    'city\tworkspace.provider\tshell\tcity.toml:4\tcity\n',
  )
  assert.match(
    (await cli('config', 'explain', '--agent', 'core.worker')).out,
    /^agent core\.worker\tprompt_template\t/m,
  )
  assert.equal((await cli('config', 'explain', 'no.such')).code, 3)
  assert.equal((await cli('config', 'explain', '--rig', 'none')).code, 3)
})

test('config validate ends with 6 and names what is wrong with a draft', async () => {
  const good = await cli('config', 'validate')
  assert.deepEqual([good.out, good.code], ['', 0])
  const draft = join(supervisor.work, 'draft.toml')
  writeFileSync(draft, '[workspce]\n')
  const bad = await cli('config', 'validate', '--file', `city.toml=${draft}`)
  assert.equal(bad.code, 6)
  assert.equal(bad.out, 'error\tcity.toml:1:2\tworkspce\tunknown key `workspce`\tdid you mean `workspace`?\n')
  assert.equal((await cli('config', 'validate', '--file', 'city.toml')).code, 2)
})

test('config explain of a key answers that key alone, as JSON too, and without one no unused built-in', async () => {
  const { settings, agents, providers } = JSON.parse((await cli('config', 'explain', 'workspace', '-o', 'json')).out)
  assert.ok('workspace.provider' in settings)
  assert.deepEqual(
    Object.keys(settings).filter((key) => !key.startsWith('workspace.')),
    [],
  )
  assert.deepEqual([agents, providers], [[], []])
  const all = (await cli('config', 'explain')).out
  assert.match(all, /^provider shell\t/m)
  assert.doesNotMatch(all, /^provider kimi\t/m)
  assert.match(
    (await cli('config', 'explain', '--provider', 'kimi')).out,
    /^provider kimi\tcommand\tkimi\t.*\tbuiltin$/m,
  )
})

test('config edit mends one of two errors, and says what is left', async () => {
  const sound = city.read('city.toml')
  city.write('city.toml', `${sound}[oops]\n[ouch]\n`)
  const half = await editing(`grep -v oops "$1" > "$1.x"; mv "$1.x" "$1"`, ['y'])
  assert.equal(half.code, 0, half.err)
  assert.match(half.err, /still wrong: city\.toml:\d+:2: unknown key `ouch`/)
  const made = await cli('provider', 'create', 'fresh', '--command', 'cat')
  assert.equal(made.code, 0, made.err)
  assert.match(made.err, /written, not in force yet: the configuration is rejected: city\.toml:\d+:2: unknown key/)
  const whole = await editing(`grep -v ouch "$1" > "$1.x"; mv "$1.x" "$1"`, ['y'])
  assert.equal(whole.code, 0, whole.err)
  assert.equal((await cli('config', 'validate')).code, 0)
  assert.equal((await cli('provider', 'delete', 'fresh')).code, 0)
  assert.equal(city.read('city.toml'), sound)
})

test('config reload waits for its end', async () => {
  const done = await cli('config', 'reload', '--wait', '-o', 'json')
  assert.equal(done.code, 0, done.err)
  assert.equal(JSON.parse(done.out).outcome, 'no_change')
  const accepted = JSON.parse((await cli('config', 'reload', '--no-wait', '-o', 'json')).out)
  assert.equal((await cli('request', 'wait', accepted.request_id)).code, 0)
})

test('config edit shows what is wrong, lets it be mended, asks, and applies', async () => {
  const text = city.read('city.toml')
  const script = `if grep -q '^\\[oops\\]' "$1"; then grep -v '^\\[oops\\]' "$1" > "$1.x"; mv "$1.x" "$1"; else printf '# by me\\n[oops]\\n' >> "$1"; fi`
  const result = await editing(script, ['y', 'y'])
  assert.equal(result.code, 0, result.err)
  assert.match(result.err, /invalid_config: city\.toml:\d+:2: unknown key `oops`/)
  assert.match(result.err, /Edit it again\?/)
  assert.match(result.err, /Apply this to city\.toml of alpha\?/)
  assert.equal(city.read('city.toml'), `${text}# by me\n`)
})

test('config edit applies nothing that was refused or declined, and keeps the text', async () => {
  const text = city.read('city.toml')
  const declined = await editing(`echo '# more' >> "$1"`, ['n'])
  assert.equal(declined.code, 1)
  const [, kept = ''] = /your text is kept in (\S+)/.exec(declined.err) ?? []
  assert.equal(readFileSync(kept, 'utf8'), `${text}# more\n`)
  const given = await editing(`echo '[oops]' >> "$1"`, ['n'])
  assert.equal(given.code, 6)
  assert.equal((await editing('true', [])).err.trim(), 'nothing changed')
  assert.equal((await editing('exit 3', [])).code, 1)
  assert.equal(city.read('city.toml'), text)
})

test('config edit does not overwrite what somebody else changed meanwhile', async () => {
  const text = city.read('city.toml')
  const result = await editing(`echo '# mine' >> "$1"; echo '# theirs' >> "${city.dir}/city.toml"`, ['y'])
  assert.equal(result.code, 5, result.err)
  assert.equal(city.read('city.toml'), `${text}# theirs\n`)
  // The next edit is refused until this one has been loaded.
  assert.equal(
    (await run(['config', 'reload', '--wait'], { env: { SVC_API: supervisor.url, SVC_CITY: 'alpha' } })).code,
    0,
  )
})

test('config edit makes a file that is not there, and needs --yes where nobody can be asked', async () => {
  const env = {
    SVC_API: supervisor.url,
    SVC_CITY: 'alpha',
    EDITOR: `sh -c 'printf "provider = \\"shell\\"\\n" > "$0"'`,
  }
  assert.equal((await run(['config', 'edit', 'agents/clerk/agent.toml'], { env })).code, 2)
  const made = await run(['config', 'edit', 'agents/clerk/agent.toml', '--yes', '-o', 'name'], { env })
  assert.equal(made.code, 0, made.err)
  assert.equal(made.out, 'agents/clerk/agent.toml\n')
  assert.ok(existsSync(join(city.dir, 'agents/clerk/agent.toml')))
})

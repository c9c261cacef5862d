// The command line of sessions and agents against a real supervisor and real processes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type CliResult, cli, cliHere } from '../support/cli.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { eventually as until } from '../support/http.ts'
import { type Running, run as runSupervisor } from '../support/running.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const ACP_AGENT = join(ROOT, 'test', 'support', 'acp-agent.ts')
let running: Running
let city: ConfigCity
before(async () => {
  running = await runSupervisor()
  city = await createCity(running.server, 'alpha')
  await does(
    'provider',
    'create',
    'scripted',
    '--data',
    JSON.stringify({
      command: process.execPath,
      supports_acp: true,
      acp_command: process.execPath,
      acp_args: [ACP_AGENT],
      prompt_mode: 'omit',
    }),
  )
})
after(async () => {
  city.api.close()
  await running[Symbol.asyncDispose]()
})

const env = () => ({ SVC_API: running.server.url, SVC_CITY: 'alpha' })
const run = (...line: readonly string[]) => cliHere([...line], { cwd: city.dir, env: env() })
async function does(...line: readonly string[]): Promise<string> {
  const { out, err, code } = await run(...line, '-q')
  assert.equal(code, 0, `${line.join(' ')}: ${err}`)
  return out
}
const json = async (...line: readonly string[]): Promise<unknown> => JSON.parse(await does(...line, '-o', 'json'))
async function fails(code: number, said: RegExp, ...line: readonly string[]): Promise<void> {
  const { err, code: exit } = await run(...line)
  assert.equal(exit, code, err)
  assert.match(err, said)
}

const shell = (alias: string) =>
  json('session', 'create', 'shell', '--provider', '--alias', alias, '--runtime', 'subprocess', '--wait')
/** Tries until it no longer fails. */
const eventually = (look: () => unknown) =>
  until('what the command line shows', async () => {
    try {
      await look()
      return true
    } catch (error) {
      if (!(error instanceof assert.AssertionError)) throw error
      last = error
      return undefined
    }
  }).catch((error: unknown) => {
    throw last ?? error
  })
let last: Error | undefined
const logs = (id: string) => does('session', 'logs', id)

test('a session whose program ended says with which code, or by which signal', async () => {
  await shell('ends')
  await does('session', 'message', 'ends', 'exit 3')
  await eventually(async () =>
    assert.match(await does('session', 'get', 'ends'), /^last_exit\t\w+: exited with 3(: .*)?$/m),
  )
  await shell('dies')
  await does('session', 'message', 'dies', 'kill -SEGV $$')
  await eventually(async () =>
    assert.match(await does('session', 'get', 'dies'), /^last_exit\tcrash: signalled .*by (SIG)?SEGV(: .*)?$/m),
  )
})

test('a shell is started, spoken to, listened to, suspended, woken and closed by its alias', async () => {
  const created = await shell('sh')
  assert.equal(at(created, 'session', 'state'), 'active')
  const said = await json('session', 'message', 'sh', 'echo', 'answer-$((40+2))', '--wait')
  assert.equal(at(said, 'session_id'), at(created, 'session', 'id'))
  await eventually(async () => assert.match(await logs('sh'), /^answer-42$/m))
  assert.match(await logs('sh'), /^> echo answer-\$\(\(40\+2\)\)$/m)
  assert.match(await does('session', 'list'), /\tsh\tshell\tactive\t/)
  assert.match(await does('session', 'deliveries', 'sh'), /\tdelivered\t\tmessage\t/)
  assert.match(await does('session', 'screen', 'sh'), /answer-42/)
  assert.equal(at(await json('session', 'suspend', 'sh'), 'state'), 'suspended')
  await json('session', 'wake', 'sh')
  await eventually(async () => assert.equal(at(await json('session', 'get', 'sh'), 'state'), 'active'))
  await does('session', 'rename', 'sh', 'A shell')
  assert.equal(at(await json('session', 'get', 'sh'), 'title'), 'A shell')
  assert.equal(at(await json('session', 'close', 'sh'), 'state'), 'closed')
  await fails(5, /conflict/, 'session', 'message', String(at(created, 'session', 'id')), 'hello')
})

test('what an agent asks shows in needs, and is answered', async () => {
  await json('session', 'create', 'scripted', '--provider', '--alias', 'asker', '--runtime', 'acp', '--wait')
  await does('session', 'message', 'asker', 'ask', 'Bash', '--no-wait')
  await eventually(async () => assert.match(await does('needs'), /^alpha\tasker\t/))
  assert.equal(at(await json('session', 'pending', 'asker'), 'supported'), true)
  await fails(5, /pending_interaction/, 'session', 'message', 'asker', 'more')
  await does('session', 'respond', 'asker', 'approve')
  await eventually(async () => assert.equal(await does('needs'), ''))
  await does('session', 'close', 'asker', '--delete')
  await fails(3, /not_found/, 'session', 'get', 'asker')
})

test('a hook tells of the session that is named, in the city that is named', async () => {
  await shell('hooked')
  const hook = (event: string, ...line: readonly string[]) =>
    cli(['session', 'report', ...line], {
      cwd: '/',
      env: { SVC_API: running.server.url },
      input: JSON.stringify({ hook_event_name: event, session_id: 'key-1' }),
    })
  const silent = { out: '', err: '', code: 0 }
  assert.deepEqual(await hook('UserPromptSubmit', '--from', 'claude', 'hooked', '--city', 'alpha'), silent)
  assert.equal(at(await json('session', 'get', 'hooked'), 'activity_source'), 'report')
  assert.deepEqual(await hook('Stop', 'hooked', '-c', 'alpha', '--from', 'claude'), silent)
  await eventually(async () => assert.equal(at(await json('session', 'get', 'hooked'), 'activity'), 'idle'))
  assert.deepEqual(await hook('Stop', 'hooked', '-c', 'nowhere', '--from', 'claude'), silent, 'it never fails')
})

/** Runs the real program until its output is `seen`, or `work` is done; then it is interrupted. */
async function whileRunning(line: readonly string[], seen: RegExp, work: () => Promise<unknown>): Promise<CliResult> {
  const stop = new AbortController()
  let out = ''
  const onOut = (text: string) => {
    out += text
  }
  const running = cli([...line, '-q'], { cwd: city.dir, env: env(), signal: stop.signal, onOut })
  try {
    await work()
    await eventually(() => assert.match(out, seen))
  } finally {
    stop.abort()
  }
  return running
}

test('what a shell writes piece by piece is shown as its lines, and what was typed is shown once', async () => {
  await shell('flow')
  const typed = "printf 'one '; sleep 0.3; printf 'two '; sleep 0.3; echo three"
  const { out, code } = await whileRunning(['session', 'logs', '-f', 'flow'], /^one two three$/m, () =>
    json('session', 'message', 'flow', typed, '--wait'),
  )
  assert.equal(code, 130)
  assert.equal(out.split(typed).length, 2, out)
  assert.match(out, /^> printf 'one '/m)
  await does('session', 'close', 'flow')
})

test('inside a session an agent speaks of itself without a name', async () => {
  const id = String(at(await shell('self'), 'session', 'id'))
  await json('session', 'message', 'self', 'svcctl session heartbeat -o name', '--wait')
  await eventually(async () => assert.match(await logs('self'), new RegExp(`^${id}$`, 'm')))
  await does('session', 'close', 'self')
})

test('status counts what runs and what waits; needs --watch says what comes to wait', async () => {
  await json('session', 'create', 'scripted', '--provider', '--alias', 'eyes', '--runtime', 'acp', '--wait')
  assert.match(await does('status', '-A'), /^alpha\trunning\t\d+\t0\t0\t0\t0\t0\t$/m)
  const { out } = await whileRunning(['needs', '--watch'], /^alpha\teyes\t.*Bash/m, () =>
    json('session', 'message', 'eyes', 'ask', 'Bash', '--no-wait'),
  )
  assert.equal(out.trimEnd().split('\n').length, 1, out)
  assert.match(await does('status'), /^needs\t1$/m)
  await does('session', 'respond', 'eyes', 'deny')
  await eventually(async () => assert.match(await does('status'), /^needs\t0$/m))
  await does('session', 'close', 'eyes')
})

test('attach shows what is said and takes lines; the end of the input ends nothing', async () => {
  await shell('talk')
  const child = spawn(process.execPath, [join(ROOT, 'src', 'main.ts'), 'session', 'attach', 'talk', '-q'], {
    env: { ...process.env, ...env() },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  child.stdin.write('echo typed-$((1+1))\n')
  await eventually(() => assert.match(out, /^typed-2$/m))
  child.stdin.end()
  assert.equal(await ended, 0)
  assert.equal(at(await json('session', 'get', 'talk'), 'state'), 'active')
  await does('session', 'close', 'talk')
  await fails(3, /not_found/, 'session', 'attach', 'nobody')
})

test('an agent is defined, changed, suspended, resumed and removed', async () => {
  const before = city.read('city.toml')
  await does('agent', 'create', 'worker', '--provider', 'shell', '--description', 'Works')
  assert.match(await does('agent', 'list'), /^worker\tagent\tstopped\t0\tshell\t/m)
  await does('agent', 'update', 'worker', '--set', 'max_active_sessions=2')
  assert.equal(at(await json('agent', 'get', 'worker'), 'max_active_sessions'), 2)
  const definition = JSON.stringify({ provider: 'shell', description: 'Works on' })
  const replaced = await json('agent', 'replace', 'worker', '--data', definition)
  assert.deepEqual(at(replaced, 'definition'), { provider: 'shell', description: 'Works on' })
  assert.equal(at(await json('agent', 'suspend', 'worker'), 'state'), 'suspended')
  assert.equal(at(await json('agent', 'resume', 'worker'), 'suspended'), false)
  assert.equal(await does('agent', 'logs', 'worker'), '')
  await does('agent', 'delete', 'worker', '--yes')
  await fails(3, /not_found/, 'agent', 'get', 'worker')
  assert.equal(city.read('city.toml'), before)
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, watch } from 'node:fs'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, test } from 'node:test'
import type { Clock } from '../../kernel/clock.ts'
import type { Environment } from '../../kernel/processes.ts'
import { createProbes } from './probes.ts'

const root = mkdtempSync(join(tmpdir(), 'svc-probes-'))
after(() => rmSync(root, { recursive: true, force: true }))

const TARGETS = [
  { name: 'claude', display_name: 'Claude Code', command: 'claude' },
  { name: 'codex', display_name: 'Codex', command: 'codex' },
  { name: 'gemini', display_name: 'Gemini CLI', command: 'gemini' },
  { name: 'amp', display_name: 'Amp', command: 'svc-test-amp' },
  { name: 'shell', display_name: 'Shell', command: '/bin/sh' },
  { name: 'fish', display_name: 'Fish', command: '/svc-no-such/fish' },
]

interface Case {
  readonly what: string
  readonly probe: string
  /** Bodies of shell scripts, by the name of the binary. */
  readonly binaries?: Readonly<Record<string, string>>
  /** Contents by path in the home. */
  readonly files?: Readonly<Record<string, string>>
  readonly env?: Environment
  readonly status: string
  readonly detail?: RegExp
}

const quiet = { codex: '', gemini: '' }
const claudeSays = (json: string, code = 0) => ({
  claude: `[ "$*" = 'auth status --json' ] || exit 64\necho '${json}'; exit ${code}`,
})
const geminiSettings = (content: unknown) => ({ '.gemini/settings.json': JSON.stringify(content) })

const CASES: readonly Case[] = [
  { what: 'no claude', probe: 'claude', status: 'not_installed', detail: /^claude is neither on PATH/ },
  {
    what: 'claude logged in',
    probe: 'claude',
    binaries: claudeSays('{"loggedIn":true,"email":"a@b.c"}'),
    status: 'configured',
  },
  {
    what: 'claude logged out, which exits 1',
    probe: 'claude',
    binaries: claudeSays('{"loggedIn":false,"authMethod":"none"}', 1),
    status: 'needs_auth',
    detail: /claude auth login/,
  },
  {
    what: 'a claude that knows no auth',
    probe: 'claude',
    binaries: { claude: 'echo unknown command >&2; exit 1' },
    status: 'probe_error',
    detail: /exit 1/,
  },
  {
    what: 'claude answering with a word',
    probe: 'claude',
    binaries: claudeSays('{"loggedIn":"yes"}'),
    status: 'probe_error',
  },
  {
    what: 'claude with a key in the environment is not even asked',
    probe: 'claude',
    binaries: { claude: 'exit 1' },
    env: { ANTHROPIC_API_KEY: 'secret' },
    status: 'configured',
    detail: /^by ANTHROPIC_API_KEY$/,
  },
  {
    what: 'claude in its own directory',
    probe: 'claude',
    binaries: {
      claude: `[ "$CLAUDE_CONFIG_DIR" = /c ] && [ -z "$SECRET" ] && [ "$TERM" = dumb ] && echo '{"loggedIn":true}'`,
    },
    env: { CLAUDE_CONFIG_DIR: '/c', SECRET: 's' },
    status: 'configured',
  },
  {
    what: 'codex without its file',
    probe: 'codex',
    binaries: quiet,
    status: 'needs_auth',
    detail: /^missing ~\/\.codex\/auth\.json$/,
  },
  {
    what: 'codex logged in',
    probe: 'codex',
    binaries: quiet,
    files: { '.codex/auth.json': '{"tokens":{"access_token":"t"}}' },
    status: 'configured',
  },
  {
    what: 'codex with a key',
    probe: 'codex',
    binaries: quiet,
    files: { '.codex/auth.json': '{"OPENAI_API_KEY":"k"}' },
    status: 'configured',
  },
  {
    what: 'codex logged out',
    probe: 'codex',
    binaries: quiet,
    files: { '.codex/auth.json': '{"OPENAI_API_KEY":null,"tokens":null}' },
    status: 'needs_auth',
    detail: /codex login/,
  },
  {
    what: 'a damaged file of codex',
    probe: 'codex',
    binaries: quiet,
    files: { '.codex/auth.json': '{"tok' },
    status: 'invalid_configuration',
    detail: /^~\/\.codex\/auth\.json is not JSON$/,
  },
  {
    what: 'codex with a keyring',
    probe: 'codex',
    binaries: quiet,
    files: { '.codex/config.toml': 'cli_auth_credentials_store = "keyring"\n' },
    status: 'configured',
    detail: /keyring/,
  },
  {
    what: 'codex elsewhere',
    probe: 'codex',
    binaries: quiet,
    env: { CODEX_HOME: '/svc-none' },
    status: 'needs_auth',
    detail: /^missing \/svc-none\/auth\.json$/,
  },
  { what: 'a home that is a file', probe: 'codex', binaries: quiet, files: { '.codex': 'x' }, status: 'needs_auth' },
  {
    what: 'a directory for a file',
    probe: 'codex',
    binaries: quiet,
    files: { '.codex/auth.json/x': '' },
    status: 'invalid_configuration',
  },
  {
    what: 'gemini without its file',
    probe: 'gemini',
    binaries: quiet,
    status: 'needs_auth',
    detail: /^missing ~\/\.gemini\/oauth_creds\.json$/,
  },
  {
    what: 'gemini logged in',
    probe: 'gemini',
    binaries: quiet,
    files: {
      ...geminiSettings({ security: { auth: { selectedType: 'oauth-personal' } } }),
      '.gemini/oauth_creds.json': '{}',
    },
    status: 'configured',
  },
  {
    what: 'gemini by key, but none is there',
    probe: 'gemini',
    binaries: quiet,
    files: { ...geminiSettings({ selectedAuthType: 'gemini-api-key' }), '.gemini/oauth_creds.json': '{}' },
    status: 'needs_auth',
    detail: /GEMINI_API_KEY/,
  },
  {
    what: 'gemini by key in its file',
    probe: 'gemini',
    binaries: quiet,
    files: { ...geminiSettings({ selectedAuthType: 'gemini-api-key' }), '.gemini/.env': 'export GEMINI_API_KEY=k\n' },
    status: 'configured',
  },
  {
    what: 'gemini by key in the environment',
    probe: 'gemini',
    binaries: quiet,
    env: { GEMINI_API_KEY: 'k' },
    status: 'configured',
    detail: /^by GEMINI_API_KEY$/,
  },
  {
    what: 'gemini by a cloud',
    probe: 'gemini',
    binaries: quiet,
    files: geminiSettings({ security: { auth: { selectedType: 'vertex-ai' } } }),
    status: 'configured',
    detail: /not checked/,
  },
  {
    what: 'gemini by something new',
    probe: 'gemini',
    binaries: quiet,
    files: geminiSettings({ security: { auth: { selectedType: { a: 1 } } } }),
    status: 'invalid_configuration',
  },
  {
    what: 'damaged settings of gemini',
    probe: 'gemini',
    binaries: quiet,
    files: { '.gemini/settings.json': '{' },
    status: 'invalid_configuration',
  },
  { what: 'gh logged in', probe: 'github_cli', binaries: { gh: '[ "$*" = "auth status" ]' }, status: 'configured' },
  {
    what: 'gh logged out',
    probe: 'github_cli',
    binaries: { gh: 'echo not logged in >&2; exit 1' },
    status: 'needs_auth',
    detail: /gh auth login/,
  },
  {
    what: 'gh off line',
    probe: 'github_cli',
    binaries: { gh: 'echo "Timeout trying to log in" >&2; exit 1' },
    status: 'probe_error',
    detail: /did not answer/,
  },
  {
    what: 'a binary that is none',
    probe: 'claude',
    binaries: { claude: '#broken' },
    env: { BROKEN: '1' },
    status: 'probe_error',
  },
  {
    what: 'a preset without a known login',
    probe: 'amp',
    binaries: { 'svc-test-amp': 'exit 1' },
    status: 'configured',
  },
  { what: 'a shell', probe: 'shell', status: 'configured' },
  {
    what: 'a shell that is gone',
    probe: 'fish',
    status: 'not_installed',
    detail: /^\/svc-no-such\/fish is not a program$/,
  },
  { what: 'git', probe: 'git', binaries: { git: '' }, status: 'configured' },
]

let number = 0
async function world(given: Pick<Case, 'binaries' | 'files' | 'env'>) {
  const home = join(root, `${++number}`)
  const bin = join(home, 'path')
  await mkdir(bin, { recursive: true })
  for (const [name, body] of Object.entries(given.binaries ?? {})) {
    await writeFile(join(bin, name), body === '#broken' ? '#!/svc-no-such/interpreter\n' : `#!/bin/sh\n${body}\n`)
    await chmod(join(bin, name), 0o755)
  }
  for (const [path, content] of Object.entries(given.files ?? {})) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), content)
  }
  return { home, env: { HOME: home, PATH: [bin, '/svc-no-such'].join(delimiter), ...given.env } }
}

const probeNamed = (name: string, env: Environment, clock?: Clock) => {
  const found = createProbes(TARGETS, clock === undefined ? { env } : { env, clock }).find(
    (probe) => probe.name === name,
  )
  assert.ok(found)
  return found
}

for (const given of CASES) {
  test(`${given.probe}: ${given.what} is ${given.status}`, async () => {
    const { env } = await world(given)
    const seen = await probeNamed(given.probe, env).run(new AbortController().signal)
    assert.equal(seen.status, given.status, seen.detail ?? '')
    if (given.detail === undefined) return
    assert.match(seen.detail ?? '', given.detail)
  })
}

test('providers come first, tools after them, each with its kind and a name for people', () => {
  const listed = createProbes(TARGETS.slice(0, 1), { env: {} }).map((probe) => [
    probe.name,
    probe.kind,
    probe.display_name,
  ])
  assert.deepEqual(listed, [
    ['claude', 'provider', 'Claude Code'],
    ['github_cli', 'tool', 'GitHub CLI'],
    ['git', 'tool', 'Git'],
  ])
})

test('a status command that hangs is an error of the probe after 5 s, and gone', async () => {
  const { home, env } = await world({})
  const note = join(home, 'pid')
  await writeFile(join(home, 'path/gh'), `#!/bin/sh\necho $$ > ${note}; exec sleep 1000\n`)
  await chmod(join(home, 'path/gh'), 0o755)
  let deadline = { ms: 0, work: () => {} }
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after(ms, work) {
      deadline = { ms, work }
      return () => {}
    },
  }
  const running = probeNamed('github_cli', { ...env, PATH: `${env.PATH}:/usr/bin:/bin` }, clock).run(
    new AbortController().signal,
  )
  const watcher = watch(home)
  while (!existsSync(note)) await once(watcher, 'change')
  watcher.close()
  assert.equal(deadline.ms, 5000)
  deadline.work()
  assert.deepEqual(await running, { status: 'probe_error', detail: 'probe did not finish in 5s' })
})

test('no detail repeats what a status command printed', async () => {
  const { env } = await world({
    binaries: { claude: 'echo "person@example.org"; exit 1', gh: 'echo "person@example.org" >&2; exit 1' },
  })
  for (const name of ['claude', 'github_cli']) {
    const seen = await probeNamed(name, env).run(new AbortController().signal)
    assert.doesNotMatch(seen.detail ?? '', /person/)
  }
})

test('a login that is a device is refused rather than opened', async () => {
  const { home, env } = await world({ binaries: quiet })
  await mkdir(join(home, '.codex'))
  await symlink('/dev/zero', join(home, '.codex/auth.json'))
  assert.equal((await probeNamed('codex', env).run(new AbortController().signal)).status, 'invalid_configuration')
})

test('an aborted probe leaves no process', async () => {
  const { home, env } = await world({})
  const note = join(home, 'pid')
  await writeFile(join(home, 'path/gh'), `#!/bin/sh\necho $$ > ${note}\nwhile :; do :; done\n`)
  await chmod(join(home, 'path/gh'), 0o755)
  const controller = new AbortController()
  const running = probeNamed('github_cli', env).run(controller.signal)
  const watcher = watch(home)
  while (!existsSync(note) || readFileSync(note, 'utf8') === '') await once(watcher, 'change')
  watcher.close()
  controller.abort()
  assert.equal((await running).status, 'probe_error')
  const status = `/proc/${readFileSync(note, 'utf8').trim()}/status`
  while (existsSync(status) && !/^State:\s+Z/m.test(readFileSync(status, 'utf8'))) await new Promise(setImmediate)
})

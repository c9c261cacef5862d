/**
 * Where each vendor tool keeps its login, as far as that can be told without using it. Details name files and
 * variables, never what is in them: status commands print accounts and organisations.
 */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProbeState } from '../../contract/health.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type BriefResult, type Environment, minimalEnvironment, runBriefly } from '../../kernel/processes.ts'

export const PROBE_LIMIT_MS = 5000
export const PROBE_LATE = 'probe did not finish in 5s'

/** What a probe saw; `unknown` is what nobody has looked at yet. */
export interface Observation {
  readonly status: Exclude<ProbeState, 'unknown'>
  readonly detail?: string
}

export interface ProbeHost {
  readonly env: Environment
  /** Deadlines of status commands; the system's where absent. */
  readonly clock?: Clock
}

interface Look extends ProbeHost {
  readonly binary: string
  readonly signal: AbortSignal
}

interface Login {
  /** Variables that are a login by themselves, whatever the files say. */
  readonly variables: readonly string[]
  look(at: Look): Promise<Observation>
}

export const LOGINS: ReadonlyMap<string, Login> = new Map<string, Login>([
  [
    'claude',
    {
      variables: [
        'ANTHROPIC_API_KEY',
        'ANTHROPIC_AUTH_TOKEN',
        'CLAUDE_CODE_OAUTH_TOKEN',
        'CLAUDE_CODE_USE_BEDROCK',
        'CLAUDE_CODE_USE_VERTEX',
      ],
      look: (at) => ask(at, ['auth', 'status', '--json'], ['CLAUDE_CONFIG_DIR'], claudeStatus),
    },
  ],
  ['codex', { variables: [], look: codexLogin }],
  ['gemini', { variables: ['GEMINI_API_KEY'], look: geminiLogin }],
  [
    'github_cli',
    {
      variables: ['GH_TOKEN', 'GITHUB_TOKEN'],
      look: (at) => ask(at, ['auth', 'status'], ['GH_CONFIG_DIR', 'GH_HOST'], githubStatus),
    },
  ],
])

const configured = (detail?: string): Observation => ({
  status: 'configured',
  ...(detail === undefined ? {} : { detail }),
})
const needsAuth = (detail: string): Observation => ({ status: 'needs_auth', detail })
const invalid = (detail: string): Observation => ({ status: 'invalid_configuration', detail })
const untold = (detail: string): Observation => ({ status: 'probe_error', detail })

/** Runs a tool's own status command; `keep` are variables that tell it where its files are. */
async function ask(
  at: Look,
  args: readonly string[],
  keep: readonly string[],
  judge: (result: BriefResult) => Observation,
) {
  const env: Record<string, string> = { ...minimalEnvironment(at.env) }
  for (const name of keep) {
    const value = at.env[name]
    if (value !== undefined) env[name] = value
  }
  const { signal, clock } = at
  const result = await runBriefly(at.binary, args, {
    env,
    timeoutMs: PROBE_LIMIT_MS,
    signal,
    ...(clock === undefined ? {} : { clock }),
  })
  if (result.outcome === 'exited') return judge(result)
  if (result.outcome === 'timed_out') return untold(PROBE_LATE)
  return untold(result.error ?? 'probe was cut short')
}

/** The JSON decides whatever the exit code: a logged-out claude exits 1, and so does one that knows no `auth`. */
function claudeStatus({ stdout, code }: BriefResult): Observation {
  const loggedIn = member(parseJson(stdout), 'loggedIn')
  if (loggedIn === true) return configured()
  if (loggedIn === false) return needsAuth('not logged in: run `claude auth login`')
  return untold(
    `\`claude auth status --json\` gave no answer (exit ${code ?? 'by a signal'}); it needs claude 2.1.41 or newer`,
  )
}

function githubStatus({ stderr, code }: BriefResult): Observation {
  if (code === 0) return configured()
  if (/timeout|timed out|error connecting/i.test(stderr)) return untold('GitHub did not answer')
  return needsAuth('not logged in: run `gh auth login`')
}

async function codexLogin({ env }: Look): Promise<Observation> {
  const home = place(env, 'CODEX_HOME', '.codex')
  if (home === undefined) return untold('HOME is not set')
  const auth = await readSmall(env, join(home, 'auth.json'))
  if (auth.problem !== undefined) return auth.problem
  if (auth.text === undefined)
    return (await keepsInKeyring(env, home))
      ? configured('login in the keyring, not checked')
      : needsAuth(`missing ${auth.shown}`)
  const content = parseJson(auth.text)
  if (content === undefined) return invalid(`${auth.shown} is not JSON`)
  const tokens = member(content, 'tokens')
  const found = [member(tokens, 'access_token'), member(tokens, 'refresh_token'), member(content, 'OPENAI_API_KEY')]
  if (found.some((value) => typeof value === 'string' && value !== '')) return configured()
  return needsAuth(`no login in ${auth.shown}: run \`codex login\``)
}

/** Codex can be told to keep no `auth.json`. */
async function keepsInKeyring(env: Environment, home: string): Promise<boolean> {
  const { text } = await readSmall(env, join(home, 'config.toml'))
  return /^\s*cli_auth_credentials_store\s*=\s*["'](keyring|auto)["']/m.test(text ?? '')
}

const GEMINI_UNCHECKED = ['vertex-ai', 'cloud-shell', 'compute-default-credentials']

async function geminiLogin({ env }: Look): Promise<Observation> {
  const home = place(env, undefined, '.gemini')
  if (home === undefined) return untold('HOME is not set')
  const settings = await readSmall(env, join(home, 'settings.json'))
  if (settings.problem !== undefined) return settings.problem
  const content = parseJson(settings.text ?? '{}')
  if (content === undefined) return invalid(`${settings.shown} is not JSON`)
  const type =
    member(member(member(content, 'security'), 'auth'), 'selectedType') ?? member(content, 'selectedAuthType')
  if (type === undefined || type === 'oauth-personal') return geminiFile(env, join(home, 'oauth_creds.json'))
  if (type === 'gemini-api-key') return geminiKey(env, home)
  if (GEMINI_UNCHECKED.some((known) => known === type)) return configured(`by ${String(type)}, not checked`)
  return invalid(`unknown kind of login in ${settings.shown}`)
}

async function geminiFile(env: Environment, file: string): Promise<Observation> {
  const { shown, text, problem } = await readSmall(env, file)
  if (problem !== undefined) return problem
  return text === undefined ? needsAuth(`missing ${shown}`) : configured()
}

async function geminiKey(env: Environment, home: string): Promise<Observation> {
  const { text, shown } = await readSmall(env, join(home, '.env'))
  if (/^\s*(export\s+)?GEMINI_API_KEY\s*=\s*\S/m.test(text ?? '')) return configured()
  return needsAuth(`GEMINI_API_KEY is set neither in the environment nor in ${shown}`)
}

/** A tool's directory: the variable that moves it, or its place in the home. */
function place(env: Environment, variable: string | undefined, inHome: string): string | undefined {
  const moved = variable === undefined ? undefined : env[variable]
  if (moved) return moved
  return env['HOME'] ? join(env['HOME'], inHome) : undefined
}

interface Small {
  /** The path as people write it. */
  readonly shown: string
  /** Absent where there is no such file. */
  readonly text?: string
  readonly problem?: Observation
}

const SMALL_BYTES = 1 << 20

async function readSmall(env: Environment, file: string): Promise<Small> {
  const home = env['HOME']
  const shown = home && file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
  try {
    const found = await stat(file)
    // A pipe or device would hold a thread of the pool for ever.
    if (!found.isFile() || found.size > SMALL_BYTES)
      return { shown, problem: invalid(`${shown} is not a file of at most 1 MiB`) }
    return { shown, text: await readFile(file, 'utf8') }
  } catch (error) {
    const code = member(error, 'code')
    if (code === 'ENOENT' || code === 'ENOTDIR') return { shown }
    return { shown, problem: untold(`cannot read ${shown}: ${String(code)}`) }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}

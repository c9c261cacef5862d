/**
 * Pointers to git credentials: which login belongs to which host. The files hold no secrets, only where they are.
 *
 * S1  A file that others can read, or that is somebody else's, is refused; what it points at is read for one run of git and kept nowhere.
 * S2  No message of this module holds a secret, or a line of a file.
 */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { RemoteSource } from '../../../files/pack-source.ts'
import { FileRefused, openRegular, TEXT_BYTES } from '../../../files/read.ts'
import { type PlainTable, readPlainToml } from '../../../files/toml.ts'
import { type Environment, minimalEnvironment, runBriefly } from '../../../kernel/processes.ts'
import { addressKind } from './fence.ts'

export type GitLogin =
  | { readonly kind: 'basic'; readonly username: string; readonly secret: string }
  | { readonly kind: 'ssh_key'; readonly file: string }

export class CredentialError extends Error {}

interface Credential {
  readonly match: string
  readonly username: string
  readonly by: 'helper' | 'token_file' | 'token_env' | 'ssh_key_file'
  readonly value: string
}

export interface CredentialDeps {
  readonly home: string
  readonly env: Environment
}

export type Logins = (city: string, source: RemoteSource, signal: AbortSignal) => Promise<GitLogin | undefined>

const WAYS = ['helper', 'token_file', 'token_env', 'ssh_key_file'] as const
const HELPER_MS = 20_000
const FILE = 'credentials.toml'

/** Logins from `SVC_CREDENTIALS`, the city's `.svc/credentials.toml` and the home's, in this order; longest match first. */
export function createLogins({ home, env }: CredentialDeps): Logins {
  return async (city, source, signal) => {
    const override = env['SVC_CREDENTIALS']
    const paths = [
      ...(override === undefined || override === '' ? [] : [override]),
      join(city, '.svc', FILE),
      join(home, FILE),
    ]
    for (const path of paths) {
      const found = bestMatch(await readCredentials(path), source)
      if (found !== undefined) return login(found, env, source, signal)
    }
    return undefined
  }
}

async function readCredentials(path: string): Promise<readonly Credential[]> {
  const text = await privateText(path, true)
  if (text === undefined) return []
  let top: PlainTable
  try {
    top = readPlainToml(text)
  } catch {
    throw new CredentialError(`${FILE} is not valid TOML`)
  }
  const entries = top['credential'] ?? []
  if (!Array.isArray(entries)) throw new CredentialError(`${FILE}: write [[credential]] entries`)
  return entries.map(toCredential)
}

function toCredential(entry: unknown): Credential {
  if (typeof entry !== 'object' || entry === null) throw new CredentialError(`${FILE}: write [[credential]] entries`)
  const fields = new Map<string, unknown>(Object.entries(entry))
  const match = fields.get('match')
  const username = fields.get('username') ?? 'x-access-token'
  if (typeof match !== 'string' || match === '' || typeof username !== 'string')
    throw new CredentialError(`${FILE}: a credential needs \`match = "host[/prefix]"\``)
  const ways = WAYS.filter((way) => fields.has(way))
  const unknown = [...fields.keys()].some(
    (key) => key !== 'match' && key !== 'username' && !WAYS.some((way) => way === key),
  )
  const by = ways[0]
  const value = by === undefined ? undefined : fields.get(by)
  if (by === undefined || ways.length !== 1 || unknown || typeof value !== 'string' || value === '') {
    throw new CredentialError(`${FILE}: a credential has exactly one of ${WAYS.join(', ')}`)
  }
  return { match: match.toLowerCase(), username, by, value }
}

function bestMatch(credentials: readonly Credential[], { host, port, path }: RemoteSource): Credential | undefined {
  const names = [`${host}/${path}/`.toLowerCase(), `${host}:${port}/${path}/`.toLowerCase()]
  return credentials
    .filter(({ match }) => names.some((name) => name.startsWith(match.endsWith('/') ? match : `${match}/`)))
    .sort((a, b) => b.match.length - a.match.length)[0]
}

async function login(
  { by, value, username }: Credential,
  env: Environment,
  source: RemoteSource,
  signal: AbortSignal,
): Promise<GitLogin> {
  if ((by === 'ssh_key_file') !== (source.transport === 'ssh')) {
    throw new CredentialError(`${FILE}: \`${by}\` does not fit ${source.transport}`)
  }
  if (source.transport === 'http' && addressKind(source.host) !== 'loopback')
    throw new CredentialError('credentials are not sent over plain http')
  if (by === 'ssh_key_file') return { kind: 'ssh_key', file: await keyFile(value) }
  if (by === 'helper') return fromHelper(value, env, source, username, signal)
  const secret = by === 'token_env' ? env[value] : await privateText(expand(value), false)
  const token = secret?.trim() ?? ''
  if (token === '') throw new CredentialError(`${FILE}: \`${by}\` leads to no token`)
  return { kind: 'basic', username, secret: token }
}

async function keyFile(value: string): Promise<string> {
  const path = expand(value)
  await privateText(path, false)
  return path
}

function expand(path: string): string {
  const whole = path.startsWith('~/') ? join(homedir(), path.slice(2)) : path
  if (!isAbsolute(whole)) throw new CredentialError(`${FILE}: paths are absolute, or begin with ~/`)
  return whole
}

/** A file of ours or root's that only its owner can read; root's own 0440 is fine, as secret mounts have it. */
async function privateText(path: string, optional: boolean): Promise<string | undefined> {
  const file = await openRegular(path).catch((error: unknown) => {
    throw unreadable(error)
  })
  if (file === undefined) {
    if (optional) return undefined
    throw new CredentialError('a file that a credential names is missing')
  }
  try {
    const { mode, uid, size } = await file.stat()
    if (uid !== 0 && uid !== process.getuid?.())
      throw new CredentialError('a credentials file belongs to another user: it could send us anywhere')
    if ((mode & 0o077) !== 0 && !(uid === 0 && (mode & 0o777) === 0o440))
      throw new CredentialError('a credentials file can be read by others: chmod 600 it')
    if (size > TEXT_BYTES) throw new CredentialError('a credentials file is larger than 1 MiB')
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

const unreadable = (error: unknown): CredentialError =>
  new CredentialError(`a credentials file cannot be read${error instanceof FileRefused ? `: ${error.message}` : ''}`)

/** A program that prints `username=` and `password=` lines, as git's credential helpers do for `get`. */
async function fromHelper(
  command: string,
  env: Environment,
  source: RemoteSource,
  username: string,
  signal: AbortSignal,
): Promise<GitLogin> {
  const result = await runBriefly('/bin/sh', ['-c', `${command} "$@"`, 'helper', 'get', source.host, source.path], {
    env: minimalEnvironment(env),
    timeoutMs: HELPER_MS,
    signal,
  })
  if (result.outcome !== 'exited' || result.code !== 0) throw new CredentialError('the credential helper failed')
  const fields = new Map(
    result.stdout.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const secret = fields.get('password') ?? ''
  if (secret === '') throw new CredentialError('the credential helper gave no password')
  return { kind: 'basic', username: fields.get('username') ?? username, secret }
}

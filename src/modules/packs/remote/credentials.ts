/**
 * How hosts of git are reached that not everybody may read: `credentials.toml` in the home of the supervisor says which
 * login belongs to which of them, and whose certificates and keys they have.
 *
 * S1  It is read from the supervisor's own files only: one that came with a city could name a program to run, or a token
 *     to send to a host of somebody else.
 * S2  A file that others can read or change, or that is somebody else's, is refused; what it points at is read for one
 *     run of git and kept nowhere.
 * S3  No message of this module holds a secret, a line of a file, or what a helper said.
 */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { RemoteSource } from '../../../files/pack-source.ts'
import { FileRefused, openRegular, TEXT_BYTES } from '../../../files/read.ts'
import { type PlainTable, readPlainToml } from '../../../files/toml.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { type Environment, minimalEnvironment, runBriefly } from '../../../kernel/processes.ts'
import { addressKind } from './fence.ts'

export type GitLogin =
  | { readonly kind: 'basic'; readonly username: string; readonly secret: string }
  | { readonly kind: 'ssh_key'; readonly file: string; readonly username: string | undefined }

/** What is known of a host beyond its address. */
export interface HostAccess {
  readonly login?: GitLogin
  /** Certificates that vouch for it, instead of the system's. */
  readonly caFile?: string
  /** Keys of ssh hosts, instead of the user's. */
  readonly knownHostsFile?: string
}

export class CredentialError extends Error {}

const WAYS = ['helper', 'token_file', 'token_env', 'ssh_key_file'] as const
const FILES = ['ca_file', 'known_hosts_file'] as const
export const CREDENTIAL_KEYS: readonly string[] = ['match', 'username', ...WAYS, ...FILES]

interface Credential {
  readonly match: string
  readonly username: string | undefined
  readonly way: { readonly by: (typeof WAYS)[number]; readonly value: string } | undefined
  readonly files: Readonly<Partial<Record<(typeof FILES)[number], string>>>
}

export interface CredentialDeps {
  readonly home: string
  readonly env: Environment
  readonly clock: Clock
}

export type Logins = (source: RemoteSource, signal: AbortSignal) => Promise<HostAccess>

const HELPER_MS = 20_000
const HELPER_BYTES = 65_536
const FILE = 'credentials.toml'

/** From the file that `SVC_CREDENTIALS` names and the home's; of several entries the longest match that says it wins. */
export function createLogins(deps: CredentialDeps): Logins {
  const { home, env } = deps
  return async (source, signal) => {
    const override = env['SVC_CREDENTIALS']
    const paths = [...(override === undefined || override === '' ? [] : [override]), join(home, FILE)]
    const found: Credential[] = []
    for (const path of paths) found.push(...matching(await readCredentials(path), source))
    const way = found.find((entry) => entry.way !== undefined)
    const [ca, hosts] = FILES.map((name) => found.find(({ files }) => files[name] !== undefined)?.files[name])
    return {
      ...(way === undefined ? {} : { login: await login(way, deps, source, signal) }),
      ...(ca === undefined ? {} : { caFile: await sharedFile(ca) }),
      ...(hosts === undefined ? {} : { knownHostsFile: await sharedFile(hosts) }),
    }
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
  const text = (key: string): string | undefined => {
    const value = fields.get(key)
    if (value === undefined) return undefined
    if (typeof value !== 'string' || value === '') throw new CredentialError(`${FILE}: \`${key}\` is a text`)
    return value
  }
  const match = text('match')
  if (match === undefined) throw new CredentialError(`${FILE}: a credential needs \`match = "host[/prefix]"\``)
  const unknown = [...fields.keys()].find((key) => !CREDENTIAL_KEYS.includes(key))
  if (unknown !== undefined)
    throw new CredentialError(`${FILE}: a credential has ${CREDENTIAL_KEYS.join(', ')}, and nothing else`)
  const ways = WAYS.flatMap((by) => {
    const value = text(by)
    return value === undefined ? [] : [{ by, value }]
  })
  const files = Object.fromEntries(FILES.flatMap((name) => (text(name) === undefined ? [] : [[name, text(name)]])))
  if (ways.length > 1 || (ways.length === 0 && Object.keys(files).length === 0))
    throw new CredentialError(`${FILE}: a credential has one of ${WAYS.join(', ')}, or ${FILES.join(' or ')}`)
  return { match: match.toLowerCase(), username: text('username'), way: ways[0], files }
}

function matching(credentials: readonly Credential[], { host, port, path }: RemoteSource): readonly Credential[] {
  const names = [`${host}/${path}/`.toLowerCase(), `${host}:${port}/${path}/`.toLowerCase()]
  return credentials
    .filter(({ match }) => names.some((name) => name.startsWith(match.endsWith('/') ? match : `${match}/`)))
    .sort((a, b) => b.match.length - a.match.length)
}

async function login(
  { way, username: named }: Credential,
  deps: CredentialDeps,
  source: RemoteSource,
  signal: AbortSignal,
): Promise<GitLogin> {
  const { by, value } = way ?? { by: 'helper', value: '' }
  if ((by === 'ssh_key_file') !== (source.transport === 'ssh')) {
    throw new CredentialError(`${FILE}: \`${by}\` does not fit ${source.transport}`)
  }
  if (source.transport === 'http' && addressKind(source.host) !== 'loopback')
    throw new CredentialError('credentials are not sent over plain http')
  if (by === 'ssh_key_file') return { kind: 'ssh_key', file: await keyFile(value), username: sshUser(named) }
  const username = named ?? 'x-access-token'
  if (by === 'helper') return fromHelper(value, deps, source, username, signal)
  const secret = by === 'token_env' ? deps.env[value] : await privateText(expand(value), false)
  return basic(username, secret?.trim() ?? '', `${FILE}: \`${by}\` leads to no token`)
}

/** Git reads a login line by line. */
function basic(username: string, secret: string, otherwise: string): GitLogin {
  if (secret === '' || /[\n\0]/.test(secret) || /[\n\0]/.test(username)) throw new CredentialError(otherwise)
  return { kind: 'basic', username, secret }
}

/** One that looks like an option would be one to ssh. */
function sshUser(name: string | undefined): string | undefined {
  if (name !== undefined && !/^\w[\w.-]*$/.test(name))
    throw new CredentialError(`${FILE}: \`username\` is no user of ssh`)
  return name
}

async function keyFile(value: string): Promise<string> {
  const path = expand(value)
  await privateText(path, false)
  return path
}

function expand(path: string): string {
  const whole = path.startsWith('~/') ? join(homedir(), path.slice(2)) : path
  if (!isAbsolute(whole) || whole.includes('"'))
    throw new CredentialError(`${FILE}: paths are absolute, or begin with ~/`)
  return whole
}

/** A file that everybody may read and only we, or root, may change. */
async function sharedFile(value: string): Promise<string> {
  const path = expand(value)
  await checkedText(path, false, 0o022, 'can be changed by others: chmod go-w it')
  return path
}

/** A file of ours or root's that only its owner can read; root's own 0440 is fine, as secret mounts have it. */
const privateText = (path: string, optional: boolean): Promise<string | undefined> =>
  checkedText(path, optional, 0o077, 'can be read by others: chmod 600 it')

async function checkedText(path: string, optional: boolean, refused: number, why: string): Promise<string | undefined> {
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
    if ((mode & refused) !== 0 && !(uid === 0 && (mode & 0o777) === 0o440))
      throw new CredentialError(`a credentials file ${why}`)
    if (size > TEXT_BYTES) throw new CredentialError('a credentials file is larger than 1 MiB')
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

const unreadable = (error: unknown): CredentialError =>
  new CredentialError(`a credentials file cannot be read${error instanceof FileRefused ? `: ${error.message}` : ''}`)

/** A credential helper of git: it is asked and answers as git does it. */
async function fromHelper(
  command: string,
  { env, clock }: CredentialDeps,
  { transport, host, port, path }: RemoteSource,
  username: string,
  signal: AbortSignal,
): Promise<GitLogin> {
  const usual = port === (transport === 'https' ? 443 : 80)
  const result = await runBriefly('/bin/sh', ['-c', `${command} get`], {
    env: minimalEnvironment(env),
    input: `protocol=${transport}\nhost=${host}${usual ? '' : `:${port}`}\npath=${path}\n\n`,
    timeoutMs: HELPER_MS,
    maxBytes: HELPER_BYTES,
    endAtMax: true,
    signal,
    clock,
  })
  if (result.truncated) throw new CredentialError('the credential helper said more than 64 KiB')
  if (result.outcome === 'timed_out')
    throw new CredentialError(`the credential helper took longer than ${HELPER_MS / 1000} s`)
  if (result.outcome !== 'exited' || result.code !== 0) throw new CredentialError('the credential helper failed')
  const fields = new Map(
    result.stdout.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  return basic(
    fields.get('username') ?? username,
    fields.get('password') ?? '',
    'the credential helper gave no password',
  )
}

/** Settings of the supervisor, resolved once: flag › environment › supervisor.toml › default (style R12). */

import { isAbsolute, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseDurationMs } from '../contract/base/durations.ts'
import { DEFAULT_PORT, LOG_LEVELS, SERVE_FLAGS } from '../contract/base/serve-flags.ts'
import { IssueList, nearestHint } from '../files/issues.ts'
import { readRegular } from '../files/read.ts'
import { type ConfigNode, emptyTable, placeOf, plainOf, readToml, type TableNode, tableOf } from '../files/toml.ts'
import type { Retention } from '../kernel/event-log.ts'
import type { LogLevel } from '../kernel/log.ts'
import { lookAtEntry } from '../kernel/look.ts'
import { present } from '../kernel/present.ts'

export interface Settings {
  readonly home: string
  readonly bind: string
  readonly port: number
  readonly logLevel: LogLevel
  /** A bearer token is needed: asked for, or the bind is not a loopback address. */
  readonly auth: boolean
  readonly allowMutations: boolean
  readonly allowedHosts: readonly string[]
  /** Exact origins of pages that may use the API, beside our own; `http://localhost:*` is every port of this machine. */
  readonly allowedOrigins: readonly string[]
  /** Users that may connect where no token is asked for, beside the one that runs the supervisor, and root. */
  readonly allowedUids: readonly number[]
  /** Hosts that packs may come from whatever their address: `host` or `host:port` (decision 36). */
  readonly allowedPackHosts: readonly string[]
  readonly retention: Retention
}

/** A setting that cannot be used; the message names it, its value and what is allowed. */
export class SettingsError extends Error {}

const DEFAULT_RETENTION: Retention = { maxAgeMs: 90 * 86_400_000, maxBytes: 1024 ** 3 }
/** For readers; as they are written in the file. */
export const SUPERVISOR_DEFAULTS: Readonly<Record<string, string>> = {
  bind: '`"127.0.0.1"`',
  port: `\`${DEFAULT_PORT}\``,
  log_level: '`"info"`',
  auth: '`false`',
  allow_mutations: '`true`',
  max_age: '`"90d"`',
  max_bytes: `\`${DEFAULT_RETENTION.maxBytes}\``,
}
const FILE = 'supervisor.toml'
const ANY_LOCAL_PORT = 'http://localhost:*'

export const SERVE_HELP = `Usage: svcctl serve [options]

Runs the supervisor: cities, agents, events, and the HTTP API over them.

Options:
${SERVE_FLAGS.map(({ flag, value = '', does }) => `  ${`${flag} ${value}`.padEnd(19)}${does}`).join('\n')}
  -h, --help         this text

Examples:
  svcctl serve
  svcctl serve --port 0 --home /tmp/svc-trial
`

interface Flags {
  readonly home?: string
  readonly bind?: string
  readonly port?: string
  readonly 'log-level'?: string
  readonly auth?: boolean
  readonly help?: boolean
}

/** The flags of `svcctl serve`; throws SettingsError for anything else on the line. */
export function parseFlags(argv: readonly string[]): Flags {
  try {
    const { values } = parseArgs({
      args: [...argv],
      strict: true,
      allowPositionals: false,
      options: {
        home: { type: 'string' },
        bind: { type: 'string' },
        port: { type: 'string' },
        'log-level': { type: 'string' },
        auth: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    return refuseEmpty(values)
  } catch (error) {
    throw new SettingsError(error instanceof Error ? error.message : String(error))
  }
}

/** `--home "$UNSET"` is a slip: the working directory is no home that anybody meant, nor every address one to listen on. */
function refuseEmpty(flags: Flags): Flags {
  for (const [name, value] of Object.entries(flags)) if (value === '') throw new SettingsError(`--${name} is empty`)
  return flags
}

type Environment = Readonly<Record<string, string | undefined>>

export function resolveSettings(flags: Flags, env: Environment, userHome: string, cwd: string): Settings {
  const home = absolute(flags.home ?? nonEmpty(env.SVC_HOME) ?? join(userHome, '.svc'), cwd)
  const file = readFile(join(home, FILE))
  const bind = flags.bind ?? nonEmpty(env.SVC_BIND) ?? file.bind ?? '127.0.0.1'
  const loopback = isLoopback(bind)
  return Object.freeze({
    home,
    bind,
    port: portNumber(flags.port ?? nonEmpty(env.SVC_PORT) ?? file.port ?? DEFAULT_PORT),
    logLevel: logLevel(flags['log-level'] ?? nonEmpty(env.SVC_LOG_LEVEL) ?? file.logLevel ?? 'info'),
    auth: !loopback || flags.auth === true || flagOf('SVC_AUTH', env.SVC_AUTH) || file.auth === true,
    // Off loopback the token is the authorization; `allow_mutations = false` takes writes away whatever the bind.
    allowMutations: file.allowMutations ?? true,
    allowedHosts: [
      ...(file.allowedHosts ?? []),
      ...(loopback || bind === '0.0.0.0' || bind === '::' ? [] : [hostOf(bind)]),
    ].map((host) => host.toLowerCase()),
    allowedOrigins: file.allowedOrigins ?? [],
    allowedUids: file.allowedUids ?? [],
    allowedPackHosts: file.allowedPackHosts ?? [],
    retention: { ...DEFAULT_RETENTION, ...file.retention },
  })
}

const nonEmpty = (text: string | undefined): string | undefined =>
  text === undefined || text === '' ? undefined : text
const absolute = (path: string, cwd: string): string => (isAbsolute(path) ? path : resolve(cwd, path))
/** As it stands in a URL, and so in the Host header. */
const hostOf = (bind: string): string => (bind.includes(':') ? (URL.parse(`http://[${bind}]`)?.hostname ?? bind) : bind)

/** Refuses what it does not know: `yes` must not mean no. */
function flagOf(name: string, text: string | undefined): boolean {
  if (text === 'true' || text === '1') return true
  if (text === undefined || text === '' || text === 'false' || text === '0') return false
  throw new SettingsError(`${name} must be true, false, 1 or 0, got "${text}"`)
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}

function portNumber(given: string | number): number {
  const port = typeof given === 'number' ? given : /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new SettingsError(`port must be a number from 0 to 65535, got "${given}"`)
}

function logLevel(given: string): LogLevel {
  const level = LOG_LEVELS.find((one) => one === given)
  if (level !== undefined) return level
  throw new SettingsError(`log level must be one of ${LOG_LEVELS.join(', ')}, got "${given}"`)
}

interface FileSettings {
  bind?: string
  port?: number
  logLevel?: string
  auth?: boolean
  allowMutations?: boolean
  allowedHosts?: readonly string[]
  allowedOrigins?: readonly string[]
  allowedUids?: readonly number[]
  allowedPackHosts?: readonly string[]
  retention?: Partial<Retention>
}

type Kind = 'text' | 'number' | 'boolean' | 'texts' | 'numbers' | 'origins' | 'duration'
export const SUPERVISOR_KEYS = {
  bind: 'text',
  port: 'number',
  log_level: 'text',
  auth: 'boolean',
  allow_mutations: 'boolean',
  allowed_hosts: 'texts',
  allowed_origins: 'origins',
  allowed_uids: 'numbers',
  allowed_pack_hosts: 'texts',
} as const satisfies Record<string, Kind>
export const RETENTION_KEYS = { max_age: 'duration', max_bytes: 'number' } as const satisfies Record<string, Kind>

/** A pipe or a device that somebody put there would hold up the start for ever; a link that leads nowhere loses `auth = true`. */
function readBounded(path: string): Buffer | undefined {
  try {
    const bytes = readRegular(path)
    if (bytes === undefined && lookAtEntry(path).is === 'link') throw new Error('it is a link that leads to no file')
    return bytes
  } catch (error) {
    throw new SettingsError(`${path} cannot be used: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function readFile(path: string): FileSettings {
  const bytes = readBounded(path)
  if (bytes === undefined) return {}
  const issues = new IssueList()
  const root = readToml(bytes.toString('utf8'), FILE, 'site', issues) ?? emptyTable()
  const supervisor = read(root, '', 'supervisor', SUPERVISOR_KEYS, issues)
  const events = tableOf(root, 'events') ?? emptyTable()
  const retention = read(events, 'events.', 'retention', RETENTION_KEYS, issues)
  refuseUnknown(root, ['supervisor', 'events'], '', issues)
  refuseUnknown(events, ['retention'], 'events.', issues)
  const first = issues.errors
  if (first.length > 0) {
    throw new SettingsError(
      first
        .map(
          ({ file, line, column, message, hint }) =>
            `${file}:${line}:${column}: ${message}${hint === undefined ? '' : ` (${hint})`}`,
        )
        .join('\n'),
    )
  }
  return toFileSettings(supervisor, retention)
}

type Values = ReadonlyMap<string, unknown>

function toFileSettings(supervisor: Values, retention: Values): FileSettings {
  const text = (key: string) => asText(supervisor.get(key))
  const flag = (key: string) => asFlag(supervisor.get(key))
  const list = (key: string) => asList(supervisor.get(key))
  const port = supervisor.get('port')
  const age = asText(retention.get('max_age'))
  const bytes = retention.get('max_bytes')
  return present({
    bind: text('bind'),
    port: typeof port === 'number' ? port : undefined,
    logLevel: text('log_level'),
    auth: flag('auth'),
    allowMutations: flag('allow_mutations'),
    allowedHosts: list('allowed_hosts'),
    allowedOrigins: list('allowed_origins'),
    allowedUids: asNumbers(supervisor.get('allowed_uids')),
    allowedPackHosts: list('allowed_pack_hosts'),
    retention: present({
      maxAgeMs: age === undefined ? undefined : parseDurationMs(age),
      maxBytes: typeof bytes === 'number' ? bytes : undefined,
    }),
  })
}

const asText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const asFlag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)
const asList = (value: unknown): readonly string[] | undefined => (Array.isArray(value) ? value.map(String) : undefined)
const asNumbers = (value: unknown): readonly number[] | undefined =>
  Array.isArray(value) ? value.map(Number) : undefined

function read(
  parent: TableNode,
  prefix: string,
  name: string,
  keys: Readonly<Record<string, Kind>>,
  issues: IssueList,
): Values {
  const values = new Map<string, unknown>()
  const node = parent.entries.get(name)
  if (node === undefined) return values
  const path = `${prefix}${name}`
  if (node.kind !== 'table') {
    issues.error(node.at, path, `\`${path}\` must be a table`)
    return values
  }
  refuseUnknown(node, Object.keys(keys), `${path}.`, issues)
  for (const [key, kind] of Object.entries(keys)) {
    const child = node.entries.get(key)
    if (child === undefined) continue
    const value = plainOf(child)
    const wrong = complaint(kind, child)
    if (wrong === undefined) values.set(key, value)
    else issues.error(placeOf(node, key), `${path}.${key}`, `\`${path}.${key}\` ${wrong}`)
  }
  return values
}

function complaint(kind: Kind, node: ConfigNode): string | undefined {
  const value = plainOf(node)
  if (kind === 'number') return isWhole(value) ? undefined : 'must be a whole number, 0 or more'
  if (kind === 'numbers')
    return Array.isArray(value) && value.every(isWhole) ? undefined : 'must be a list of whole numbers, 0 or more'
  if (kind === 'origins')
    return Array.isArray(value) && value.every(isOrigin)
      ? undefined
      : 'must be a list of origins like "https://board.example:8443"; only "http://localhost:*" may leave the port open'
  if (kind === 'boolean') return typeof value === 'boolean' ? undefined : 'must be true or false'
  if (kind === 'texts')
    return Array.isArray(value) && value.every((one) => typeof one === 'string') ? undefined : 'must be a list of texts'
  if (typeof value !== 'string') return 'must be a text'
  if (kind === 'text') return undefined
  try {
    parseDurationMs(value)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const isWhole = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0

/** As browsers send it, for it is compared as a text. */
function isOrigin(value: unknown): boolean {
  if (typeof value !== 'string') return false
  if (value === ANY_LOCAL_PORT) return true
  const url = URL.parse(value)
  // Pages of browser extensions have origins that URL knows nothing of.
  const plain = /^[a-z][a-z0-9+-]*:\/\/[^/\s?#@]+$/.test(value) && !value.startsWith('file:')
  return url !== null && plain && (url.origin === value || url.origin === 'null')
}

function refuseUnknown(table: TableNode, known: readonly string[], prefix: string, issues: IssueList): void {
  for (const [key, node] of table.entries) {
    if (known.includes(key)) continue
    issues.error(node.keyAt ?? node.at, `${prefix}${key}`, `unknown key \`${prefix}${key}\``, nearestHint(key, known))
  }
}

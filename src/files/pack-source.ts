/**
 * Sources of packs: their spelling, their one normal form, and what none may contain. A refusal never repeats what was
 * written, because it may hold a password.
 */
import { join, relative } from 'node:path'
import { cut } from '../contract/base/text.ts'

export type PackSource = BuiltinSource | LocalSource | RemoteSource

export interface BuiltinSource {
  readonly kind: 'builtin'
  readonly source: string
  readonly name: string
}

export interface LocalSource {
  readonly kind: 'local'
  readonly source: string
  /** Relative to the importing pack, or to the city for `//path`. */
  readonly base: 'pack' | 'city'
  readonly path: string
}

export interface RemoteSource {
  readonly kind: 'git'
  /** The normal form: what the lock is keyed by. */
  readonly source: string
  /** The repository alone, as git gets it. */
  readonly repository: string
  readonly transport: 'https' | 'http' | 'ssh'
  /** Lower case, without brackets. */
  readonly host: string
  readonly port: number
  /** Path of the repository on its host, for credentials. */
  readonly path: string
  /** Directory of the pack inside the repository; empty for the whole. */
  readonly subpath: string
}

/** A directory whose files are read together: a city, or a pack. Relative paths of its files are relative to it. */
export interface PackPlace {
  readonly dir: string
  /** What nothing declared here may reach out of. */
  readonly root: string
  /** How its files are named: `label/path`, or just the path where it is empty. */
  readonly label: string
}

/** Where a local source of an importer leads. Whether that is inside its root is for whoever opens it to see. */
export function localPlace(city: PackPlace, importer: PackPlace, { base, path }: LocalSource): PackPlace {
  const from = base === 'city' ? city : importer
  const dir = join(from.dir, path)
  const inside = relative(from.root, dir) || '.'
  return { dir, root: from.root, label: from.root === city.root ? inside : `${rootLabel(from)}//${inside}` }
}

/** `https://host/repo.git//sub` → `https://host/repo.git`. */
function rootLabel({ dir, root, label }: PackPlace): string {
  const inner = relative(root, dir)
  return inner !== '' && label.endsWith(`//${inner}`) ? label.slice(0, -inner.length - 2) : label
}

/** Why a source cannot be used; the text never holds the source. */
export class SourceError extends Error {
  readonly reason: 'invalid' | 'user_info' | 'file' | 'fragment'

  constructor(reason: SourceError['reason'], message: string) {
    super(message)
    this.name = 'SourceError'
    this.reason = reason
  }
}

const MAX_SOURCE = 2_048
const DEFAULT_PORT = { https: 443, http: 80, ssh: 22 } as const
const SCP = /^([^/@:]+)@([^/:@]+|\[[0-9a-fA-F:.]+\]):(.*)$/s
const GITHUB = /^github\.com\//i
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):/

/** Reads a source; throws SourceError. */
export function parseSource(text: string): PackSource {
  if (text.length > MAX_SOURCE) throw new SourceError('invalid', `a pack source has at most ${MAX_SOURCE} characters`)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\u0000-\u0020\u007f]/.test(text))
    throw new SourceError('invalid', 'a pack source has no spaces or control characters')
  if (text.startsWith('builtin:')) return { kind: 'builtin', source: text, name: text.slice('builtin:'.length) }
  if (GITHUB.test(text)) return parseUrl(`https://${text}`)
  const scp = SCP.exec(text)
  if (scp !== null && !text.includes('://')) return parseScp(scp[1] ?? '', scp[2] ?? '', scp[3] ?? '')
  if (SCHEME.test(text)) return parseUrl(text)
  return parseLocal(text)
}

/** As `parseSource`, with the reason for what cannot be used as the answer. */
export function sourceOrError(text: string): PackSource | SourceError {
  try {
    return parseSource(text)
  } catch (error) {
    if (error instanceof SourceError) return error
    throw error
  }
}

/** As `parseSource`; undefined for what cannot be used. */
export function tryParse(text: string): PackSource | undefined {
  const source = sourceOrError(text)
  return source instanceof SourceError ? undefined : source
}

/** The name a pack gets where its importer gives none; undefined where the source does not suggest one. */
export function nameOf(source: PackSource): string | undefined {
  if (source.kind === 'builtin') return bindingFrom(source.name)
  const path = source.kind === 'local' ? source.path : source.subpath || source.path
  return bindingFrom(path.split('/').filter(Boolean).at(-1) ?? '')
}

function bindingFrom(text: string): string | undefined {
  const name = text
    .replace(/\.git$/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|-+$/g, '')
  return name === '' ? undefined : cut(name, 64)
}

function parseLocal(text: string): LocalSource {
  if (text === '' || text === '//')
    throw new SourceError('invalid', 'a pack source is a path, `builtin:<name>` or a git URL')
  if (text.includes('#')) throw new SourceError('fragment', 'a pack source has no `#ref`')
  const city = text.startsWith('//')
  const path = city ? text.slice(2) : text
  if (path.startsWith('/') || path.startsWith('~'))
    throw new SourceError(
      'invalid',
      'a local pack must be inside the city: write a relative path, or `//path` from its directory; a worktree of git can stand there',
    )
  return { kind: 'local', source: text, base: city ? 'city' : 'pack', path }
}

function parseUrl(text: string): RemoteSource {
  const scheme = SCHEME.exec(text)?.[1]?.toLowerCase() ?? ''
  if (scheme === 'file')
    throw new SourceError(
      'file',
      '`file:` sources are not allowed: put the pack, or a worktree of git with it, into the city and give its path',
    )
  if (scheme !== 'https' && scheme !== 'http' && scheme !== 'ssh') {
    throw new SourceError('invalid', 'a pack source is a path, `builtin:<name>`, or a git URL with https, http or ssh')
  }
  const [, authority, rest] = /^[^:]+:\/\/([^/]*)(.*)$/s.exec(text) ?? []
  if (authority === undefined || authority === '') throw new SourceError('invalid', 'a git URL needs a host')
  refuseUserInfo(authority, scheme)
  refuseExtras(rest ?? '')
  const url = readUrl(`${scheme === 'ssh' ? 'http' : scheme}://${authority.slice(authority.lastIndexOf('@') + 1)}`)
  const host = refuseOption(bareHost(url.hostname))
  // The parser drops the default port of the scheme it was given, which for ssh is another one.
  const written = /:(\d+)$/.exec(authority)?.[1]
  const port = written === undefined || written === '' ? DEFAULT_PORT[scheme] : Number(written)
  const { path, subpath } = splitPath(rest ?? '', host)
  const shown = hostText(host) + (port === DEFAULT_PORT[scheme] ? '' : `:${port}`)
  const repository = `${scheme}://${scheme === 'ssh' ? 'git@' : ''}${shown}/${path}`
  return {
    kind: 'git',
    source: withSubpath(repository, subpath),
    repository,
    transport: scheme,
    host,
    port,
    path,
    subpath,
  }
}

function parseScp(user: string, hostText: string, rest: string): RemoteSource {
  if (user !== 'git') throw userInfo()
  refuseExtras(rest)
  const host = refuseOption(bareHost(readUrl(`http://${hostText}`).hostname))
  const { path, subpath } = splitPath(rest, host)
  // `git@host:a/b` is relative to the login's directory, an ssh URL is not: the spelling stays.
  const repository = `git@${hostText.toLowerCase()}:${rest.startsWith('/') ? '/' : ''}${path}`
  return {
    kind: 'git',
    source: withSubpath(repository, subpath),
    repository,
    transport: 'ssh',
    host,
    port: 22,
    path,
    subpath,
  }
}

function refuseUserInfo(authority: string, scheme: string): void {
  const at = authority.lastIndexOf('@')
  if (at < 0) return
  // `git@` is the login that every git host uses; it is no secret.
  if (scheme === 'ssh' && authority.slice(0, at) === 'git') return
  throw userInfo()
}

const userInfo = () =>
  new SourceError(
    'user_info',
    'a pack source must not contain a user name or password: put a pointer to the credential into `credentials.toml` of the supervisor',
  )

function refuseExtras(rest: string): void {
  if (rest.includes('#')) throw new SourceError('fragment', 'a pack source has no `#ref`: pin with `version`')
  // Tokens travel in queries too, and no git host needs one.
  if (rest.includes('?')) throw new SourceError('invalid', 'a pack source has no query')
  if (rest.includes('\\') || /%(?:2e|2f|5c|00)/i.test(rest))
    throw new SourceError('invalid', 'a pack source has a plain path')
}

function readUrl(text: string): URL {
  try {
    return new URL(text)
  } catch {
    throw new SourceError('invalid', 'the host or port of the pack source is not valid')
  }
}

const bareHost = (hostname: string): string =>
  hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase()

/** A host that looks like an option would be one to the program that git gives it to: `-oProxyCommand=…` runs a command. */
function refuseOption(host: string): string {
  if (host.startsWith('-')) throw new SourceError('invalid', 'the host of the pack source is not valid')
  return host
}
const hostText = (host: string): string => (host.includes(':') ? `[${host}]` : host)
const withSubpath = (repository: string, subpath: string): string =>
  subpath === '' ? repository : `${repository}//${subpath}`

/** `/o/r.git//sub` and GitHub's `/o/r/tree/<ref>/<sub>`; its ref is for browsing only. */
function splitPath(rest: string, host: string): { path: string; subpath: string } {
  const trimmed = rest.replace(/^\/(?!\/)/, '')
  const cut = trimmed.indexOf('//')
  let path = cut < 0 ? trimmed : trimmed.slice(0, cut)
  let subpath = cut < 0 ? '' : trimmed.slice(cut + 2)
  if (host === 'github.com') {
    const [, repository, tree] = /^([^/]+\/[^/]+)\/tree\/[^/]+\/?(.*)$/s.exec(path) ?? []
    if (repository !== undefined) {
      path = repository
      subpath = subpath || (tree ?? '')
    }
    path = path.replace(/\.git$/, '')
  }
  path = path.replaceAll(/^\/+|\/+$/g, '')
  subpath = subpath.replaceAll(/^\/+|\/+$/g, '')
  if (path === '') throw new SourceError('invalid', 'a git URL needs the path of a repository')
  for (const part of [...path.split('/'), ...(subpath === '' ? [] : subpath.split('/'))]) {
    if (part === '' || part === '.' || part === '..' || part.toLowerCase() === '.git' || part.startsWith('-')) {
      throw new SourceError('invalid', 'a part of the path in the pack source is not allowed')
    }
  }
  return { path, subpath }
}

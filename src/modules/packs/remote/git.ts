/**
 * The `git` program, used as a downloader of untrusted repositories.
 *
 * G1  It sees none of the user's or system's configuration, asks nobody anything, and follows no redirect.
 * G2  It connects to the addresses that were vetted, and to no other (curl's and ssh's own pinning).
 * G3  It runs no hook, filter or submodule of what it fetches, and makes no symbolic links.
 * G4  Every run has a deadline, a signal and a cap on what it prints; what it says never reaches anyone unredacted.
 * G5  What a commit would write is counted before it is written, and refused where it is too much.
 */
import { lstat, mkdir, readdir, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { runGit } from '../../../files/git/program.ts'
import type { RemoteSource } from '../../../files/pack-source.ts'
import { type Tagged, tagVersion } from '../../../files/pack-version.ts'
import { PACK_LIMITS, type TreeLimits } from '../../../files/tree.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { BriefResult, Environment } from '../../../kernel/processes.ts'
import type { HostAccess } from './credentials.ts'
import { tooMuch } from './tree-count.ts'

export interface GitAccess extends HostAccess {
  readonly addresses: readonly string[]
  readonly signal: AbortSignal
}

export interface RemoteRefs {
  /** Undefined for an empty repository. */
  readonly head: string | undefined
  readonly tags: readonly Tagged[]
}

/** Why git failed, in words without anything secret. */
export class GitError extends Error {
  readonly reason: 'missing' | 'credentials' | 'untrusted_host' | 'not_found' | 'timeout' | 'too_large' | 'failed'

  constructor(reason: GitError['reason'], message: string) {
    super(message)
    this.name = 'GitError'
    this.reason = reason
  }
}

export interface GitDeps {
  readonly env: Environment
  readonly clock: Clock
  /** Bytes that one repository may take; 512 MiB where absent. */
  readonly maxBytes?: number
  /** What a checkout may write; `PACK_LIMITS` where absent. */
  readonly limits?: TreeLimits
}

const LIST_MS = 60_000
const FETCH_MS = 480_000
const CLONE_MS = 1_080_000
const LOCAL_MS = 120_000
const MAX_OUTPUT = 8 * 1024 * 1024
/** Room for the names of as many files as a pack may have. */
const MAX_LISTING = 16 * 1024 * 1024
/** The first git that pins a connection to addresses (`http.curloptResolve`): older ones pass over the setting. */
const OLDEST = [2, 37] as const
const MAX_REPOSITORY = 512 * 1024 * 1024
const WATCH_MS = 500

export class Git {
  readonly #deps: GitDeps
  /** It has been looked at, and is new enough. */
  #isNew = false

  constructor(deps: GitDeps) {
    this.#deps = deps
  }

  /** Tags that are versions, and the commit of the default branch. */
  async refs(remote: RemoteSource, access: GitAccess): Promise<RemoteRefs> {
    const result = await this.#remote(
      ['ls-remote', '--', remote.repository, 'HEAD', 'refs/tags/*'],
      remote,
      access,
      LIST_MS,
    )
    if (result.truncated) throw new GitError('too_large', 'the repository has too many tags')
    return readRefs(result.stdout)
  }

  /** Makes `dir`, which must not exist, a checkout of exactly `commit`; without symbolic links, and with no `.git`. */
  async checkout(
    remote: RemoteSource,
    commit: string,
    tag: string | undefined,
    dir: string,
    access: GitAccess,
  ): Promise<void> {
    await this.#local(['init', '--quiet', '--', dir], '/', access.signal)
    await this.#fetch(remote, commit, tag, dir, access)
    await this.#refuseTooMuch(commit, dir, access.signal)
    await keepBytes(dir)
    await this.#local(['checkout', '--quiet', '--detach', '--force', commit], dir, access.signal)
    const head = (await this.#local(['rev-parse', '--verify', 'HEAD^{commit}'], dir, access.signal)).stdout.trim()
    if (head !== commit) throw new GitError('failed', 'the checkout is not the commit that was asked for')
    const status = await this.#local(['status', '--porcelain', '--untracked-files=all'], dir, access.signal)
    if (status.stdout.trim() !== '') throw new GitError('failed', 'the checkout does not match its commit')
  }

  /** Makes `dir`, which is empty, a working copy with the whole history, for people and agents to work in. */
  async clone(remote: RemoteSource, dir: string, access: GitAccess): Promise<void> {
    // Links are links here: what is cloned is somebody's project, not a part of the configuration.
    const args = [
      '-c',
      'core.symlinks=true',
      'clone',
      '--quiet',
      '--no-recurse-submodules',
      '--origin=origin',
      '--',
      remote.repository,
      '.',
    ]
    await this.#remote(args, remote, access, CLONE_MS, dir)
  }

  /** The cheapest way first: one commit, by tag or id; servers that cannot do that are asked for everything. */
  async #fetch(
    remote: RemoteSource,
    commit: string,
    tag: string | undefined,
    dir: string,
    access: GitAccess,
  ): Promise<void> {
    const base = ['fetch', '--quiet', '--no-recurse-submodules', '--no-write-fetch-head', '--no-auto-maintenance']
    const wanted = tag === undefined ? commit : `+refs/tags/${tag}:refs/tags/${tag}`
    try {
      await this.#remote(
        [...base, '--no-tags', '--depth=1', '--', remote.repository, wanted],
        remote,
        access,
        FETCH_MS,
        dir,
      )
      if (await this.#has(commit, dir, access.signal)) return
    } catch (error) {
      if (!(error instanceof GitError) || error.reason !== 'failed') throw error
    }
    await this.#remote(
      [...base, '--tags', '--', remote.repository, '+refs/heads/*:refs/remotes/origin/*'],
      remote,
      access,
      FETCH_MS,
      dir,
    )
    if (!(await this.#has(commit, dir, access.signal)))
      throw new GitError('not_found', 'the repository has no such commit')
  }

  async #refuseTooMuch(commit: string, dir: string, signal: AbortSignal): Promise<void> {
    const args = ['ls-tree', '-r', '-l', '-z', '--full-tree', commit]
    const listed = await this.#run(args, dir, {}, LOCAL_MS, signal, { endAt: MAX_LISTING })
    const { limits = PACK_LIMITS } = this.#deps
    const why = listed.truncated
      ? `the pack has more than ${limits.entries} files, or endlessly nested ones`
      : tooMuch(succeeded(listed, signal).stdout, limits)
    if (why !== undefined) throw new GitError('too_large', why)
  }

  async #has(commit: string, dir: string, signal: AbortSignal): Promise<boolean> {
    const { outcome, code } = await this.#run(['cat-file', '-e', `${commit}^{commit}`], dir, {}, LOCAL_MS, signal)
    return outcome === 'exited' && code === 0
  }

  async #local(args: readonly string[], cwd: string, signal: AbortSignal): Promise<BriefResult> {
    return succeeded(await this.#run(args, cwd, {}, LOCAL_MS, signal), signal)
  }

  async #remote(
    args: readonly string[],
    remote: RemoteSource,
    access: GitAccess,
    timeoutMs: number,
    dir?: string,
  ): Promise<BriefResult> {
    if (remote.transport !== 'ssh') await this.#refuseOld(access.signal)
    const { env, config, secret } = remoteSettings(remote, access)
    const size = this.#watchSize(dir, access.signal)
    try {
      const result = await this.#run([...config, ...args], dir ?? '/', env, timeoutMs, size.signal, { secret })
      if (size.exceeded()) throw new GitError('too_large', 'the repository is too large for a pack')
      return succeeded(result, access.signal, (stderr) => classified(stderr, remote, access))
    } finally {
      size.stop()
    }
  }

  /** A git that would connect wherever a name leads is none that may be used. */
  async #refuseOld(signal: AbortSignal): Promise<void> {
    if (this.#isNew) return
    const { stdout } = succeeded(await this.#run(['--version'], '/', {}, LOCAL_MS, signal), signal)
    const [major = 0, minor = 0] = (/\d+\.\d+/.exec(stdout)?.[0] ?? '').split('.').map(Number)
    if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
      throw new GitError('missing', `git ${OLDEST.join('.')} or later is needed, here is ${major}.${minor}`)
    this.#isNew = true
  }

  async #run(
    args: readonly string[],
    cwd: string,
    env: Readonly<Record<string, string>>,
    timeoutMs: number,
    signal: AbortSignal,
    { endAt, secret }: { readonly endAt?: number; readonly secret?: string | undefined } = {},
  ): Promise<BriefResult> {
    const done = await runGit(this.#deps, args, {
      env: { ...QUIET, ...env },
      settings: SAFE,
      cwd,
      timeoutMs,
      signal,
      maxBytes: endAt ?? MAX_OUTPUT,
      endAtMax: endAt !== undefined,
      secret,
    })
    if (done === undefined) throw new GitError('missing', 'the program `git` is not installed')
    return done
  }

  /** Ends a download that outgrows the limit: git itself has none. */
  #watchSize(dir: string | undefined, signal: AbortSignal) {
    const aborter = new AbortController()
    let over = false
    let cancel = () => {}
    const look = async (): Promise<void> => {
      if (dir === undefined) return
      over ||= (await sizeOf(dir)) > (this.#deps.maxBytes ?? MAX_REPOSITORY)
      if (over) aborter.abort()
      else cancel = this.#deps.clock.after(WATCH_MS, () => void look().catch(() => {}))
    }
    cancel = this.#deps.clock.after(WATCH_MS, () => void look().catch(() => {}))
    return { signal: AbortSignal.any([signal, aborter.signal]), exceeded: () => over, stop: () => cancel() }
  }
}

// Settings that win over whatever a repository brings.
const SAFE = [
  'core.symlinks=false',
  'core.autocrlf=false',
  'core.askPass=',
  'credential.helper=',
  'init.defaultBranch=main',
  'init.templateDir=',
  'advice.detachedHead=false',
  'gc.auto=0',
  'submodule.recurse=false',
  'protocol.allow=never',
  'protocol.https.allow=always',
  'protocol.http.allow=always',
  'protocol.ssh.allow=always',
  'http.followRedirects=false',
  'http.proxy=',
  'http.lowSpeedLimit=1',
  'http.lowSpeedTime=60',
] as const

const QUIET = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ASKPASS: '/bin/false',
  SSH_ASKPASS: '/bin/false',
  SSH_ASKPASS_REQUIRE: 'never',
  GIT_ALLOW_PROTOCOL: 'https:http:ssh',
  GIT_PROTOCOL_FROM_USER: '0',
  GIT_LFS_SKIP_SMUDGE: '1',
  GIT_CEILING_DIRECTORIES: '/',
} as const

interface RemoteSettings {
  readonly env: Readonly<Record<string, string>>
  readonly config: readonly string[]
  readonly secret?: string
}

/** What pins a connection to the vetted addresses, and what logs in. */
function remoteSettings({ transport, host, port }: RemoteSource, access: GitAccess): RemoteSettings {
  const { addresses, login, caFile } = access
  if (transport === 'ssh')
    return { env: { GIT_SSH_COMMAND: sshCommand(host, port, access), GIT_SSH_VARIANT: 'ssh' }, config: [] }
  const shown = addresses.map((address) => (address.includes(':') ? `[${address}]` : address)).join(',')
  const config = [
    // A literal address is its own pin.
    ...(isIP(host) === 0 ? [`http.curloptResolve=${host}:${port}:${shown}`] : []),
    ...(caFile === undefined ? [] : [`http.sslCAInfo=${caFile}`]),
    ...(login?.kind === 'basic' ? [`credential.helper=${FROM_PIPE}`] : []),
  ].flatMap((setting) => ['-c', setting])
  if (login?.kind !== 'basic') return { env: {}, config }
  return { env: {}, config, secret: `username=${login.username}\npassword=${login.secret}\n` }
}

/**
 * Git asks a helper once the server wants a login, and the helper reads it from a pipe that it has from us: arguments and
 * environments can be read in /proc, and files are left behind by a crash.
 */
const FROM_PIPE = '!f() { test "$1" = get && cat <&3; }; f'

function sshCommand(host: string, port: number, { addresses, login, knownHostsFile }: GitAccess): string {
  const options = [
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    'UpdateHostKeys=no',
    'ClearAllForwardings=yes',
    'ProxyCommand=none',
    'ConnectTimeout=20',
    `HostName=${addresses[0] ?? host}`,
    // As known_hosts names it: the alias is taken as it is, and knows no port of its own.
    `HostKeyAlias=${port === SSH_PORT ? host : `[${host}]:${port}`}`,
    ...(knownHostsFile === undefined ? [] : [`UserKnownHostsFile="${knownHostsFile}"`]),
  ]
  const user = login?.kind === 'ssh_key' && login.username !== undefined ? ['-o', `User=${login.username}`] : []
  const key = login?.kind === 'ssh_key' ? [...user, '-o', 'IdentitiesOnly=yes', '-i', login.file] : []
  return ['ssh', '-F', 'none', ...options.flatMap((option) => ['-o', option]), ...key].map(shellQuoted).join(' ')
}

const SSH_PORT = 22

const shellQuoted = (text: string): string =>
  /^[\w=./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

function readRefs(text: string): RemoteRefs {
  let head: string | undefined
  const commits = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, commit, ref] = /^([0-9a-f]{40,64})\t(.+)$/.exec(line) ?? []
    if (commit === undefined || ref === undefined) continue
    if (ref === 'HEAD') head = commit
    // An annotated tag comes twice; the peeled line, which is the commit, comes last.
    else if (ref.startsWith('refs/tags/')) commits.set(ref.slice('refs/tags/'.length).replace(/\^\{\}$/, ''), commit)
  }
  const tags = [...commits].flatMap(([tag, commit]) => {
    const version = tagVersion(tag)
    return version === undefined ? [] : [{ tag, version, commit }]
  })
  return { head, tags }
}

function succeeded(
  result: BriefResult,
  signal: AbortSignal,
  explain: (stderr: string) => GitError = () => new GitError('failed', 'git could not read the repository'),
): BriefResult {
  signal.throwIfAborted()
  if (result.outcome === 'exited' && result.code === 0) return result
  if (result.outcome === 'timed_out') throw new GitError('timeout', 'git took too long')
  if (result.outcome === 'failed') throw new GitError('failed', 'git could not be started')
  throw explain(result.stderr)
}

type Say = (remote: RemoteSource, access: GitAccess) => string

const IN_FILE = '`credentials.toml` of the supervisor'
const lookedUp = ({ host, port }: RemoteSource): string =>
  `compare what \`ssh-keyscan ${port === SSH_PORT ? '' : `-p ${port} `}${host}\` prints with what its owner says`

const SIGNS: readonly (readonly [pattern: RegExp, reason: GitError['reason'], say: Say])[] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED|Offending .* key in/i,
    'untrusted_host',
    (remote, { knownHostsFile }) =>
      `the ssh key of ${remote.host} is another than the known one: somebody may be in between; ${lookedUp(remote)}, then replace it in ${knownHostsFile === undefined ? '~/.ssh/known_hosts' : '`known_hosts_file`'}`,
  ],
  [
    /Host key verification failed/i,
    'untrusted_host',
    (remote, { knownHostsFile }) =>
      `the ssh key of ${remote.host} is not known: ${lookedUp(remote)}, then add it to ${knownHostsFile === undefined ? `~/.ssh/known_hosts, or name a \`known_hosts_file\` in ${IN_FILE}` : '`known_hosts_file`'}`,
  ],
  [
    /could not read (?:Username|Password)|Authentication failed|terminal prompts disabled|Permission denied|HTTP 40[13]|error: 40[13]/i,
    'credentials',
    ({ host, transport }, { login }) =>
      login === undefined
        ? `${host} asks for credentials: put a [[credential]] with \`match = "${host}"\` and \`${transport === 'ssh' ? 'ssh_key_file' : 'token_file'}\` into ${IN_FILE}`
        : `${host} refuses the credentials that ${IN_FILE} names for it`,
  ],
  [
    /not found|does not exist|error: 404|does not appear to be a git repository/i,
    'not_found',
    () => 'there is no such repository',
  ],
  [/redirect|error: 30\d/i, 'failed', () => 'the server redirects elsewhere, which is not followed'],
  [/Could not resolve host/i, 'failed', () => 'the host cannot be resolved'],
  [
    /does not match target host ?name|no alternative certificate subject name/i,
    'untrusted_host',
    ({ host }) => `the certificate of ${host} is for another name: use the name that it is for`,
  ],
  [
    /certificate has expired|expired certificate/i,
    'untrusted_host',
    ({ host }) => `the certificate of ${host} has expired`,
  ],
  [
    /certificate|SSL|TLS/i,
    'untrusted_host',
    ({ host }, { caFile }) =>
      `the certificate of ${host} is not accepted: ${caFile === undefined ? `where its issuer is one of your own, name it as \`ca_file\` of a [[credential]] in ${IN_FILE}` : 'it is not of those who `ca_file` names, or has expired'}`,
  ],
  [/Connection refused|Failed to connect|timed? ?out|unreachable/i, 'failed', () => 'the host cannot be reached'],
]

/** What git says may quote the URL or an answer of the server: only what we recognise is passed on, in our words. */
function classified(stderr: string, remote: RemoteSource, access: GitAccess): GitError {
  const found = SIGNS.find(([pattern]) => pattern.test(stderr))
  return found === undefined
    ? new GitError('failed', 'git could not read the repository')
    : new GitError(found[1], found[2](remote, access))
}

/** No attribute of the repository turns its files into others, or into more: what is written is what was counted. */
async function keepBytes(dir: string): Promise<void> {
  const info = join(dir, '.git', 'info')
  await mkdir(info, { recursive: true })
  await writeFile(join(info, 'attributes'), '* -text -ident -filter -working-tree-encoding\n')
}

async function sizeOf(dir: string): Promise<number> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => [])
  let size = 0
  for (const entry of entries) {
    if (entry.isFile()) size += (await lstat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0
  }
  return size
}

/**
 * `endpoint.json` of the running supervisor. What it says is believed only where nobody else can have written it and the
 * process that it names lives: a port that its server has left may be somebody else's by now, and would get the token.
 */
import { lstatSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isRecord } from '../../client/problems.ts'
import { EXIT, Failure } from './failure.ts'
import type { Io } from './io.ts'

export interface EndpointFile {
  readonly path: string
  readonly url: string
  readonly token: string | undefined
}

/** The directory of the supervisor that is meant: `SVC_HOME`, else `~/.svc`. */
export const homeOf = ({ env, home, cwd }: Pick<Io, 'env' | 'cwd' | 'home'>): string =>
  resolve(cwd, env['SVC_HOME'] || join(home, '.svc'))

/** Undefined: there is none. */
export function readEndpointFile(world: Pick<Io, 'env' | 'cwd' | 'home'>): EndpointFile | undefined {
  const path = join(homeOf(world), 'endpoint.json')
  let text: string
  try {
    refuseForeign(path)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Failure) throw error
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined
    throw discoveryFailure(`${path}: ${error instanceof Error ? error.message : 'unreadable'}`)
  }
  const { url, pid, process_start: start, token } = parse(path, text)
  if (typeof url !== 'string' || URL.parse(url) === null) throw discoveryFailure(`${path}: not {"url", …}`)
  if (!lives(pid, start)) throw discoveryFailure(`${path}: ${whyNotSeen(pid, world.env)}`)
  return { path, url: url.replace(/\/+$/, ''), token: typeof token === 'string' ? token : undefined }
}

/** A sandbox with processes of its own sees no supervisor, whether it runs or not. */
function whyNotSeen(pid: unknown, env: Io['env']): string {
  const isAgent = (env['SVC_SESSION_ID'] ?? '') !== ''
  if (!isAgent && sandboxIn(env) === undefined) return `the supervisor that wrote it, process ${pid}, has ended`
  return `cannot see the supervisor's process ${pid} from here (a sandbox?). Do not start another one: the agent's mode has to allow svcctl, see docs/guide/agents.md`
}

/** Marks of sandboxes that hide processes or the network. */
const sandboxIn = (env: Io['env']): string | undefined =>
  ['CODEX_SANDBOX', 'CODEX_SANDBOX_NETWORK_DISABLED', 'SANDBOX', 'container'].find((name) => (env[name] ?? '') !== '')

function parse(path: string, text: string): { readonly [key: string]: unknown } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (isRecord(value)) return value
  throw discoveryFailure(`${path}: not {"url", …}`)
}

/** Both must be ours and closed to everybody else; the file must be no link, which leads where its maker wants. */
function refuseForeign(path: string): void {
  const uid = process.getuid?.()
  if (uid === undefined) return
  const file = lstatSync(path)
  const places = [
    { name: path, found: file },
    { name: dirname(path), found: statSync(dirname(path)) },
  ]
  for (const { name, found } of places) {
    if (found.uid !== uid) throw discoveryFailure(`${name} belongs to another user (uid ${found.uid})`)
    if ((found.mode & 0o077) !== 0) throw discoveryFailure(`${name} is open to other users`)
  }
  if (!file.isFile()) throw discoveryFailure(`${path} is no regular file`)
}

/** A pid is reused; together with its start it is not. */
function lives(pid: unknown, start: unknown): boolean {
  if (typeof pid !== 'number' || !Number.isInteger(pid) || pid <= 0) return false
  if (typeof start !== 'string') return answersSignals(pid)
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the program stands in parentheses and may hold some itself; field 22 is the 20th after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] === start
  } catch {
    return false
  }
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

const discoveryFailure = (why: string): Failure =>
  new Failure(EXIT.unavailable, `could not discover the supervisor: ${why}`, {
    hint: 'start it with: svcctl serve, or name it with --api URL',
  })

/**
 * A hook of a harness: `svcctl session report --from <harness>` with the harness's JSON on its input.
 *
 * K1  It never fails and never says a word but the verdict of a permission: a harness shows what its hooks say, or stops.
 * K2  A report takes at most two seconds, also where there is no server; what could not be told is left beside the run,
 *     for the server to find when it is back, or has time (`missed-reports`).
 * K3  Who asks for leave waits as long as the harness lets it, over restarts of the server, under one id.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { findHooks } from '../../harnesses/all.ts'
import { discoverEndpoint } from '../base/discovery.ts'
import { nodeTransport } from '../base/transport.ts'
import { type HookInput, saidBy, verdictText } from './said.ts'

export interface HookWorld {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly home: string
  /** All of its input; it may be told too late that nothing more comes. */
  readonly input: () => Promise<string>
  readonly print: (text: string) => Promise<void>
  readonly now: () => number
}

const REPORT_MS = 2_000
/** Beyond this somebody else's program hangs, or there is no server at all. */
const ABSENT_MS = 30_000
const PAUSE_MS = 250
const MAX_MISSED = 65_536

export async function runHook(from: string, world: HookWorld): Promise<void> {
  try {
    await told(from, world)
  } catch {
    // K1
  }
}

async function told(from: string, world: HookWorld): Promise<void> {
  const { env, now } = world
  const at = now()
  const hooks = findHooks(from)
  const id = env['SVC_SESSION_ID']
  if (hooks === undefined || id === undefined || id === '' || !env['SVC_CITY']) return
  const input = parseInput(await world.input())
  const said = input === undefined ? undefined : saidBy(hooks, input)
  if (said === undefined) return
  const run = {
    ...(Number.isInteger(Number(env['SVC_RUNTIME_EPOCH'])) ? { generation: Number(env['SVC_RUNTIME_EPOCH']) } : {}),
    ...(env['SVC_INSTANCE_TOKEN'] ? { instance_token: env['SVC_INSTANCE_TOKEN'] } : {}),
  }
  if (said.kind === 'report') return report({ ...run, at: new Date(at).toISOString(), ...said.report }, world, at)
  const waitMs = (hooks.permissionSec ?? 0) * 1000
  const verdict = await permission({ ...run, ...said.request }, world, at + waitMs)
  const text = verdictText(said.event, String(verdict?.['decision']), textOf(verdict?.['reason']))
  if (text !== '') await world.print(text)
}

async function report(body: object, world: HookWorld, at: number): Promise<void> {
  const text = JSON.stringify(body)
  const left = Math.max(at + REPORT_MS - world.now(), 100)
  const status = await send('report', text, world, left).then(
    ({ status }) => status,
    () => undefined,
  )
  // A server that refuses it has heard it; one that is starting or stopping has not.
  if (status === undefined || status >= 500 || status === 404) leaveBehind(text, world)
}

function leaveBehind(text: string, { env }: HookWorld): void {
  const { SVC_CITY_RUNTIME_DIR: root, SVC_SESSION_ID: id, SVC_RUNTIME_EPOCH: generation } = env
  if (!root || !id || !generation) return
  const file = openSync(join(root, 'sessions', id, generation, 'missed-reports'), 'a', 0o600)
  try {
    const line = Buffer.from(`${text}\n`)
    if (fstatSync(file).size + line.length <= MAX_MISSED) writeSync(file, line)
  } finally {
    closeSync(file)
  }
}

/** K3. Undefined: nobody has decided. */
async function permission(request: object, world: HookWorld, until: number): Promise<HookInput | undefined> {
  const id = `hook-${randomBytes(12).toString('hex')}`
  let heard = world.now()
  while (world.now() < Math.min(until, heard + ABSENT_MS)) {
    const left = until - world.now()
    const text = JSON.stringify({ ...request, request_id: id, timeout: `${Math.max(left, 0)}ms` })
    const began = world.now()
    const answer = await send('permission', text, world, left + PAUSE_MS).catch(() => undefined)
    if (answer?.status === 200) return answer.body
    // Refused for good: the run is over, or may not ask.
    if (answer !== undefined && answer.status < 500 && answer.status !== 404 && answer.status !== 429) return undefined
    if (answer === undefined && world.now() - began > PAUSE_MS) heard = world.now()
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return undefined
}

async function send(
  what: 'report' | 'permission',
  body: string,
  { env, cwd, home }: HookWorld,
  withinMs: number,
): Promise<{ readonly status: number; readonly body: HookInput | undefined }> {
  // Each time anew: a server that was started again listens elsewhere, under another token.
  const { url, token } = discoverEndpoint({ env, cwd, home }, { api: undefined, token: undefined })
  const path = `/v0/city/${encodeURIComponent(env['SVC_CITY'] ?? '')}/sessions/${encodeURIComponent(env['SVC_SESSION_ID'] ?? '')}/${what}`
  const answer = await nodeTransport(`${url}${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-SVC-Request': 'svcctl',
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    body,
    signal: AbortSignal.timeout(withinMs),
  })
  return { status: answer.status, body: parseInput(await answer.text()) }
}

function parseInput(text: string): HookInput | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

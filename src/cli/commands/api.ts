/** `svcctl api`: any request of the API, with discovery, credentials and the headers that mutations need. */

import { type Answer, isJson } from '../../client/client.ts'
import { ApiProblem, isRecord } from '../../client/problems.ts'
import { ROUTES } from '../../client/routes.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import { type Context, REQUEST_TIMEOUT_MS } from '../base/context.ts'
import { EXIT, exitCodeOf, usageError } from '../base/failure.ts'
import { parseTimeout } from '../framework/accepted.ts'
import { readData } from '../framework/fields.ts'

interface Call {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

async function run(context: Context, input: Input): Promise<number> {
  const timeoutMs = await parseTimeout(input, REQUEST_TIMEOUT_MS)
  const call = await readCall(context, input)
  if (input.on('paginate') && call.method !== 'GET') throw usageError('--paginate is for GET')
  let path: string | undefined = call.path
  let exitCode: number = EXIT.ok
  while (path !== undefined) {
    const answer = await perform(context, { ...call, path }, input.on('include'), timeoutMs)
    exitCode = answer.exitCode
    path = input.on('paginate') && answer.nextCursor !== undefined ? withCursor(path, answer.nextCursor) : undefined
  }
  return exitCode
}

async function readCall(context: Context, input: Input): Promise<Call> {
  const method = input.required('method').toUpperCase()
  if (!/^[A-Z]{1,20}$/.test(method)) throw usageError(`invalid method "${method}"`)
  const path = await fillCity(context, input.required('path'))
  const data = input.text('data')
  const body = data === undefined ? undefined : await readData(context.io, data)
  const given = input.texts('header').map(parseHeader)
  const names = new Set(given.map(([name]) => name))
  const defaults: [string, string][] = []
  if (body !== undefined) defaults.push(['content-type', 'application/json'])
  if (takesKey(method, path)) defaults.push(['idempotency-key', context.io.newKey()])
  return {
    method,
    path,
    body,
    headers: Object.fromEntries([...defaults.filter(([name]) => !names.has(name)), ...given]),
  }
}

/** A path, with or without its first slash; `{cityName}` stands for the city in scope. */
async function fillCity(context: Context, text: string): Promise<string> {
  if (/^https?:/.test(text)) throw usageError(`invalid path "${text}": the server is named with --api`)
  const path = text.startsWith('/') ? text : `/${text}`
  if (!path.includes('{cityName}')) return path
  using limit = context.within()
  return path.replaceAll('{cityName}', encodeURIComponent(await context.needCity(undefined, limit.signal)))
}

function parseHeader(text: string): [string, string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) throw usageError(`invalid --header "${text}": expected "name: value"`)
  return [name.toLowerCase(), value]
}

/** True where the contract has an Idempotency-Key on what is called. */
function takesKey(method: string, path: string): boolean {
  const bare = path.replace(/\?.*$/, '')
  return Object.values(ROUTES).some((route) => {
    if (route.method !== method || route.headers?.includes('Idempotency-Key') !== true) return false
    return new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(bare)
  })
}

interface Outcome {
  readonly exitCode: number
  readonly nextCursor: string | undefined
}

async function perform(context: Context, call: Call, include: boolean, timeoutMs: number): Promise<Outcome> {
  const client = await context.client()
  using limit = context.within(timeoutMs)
  const stopped = new AbortController()
  const signal = AbortSignal.any([context.io.signal, stopped.signal])
  limit.signal.addEventListener('abort', () => stopped.abort(limit.signal.reason), { once: true })
  const response = await client.send({ ...call, signal })
  if (include) await context.print.raw(headText(response))
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  // A stream may take as long as it likes; only its beginning was waited for.
  if (isStream) {
    limit[Symbol.dispose]()
    const reading = context.io.reading()
    reading.addEventListener('abort', () => stopped.abort(reading.reason), { once: true })
  }
  if (!response.ok && !include) throw new ApiProblem(response.status, response.headers, await response.text())
  if (isStream || !isJson(response.headers)) {
    try {
      for await (const chunk of response.body ?? []) await context.print.raw(chunk)
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
    return { exitCode: response.ok ? EXIT.ok : exitCodeOf(response.status), nextCursor: undefined }
  }
  const text = await response.text()
  await context.print.text({ text: `${text.trimEnd()}\n`, json: text })
  return { exitCode: response.ok ? EXIT.ok : exitCodeOf(response.status), nextCursor: nextCursorOf(text) }
}

const headText = (response: Answer): string =>
  `HTTP ${response.status}\n${[...response.headers].map(([name, value]) => `${name}: ${value}\n`).join('')}\n`

function nextCursorOf(text: string): string | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return isRecord(body) && typeof body['next_cursor'] === 'string' ? body['next_cursor'] : undefined
  } catch {
    return undefined
  }
}

function withCursor(path: string, cursor: string): string {
  const [bare = '', query = ''] = path.split('?', 2)
  const search = new URLSearchParams(query)
  search.set('cursor', cursor)
  return `${bare}?${search}`
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['api'],
    operations: [],
    summary: 'Any request of the API, with credentials',
    description: 'Prints the body. X-SVC-Request is added to mutations, Idempotency-Key where the operation takes one.',
    arguments: [
      { name: '<method>', description: 'GET, POST, PUT, PATCH or DELETE.' },
      { name: '<path>', description: 'For example /v0/cities; `{cityName}` stands for the city in scope.' },
    ],
    flags: [
      { flags: '-d, --data <data>', description: 'Body: JSON, @FILE, or - for stdin.' },
      { flags: '-H, --header <header>', description: 'A header, `name: value`; repeatable.', repeatable: true },
      { flags: '-i, --include', description: 'Print status and headers too, and the body of an error.' },
      { flags: '--paginate', description: 'Go on to the last page; one body a line.' },
      {
        flags: '--timeout <duration>',
        description: 'How long an answer may take (default: 30s); streams are not limited.',
      },
    ],
    examples: [
      { line: 'svcctl api GET /v0/cities', does: 'the list of cities as the API has it' },
      {
        line: `svcctl api POST '/v0/city/{cityName}/events' -d '{"type":"x.y","actor":"me"}'`,
        does: 'append an event to the city in scope',
      },
      { line: 'svcctl api GET /v0/events/stream', does: 'the bytes of a stream' },
    ],
    run,
  },
]

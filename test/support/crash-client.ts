/** A plain HTTP client that knows one thing more than others: an answer that never came may still have been acted on. */
export { eventually } from './eventually.ts'

export type Fields = { readonly [key: string]: unknown }

export interface Answered {
  readonly status: number
  readonly body: Fields
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {})
const itemsOf = (body: Fields): readonly Fields[] =>
  Array.isArray(body['items']) ? body['items'].filter(isFields) : []

/** The answer, or undefined where the connection broke before it was complete. */
export async function tryCall(
  url: string,
  method: string,
  path: string,
  { body, key, signal }: { readonly body?: object; readonly key?: string; readonly signal?: AbortSignal } = {},
): Promise<Answered | undefined> {
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(signal === undefined ? {} : { signal }),
      headers: {
        ...(method === 'GET' ? {} : { 'X-SVC-Request': 'test' }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(key === undefined ? {} : { 'Idempotency-Key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: fieldsOf(await response.json()) }
  } catch {
    return undefined
  }
}

export async function call(
  url: string,
  method: string,
  path: string,
  options: { readonly body?: object; readonly key?: string } = {},
): Promise<Answered> {
  const answer = await tryCall(url, method, path, options)
  if (answer === undefined) throw new Error(`${method} ${path}: no answer`)
  return answer
}

/** All items of a list, page by page. */
export async function listAll(url: string, path: string): Promise<readonly Fields[]> {
  const items: Fields[] = []
  for (let cursor = ''; ; ) {
    const joint = path.includes('?') ? '&' : '?'
    const page = await call(
      url,
      'GET',
      `${path}${joint}limit=1000${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    )
    if (page.status !== 200) throw new Error(`${path}: ${page.status} ${JSON.stringify(page.body)}`)
    if (page.body['partial'] === true)
      throw new Error(`${path} is partial: ${JSON.stringify(page.body['partial_errors'])}`)
    items.push(...itemsOf(page.body))
    cursor = String(page.body['next_cursor'] ?? '')
    if (cursor === '') return items
  }
}

export interface Frame {
  readonly id: string
  readonly event: string
  readonly data: Fields
}

/**
 * Reads a stream until it ends or breaks; only whole frames count. Resolves with the status, 0 where nothing answered.
 */
export async function readStream(
  url: string,
  path: string,
  lastEventId: string,
  signal: AbortSignal,
  onFrame: (frame: Frame) => void,
): Promise<number> {
  let status = 0
  try {
    const response = await fetch(`${url}${path}`, { headers: { 'Last-Event-ID': lastEventId }, signal })
    status = response.status
    if (status !== 200 || response.body === null) {
      await response.body?.cancel()
      return status
    }
    let text = ''
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      text += chunk
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) onFrame(parseFrame(frame))
    }
  } catch (error) {
    // Broken by a kill, or ended by the test; what the reader itself found wrong is no such thing.
    if (error instanceof FrameError) throw error
  }
  return status
}

/** What a reader throws to fail its test. */
export class FrameError extends Error {}

function parseFrame(text: string): Frame {
  const fields = new Map(
    text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  const data: unknown = JSON.parse(fields.get('data') ?? 'null')
  return { id: fields.get('id') ?? '', event: fields.get('event') ?? '', data: fieldsOf(data) }
}

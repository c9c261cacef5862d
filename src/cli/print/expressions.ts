/**
 * What `-o yaml`, `-o jsonpath=` and `-o template=` make of data. Each library is loaded when it is asked for: most
 * commands need none of them.
 */
import { LayoutError } from './format.ts'

/** Data as text. */
export type Render = (data: unknown) => string

/** YAML that readers of 1.1 and of 1.2 take for the same: `no` and `012` stay text. */
export async function yamlRender(): Promise<Render> {
  const { stringify } = await import('yaml')
  return (data) => stringify(data, { version: '1.1', lineWidth: 0 })
}

/**
 * A template of Liquid, the language of prompts, so that there is one to learn; `{{.id}}`, as other tools write it, is
 * `{{id}}`. What an item does not have is empty. No files can be included.
 */
export async function templateRender(text: string): Promise<Render> {
  const { Liquid } = await import('liquidjs')
  const engine = new Liquid({ templates: {}, ownPropertyOnly: true, strictFilters: true })
  try {
    const template = engine.parse(unescaped(text))
    return (data) => String(engine.renderSync(template, Object(data)))
  } catch (error) {
    throw new LayoutError(`invalid -o template: ${sentenceOf(error)}`, "for example: -o template='{{.id}} {{.title}}'")
  }
}

/** In single quotes a shell leaves `\t` and `\n` as they are. */
const unescaped = (text: string): string => text.replaceAll('\\n', '\n').replaceAll('\\t', '\t')

const sentenceOf = (error: unknown): string => (error instanceof Error ? (error.message.split('\n')[0] ?? '') : '')

type Query = (data: unknown, root: unknown) => readonly unknown[]
type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'values'; readonly query: Query }
  | { readonly kind: 'range'; readonly query: Query; readonly parts: readonly Part[] }

/**
 * Paths in braces between plain text, as `kubectl` writes them: `{.items[*].id}`, `{"\n"}`, `{range .items[*]}…{end}`.
 * Without any brace all of it is one path. The paths are those of RFC 9535.
 */
export async function jsonPathRender(text: string): Promise<Render> {
  const { query } = await import('jsonpath-rfc9535')
  const queryOf = (path: string): Query => {
    const absolute = path.startsWith('$')
    const standard = rfcPath(path)
    const ask = (data: unknown): readonly unknown[] => query(JSON.parse(JSON.stringify(data)), standard)
    try {
      ask(null)
    } catch {
      throw new LayoutError(
        `invalid path "${path}" in -o jsonpath`,
        "for example: -o jsonpath='{.items[?(@.status==\"open\")].id}'; names with other signs as ['a-b']",
      )
    }
    return (data, root) => ask(absolute ? root : data)
  }
  const parts = parseParts(tokensOf(text.includes('{') ? text : `{${text}}`), queryOf)
  return (data) => renderParts(parts, data, data)
}

function rfcPath(path: string): string {
  if (path === '.' || path === '@' || path === '$') return '$'
  if (path.startsWith('$')) return path
  const below = path.startsWith('@') ? path.slice(1) : path
  return /^[.[]/.test(below) ? `$${below}` : `$.${below}`
}

interface Token {
  readonly kind: 'text' | 'braces'
  readonly text: string
}

/** Braces hold quoted text or a path; a quoted brace closes nothing. */
function tokensOf(text: string): Token[] {
  const tokens = [...text.matchAll(/\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}|([^{}]+)/gs)]
  if (tokens.map(([whole]) => whole).join('') !== text)
    throw new LayoutError(`invalid -o jsonpath: a brace or a quote is not closed in ${text}`)
  return tokens.map(([whole, inside]) =>
    inside === undefined ? { kind: 'text', text: unescaped(whole) } : { kind: 'braces', text: inside.trim() },
  )
}

function parseParts(tokens: Token[], queryOf: (path: string) => Query, isInRange = false): readonly Part[] {
  const parts: Part[] = []
  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    const { kind, text } = token
    if (kind === 'braces' && text === 'end') {
      if (isInRange) return parts
      throw new LayoutError('invalid -o jsonpath: {end} without {range}')
    }
    const range = /^range\s+(.+)$/s.exec(text)?.[1]
    if (kind === 'text') parts.push({ kind: 'text', text })
    else if (/^["']/.test(text)) parts.push({ kind: 'text', text: quoted(text) })
    else if (range === undefined) parts.push({ kind: 'values', query: queryOf(text) })
    else parts.push({ kind: 'range', query: queryOf(range), parts: parseParts(tokens, queryOf, true) })
  }
  if (isInRange) throw new LayoutError('invalid -o jsonpath: {range} without {end}')
  return parts
}

const quoted = (text: string): string =>
  unescaped(text.slice(1, -1)).replaceAll(/\\(["'\\])/g, (_, letter: string) => letter)

const renderParts = (parts: readonly Part[], data: unknown, root: unknown): string =>
  parts.map((part) => renderPart(part, data, root)).join('')

function renderPart(part: Part, data: unknown, root: unknown): string {
  if (part.kind === 'text') return part.text
  const found = part.query(data, root)
  if (part.kind === 'range') return found.map((one) => renderParts(part.parts, one, root)).join('')
  return found.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join(' ')
}

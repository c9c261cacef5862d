/** `packs.lock`: the exact commit and content of every pack from git. Written by us, kept in version control. */
import {
  isPlainList,
  isPlainTable,
  type PlainTable,
  type PlainValue,
  readPlainToml,
  TomlError,
} from '../../../files/toml.ts'

/** What one source is pinned to. */
export interface Pin {
  /** Normal form of the source, with the directory inside the repository. */
  readonly source: string
  /** Tag, or `sha:<commit>` where a commit was asked for. */
  readonly version: string
  readonly commit: string
  /** `sha256:<hex>` over the whole checkout. */
  readonly contentHash: string
  readonly subpath: string
  /** RFC 3339. */
  readonly fetched: string
}

export const LOCK_FILE = 'packs.lock'
const SCHEMA = 1
const HEADER =
  '# Written by svcctl: which commit of each pack from git this city is made of. Keep it in version control.\n'

export class LockError extends Error {}

/** Pins in the order of their sources. One source may have several: rigs may pin apart what cannot be reconciled. */
export function parseLock(text: string): readonly Pin[] {
  const top = readToml(text)
  if (top.schema !== SCHEMA)
    throw new LockError(`packs.lock has schema ${String(top.schema)}, this version reads ${SCHEMA}`)
  const packs = top.packs ?? {}
  if (!isPlainTable(packs)) throw new LockError('packs.lock: `packs` is not a table')
  return Object.entries(packs).flatMap(([source, value]) =>
    (isPlainList(value) ? value : [value]).map((entry) => toPin(source, entry)),
  )
}

function readToml(text: string): PlainTable {
  try {
    return readPlainToml(text)
  } catch (error) {
    if (error instanceof TomlError) throw new LockError(`packs.lock is ${error.message}`)
    throw error
  }
}

function toPin(source: string, entry: PlainValue): Pin {
  if (!isPlainTable(entry)) throw new LockError('packs.lock: an entry is not a table')
  const text = (key: string): string => {
    const value = entry[key]
    if (typeof value === 'string') return value
    throw new LockError(`packs.lock: an entry has no \`${key}\``)
  }
  const pin = {
    source,
    version: text('version'),
    commit: text('commit'),
    contentHash: text('content_hash'),
    subpath: text('subpath'),
    fetched: text('fetched'),
  }
  if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(pin.commit)) throw new LockError('packs.lock: a `commit` is no commit id')
  if (!/^sha256:[0-9a-f]{64}$/.test(pin.contentHash)) throw new LockError('packs.lock: a `content_hash` is no hash')
  if (pin.subpath.split('/').includes('..')) throw new LockError('packs.lock: a `subpath` leads out of its repository')
  return pin
}

/** The text of a lock; undefined for no pins, which need no file. */
export function formatLock(pins: readonly Pin[]): string | undefined {
  if (pins.length === 0) return undefined
  const bySource = new Map<string, Pin[]>()
  for (const pin of sortPins(pins)) bySource.set(pin.source, [...(bySource.get(pin.source) ?? []), pin])
  const tables = [...bySource].flatMap(([source, entries]) =>
    entries.map((pin) => tableText(source, pin, entries.length > 1)),
  )
  return `${HEADER}schema = ${SCHEMA}\n\n${tables.join('\n')}`
}

export function sortPins(pins: readonly Pin[]): Pin[] {
  return [...pins].sort(
    (a, b) => compareText(a.source, b.source) || compareText(a.version, b.version) || compareText(a.commit, b.commit),
  )
}

/** Whether two pins mean the same content; when it was fetched does not matter. */
export function samePin(a: Pin, b: Pin): boolean {
  return a.source === b.source && a.version === b.version && a.commit === b.commit && a.contentHash === b.contentHash
}

function tableText(source: string, pin: Pin, several: boolean): string {
  const name = `packs.${quoted(source)}`
  const rows = [
    ['version', pin.version],
    ['commit', pin.commit],
    ['content_hash', pin.contentHash],
    ['subpath', pin.subpath],
    ['fetched', pin.fetched],
  ] as const
  return `${several ? `[[${name}]]` : `[${name}]`}\n${rows.map(([key, value]) => `${key} = ${quoted(value)}\n`).join('')}`
}

const quoted = (text: string): string => JSON.stringify(text)
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

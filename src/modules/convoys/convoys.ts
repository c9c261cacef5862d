/** What a convoy is, and what the family needs of the beads that convoys and their members are (sheet 03 §7). */
import type { Bead } from '../../contract/beads.ts'
import { CONVOY_TYPE, type Convoy, type ConvoyProgress, OWNED_LABEL } from '../../contract/convoys.ts'
import type { Tx } from '../../kernel/database.ts'
import { problem } from '../../kernel/problem.ts'

export type Reader = Pick<Tx, 'get' | 'all'>

export interface ConvoyDraft {
  readonly title: string
  readonly description: string | undefined
  readonly rig: string | undefined
  readonly labels: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly members: readonly string[]
}

export interface ConvoyChange {
  readonly title?: string
  readonly description?: string | null
  /** Null removes a key. */
  readonly metadata?: Readonly<Record<string, string | null>>
  readonly owned?: boolean
}

/** The beads of one city. Everything that changes one appends its events, and refuses as beads do. */
export interface ConvoyBeads {
  /** Those that exist, in the order asked, as clients see them; sees the write it is called in. */
  wire(ids: readonly string[]): readonly Bead[]
  /** As `wire`, without their edges, of which convoys have very many. */
  wireBare(ids: readonly string[]): readonly Bead[]
  create(tx: Tx, draft: ConvoyDraft, actor: string): string
  change(tx: Tx, id: string, change: ConvoyChange, actor: string): void
  /** One change of the convoy, however many members come. */
  track(tx: Tx, id: string, members: readonly string[], actor: string): void
  untrack(tx: Tx, id: string, members: readonly string[], actor: string): void
  close(tx: Tx, id: string, reason: string | undefined, actor: string): void
  /**
   * Deletes it; what it contained stays like all its other members. False where that is so much that only some of it has
   * left by now: then it is called again, in another write.
   */
  remove(tx: Tx, id: string, actor: string): boolean
}

/** Where the settings of a convoy are kept: metadata of its bead, by key. */
const SETTING_KEYS = {
  owner: 'convoy.owner',
  notify: 'convoy.notify',
  merge: 'convoy.merge',
  target: 'target',
  molecule: 'convoy.molecule',
} as const
type SettingName = keyof typeof SETTING_KEYS
const SETTING_NAMES = ['owner', 'notify', 'merge', 'target', 'molecule'] as const satisfies readonly SettingName[]

/** Settings as metadata: those that are said; null takes one away. */
export function settingsAsMetadata<V extends string | null>(
  settings: { readonly [N in SettingName]?: V | undefined },
): Record<string, V> {
  const metadata: Record<string, V> = {}
  for (const name of SETTING_NAMES) {
    const value = settings[name]
    if (value !== undefined) metadata[SETTING_KEYS[name]] = value
  }
  return metadata
}

export const isOwned = ({ labels }: Pick<Bead, 'labels'>): boolean => labels?.includes(OWNED_LABEL) ?? false

/** The convoy with this id, for an operation on it; 400 where the bead is something else (sheet 03 §7). */
export function needConvoy(beads: ConvoyBeads, id: string): Bead {
  const bead = findConvoy(beads, id)
  if (bead.issue_type === CONVOY_TYPE) return bead
  throw problem('invalid-request', `the bead ${id} is no convoy, it is a ${bead.issue_type}`, {
    errors: [{ location: 'path.id', message: 'is no convoy', value: id }],
  })
}

function findConvoy(beads: ConvoyBeads, id: string): Bead {
  const [bead] = beads.wireBare([id])
  if (bead === undefined) throw problem('convoy-not-found', `there is no convoy ${id}`)
  return bead
}

const NOTHING: ConvoyProgress = { total: 0, closed: 0 }

export function progressOf(reader: Reader, ids: readonly string[]): (id: string) => ConvoyProgress {
  const rows = reader.all(
    'SELECT id, total, closed FROM convoys WHERE id IN (SELECT value FROM json_each(?))',
    JSON.stringify(ids),
  )
  const known = new Map(rows.map((row) => [String(row.id), { total: Number(row.total), closed: Number(row.closed) }]))
  return (id) => known.get(id) ?? NOTHING
}

export const isComplete = ({ total, closed }: ConvoyProgress): boolean => total > 0 && closed === total

export function wireConvoy(bead: Bead, progress: ConvoyProgress): Convoy {
  const { metadata = {} } = bead
  const settings = SETTING_NAMES.flatMap((name) => {
    const value = metadata[SETTING_KEYS[name]]
    return value === undefined || value === '' ? [] : [[name, value] as const]
  })
  return {
    ...bead,
    ...Object.fromEntries(settings),
    owned: isOwned(bead),
    progress,
  }
}

/** The convoy with this id, as clients see it; 404 also where the bead is something else. */
export function readConvoy(reader: Reader, beads: ConvoyBeads, id: string): Convoy {
  const bead = findConvoy(beads, id)
  if (bead.issue_type !== CONVOY_TYPE)
    throw problem('convoy-not-found', `there is no convoy ${id}: the bead of this id is a ${bead.issue_type}`)
  return wireConvoy(bead, progressOf(reader, [id])(id))
}

/** Import speaks with the rights of its caller: what an agent may not say directly, no line says for it. */
import type { Caller } from '../../../kernel/caller.ts'
import type { BeadRecord } from '../store/record.ts'
import type { LineBead, LineComment } from './line.ts'

/** Columns of a claim that name who holds the bead. */
const HOLDERS = ['assignee', 'session_id', 'session_name'] as const

interface Line {
  readonly bead: LineBead
  /** The bead as it is here; undefined: it is new. */
  readonly record: BeadRecord | undefined
  /** Comments that the line adds or changes. */
  readonly comments: readonly LineComment[]
}

/** Why the token of an agent may not import this line; undefined where it may. */
export function forgery(caller: Caller, { bead, record, comments }: Line): string | undefined {
  if (caller.kind !== 'agent') return undefined
  const others = (name: string) => !caller.goesBy(name)
  const author = comments.find(({ author }) => author !== null && others(author))?.author
  if (author !== undefined) return refused('comments.author', author, caller.name)
  // A closed bead of elsewhere has the names of those who worked on it there.
  if (record === undefined && bead.columns.status !== 'in_progress') return undefined
  for (const field of HOLDERS) {
    const holder = bead.columns[field]
    if (holder !== null && holder !== '' && others(holder) && says(field, { bead, record, comments }))
      return refused(field, holder, caller.name)
  }
  return undefined
}

/** Whether a line makes the name in this column a holder. Whose turn it will be, everybody may say. */
function says(field: (typeof HOLDERS)[number], { bead, record }: Line): boolean {
  const isHeld = bead.columns.status === 'in_progress'
  if (field === 'assignee' && !isHeld) return false
  return bead.columns[field] !== record?.[field] || (isHeld && record.status !== 'in_progress')
}

const refused = (field: string, name: string | null, caller: string): string =>
  `${field}: this token is that of ${caller}, who cannot speak as ${name}; a person can import the line`

/** What is said about beads. */
import type { BeadComment } from '../../../contract/beads.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row, Tx } from '../../../kernel/database.ts'
import { ulid } from '../../../kernel/ids.ts'
import type { Reader } from './edges.ts'

export interface CommentDraft {
  readonly id?: string
  readonly author?: string | null
  readonly text: string
  readonly created_at: number
  readonly interchange?: string | null
}

const FIELDS = 'id, bead, author, text, created_at'

/** Writes a comment and nothing else; the caller says so in the bead's event. */
export function insertComment(tx: Tx, bead: string, draft: CommentDraft): BeadComment {
  const { author = null, text, created_at, interchange = null } = draft
  const id = draft.id ?? ulid(created_at).toLowerCase()
  tx.run(
    `INSERT INTO bead_comments (${FIELDS}, interchange) VALUES (?, ?, ?, ?, ?, ?)`,
    id,
    bead,
    author,
    text,
    created_at,
    interchange,
  )
  return toComment({ id, bead, author, text, created_at })
}

export const countComments = (reader: Reader, bead: string): number =>
  Number(reader.get('SELECT count(*) AS n FROM bead_comments WHERE bead = ?', bead)?.n ?? 0)

/** Oldest first, at most `limit`, from behind a time and an id. */
export function listComments(
  reader: Reader,
  bead: string,
  limit: number,
  [createdAt = Number.MIN_SAFE_INTEGER, from = '']: readonly [createdAt?: number, id?: string] = [],
): readonly BeadComment[] {
  return reader
    .all(
      `SELECT ${FIELDS} FROM bead_comments WHERE bead = ? AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`,
      bead,
      createdAt,
      from,
      limit,
    )
    .map(toComment)
}

function toComment(row: Row): BeadComment {
  const comment = {
    id: String(row.id),
    bead_id: String(row.bead),
    text: String(row.text),
    created_at: isoTime(Number(row.created_at)),
  }
  return row.author === null ? comment : { ...comment, author: String(row.author) }
}

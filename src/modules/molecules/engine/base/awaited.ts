/**
 * Types of events that gates wait for, in memory: of almost all events it is so known at no cost that none does.
 *
 * A1  It has every type that some gate waits for, from the commit on that lets the gate wait; and others for a while.
 * A2  What came before that commit is found by the look at older events that each gate begins with.
 */
import type { Database, Tx } from '../../../../kernel/database.ts'

export class Awaited {
  readonly #db: Pick<Database, 'all' | 'get'>
  #patterns: Set<string> | undefined

  constructor(db: Pick<Database, 'all' | 'get'>) {
    this.#db = db
  }

  add(tx: Tx, pattern: string): void {
    tx.afterCommit(() => this.#all().add(pattern))
  }

  /** Patterns that this type falls under, as far as some gate may wait for them. */
  patternsFor(type: string): readonly string[] {
    const all = this.#all()
    return all.size === 0 ? [] : patternsOf(type).filter((pattern) => all.has(pattern))
  }

  /** Some gate waits for events of this type. Not in a write. */
  has(type: string): boolean {
    const patterns = this.patternsFor(type)
    const left = patterns.filter((pattern) => this.#db.get(WAITING, pattern) !== undefined)
    for (const pattern of patterns) if (!left.includes(pattern)) this.#all().delete(pattern)
    return left.length > 0
  }

  #all(): Set<string> {
    this.#patterns ??= new Set(this.#db.all(ALL).map(({ event }) => String(event)))
    return this.#patterns
  }
}

const ALL = 'SELECT DISTINCT event FROM molecule_steps WHERE event IS NOT NULL'
const WAITING = 'SELECT 1 FROM molecule_steps WHERE event = ? LIMIT 1'

/** Patterns that a type falls under. */
function patternsOf(type: string): readonly string[] {
  const patterns = [type]
  for (let dot = type.indexOf('.'); dot > 0; dot = type.indexOf('.', dot + 1)) patterns.push(`${type.slice(0, dot)}.*`)
  return patterns
}

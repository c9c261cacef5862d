/**
 * What others see of the formulas and orders of a city: the port that the family of formulas fills. What is in it was
 * read from files at one moment; a look for the same name later may find another.
 */
import type { DocumentHome } from '../files/documents.ts'
import type { ConfigIssue } from '../files/issues.ts'
import type { OrderDefinition } from './order.ts'
import type { Plan } from './plan.ts'

/** The file of a formula or an order, and what is wrong with it. */
export interface CatalogDocument {
  readonly name: string
  readonly layer: DocumentHome['layer']
  /** Import that brings it; `layer` is `pack` then. */
  readonly pack?: string
  /** As issues show it. */
  readonly file: string
  /** Directory of the file, absolute: `SVC_FILE_DIR` of what it runs. */
  readonly dir: string
  /** SHA-256 (hex) of the bytes of the file. */
  readonly revision: string
  /** Nothing that has any of these is started. */
  readonly issues: readonly ConfigIssue[]
  /** Import that nobody has trusted yet: it is one of the issues then, and the answer is `untrusted_pack:`. */
  readonly untrusted?: string
}

export interface CatalogFormula extends CatalogDocument {
  /** Of the rig alone: its file is in a layer of the rig, or it is made of one that is. Absent: the same for the whole city. */
  readonly rig?: string
  /** SHA-256 (hex) of the plan, with everything that is inlined; of the file where it has none. */
  readonly hash: string
  /** Absent where there are issues. One without steps is extended, never started. */
  readonly plan?: Plan
}

export interface CatalogOrder extends CatalogDocument {
  /** Rig that it runs for; absent: the city. Both may have one of the same name. */
  readonly rig?: string
  /** As it is written. */
  readonly text: string
  /** Why its file cannot be read. */
  readonly unreadable?: string
  /** Absent where it cannot be told; there may be issues all the same. */
  readonly order?: OrderDefinition
}

/** Which formula of a city changed. */
export interface CatalogChange {
  readonly kind: 'formula' | 'order'
  readonly name: string
  readonly rig?: string
  readonly change: 'added' | 'changed' | 'removed'
}

export interface CatalogPort {
  /** As the layers of the rig, or those of the city, make it; undefined where no file has this name. */
  formula(name: string, rig?: string): CatalogFormula | undefined
  /** Everything that can be named there, by name; also what is not valid. */
  formulas(rig?: string): readonly CatalogFormula[]
  /** Of the city and of all rigs, by name and rig; also what is not valid. */
  orders(): readonly CatalogOrder[]
  /** Called behind each change, with what changed; returns the way to stop it. */
  onChange(listener: (changes: readonly CatalogChange[]) => void): () => void
}

/** What the command line knows of an operation: a row of the tables that are generated from the contract. */

/**
 * How text becomes a value. `words`: long text, itself, `@FILE` or `-`. `map`: KEY=VALUE, texts; `values`: KEY=VALUE, JSON
 * where it can be. `json`: JSON where it can be, `@FILE` or `-`. `object`: a JSON object, likewise.
 */
export type FieldKind = 'text' | 'words' | 'bool' | 'int' | 'time' | 'duration' | 'map' | 'values' | 'json' | 'object'

/** A field of the path, the query or the body. */
export interface FieldRow {
  readonly at: 'params' | 'query' | 'body'
  readonly kind: FieldKind
  readonly required?: true
  readonly many?: true
  readonly nullable?: true
  readonly choices?: readonly string[]
  readonly says?: string
}

export interface OperationRow {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly summary: string
  readonly description?: string
  readonly fields: Readonly<Record<string, FieldRow>>
  /** Its path has a city. */
  readonly city?: true
  /** Its answer comes in pages. */
  readonly paged?: true
  /** Fields of its query that no flag says, where it has a body too. */
  readonly asks?: readonly string[]
  /** It takes an Idempotency-Key. */
  readonly keyed?: true
  /** It takes If-Match. */
  readonly matches?: true
  /** What its 202 accepts. */
  readonly accepts?: string
  /** Its answer has `items`. */
  readonly lists?: true
}

export type Table<Ids extends string> = Readonly<Record<Ids, OperationRow>>

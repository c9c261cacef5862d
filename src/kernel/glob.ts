/**
 * Globs of configurations, matched against text that agents choose. The cost is at most length × pattern: a backtracking
 * expression of the same glob takes the square or the cube of the length, and the event loop with it.
 */

// `text`: `*` is any characters. `path`: `*` stops at `/`, `**` does not, and `**/` may also be nothing. `?` is one character.
export type GlobKind = 'text' | 'path'

export interface Glob {
  matches(text: string): boolean
}

type Token =
  | { readonly is: 'unit'; readonly code: number }
  | { readonly is: 'one' | 'run'; readonly slash: boolean }
  // `**/` of a path: nothing, or anything that ends in a slash.
  | { readonly is: 'directories' }

const SLASH = '/'.charCodeAt(0)

export function glob(pattern: string, kind: GlobKind = 'text'): Glob {
  const tokens = tokensOf(pattern, kind)
  // Without a star there is one way through; a fixed start refuses most texts at once.
  const fixed = tokens.findIndex((token) => token.is !== 'unit')
  const start = fixed === -1 ? pattern : pattern.slice(0, fixed)
  if (fixed === -1) return { matches: (text) => text === pattern }
  return { matches: (text) => text.startsWith(start) && new Walk(tokens, text).ends() }
}

export const globMatches = (pattern: string, text: string, kind: GlobKind = 'text'): boolean =>
  glob(pattern, kind).matches(text)

function tokensOf(pattern: string, kind: GlobKind): readonly Token[] {
  const isPath = kind === 'path'
  const parts = pattern.replace(/\*{2,}/g, '**').split(/(\*\*\/|\*\*|\*|\?)/)
  return parts.flatMap((part): Token[] => {
    if (part === '**/') return isPath ? [{ is: 'directories' }] : [{ is: 'run', slash: true }, unit(SLASH)]
    if (part === '**') return [{ is: 'run', slash: true }]
    if (part === '*') return [{ is: 'run', slash: !isPath }]
    if (part === '?') return [{ is: 'one', slash: !isPath }]
    return Array.from({ length: part.length }, (_, index) => unit(part.charCodeAt(index)))
  })
}

const unit = (code: number): Token => ({ is: 'unit', code })

/** One text's way through the tokens: all positions it may be at, moved on together unit by unit. */
class Walk {
  readonly #tokens: readonly Token[]
  readonly #text: string
  /** The round in which a position was entered last: each is entered once a round. */
  readonly #entered: Int32Array
  #positions: number[] = []

  constructor(tokens: readonly Token[], text: string) {
    this.#tokens = tokens
    this.#text = text
    this.#entered = new Int32Array(tokens.length + 1).fill(-1)
  }

  /** Whether the text ends at the end of the pattern. */
  ends(): boolean {
    this.#enter(0, 0)
    for (let index = 0; index < this.#text.length; index++) {
      const from = this.#positions
      this.#positions = []
      for (const position of from) this.#step(position, this.#text.charCodeAt(index), index + 1)
      if (this.#positions.length === 0) return false
    }
    return this.#positions.includes(this.#tokens.length)
  }

  #step(position: number, code: number, round: number): void {
    const token = this.#tokens[position]
    if (token === undefined) return
    if (token.is === 'unit') {
      if (token.code === code) this.#enter(position + 1, round)
      return
    }
    if (token.is === 'directories') {
      this.#stay(position, round)
      if (code === SLASH) this.#enter(position + 1, round)
      return
    }
    if (code === SLASH && !token.slash) return
    this.#enter(token.is === 'one' ? position + 1 : position, round)
  }

  /** At `position`, and at what follows where its token may be nothing. */
  #enter(position: number, round: number): void {
    if (!this.#stay(position, round)) return
    const token = this.#tokens[position]
    if (token?.is === 'run' || token?.is === 'directories') this.#enter(position + 1, round)
  }

  #stay(position: number, round: number): boolean {
    if (this.#entered[position] === round) return false
    this.#entered[position] = round
    this.#positions.push(position)
    return true
  }
}

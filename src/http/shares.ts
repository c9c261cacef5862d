/**
 * Places at something that has a bound for everybody: streams, requests to services.
 *
 * P1  The owner may take what is free.
 * P2  Anybody else has a share: one token, agent or service cannot take it all.
 * P3  All others together leave a tenth to the owner, who could not shut them out otherwise.
 */
export type Refusal = 'everybody' | 'caller'

export class Shares {
  readonly #max: number
  readonly #ofOthers: number
  readonly #taken = new Map<string, number>()
  #all = 0
  #others = 0

  constructor(max: number) {
    this.#max = max
    this.#ofOthers = Math.max(1, max - Math.ceil(max / 10))
  }

  get taken(): number {
    return this.#all
  }

  /** A share of the whole, at least one place. */
  part(of: number): number {
    return Math.max(1, Math.floor(this.#max / of))
  }

  /** Who has no place for `who`; undefined where there is one. `who` is undefined for the owner. */
  refusal(who: string | undefined, share: number): Refusal | undefined {
    if (this.#all >= this.#max) return 'everybody'
    if (who === undefined) return undefined
    return this.#others >= this.#ofOthers || this.of(who) >= share ? 'caller' : undefined
  }

  of(who: string): number {
    return this.#taken.get(who) ?? 0
  }

  take(who: string | undefined): void {
    this.#all++
    if (who === undefined) return
    this.#others++
    this.#taken.set(who, this.of(who) + 1)
  }

  leave(who: string | undefined): void {
    this.#all--
    if (who === undefined) return
    this.#others--
    const left = this.of(who) - 1
    if (left > 0) this.#taken.set(who, left)
    else this.#taken.delete(who)
  }
}

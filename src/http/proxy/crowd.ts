/**
 * Those that are under way, of which very many come and go. Not a Set: one that is emptied as fast as it fills makes a new table
 * every few dozen times, and each that has become old keeps alive all that was in the next ones, until all of the memory is
 * collected. Collecting was a third of the processor time of a request.
 */
export interface Member {
  /** Where it stands; -1 where it does not. */
  place: number
}

export class Crowd<T extends Member> {
  readonly #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  /** As they are now, in no order. */
  get all(): readonly T[] {
    return [...this.#members]
  }

  add(member: T): void {
    member.place = this.#members.length
    this.#members.push(member)
  }

  /** Does nothing where it is none of them. */
  remove(member: T): void {
    if (member.place < 0) return
    const last = this.#members.pop()
    if (last !== undefined && last !== member) {
      this.#members[member.place] = last
      last.place = member.place
    }
    member.place = -1
  }
}

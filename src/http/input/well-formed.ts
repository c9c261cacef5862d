/** Text that is text: JSON can escape half of a surrogate pair, which UTF-8 has no bytes for; it would be stored as another. */

const HALF_OF_A_PAIR = /\\u[dD][89a-fA-F]/

/** Throws SyntaxError where a name or a text of `value`, which was parsed from `source`, has half of a surrogate pair. */
export function refuseHalfPairs(source: string, value: unknown): void {
  if (!HALF_OF_A_PAIR.test(source)) return
  // No recursion: JSON may be deeper than the stack.
  const rest = [value]
  while (rest.length > 0) {
    const one = rest.pop()
    if (typeof one === 'string' && !one.isWellFormed()) throw new SyntaxError('a text has half of a surrogate pair')
    if (typeof one !== 'object' || one === null) continue
    for (const [name, part] of Object.entries(one)) rest.push(name, part)
  }
}

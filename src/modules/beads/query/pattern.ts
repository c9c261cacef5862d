/** The text is in it somewhere, in any case: as the engine looks for it. */

interface Pattern {
  /** With a question mark for the pattern. */
  readonly operator: string
  readonly pattern: string
}

/** `LIKE` knows the case of ASCII only; for other letters each stands as the set of its forms. */
export function patternOf(text: string): Pattern {
  return /^[\0-\x7f]*$/.test(text)
    ? { operator: `LIKE ? ESCAPE '\\'`, pattern: `%${text.replaceAll(/[\\%_]/g, '\\$&')}%` }
    : { operator: 'GLOB ?', pattern: `*${[...text].map(formsOf).join('')}*` }
}

/** Small sigma has a form of its own at the end of a word. */
const SIGMAS = 'Σσς'

function formsOf(character: string): string {
  if ('*?['.includes(character)) return `[${character}]`
  if (SIGMAS.includes(character)) return `[${SIGMAS}]`
  const upper = character.toUpperCase()
  const forms = new Set([character, upper, character.toLowerCase(), upper.toLowerCase()])
  const letters = [...forms].filter((form) => [...form].length === 1)
  return letters.length === 1 ? character : `[${letters.join('')}]`
}

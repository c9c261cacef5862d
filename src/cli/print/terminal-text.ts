/**
 * The one filter between what others wrote and a terminal. What is piped stays byte for byte what it is.
 *
 * Control characters of one byte and of two (U+009B is an escape sequence in one letter) can drive a terminal; those of
 * bidirectional text (U+202E) make it show another text than it holds. They are written as JSON writes them, so that
 * JSON stays the same JSON.
 */

/** What we ourselves send: colours, the end of a line and, at the start of a text, a clean screen. */
const OWN = '\\u001b\\[(?:2|22|39|3[1-3])m|\\u001b\\[K|^\\u001b\\[H\\u001b\\[2J'
/** Embeddings, overrides and isolates; the marks that Hebrew and Arabic texts need reorder nothing far away. */
const BIDI = '\\u202a-\\u202e\\u2066-\\u2069'
const filter = (passing: string) => new RegExp(`(${passing})|[\\p{Cc}--[\\t\\n\\r]]|[${BIDI}]`, 'gv')
const FILTERED = filter(OWN)
/** Any colour. */
const PAINTED = filter('\\u001b\\[[0-9;:]*m')

/** The text as it may be written to a terminal. */
export const forTerminal = (text: string): string => filtered(text, FILTERED)

/** The same of a text that is meant to have colours of its own: nothing else passes. */
export const paintedForTerminal = (text: string): string => filtered(text, PAINTED)

const filtered = (text: string, pattern: RegExp): string =>
  text.replaceAll(
    pattern,
    (control: string, own: string | undefined) => own ?? `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

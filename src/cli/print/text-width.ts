/** How wide text is in a terminal: a letter of Chinese is two columns, a combining accent none. */
import { createRequire } from 'node:module'

const ASCII = /^[\x20-\x7e]*$/

/** In columns. */
export const widthOf = (text: string): number => (ASCII.test(text) ? text.length : widthOfLetters(text))

/** The tables of letters take longer to load than most commands to run. */
let measure: typeof import('string-width').default | undefined
function widthOfLetters(text: string): number {
  if (measure === undefined) {
    const loaded: typeof import('string-width') = createRequire(import.meta.url)('string-width')
    measure = loaded.default
  }
  return measure(text)
}

let letters: Intl.Segmenter | undefined

/** Text that fits into `width` columns, with `…` where something was cut. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  letters ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  let cut = ''
  let used = 1 // The dots.
  for (const { segment } of letters.segment(text)) {
    used += widthOf(segment)
    if (used > width) break
    cut += segment
  }
  return `${cut}…`
}

/** Text that takes exactly `width` columns where it is shorter. */
export const padTo = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

/** Text in lines that fit into `width` columns; nothing is lost but a letter that is wider than a line: it is `…`. */
export function wrapTo(text: string, width: number): readonly string[] {
  if (widthOf(text) <= width) return [text]
  letters ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  const lines: string[] = []
  let [line, used] = ['', 0]
  for (const { segment } of letters.segment(text)) {
    const fits = widthOf(segment) <= width
    const wide = fits ? widthOf(segment) : 1
    if (used + wide > width && line !== '') {
      lines.push(line)
      line = ''
      used = 0
    }
    line += fits ? segment : '…'
    used += wide
  }
  return [...lines, line]
}

/** The same between words, as far as they fit into a line: for text that is read. */
export function wrapWords(text: string, width: number): readonly string[] {
  if (widthOf(text) <= width) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/(?<=\s)(?=\S)/)) {
    if (line !== '' && widthOf(line) + widthOf(word.trimEnd()) > width) {
      lines.push(line.trimEnd())
      line = ''
    }
    const [last = '', ...before] = wrapTo(word, width).toReversed()
    if (before.length > 0) lines.push(...before.toReversed())
    line = before.length > 0 ? last : line + word
  }
  return line === '' ? lines : [...lines, line.trimEnd()]
}

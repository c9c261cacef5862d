/** How wide text is in a terminal: a letter of Chinese is two columns, a combining accent none. */
import stringWidth from 'string-width'

const ASCII = /^[\x20-\x7e]*$/
const LETTERS = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** In columns. */
export const widthOf = (text: string): number => (ASCII.test(text) ? text.length : stringWidth(text))

/** Text that fits into `width` columns, with `…` where something was cut. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let cut = ''
  let used = 1 // The dots.
  for (const { segment } of LETTERS.segment(text)) {
    used += widthOf(segment)
    if (used > width) break
    cut += segment
  }
  return `${cut}…`
}

/** Text that takes exactly `width` columns where it is shorter. */
export const padTo = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

/**
 * The start of `text`, at most `limit` UTF-16 units long, with `mark` at the end where something was left out. Never ends in
 * half of a surrogate pair: such a text has no UTF-8 form, and strict readers of JSON refuse it.
 */
export function cut(text: string, limit: number, mark = ''): string {
  if (text.length <= limit) return text
  return `${wholeStart(text, Math.max(0, limit - mark.length))}${mark}`
}

/** The end of `text`, at most `limit` UTF-16 units long. Never begins with half of a surrogate pair. */
export function cutStart(text: string, limit: number): string {
  if (text.length <= limit) return text
  const from = text.length - limit
  return text.slice(isSecondHalf(text, from) ? from + 1 : from)
}

/** Characters that show nothing: controls, formats (zero-width ones), spaces, marks without a letter, and fillers. */
const UNSEEN = /^[\p{Cc}\p{Cf}\p{Z}\p{M}\u115f\u1160\u2800\u3164\uffa0]*$/u

/** Whether a text shows nothing that a person could see. */
export const isBlank = (text: string): boolean => UNSEEN.test(text)

function wholeStart(text: string, end: number): string {
  return text.slice(0, isSecondHalf(text, end) ? end - 1 : end)
}

/** Whether the unit at `index` is the second of a pair whose first one stands before it. */
function isSecondHalf(text: string, index: number): boolean {
  return index > 0 && isBetween(text, index, 0xdc00, 0xdfff) && isBetween(text, index - 1, 0xd800, 0xdbff)
}

function isBetween(text: string, index: number, low: number, high: number): boolean {
  const unit = text.charCodeAt(index)
  return unit >= low && unit <= high
}

/**
 * Finds the line with which a harness shows that a turn is under way. Only rows near the input line are read, and of those
 * only the ones that a sign names: the same words in a message, an answer or a file that is shown mean nothing.
 */
import type { BusySign } from '../../harnesses/harness.ts'
import { promptRow, type ScreenHints } from './input-line.ts'
import { isBlank, unframed } from './menu.ts'
import type { Row } from './rows.ts'

export interface BusyLine {
  readonly text: string
  /** The sign counts only while its row keeps changing. */
  readonly moves: boolean
}

export function busyOn(rows: readonly Row[], { rules, prompt }: ScreenHints): BusyLine | undefined {
  const box = inputBox(rows, prompt)
  const regions = {
    above: rows.slice(0, box.first).filter(isDrawn),
    below: rows.slice(box.last + 1).filter(isDrawn),
  }
  for (const sign of rules.busy) {
    const region = sign.where === 'above' ? regions.above.slice(-sign.rows) : regions.below.slice(0, sign.rows)
    const text = textWith(region, sign)
    if (text !== undefined) return { text, moves: sign.moves === true }
  }
  return undefined
}

const isDrawn = ({ text }: Row): boolean => !isBlank(text)

/** The rows of the input line: by its prompt, else where the cursor of the terminal stands, else behind all that is drawn. */
function inputBox(rows: readonly Row[], prompt: string | undefined): { readonly first: number; readonly last: number } {
  const known = prompt === undefined ? -1 : promptRow(rows, prompt)
  const first = known === -1 ? rows.findLastIndex(({ cursor }) => cursor !== undefined) : known
  if (first === -1) return { first: rows.length, last: rows.length }
  const end = rows.findIndex(({ text }, index) => index > first && isBlank(text))
  return { first, last: (end === -1 ? rows.length : end) - 1 }
}

/** The row with the words of a sign; two rows where a narrow terminal wraps them. */
function textWith(region: readonly Row[], { words, faint }: BusySign): string | undefined {
  for (const [index, row] of region.entries()) {
    const line = flat(row)
    if (line.includes(words)) {
      if (faint !== true || isFaint(row, words)) return line
      continue
    }
    const next = region[index + 1]
    const both = next === undefined ? line : `${line} ${flat(next)}`
    if (faint !== true && both.includes(words) && !(next !== undefined && flat(next).includes(words))) return both
  }
  return undefined
}

const flat = ({ text }: Row): string => unframed(text).replaceAll(/\s+/g, ' ').trim().toLowerCase()

function isFaint({ text, runs }: Row, words: string): boolean {
  const from = text.toLowerCase().indexOf(words)
  if (from === -1) return false
  return runs.some((run) => run.faint && run.from <= from && run.to >= from + words.length)
}

/** A molecule as a tree of lines: what contains what by nesting; who has it, what it waits for and why beside it. Pure. */
import type { Molecule, MoleculeStep } from '../../contract/automation/molecules.ts'
import { printable } from '../base/failure.ts'
import { relativeTime } from '../base/output.ts'
import { forTerminal } from '../print/terminal-text.ts'
import { cutTo } from '../print/text-width.ts'
import { STEP_MARKS } from '../views/step-graph.ts'

export interface TreeStyle {
  /** Lines are cut there. */
  readonly width: number
  readonly now: number
  readonly paint: (state: string, text: string) => string
}

/** Steps that are over need no room of their own. */
const OVER: ReadonlySet<string> = new Set(['completed', 'skipped', 'canceled'])
/** Deeper trees lose the left of their lines, so that their size stays in bounds. */
const MAX_INDENT = 60
const SMALLEST_WIDTH = 16
const MOST_WARNINGS = 2

/** What it is, and how far. */
export function headLines(molecule: Molecule, { width, now, paint }: TreeStyle): readonly string[] {
  const { id, title, formula, status, progress, failure, created_at: created, closed_at: closed } = molecule
  const counts = [
    `${progress.completed} of ${progress.total} done`,
    ...(['active', 'waiting', 'failed', 'skipped', 'canceled'] as const).flatMap((name) =>
      progress[name] === 0 ? [] : [`${progress[name]} ${name}`],
    ),
    lasted(created, closed === undefined ? now : Date.parse(closed)),
  ]
  const told = [
    ...(failure === undefined ? [] : [`failed at ${failure.step_id}: ${failure.reason}: ${failure.message}`]),
    ...molecule.warnings.slice(0, MOST_WARNINGS).map(({ message }) => `warning: ${message}`),
    ...(molecule.warnings.length > MOST_WARNINGS ? [`${molecule.warnings.length - MOST_WARNINGS} more warnings`] : []),
  ]
  return [
    cutTo(sideBySide([id, title, `(${formula})`]), width),
    `${paint(status, status)}${cutTo(`  ${counts.join(', ')}`, Math.max(SMALLEST_WIDTH, width - status.length))}`,
    ...told.map((text) => cutTo(oneLine(text), width)),
  ]
}

/** A line for each step; with `room` for fewer, what is inside of steps that are over is left out. */
export function stepLines(steps: readonly MoleculeStep[], style: TreeStyle, room = Number.POSITIVE_INFINITY) {
  const known = new Set(steps.map(({ id }) => id))
  const under = Map.groupBy(steps, ({ id }) => parentOf(id, known))
  const folds = steps.length > room
  const lines: string[] = []
  const draw = (list: readonly MoleculeStep[], below: string, isTop: boolean): void => {
    for (const [at, step] of list.entries()) {
      const isLast = at === list.length - 1
      const inside = under.get(step.id) ?? []
      const lead = isTop ? '' : `${below}${isLast ? '└─ ' : '├─ '}`
      lines.push(lineOf(step, inside, lead, style))
      if (folds && OVER.has(step.status)) continue
      draw(inside, isTop ? '' : `${below}${isLast ? '   ' : '│  '}`.slice(-MAX_INDENT), false)
    }
  }
  draw(under.get('') ?? [], '', true)
  return lines
}

/** The nearest step around it that is shown. */
function parentOf(id: string, known: ReadonlySet<string>): string {
  for (let at = id.lastIndexOf('.'); at > 0; at = id.lastIndexOf('.', at - 1)) {
    const around = id.slice(0, at)
    if (known.has(around)) return around
  }
  return ''
}

function lineOf(step: MoleculeStep, inside: readonly MoleculeStep[], lead: string, style: TreeStyle): string {
  const { id, title, status } = step
  const word = id.slice(id.lastIndexOf('.') + 1)
  const notes = [
    title === word ? '' : title,
    countsOf(step, inside),
    step.assignee === undefined || OVER.has(status) ? '' : `(${step.assignee})`,
    step.attempt > 1 ? attemptOf(step) : '',
    whyOf(step),
    timesOf(step, style.now),
  ]
  const text = sideBySide([word, ...notes])
  return `${lead}${style.paint(status, STEP_MARKS[status])} ${cutTo(text, Math.max(SMALLEST_WIDTH, style.width - lead.length - 2))}`
}

const attemptOf = ({ attempt, max_attempts: most }: MoleculeStep): string =>
  most > 1 ? `attempt ${attempt} of ${most}` : `attempt ${attempt}`

function countsOf({ kind }: MoleculeStep, items: readonly MoleculeStep[]): string {
  if (kind !== 'for_each' && kind !== 'loop') return ''
  const over = items.filter(({ status }) => OVER.has(status) || status === 'failed').length
  return items.length === 0 ? '' : `${over} of ${items.length}`
}

/** Why it is as it is, where that is not plain. */
function whyOf({ status, reason, failure, check, last_error: error }: MoleculeStep): string {
  if (status === 'failed') return failure === undefined ? (reason ?? '') : `${failure.reason}: ${failure.message}`
  if (status === 'completed') return ''
  const code = check?.exit_code === undefined ? '' : `check exited with ${check.exit_code}`
  const told = reason ?? ''
  const more = error ?? code
  const why = [told, told.includes(more) ? '' : more].filter((part) => part !== '').join(': ')
  return why === '' ? '' : `← ${why}`
}

function timesOf(step: MoleculeStep, now: number): string {
  const { status, started_at: started, finished_at: finished, due_at: due, next_attempt_at: next } = step
  if (next !== undefined) return `again ${relativeTime(next, now)}`
  if (finished !== undefined && started !== undefined) return lasted(started, Date.parse(finished))
  const since = status === 'active' && started !== undefined ? [lasted(started, now)] : []
  return [...since, ...(due === undefined ? [] : [`due ${relativeTime(due, now)}`])].join(', ')
}

const UNITS = [
  [86_400_000, 'd', 3_600_000, 'h'],
  [3_600_000, 'h', 60_000, 'm'],
  [60_000, 'm', 1_000, 's'],
] as const

/** `2m 5s`, `1h 3m`; what took no time at all is `0s`. */
function lasted(from: string, until: number): string {
  const ms = Math.max(0, until - Date.parse(from))
  const unit = UNITS.find(([size]) => ms >= size)
  if (unit === undefined) return `${Math.floor(ms / 1_000)}s`
  const [size, word, smaller, smallWord] = unit
  const rest = Math.floor((ms % size) / smaller)
  return `${Math.floor(ms / size)}${word}${rest === 0 ? '' : ` ${rest}${smallWord}`}`
}

const sideBySide = (parts: readonly string[]): string =>
  parts
    .map(oneLine)
    .filter((part) => part !== '')
    .join('  ')

/** Text of others on one line. */
const oneLine = (text: string): string => forTerminal(printable(text)).replaceAll(/\s+/g, ' ').trim()

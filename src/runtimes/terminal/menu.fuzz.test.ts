// Random menus and random idle screens, drawn into a real terminal emulator, cut into pieces anywhere.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Random, seededRandom } from '../../../test/support/random.ts'
import { screenOf } from '../../harnesses/all.ts'
import { GENERIC_SCREEN } from '../../harnesses/harness.ts'
import { BoundedTerminal } from './bounded.ts'
import { busyOn } from './busy.ts'
import { activityOf, asksForKey, dialogOn } from './decisions.ts'
import { emptyPrompt, type ScreenHints } from './input-line.ts'
import { type Row, rowsOf } from './rows.ts'

const CASES = 1_000
const ROWS = 50
const HARNESSES: readonly ScreenHints[] = [
  { rules: screenOf('claude'), prompt: '❯ ' },
  { rules: screenOf('codex'), prompt: '› ' },
  { rules: screenOf('gemini'), prompt: '> ' },
  { rules: GENERIC_SCREEN, prompt: '→ ' },
  { rules: GENERIC_SCREEN, prompt: undefined },
]
const LABELS = [
  ['Yes', 'No'],
  ['Yes, proceed (y)', "Yes, and don't ask again for `rm` (p)", 'No, and tell it what to do differently (esc)'],
  ['Allow once', 'Allow always', 'Reject'],
  ['Ja', 'Ja, immer', 'Nein'],
  ['Oui', 'Non, arrêter'],
  ['Да', 'Да, всегда', 'Нет'],
  ['はい、続ける', '常に許可する', 'いいえ'],
  ['允许一次', '始终允许', '拒绝'],
  ['نعم', 'لا'],
  ['Sí', 'Sí, y no volver a preguntar', 'No'],
  ['gpt-5', 'gpt-5-codex', 'o4-mini', 'another model'],
]
const QUESTIONS = [
  'Do you want to proceed?',
  'Allow execution of: rm -rf build',
  'Möchten Sie fortfahren?',
  'これを実行しますか',
  'Продолжить?',
]
const HINTS_BELOW = [
  '',
  'Esc to cancel',
  '↑/↓ to move · Enter to select',
  'Press enter to confirm or esc to cancel',
  'Abbrechen mit Esc',
]
const TALK = [
  '● Done. The tests pass.',
  '1. Fix the bug',
  '2. Write a test',
  'I would do this:',
  '- one thing',
  '* another',
  '  ⎿  42 passed',
  'The build directory is old.',
  '[x] a task that is done',
  '[ ] a task that is not',
  'Do you want to hear more?',
]
/** Below an input line, and below some dialogs. */
const STATUS = [
  [],
  ['  ? for shortcuts'],
  ['', '  gpt-5 · 42% context left'],
  ['  ~/project (main)   no sandbox   auto'],
  ['  ⏵⏵ accept edits on (shift+tab to cycle)'],
  ['  [1] agents  [2] logs'],
  ['\u001b[7m  NORMAL  main  utf-8  \u001b[0m'],
] as const
const ASKED = [
  '[y/N]',
  '(Y/n)',
  '(yes/no)',
  '[J/n]:',
  '[o/N]',
  '(д/н)',
  '[y,n,q,?]?',
  '[Y]es / [N]o',
  '(Y)es/(N)o [Yes]:',
  'y/n',
  '(S/n) ›',
] as const
const FRAMES = [
  ['╭', '╮', '╰', '╯', '─', '│'],
  ['┏', '┓', '┗', '┛', '━', '┃'],
  ['╔', '╗', '╚', '╝', '═', '║'],
  ['+', '+', '+', '+', '-', '|'],
] as const
const paint = { inverse: '\u001b[7m', background: '\u001b[44m', pale: '\u001b[48;2;40;60;90m' } as const

const some = <T>(random: Random, items: readonly T[]): T => random.pick(items) ?? assert.fail('nothing to pick from')
const talk = (random: Random, count: number) =>
  Array.from({ length: random.between(0, count) }, () => some(random, TALK))

/** An empty input line as harnesses draw it, with what they draw below. */
function idlePrompt(random: Random, glyph: string, width: number): string[] {
  const rule = '─'.repeat(width - 2)
  const line = some(random, [
    glyph,
    `${glyph} `,
    `${glyph} \u001b[2mTry something\u001b[22m`,
    `${glyph} \u001b[90m\u001b[7mT\u001b[27mell me\u001b[39m`,
  ])
  const status = some(random, STATUS)
  return random.chance(0.5) ? [rule, line, rule, ...status] : [`╭${rule}╮`, `│ ${line}`, `╰${rule}╯`, ...status]
}

interface Drawn {
  readonly lines: string[]
  readonly options: number
}

function menu(random: Random, width: number): Drawn {
  const style = some(random, [
    'numbers',
    'pointer',
    'radio',
    'painted',
    'row',
    'buttons',
    'marks',
    'word',
    'letters',
  ] as const)
  const together = style === 'row' || style === 'buttons' || style === 'marks'
  // Nobody lets a row of buttons wrap.
  const labels = some(random, together ? LABELS.filter((words) => words.join().length < 50) : LABELS)
  const cursor = random.between(0, labels.length - 1)
  const pad = ' '.repeat(random.between(0, 3))
  const pointer = some(random, ['❯', '›', '>', '▸', '→', '●', '➜', '=>'])
  const [on, off] = some(random, [
    ['(•)', '( )'],
    ['[x]', '[ ]'],
    ['◉', '○'],
    ['●', '○'],
    ['◼', '◻'],
  ] as const)
  const color = paint[some(random, ['inverse', 'background', 'pale'] as const)]
  const number = some(random, ['1.', '1)'] as const)[1] ?? '.'
  const lines = labels.map((label, index) => {
    const here = index === cursor
    const before = here ? pointer : ' '.repeat(pointer.length)
    if (style === 'numbers') return `${pad}${before} ${index + 1}${number} ${label}`
    if (style === 'pointer') return `${pad}${before} ${label}`
    if (style === 'radio') return `${pad}${here ? on : off} ${label}`
    if (style === 'buttons') return `${pad}[ ${label} ]`
    if (style === 'marks') return `${pad}${here ? '●' : '○'} ${label}`
    if (style === 'letters') return `${pad}[${'abcdefg'[index]}] ${label}`
    return `${pad}${here ? color : ''}${label}${here ? '\u001b[0m' : ''}`
  })
  const question = some(random, QUESTIONS)
  const gap = random.chance(0.5) ? [''] : []
  const below = some(random, HINTS_BELOW)
  const tail = below === '' ? [] : [...gap, below]
  const status = random.chance(0.4) ? some(random, STATUS) : []
  if (style === 'word') {
    const asked = `${question} ${some(random, ASKED)} `
    const back = status.length === 0 ? '' : `\u001b[${status.length}A\r\u001b[${200}C`
    return { lines: [asked, ...status].map((line, at) => (at === status.length ? line + back : line)), options: 0 }
  }
  const inRow = { row: '   ', buttons: '  ', marks: ' / ' } as const
  const body = together ? [pad + lines.map((line) => line.trim()).join(inRow[style])] : lines
  const all = [question, ...gap, ...body, ...tail]
  if (random.chance(0.3) && style !== 'row') {
    const [first, second, third, fourth, rule, side] = some(random, FRAMES)
    const across = rule.repeat(width - 4)
    const framed = [`${first}${across}${second}`, ...all.map((line) => `${side} ${line}`), `${third}${across}${fourth}`]
    return { lines: [...framed, ...status], options: labels.length }
  }
  return { lines: [...all, ...status], options: labels.length }
}

async function drawn(lines: readonly string[], cols: number, random: Random): Promise<readonly Row[]> {
  const terminal = new BoundedTerminal({ cols, rows: ROWS, scrollback: 200 })
  const bytes = Buffer.from(lines.join('\r\n'))
  const pieces: Promise<void>[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = random.between(1, 400)
    pieces.push(terminal.write(bytes.subarray(at, at + size)))
    at += size
  }
  await Promise.all(pieces)
  const rows = rowsOf(terminal.buffer, ROWS, terminal.cursorVisible)
  terminal.dispose()
  return rows
}

function activity(rows: readonly Row[], hints: ScreenHints) {
  const asks = dialogOn(rows, hints) !== undefined || asksForKey(rows, hints)
  const prompt = hints.prompt === undefined ? undefined : emptyPrompt(rows, hints) !== undefined
  return activityOf({ busy: busyOn(rows, hints) !== undefined, prompt, asks, quietMs: 3_600_000 })
}

test('no random menu at the end of a screen is ever idle, for any harness', { timeout: 120_000 }, async () => {
  const random = seededRandom()
  let announced = 0
  for (let count = 0; count < CASES; count++) {
    const cols = random.between(80, 250)
    const { lines, options } = menu(random, cols)
    const glyph = some(random, ['❯', '›', '>', '→'])
    const before = random.chance(0.5) ? [...idlePrompt(random, glyph, cols), ''] : ['']
    const rows = await drawn([...talk(random, 20), ...before, ...lines], cols, random)
    for (const hints of HARNESSES) {
      const shown = rows.map(({ text }) => text).join('\n')
      assert.notEqual(
        activity(rows, hints),
        'idle',
        `SVC_SEED=${random.seed} case ${count}, prompt ${hints.prompt}:\n${shown}`,
      )
      const found = dialogOn(rows, hints)?.pending.options.length ?? 0
      if (found > 0 && (options === 0 || found >= options)) announced++
    }
  }
  const all = CASES * HARNESSES.length
  assert.ok(
    announced / all > 0.98,
    `SVC_SEED=${random.seed}: of ${all} menus ${announced} were announced with their options`,
  )
})

test('a prompt with nothing in it is idle, whatever lists and menus are in the conversation above', {
  timeout: 120_000,
}, async () => {
  const random = seededRandom()
  for (let count = 0; count < CASES; count++) {
    const cols = random.between(80, 250)
    const { lines } = menu(random, cols)
    const answered = random.chance(0.5) ? lines : []
    for (const hints of HARNESSES) {
      if (hints.prompt === undefined) continue
      const glyph = hints.prompt.trim()
      const end = idlePrompt(random, glyph, cols)
      const rows = await drawn([...talk(random, 20), ...answered, '', '● So be it.', '', ...end], cols, random)
      const shown = rows.map(({ text }) => text).join('\n')
      assert.equal(
        activity(rows, hints),
        'idle',
        `SVC_SEED=${random.seed} case ${count}, prompt ${hints.prompt}:\n${shown}`,
      )
    }
  }
})

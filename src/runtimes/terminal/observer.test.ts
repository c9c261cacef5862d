// A timer fires up to a millisecond early, and a look takes time: neither leaves an agent unseen.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesOf, RECORDED } from '../../../test/support/recorded-screens.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { findPreset, screenOf } from '../../harnesses/all.ts'
import { KEY } from '../../harnesses/harness.ts'
import type { Clock } from '../../kernel/clock.ts'
import { openOutputReader, openOutputWriter } from '../process/output-log.ts'
import type { Activity, ProcessEvent } from '../process/runtime.ts'
import { type ObserverHints, TerminalObserver } from './observer.ts'

const EARLY_MS = 1
const READING_MS = 0.4
const MOMENT_MS = 1_100
const ERASE = '\u007f'
const soon = () => AbortSignal.timeout(15_000)

/** Goes on with every reading; its timers fire early. */
class HastyClock implements Clock {
  #time = 1_000
  #timers: { readonly due: number; readonly work: () => void }[] = []

  now(): number {
    return Math.trunc(this.monotonic())
  }

  monotonic(): number {
    this.#time += READING_MS
    return this.#time
  }

  after(ms: number, work: () => void): () => void {
    const timer = { due: this.#time + ms, work }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  /** Until no timer is left. */
  run(): void {
    while (this.step());
  }

  /** The next timer; false where none is left, or none that is due by then. */
  step(withinMs = Number.POSITIVE_INFINITY): boolean {
    const next = this.#next()
    if (next === undefined || next.due > this.#time + withinMs) return false
    this.#timers = this.#timers.filter((other) => other !== next)
    this.#time = Math.max(this.#time, next.due - EARLY_MS)
    next.work()
    return true
  }

  #next() {
    return this.#timers.toSorted((one, other) => one.due - other.due)[0]
  }
}

function observed(directory: string, hints: Partial<ObserverHints> = {}, size = { columns: 80, rows: 24 }) {
  const clock = new HastyClock()
  const writer = openOutputWriter(directory)
  const typed: string[] = []
  let activity: Activity = 'unknown'
  let tell: ((event: ProcessEvent) => void) | undefined
  const observer = new TerminalObserver({
    clock,
    process: {
      on: (listener) => {
        tell = listener
        return () => {}
      },
      get endOffset() {
        return writer.endOffset
      },
      alive: 'alive',
      get activity() {
        return activity
      },
      personTyping: false,
      size: undefined,
      typeKeys: async (keys) => {
        typed.push(keys)
      },
      typeLine: async () => false,
    },
    output: openOutputReader(directory),
    size,
    hints: {
      rules: screenOf('claude'),
      readyPrefix: '❯ ',
      readyDelayMs: 0,
      readyConfirmation: false,
      acceptStartupDialogs: false,
      lines: false,
      shell: false,
      ...hints,
    },
  })
  const announced: string[] = []
  observer.on(({ type }) => void announced.push(type))
  const does = (what: Activity) => {
    activity = what
    tell?.({ type: 'activity', activity: what })
  }
  const prints = async (text: string | Buffer) => {
    writer.append(Buffer.from(text))
    tell?.({ type: 'output', endOffset: writer.endOffset })
    await observer.picture(soon())
  }
  /** A few seconds go by. */
  const rests = async () => {
    for (let turn = 0; turn < 60; turn++) {
      clock.step(MOMENT_MS)
      await observer.picture(soon())
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { clock, observer, typed, announced, prints, does, rests }
}

test('who shows an empty prompt and is quiet is idle, though the last look came a moment early', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, prints } = observed(directory.path)
  await prints('❯ ')
  clock.run()
  assert.equal(observer.activity, 'idle')
  observer.close()
})

test('an Enter that was swallowed is typed again, once it is known to be, though the look came a moment early', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, typed, prints, rests } = observed(directory.path)
  await prints('❯ ')
  clock.run()
  observer.onDelivery('you there')
  await prints('you there')
  await rests()
  assert.deepEqual(typed, [ERASE])
  await prints('\b \b')
  await rests()
  assert.deepEqual(typed, [ERASE, 'e'])
  await prints('e')
  await rests()
  assert.deepEqual(typed.slice(0, 3), [ERASE, 'e', KEY.enter])
  observer.close()
})

test('an Enter that is only read late is not typed again into what it opens', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, typed, prints, rests } = observed(directory.path)
  await prints('❯ ')
  clock.run()
  observer.onDelivery('you there')
  await prints('you there')
  await rests()
  await prints('\u001b[2J\u001b[H Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n')
  await rests()
  assert.deepEqual(typed, [ERASE])
  assert.equal(observer.pending?.options.length, 2)
  observer.close()
})

test('what was typed may be entered once it is seen, and not while the input line is as empty as before', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, prints, rests } = observed(directory.path)
  await prints('❯ ')
  clock.run()
  observer.onTyping('you there')
  const lost = observer.mayEnter(soon())
  await rests()
  assert.equal(await lost, 'unseen')
  const seen = observer.mayEnter(soon())
  await prints('you there')
  await rests()
  assert.equal(await seen, 'yes')
  observer.close()
})

const SHELL = { lines: true, shell: true, readyPrefix: '' } as const
const MENU = 'Proceed?\r\n❯ 1. Yes\r\n  2. No\r\n'

test('a list that a shell has printed is no question, though its end is known a moment later', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, announced, prints, does } = observed(directory.path, SHELL)
  does('in-turn')
  await prints(`${MENU}ana@here:~/demo# `)
  for (let look = 0; look < 3; look++) clock.step(400)
  assert.ok(observer.asks, 'until then nothing is typed')
  does('idle')
  while (clock.step(400));
  assert.ok(!observer.asks)
  assert.ok(!announced.includes('pending'))
  observer.close()
})

test('a menu of a program in front of a shell is a question, once it rests or has stood there for long', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, prints, does } = observed(directory.path, SHELL)
  does('in-turn')
  await prints(MENU)
  while (clock.step(400));
  assert.deepEqual(
    observer.pending?.options.map(({ label }) => label),
    ['Yes', 'No'],
  )
  observer.close()
})

/** What harnesses show while they work, ask, start or are limited: the words that rules look for, and some of before. */
const WORDS = [
  ...new Set(RECORDED.map(({ harness }) => harness)).values().flatMap((harness) => {
    const { busy, startupDialogs, approval } = screenOf(findPreset(harness)?.command ?? '')
    return [
      ...busy.map(({ words }) => words),
      ...startupDialogs.flatMap(({ match }) => match),
      ...(approval?.questions ?? []),
    ]
  }),
  'press any key to continue',
  'Press Enter to proceed',
  "You've hit your limit · resets Dec 24 at 3pm",
  'expected 429, too many requests; try again in 30 days',
]

const IDLE = RECORDED.filter(({ file }) => file.endsWith('idle-after-turn.log'))

for (const recorded of IDLE)
  test(`words of rules in a message, an answer or a file change nothing: ${recorded.harness}`, async () => {
    const preset = findPreset(recorded.harness)
    const hints = { rules: screenOf(preset?.command ?? ''), readyPrefix: preset?.ready_prompt_prefix }
    using directory = temporaryDirectory()
    const { clock, observer, announced, prints } = observed(directory.path, hints, recorded)
    await prints(bytesOf(recorded))
    clock.run()
    assert.equal(observer.activity, 'idle', observer.text().lines.join('\n'))
    const row = freeRowIn(observer.text().lines)
    for (const words of WORDS)
      for (const begin of ['> ', '● ', '  1  '])
        for (const look of ['', '\u001b[2m']) {
          const text = `${begin}${words}`.slice(0, recorded.columns - 1)
          await prints(`\u001b7\u001b[${row + 1};1H\u001b[2K\u001b8`)
          while (clock.step(300));
          await prints(`\u001b7\u001b[${row + 1};1H${look}${text}\u001b[0m\u001b8`)
          while (clock.step(3_000));
          assert.equal(observer.activity, 'idle', `${look === '' ? '' : 'faint: '}${text}`)
          assert.equal(observer.pending, undefined, text)
        }
    assert.ok(!announced.includes('pending'))
    observer.close()
  })

/** The lowest blank row with text or a blank one above and below it, at least three rows above the last one. */
function freeRowIn(lines: readonly string[]): number {
  const row = lines.slice(0, -3).findLastIndex((line, index) => line.trim() === '' && index > 0)
  assert.ok(row > 0, lines.join('\n'))
  return row
}

test('a line that says that a turn is under way counts while it moves, and no longer', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, prints } = observed(directory.path)
  const busy = (spinner: string) => `\u001b[H\u001b[2J${spinner} Working… (esc to interrupt)\r\n\r\n❯ `
  for (const spinner of ['✻', '✶', '✻', '✽']) {
    await prints(busy(spinner))
    while (clock.step(300));
    assert.equal(observer.activity, 'in-turn', spinner)
  }
  clock.run()
  assert.equal(observer.activity, 'idle', 'a line that stands still is text')
  observer.close()
})

test('a program that has drawn nothing is neither ready nor idle; once it draws, it is', async () => {
  using directory = temporaryDirectory()
  const { clock, observer, prints } = observed(directory.path, {
    rules: screenOf('unheard-of'),
    readyPrefix: undefined,
  })
  let readiness: unknown
  void observer.ready(60_000, soon()).then(({ state }) => {
    readiness = state
  })
  const startedAt = clock.monotonic()
  const look = async () => {
    clock.step(MOMENT_MS)
    await observer.picture(soon())
    await new Promise((resolve) => setImmediate(resolve))
  }
  while (clock.monotonic() - startedAt < 20_000) {
    await look()
    assert.notEqual(observer.activity, 'idle')
    assert.equal(readiness, undefined)
  }
  await prints('My agent\r\n\r\n| ')
  for (let looks = 0; looks < 100 && readiness === undefined; looks++) await look()
  assert.equal(readiness, 'ready')
  clock.run()
  assert.equal(observer.activity, 'idle')
  observer.close()
})

test('an interrupted message that its harness puts back is taken out of the line, and not entered again', async () => {
  using directory = temporaryDirectory()
  const message = 'delete everything'
  for (const restores of [true, false]) {
    const { clock, observer, typed, prints, rests } = observed(directory.path)
    await prints('\u001b[H\u001b[2J❯ ')
    clock.run()
    observer.onTyping(message)
    observer.onDelivery(message)
    await prints('\u001b[H\u001b[2J✻ Working… (esc to interrupt)\r\n\r\n❯ ')
    await rests()
    observer.onInterrupt(restores)
    await prints(`\u001b[H\u001b[2J❯ ${message}`)
    await rests()
    assert.deepEqual(typed, restores ? [ERASE.repeat(message.length)] : [], 'no letter and no Enter is typed')
    observer.close()
  }
})

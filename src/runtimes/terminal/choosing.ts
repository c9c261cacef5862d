/**
 * Chooses one option of a menu by the keys that it takes. No key is typed without a look before it, and Enter only while
 * the cursor stands on the option that is meant.
 */
import { KEY } from '../../harnesses/harness.ts'
import { type Clock, delay } from '../../kernel/clock.ts'
import type { Menu } from './menu.ts'

export interface Choosing {
  readonly clock: Clock
  /** The menu as it is now, on a screen that has caught up; undefined: it is gone. */
  menu(signal: AbortSignal): Promise<Menu | undefined>
  lastLine(): string
  type(keys: string, signal: AbortSignal): Promise<void>
  /** Of who reads keys one by one; rejects with `TypingRefused` where lines are read. */
  press(key: string, signal: AbortSignal): Promise<void>
  /** With its Enter; false: what is typed is not read line by line, and nothing was. */
  typeLine(line: string, signal: AbortSignal): Promise<boolean>
}

const LOOK_MS = 50
/**
 * A TUI that has not drawn what a key did by then does not know it. One that is busy reads late: whatever is typed
 * meanwhile adds to what it has not read, and a second arrow takes its cursor past the option that is meant.
 */
const MOVE_MS = 5_000
/** Who has not shown a word by then does not show what is typed. */
const ECHO_MS = 1_000
const LARGEST_DIGIT = 9

/** Resolves when the menu is gone or was given its answer; rejects where it does not do what its keys say. */
export async function chooseOption(choosing: Choosing, option: number, signal: AbortSignal): Promise<void> {
  const menu = await choosing.menu(signal)
  const wanted = menu?.options[option]
  if (menu === undefined || wanted === undefined) return
  const hasName = menu.by === 'word' || menu.by === 'letter' || menu.by === 'number'
  // Of whoever reads lines a key alone is never read, however it draws its menu.
  if (hasName && (await choosing.typeLine(wanted.id, signal))) return
  if (menu.by === 'word') return answerLine(choosing, wanted.id, signal)
  const hasKey = menu.by === 'letter' || (menu.by === 'number' && Number(wanted.id) <= LARGEST_DIGIT)
  if (hasKey) {
    await choosing.type(wanted.id, signal)
    if ((await changed(choosing, menu, signal)) === undefined || menu.by === 'letter') return
  }
  return steer(choosing, option, signal)
}

/** Moves the cursor there, one key a look, then enters it. */
async function steer(choosing: Choosing, option: number, signal: AbortSignal): Promise<void> {
  let menu = await choosing.menu(signal)
  for (let left = 2 * (menu?.options.length ?? 0); menu !== undefined && menu.cursor !== option; left--) {
    if (menu.cursor === -1 || left <= 0) throw new Error('it cannot be seen where the cursor of the dialog stands')
    const [back, on] = menu.by === 'left-right' ? [KEY.left, KEY.right] : [KEY.up, KEY.down]
    await choosing.press(menu.cursor > option ? back : on, signal)
    const next = await changed(choosing, menu, signal)
    if (next?.cursor === menu.cursor) throw new Error('the cursor of the dialog does not move')
    menu = next
  }
  if (menu !== undefined) await choosing.type(KEY.enter, signal)
}

/** The menu once a key has moved its cursor, or unmoved when the time is up; undefined: it is gone. */
async function changed(choosing: Choosing, before: Menu, signal: AbortSignal): Promise<Menu | undefined> {
  let menu: Menu | undefined = before
  for (let waited = 0; waited < MOVE_MS && menu?.cursor === before.cursor; waited += LOOK_MS) {
    await delay(choosing.clock, LOOK_MS, signal)
    menu = await choosing.menu(signal)
  }
  return menu
}

/** A word and, where its line shows the word or asks on unmoved, Enter: who reads single keys has taken it already. */
async function answerLine(choosing: Choosing, word: string, signal: AbortSignal): Promise<void> {
  const before = choosing.lastLine().trimEnd()
  await choosing.type(word, signal)
  for (let waited = 0; waited < ECHO_MS; waited += LOOK_MS) {
    await delay(choosing.clock, LOOK_MS, signal)
    const open = await choosing.menu(signal)
    const line = choosing.lastLine().trimEnd()
    if (line === `${before} ${word}` || line === `${before}${word}`) return choosing.type(KEY.enter, signal)
    if (open === undefined) return
  }
  return choosing.type(KEY.enter, signal)
}

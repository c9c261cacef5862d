/** Names of keys as the bytes that a terminal sends for them (pure). */

const ESC = '\u001b'
/** Keys that are one byte, or two. */
const PLAIN: Readonly<Record<string, string>> = {
  Enter: '\r',
  Escape: ESC,
  Esc: ESC,
  Tab: '\t',
  Space: ' ',
  BSpace: '\u007f',
  Backspace: '\u007f',
}
/** Keys of cursor mode: `CSI` or, where the program has asked for it, `SS3` before the letter. */
const CURSOR: Readonly<Record<string, string>> = { Up: 'A', Down: 'B', Right: 'C', Left: 'D', Home: 'H', End: 'F' }
const NUMBERED: Readonly<Record<string, number>> = {
  Insert: 2,
  Delete: 3,
  PageUp: 5,
  PgUp: 5,
  PageDown: 6,
  PgDn: 6,
  F5: 15,
  F6: 17,
  F7: 18,
  F8: 19,
  F9: 20,
  F10: 21,
  F11: 23,
  F12: 24,
}
const FUNCTION: Readonly<Record<string, string>> = { F1: 'P', F2: 'Q', F3: 'R', F4: 'S' }

interface Modifiers {
  readonly control: boolean
  readonly meta: boolean
  readonly shift: boolean
}

/** What is typed for one of `keys`; undefined: a key that no terminal sends, or a text, which nobody can tell from a wrong name. */
export function bytesOf(key: string, applicationCursor: boolean): string | undefined {
  const { modifiers, name } = split(key)
  return named(name, modifiers, applicationCursor) ?? letter(name, modifiers)
}

/** Names of keys without modifiers. */
export const KEY_NAMES: readonly string[] = [PLAIN, CURSOR, NUMBERED, FUNCTION].flatMap(Object.keys).concat('BTab')

function split(key: string): { readonly modifiers: Modifiers; readonly name: string } {
  const found = /^((?:[CMS]-){1,3})(.+)$/su.exec(key)
  const [, before = '', name = key] = found ?? []
  const has = (one: string) => before.includes(one)
  return { modifiers: { control: has('C'), meta: has('M'), shift: has('S') }, name }
}

function named(name: string, modifiers: Modifiers, applicationCursor: boolean): string | undefined {
  const { control, meta, shift } = modifiers
  const code = 1 + (shift ? 1 : 0) + (meta ? 2 : 0) + (control ? 4 : 0)
  const cursor = own(CURSOR, name)
  if (cursor !== undefined)
    return code > 1 ? `${ESC}[1;${code}${cursor}` : `${ESC}${applicationCursor ? 'O' : '['}${cursor}`
  const last = own(FUNCTION, name)
  if (last !== undefined) return code > 1 ? `${ESC}[1;${code}${last}` : `${ESC}O${last}`
  const number = own(NUMBERED, name)
  if (number !== undefined) return `${ESC}[${number}${code > 1 ? `;${code}` : ''}~`
  const plain = own(PLAIN, name)
  if (plain === undefined) return name === 'BTab' && code === 1 ? `${ESC}[Z` : undefined
  if (name === 'Tab' && shift) return `${meta ? ESC : ''}${ESC}[Z`
  if (name === 'Space' && control) return `${meta ? ESC : ''}\u0000`
  return `${meta ? ESC : ''}${plain}`
}

/** A single character, also with modifiers: `C-c`, `M-x`, `C-M-a`. */
function letter(name: string, { control, meta, shift }: Modifiers): string | undefined {
  if ([...name].length !== 1 || /\p{Cc}/u.test(name)) return undefined
  const typed = shift ? name.toUpperCase() : name
  const sent = control ? controlOf(typed) : typed
  return sent === undefined ? undefined : `${meta ? ESC : ''}${sent}`
}

function controlOf(name: string): string | undefined {
  if (name === '?') return '\u007f'
  const code = name.toUpperCase().charCodeAt(0)
  return name.length === 1 && code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : undefined
}

const own = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

/** Lines that go out. Whatever is in their parts, each is one command. */

const BREAKS = /\p{Cc}/gu
const UNFIT = /[\p{Cc} ]/u

export interface Line {
  readonly tags?: Readonly<Record<string, string>>
  readonly command: string
  /** Only the last may have blanks. */
  readonly params: readonly string[]
}

/** A line without its end; throws where one of the middle parts would be read as something else. */
export function formatLine({ tags = {}, command, params }: Line): string {
  const middle = params.slice(0, -1)
  for (const word of [command, ...middle, ...Object.keys(tags)])
    if (word === '' || word.startsWith(':') || UNFIT.test(word))
      throw new Error(`not a word of IRC: ${JSON.stringify(word)}`)
  const said = Object.entries(tags).map(([name, value]) => `${name}=${escaped(value)}`)
  const last = params.at(-1)
  return [
    ...(said.length === 0 ? [] : [`@${said.join(';')}`]),
    command,
    ...middle,
    ...(last === undefined ? [] : [`:${last.replaceAll(BREAKS, ' ')}`]),
  ].join(' ')
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', ';': '\\:', ' ': '\\s', '\r': '\\r', '\n': '\\n' }
const escaped = (value: string): string =>
  value.replaceAll('\0', '').replaceAll(/[\\; \r\n]/g, (letter) => ESCAPES[letter] ?? '')

const LONGEST = 512
/** `:nick!user@host ` before the command as others get it; the server says how long it may be at most. */
const LONGEST_USER = 12
const LONGEST_HOST = 64

/** How many bytes of text fit into one message to `target`. */
export function roomFor(nick: string, target: string): number {
  const bytes = (text: string) => Buffer.byteLength(text)
  const prefix = 1 + bytes(nick) + 1 + LONGEST_USER + 1 + LONGEST_HOST + 1
  return LONGEST - prefix - 'PRIVMSG '.length - bytes(target) - ' :'.length - '\r\n'.length
}

/**
 * What an agent's terminal is sent, as it may go to a person's: colours, cursor, screens, titles and links pass; what
 * makes a terminal answer, print, copy, change its size or its keys does not. An answer would be typed into the agent by
 * nobody, and what reaches the clipboard or the printer is not the agent's to choose.
 *
 * Bytes come in pieces: a sequence is passed or left out when it is whole.
 */

const [BEL, CAN, SUB, ESC, ENQ] = [0x07, 0x18, 0x1a, 0x1b, 0x05]
const LONGEST_CSI = 256
const LONGEST_OSC = 4_096

/** Mouse, focus, sizes and colours that are told, width of 132 columns, keys that are told in other ways. */
const REFUSED_MODES: ReadonlySet<string> = new Set(
  '3 9 1000 1001 1002 1003 1004 1005 1006 1007 1015 1016 1034 1035 1036 1039 2031 2048'.split(' '),
)
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what programs send.
const OTHER_SCREEN = /^\u001b\[\?(?:\d+;)*(47|1047|1049)(?:;\d+)*([hl])$/
/** Titles and links. */
const PASSING_OSC = /^(0|1|2|8);/
/** `ESC c` takes the scrollback of some terminals along: the screen is enough. */
const SOFT_RESET = Buffer.from('\u001b[!p\u001b[H\u001b[2J')

type State = 'ground' | 'escape' | 'csi' | 'osc' | 'string'

export class PassingOutput {
  #state: State = 'ground'
  /** The sequence so far. */
  #held: number[] = []
  /** What was held is longer than anything that is known: it is left out. */
  #tooLong = false
  #out: Uint8Array[] = []
  #isAlternate = false

  /** A program draws on a screen of its own. */
  get isAlternate(): boolean {
    return this.#isAlternate
  }

  /** What of `bytes` and of what was held before may be written. */
  pass(bytes: Uint8Array): Uint8Array {
    this.#out = []
    let from = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (this.#state === 'ground' && this.#held.length === 0) {
        if (byte !== ESC && byte !== ENQ && byte !== 0xc2) continue
        this.#put(bytes.subarray(from, at))
        from = at + 1
        if (byte !== ENQ) this.#hold(byte)
        continue
      }
      from = at + 1
      // Taken up again as if nothing had been before it.
      if (!this.#take(byte)) {
        from = at
        at--
      }
    }
    if (this.#state === 'ground' && this.#held.length === 0) this.#put(bytes.subarray(from))
    return Buffer.concat(this.#out)
  }

  /** What comes next has nothing to do with what came before. */
  reset(): void {
    this.#state = 'ground'
    this.#held = []
    this.#tooLong = false
  }

  #put(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#out.push(bytes)
  }

  #hold(byte: number): void {
    this.#held = [byte]
    this.#tooLong = false
    this.#state = byte === ESC ? 'escape' : 'ground'
  }

  /** False: the byte does not belong to what is held. */
  #take(byte: number): boolean {
    if (this.#state === 'ground') return this.#takeLetter(byte)
    if (byte === CAN || byte === SUB) {
      this.reset()
      this.#put(Uint8Array.of(byte))
      return true
    }
    if (byte === ESC && this.#state !== 'osc' && this.#state !== 'string') {
      this.#hold(ESC)
      return true
    }
    // No letter belongs to a sequence: it is cut, and the letter stands for itself.
    if (byte >= 0x80 && this.#state !== 'osc' && this.#state !== 'string') {
      this.reset()
      return false
    }
    switch (this.#state) {
      case 'escape':
        return this.#takeEscape(byte)
      case 'csi':
        return this.#takeCsi(byte)
      default:
        return this.#takeString(byte)
    }
  }

  /** Behind 0xC2: a control character of one letter, which terminals take for an escape sequence, or a letter. */
  #takeLetter(byte: number): boolean {
    this.#held = []
    if (byte >= 0x80 && byte <= 0x9f) return true
    this.#put(Uint8Array.of(0xc2))
    if (byte < 0x80 || byte > 0xbf) return false
    this.#put(Uint8Array.of(byte))
    return true
  }

  #takeEscape(byte: number): boolean {
    this.#held.push(byte)
    if (this.#held.length === 2) {
      const next = stateOf(byte)
      if (next !== undefined) {
        this.#state = next
        return true
      }
    }
    if (byte < 0x30 && byte >= 0x20 && this.#held.length < 8) return true
    const sequence = Buffer.from(this.#held)
    this.reset()
    if (byte === 0x63 && sequence.length === 2) this.#put(SOFT_RESET)
    // Z asks who the terminal is.
    else if (byte !== 0x5a) this.#put(sequence)
    return true
  }

  #takeCsi(byte: number): boolean {
    // Controls inside a sequence are done as if they stood before it.
    if (byte < 0x20) {
      if (byte !== ENQ) this.#put(Uint8Array.of(byte))
      return true
    }
    if (this.#held.length < LONGEST_CSI) this.#held.push(byte)
    else this.#tooLong = true
    if (byte < 0x40) return true
    const passing = this.#tooLong ? '' : passingCsi(Buffer.from(this.#held).toString('latin1'))
    this.reset()
    const changed = OTHER_SCREEN.exec(passing)?.[2]
    if (changed !== undefined) this.#isAlternate = changed === 'h'
    this.#put(Buffer.from(passing, 'latin1'))
    return true
  }

  #takeString(byte: number): boolean {
    const escaped = this.#held.at(-1) === ESC
    if (escaped && byte !== 0x5c) {
      // Not the end, but another sequence: the string is cut.
      this.#hold(ESC)
      return false
    }
    if (byte === BEL || escaped) {
      const text = Buffer.from(this.#held.slice(2, escaped ? -1 : undefined))
      const passes = this.#state === 'osc' && !this.#tooLong && PASSING_OSC.test(text.toString('latin1'))
      this.reset()
      if (passes) this.#put(Buffer.concat([Buffer.from('\u001b]'), text, Uint8Array.of(BEL)]))
      return true
    }
    const isKept = this.#state === 'osc' && this.#held.length < LONGEST_OSC
    if (isKept || byte === ESC) this.#held.push(byte)
    else this.#tooLong = true
    return true
  }
}

function stateOf(byte: number): State | undefined {
  if (byte === 0x5b) return 'csi'
  if (byte === 0x5d) return 'osc'
  // DCS, SOS, PM, APC.
  return byte === 0x50 || byte === 0x58 || byte === 0x5e || byte === 0x5f ? 'string' : undefined
}

/** As it may be written; empty: not at all. */
function passingCsi(sequence: string): string {
  const body = sequence.slice(2, -1)
  const final = sequence.at(-1) ?? ''
  const [, prefix = '', , intermediates = ''] = /^([<=>?]*)([0-9;:]*)([ -/]*)/.exec(body) ?? []
  if ((final === 'h' || final === 'l') && prefix === '?') return privateModes(body.slice(1), final)
  if (intermediates === '' && prefix === '') return 'cnitx'.includes(final) ? '' : sequence
  if (prefix === '' && intermediates === '!' && final === 'p') return sequence
  // The shape of the cursor.
  if (prefix === '' && intermediates === ' ' && final === 'q') return sequence
  // Erasing what is not protected.
  return prefix === '?' && intermediates === '' && (final === 'J' || final === 'K') ? sequence : ''
}

function privateModes(parameters: string, final: string): string {
  const passing = parameters.split(';').filter((mode) => !REFUSED_MODES.has(mode))
  return passing.length === 0 ? '' : `\u001b[?${passing.join(';')}${final}`
}

/** What is typed on its way to the agent, and the two ways to say that one wants to leave: `ctrl-]`, and `~.` at the start of a line. */

const [CTRL_BRACKET, TILDE, DOT, CR, LF] = [0x1d, 0x7e, 0x2e, 0x0d, 0x0a]
const PASTE_BEGINS = Buffer.from('\u001b[200~')
const PASTE_ENDS = Buffer.from('\u001b[201~')

export interface Typed {
  readonly bytes: Uint8Array
  /** Whoever sits there wants to leave; what was typed behind that is nobody's. */
  readonly leaves: boolean
}

/** What is pasted is text, whatever it looks like. */
export class Leaving {
  #atStart = true
  /** A tilde at the start of a line, which is sent with what follows it. */
  #tilde = false
  #pasting = false
  /** Of the mark that begins or ends a paste: so much of it has come. */
  #marked = 0

  feed(bytes: Uint8Array): Typed {
    const out: number[] = []
    for (const byte of bytes) {
      this.#mark(byte)
      if (this.#pasting) {
        if (this.#tilde) out.push(TILDE)
        this.#tilde = false
        this.#atStart = false
        out.push(byte)
        continue
      }
      if (byte === CTRL_BRACKET) return { bytes: Uint8Array.from(out), leaves: true }
      if (this.#tilde) {
        this.#tilde = false
        if (byte === DOT) return { bytes: Uint8Array.from(out), leaves: true }
        out.push(TILDE)
        // Two of them are one.
        if (byte === TILDE) continue
      } else if (byte === TILDE && this.#atStart) {
        this.#tilde = true
        this.#atStart = false
        continue
      }
      this.#atStart = byte === CR || byte === LF
      out.push(byte)
    }
    return { bytes: Uint8Array.from(out), leaves: false }
  }

  #mark(byte: number): void {
    const mark = this.#pasting ? PASTE_ENDS : PASTE_BEGINS
    if (byte === mark[this.#marked]) this.#marked++
    else this.#marked = byte === mark[0] ? 1 : 0
    if (this.#marked < mark.length) return
    this.#marked = 0
    this.#pasting = !this.#pasting
  }
}

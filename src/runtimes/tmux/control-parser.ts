/**
 * The line protocol of tmux's control mode: answers come in blocks, `%begin n` … `%end n` or `%error n`; everything
 * else that begins with `%` is a notification and never comes inside a block.
 */

export type ControlItem =
  | {
      readonly type: 'block'
      readonly lines: readonly string[]
      readonly failed: boolean
      /** It answers a line of ours; tmux's own first block, of the attach, does not. */
      readonly ours: boolean
    }
  | { readonly type: 'notification'; readonly name: string; readonly text: string }

/** More than any answer we ask for; what is longer is not tmux. */
export const MAX_LINE_BYTES = 1024 * 1024

interface OpenBlock {
  /** `<time> <number> <flags>`, the same on its first and its last line. */
  readonly tag: string
  readonly lines: string[]
}

/** Text comes in as it arrives, items come out whole. */
export class ControlParser {
  #rest = ''
  #block: OpenBlock | undefined

  /** Throws where a line is longer than the limit. */
  push(text: string): ControlItem[] {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > MAX_LINE_BYTES) throw new RangeError('a line of tmux is too long')
    return lines.map((line) => this.#line(line.replace(/\r$/, ''))).filter((item) => item !== undefined)
  }

  #line(line: string): ControlItem | undefined {
    const block = this.#block
    if (block === undefined) return this.#outside(line)
    const failed = line === `%error ${block.tag}`
    if (!failed && line !== `%end ${block.tag}`) {
      block.lines.push(line)
      return undefined
    }
    this.#block = undefined
    return { type: 'block', lines: block.lines, failed, ours: block.tag.endsWith(' 1') }
  }

  #outside(line: string): ControlItem | undefined {
    const [, name, text] = /^%([a-z-]+) ?(.*)$/.exec(line) ?? []
    if (name === undefined || text === undefined) return undefined
    if (name !== 'begin') return { type: 'notification', name, text }
    this.#block = { tag: text, lines: [] }
    return undefined
  }
}

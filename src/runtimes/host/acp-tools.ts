/** What updates have said about the tool calls of a turn: a permission request may hold an id only. */

export interface KnownTool {
  readonly title?: string | undefined
  readonly kind?: string | undefined
  readonly name?: string | undefined
}

const MAX_TOOLS = 256
const MAX_TEXT = 4096

export class KnownTools {
  /** Oldest first; what is over the bound is forgotten. */
  readonly #tools = new Map<string, KnownTool>()

  /** `update` is that of a `session/update`. */
  learn(update: Readonly<Record<string, unknown>>): void {
    const { sessionUpdate, toolCallId } = update
    if (sessionUpdate !== 'tool_call' && sessionUpdate !== 'tool_call_update') return
    if (typeof toolCallId !== 'string') return
    const known = this.get(toolCallId)
    this.#tools.set(toolCallId, {
      title: shortText(update['title']) ?? known.title,
      kind: shortText(update['kind']) ?? known.kind,
      name: shortText(update['name']) ?? known.name,
    })
    const [oldest] = this.#tools.keys()
    if (this.#tools.size > MAX_TOOLS && oldest !== undefined) this.#tools.delete(oldest)
  }

  get(toolCallId: string): KnownTool {
    return this.#tools.get(toolCallId) ?? {}
  }

  clear(): void {
    this.#tools.clear()
  }
}

const shortText = (value: unknown) => (typeof value === 'string' ? value.slice(0, MAX_TEXT) : undefined)

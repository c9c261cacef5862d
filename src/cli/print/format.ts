/** What `-o`, `--sort` and `--columns` ask for. */

export const OUTPUT_FORMATS = [
  { name: 'table', does: 'columns for people; separated by tabs in a pipe' },
  { name: 'wide', does: 'the same with every column' },
  { name: 'json', does: 'what the API answers' },
  { name: 'jsonl', does: 'an object a line' },
  { name: 'yaml', does: 'what the API answers, as YAML' },
  { name: 'name', does: 'ids or names only' },
  { name: 'jsonpath=', does: "parts of the JSON: jsonpath='{.items[*].id}'" },
  { name: 'template=', does: "text from each item: template='{{.id}} {{.title}}'" },
] as const

const PLAIN = ['table', 'wide', 'json', 'jsonl', 'yaml', 'name'] as const
const FILLED = ['jsonpath', 'template'] as const

export type OutputFormat = (typeof PLAIN)[number] | (typeof FILLED)[number]

export interface Format {
  readonly kind: OutputFormat
  /** Of `jsonpath` and `template`. */
  readonly expression: string
}

/** A wish about the output that cannot be met; it is the command line that is wrong. */
export class LayoutError extends Error {
  override readonly name = 'LayoutError'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

export function parseFormat(text: string): Format {
  const plain = PLAIN.find((kind) => kind === text)
  if (plain !== undefined) return { kind: plain, expression: '' }
  const filled = FILLED.find((kind) => text.startsWith(`${kind}=`))
  if (filled !== undefined) return { kind: filled, expression: text.slice(filled.length + 1) }
  const formats = `formats are ${[...PLAIN, ...FILLED.map((kind) => `${kind}=…`)].join(', ')}`
  // Outputs of a step have the name that this flag has: agents try it.
  const meant = /^[\w.-]+=/.test(text) ? `; an output of a step is said with --result ${text}` : ''
  throw new LayoutError(`there is no output format "${text}"`, `${formats}${meant}`)
}

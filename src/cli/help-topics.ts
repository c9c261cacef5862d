/** `svcctl help TOPIC`: what is the same for all commands. */
import { EXIT_CODES } from '../contract/base/exit-codes.ts'
import { OUTPUT_FORMATS } from './print/format.ts'
import { wrapWords } from './print/text-width.ts'

/** Each for so many columns. */
export const TOPICS: Readonly<Record<string, (columns: number) => string>> = {
  'exit-codes': (columns) =>
    `Exit codes of svcctl:\n\n${rowsOf(
      EXIT_CODES.map(({ code, name, meaning }) => [String(code), name, meaning]),
      columns,
    )}`,
  output: (columns) =>
    `${FORMATS}${rowsOf(
      OUTPUT_FORMATS.map(({ name, does }) => [name, does]),
      columns,
    )}${MORE}`,
}

const FORMATS = 'What -o prints, of every command:\n\n'
const MORE = `
Paths are JSONPath (RFC 9535) in braces between plain text, as kubectl has them:
  svcctl bead list -o jsonpath='{.items[?(@.status=="open")].id}'
  svcctl bead list -o jsonpath='{range .items[*]}{.id}{"\\t"}{.title}{"\\n"}{end}'

Templates are filled once for each item, so that none needs a loop around it.
They are Liquid, as prompts of agents are: one language to learn, with
conditions and filters.
  svcctl bead list -o template='{{.id}} {{.title | truncate: 20}}{% if assignee %} @{{assignee}}{% endif %}'

--sort orders what a list shows, by columns or by any field of its items;
--columns says what a table shows of them. Both take names with commas between;
dots lead into objects.
  svcctl bead list --sort priority,-created_at --columns id,title,metadata.team
  svcctl bead list --columns +updated_at
`

/** The last cell of a row goes on below itself. */
function rowsOf(rows: readonly (readonly string[])[], columns: number): string {
  const widths = [0, 1].map((at) => Math.max(...rows.map((row) => (row.length > at + 1 ? (row[at] ?? '').length : 0))))
  return rows
    .map((row) => {
      const before = row.slice(0, -1).map((cell, at) => `${cell.padEnd(widths[at] ?? 0)}  `)
      const start = `  ${before.join('')}`
      return `${start}${wrapWords(row.at(-1) ?? '', columns - start.length).join(`\n${' '.repeat(start.length)}`)}\n`
    })
    .join('')
}

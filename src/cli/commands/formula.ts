/** `svcctl formula …`: methods that molecules are made of. */

import type { Formula, FormulaPreview, StoredFormula } from '../../contract/automation/formulas.ts'
import { formatDuration } from '../../contract/base/durations.ts'
import type { CommandSpec } from '../base/command.ts'
import { EXIT } from '../base/failure.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { view } from '../print/view.ts'
import { FORMULAS as TABLE } from '../tables/formulas.ts'
import { FILE, FILES, readDocument, validateFiles } from '../views/documents.ts'
import { varFlag, varsFrom } from '../views/formula-vars.ts'
import { GRAPH_FORMATS, graphText } from '../views/step-graph.ts'

/** `tag* string`, `rounds int = 2`. */
const varText = ({ name, type, required, default: value }: Formula['vars'][number]): string =>
  `${name}${required === true ? '*' : ''} ${type}${value === undefined ? '' : ` = ${JSON.stringify(value)}`}`

const SHOWN = {
  as: {
    DESCRIPTION: ({ description }: Formula) => description?.trim().split('\n')[0],
    TIMEOUT: ({ timeout_ms: ms }: Formula) => (ms === undefined ? undefined : formatDuration(ms)),
    STATE: ({ valid, startable }: Formula) => (valid ? (startable ? 'ready' : 'to extend') : 'invalid'),
    VARS: ({ vars }: Formula) => listOf(vars.map(({ name, required }) => (required === true ? `${name}*` : name))),
    USES: ({ uses }: Formula) => listOf(uses),
    SHADOWS: ({ shadows }: Formula) => listOf(shadows),
    ISSUES: ({ issues }: Formula) => listOf(issues.map(({ line, column, message }) => `${line}:${column}: ${message}`)),
  },
} as const
/** What it is for tells more than its title, which is a template. */
const FORMULAS = view<Formula>()('name rig layer pack STATE steps VARS DESCRIPTION', {
  ...SHOWN,
  wide: 'title file target TIMEOUT USES SHADOWS ISSUES hash revision',
})
const FORMULA = view<Formula>()(
  'name STATE title description ISSUES steps VARS target TIMEOUT USES rig layer pack file SHADOWS hash revision',
  { as: { ...SHOWN.as, VARS: ({ vars }: Formula) => listOf(vars.map(varText)) } },
)
const STORED = view<StoredFormula>()('name rig file revision BREAKS', {
  as: {
    BREAKS: ({ breaks }: StoredFormula) =>
      listOf(breaks.map(({ name, rig }) => (rig === undefined ? name : `${rig}/${name}`))),
  },
})
const DELETED = view<AnswerOf<'delete-formula'>>()('status name rig file', { name: 'name' })
const STEP = view<FormulaPreview['steps'][number]>()('id included title target assignee', {
  wide: 'description rendered',
})

const listOf = (names: readonly string[]): string | undefined => (names.length === 0 ? undefined : names.join(', '))

async function source({
  context,
  client,
  cityName,
  said,
  options,
  input,
}: Call<'get-formula-source'>): Promise<number> {
  const name = input.required('name')
  const { body } = await client.call('get-formula-source', {
    params: { cityName, name },
    query: { rig: said.rig },
    ...options,
  })
  await context.print.text({ text: body, json: JSON.stringify({ name, source: body }) })
  return EXIT.ok
}

async function put({ context, client, cityName, said, options, input }: Call<'put-formula'>): Promise<number> {
  const text = await readDocument(context, input.required('file'))
  const params = { cityName, name: input.required('name') }
  const query = { rig: said.rig, shadow: said.shadow }
  const { body, text: json } = await client.call('put-formula', { params, query, body: text, ...options })
  return printItem(context, STORED, { body, text: json })
}

async function preview(call: Call<'preview-formula'>): Promise<number> {
  const { context, client, cityName, said, options, input, send } = call
  const formula = input.required('name')
  const vars = await varsFrom(client, input.texts('var'), { cityName, formula, rig: said.rig, options })
  const { body, text: json } = await send({ vars })
  if (input.has('graph')) {
    const format = GRAPH_FORMATS.find((one) => one === input.text('graph')) ?? 'text'
    const text = graphText(body.graph, format, context.io.stdout)
    await context.print.text({ text, json: JSON.stringify(body.graph) })
    return EXIT.ok
  }
  await context.note(body.title)
  for (const { message } of body.warnings) await context.note(`warning: ${message}`)
  await context.print.list({ items: body.steps, ...STEP, json })
  return EXIT.ok
}

const command = commandsOf(TABLE)
const NAME = { arguments: ['<name>'] } as const
const RIG = { says: { rig: 'As the layers of this rig have it.' } } as const

export const commands: readonly CommandSpec[] = [
  command('formula list', 'list-formulas', {
    view: FORMULAS,
    examples: {
      'svcctl formula list': 'what molecules can be made of',
      'svcctl formula list --no-valid': 'those that cannot be used as they are',
    },
  }),
  command('formula get', 'get-formula', {
    ...RIG,
    arguments: ['<name...>'],
    view: FORMULA,
    rows: FORMULAS,
    examples: { 'svcctl formula get patch-release -o yaml': 'with its variables, its graph and what is wrong with it' },
  }),
  command('formula source', 'get-formula-source', {
    ...NAME,
    ...RIG,
    run: source,
    examples: { 'svcctl formula source patch-release > patch-release.toml': 'its file, to look at or to edit' },
  }),
  command('formula put', 'put-formula', {
    ...NAME,
    operands: [FILE],
    run: put,
    examples: {
      'svcctl formula put patch-release patch-release.toml': 'create it, or put another in its place',
      'svcctl formula put do-and-verify mine.toml --shadow': 'in place of the one that a pack brings',
    },
  }),
  command('formula delete', 'delete-formula', {
    ...RIG,
    arguments: ['<name...>'],
    asks: (names) => `Delete formula ${names}?`,
    view: DELETED,
    examples: { 'svcctl formula delete patch-release --yes': 'unless something names it' },
  }),
  command('formula validate', 'validate-formula', {
    description:
      'Writes nothing. All that is wrong is named; exit code 1 where a file is not valid. Without files it checks those of the city and its packs.',
    leaves: { source: 'it is in the file', name: 'it is that of the file' },
    operands: [FILES],
    also: ['validate-config'],
    run: validateFiles('formulas'),
    examples: {
      'svcctl formula validate formulas/*.toml': 'before anybody relies on them',
      'svcctl formula validate': 'all that the city has now',
    },
  }),
  command('formula preview', 'preview-formula', {
    ...NAME,
    leaves: { vars: '--var says them' },
    more: [
      varFlag,
      { flags: '--graph [format]', description: 'The steps as a graph: text, or mermaid.', choices: GRAPH_FORMATS },
    ],
    run: preview,
    examples: {
      'svcctl formula preview patch-release --var tag=v1.2.3': 'which steps there would be, and what they would say',
      'svcctl formula preview patch-release --var tag=v1.2.3 --graph mermaid': 'a chart for a document',
    },
  }),
]

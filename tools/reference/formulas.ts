/** The page of formulas and orders: their keys, what does not go together, and the language of their texts. */
import { expressionEngine } from '../../src/automation/language.ts'
import { NAME_FIELDS, STEP_FIELDS } from '../../src/automation/text-check.ts'
import {
  DROPPED_FORMULA_KEYS,
  MAX_ITEMS,
  MAX_LEVELS,
  MAX_STEPS,
  RESERVED_NAMES,
  Step,
} from '../../src/contract/automation/formula-file.ts'
import { DROPPED_ORDER_KEYS } from '../../src/contract/automation/order-file.ts'
import { shapeOf } from '../../src/contract/base/config-shape.ts'
import { automationFiles, fileSection } from './configuration.ts'
import { codeList, page, table } from './markdown.ts'

const INTRO = `Every key of the files of formulas and orders, and the language of their texts. What is not listed here is refused, with the nearest name; all that is wrong with a file is said at once, with line and column. \`svcctl formula validate FILE\` and \`svcctl order validate FILE\` check one; editors do by [\`formula.schema.json\`](../../formula.schema.json) and [\`order.schema.json\`](../../order.schema.json), which \`svcctl schema formula\` and \`svcctl schema order\` print.

Durations are texts such as \`500ms\`, \`30s\`, \`1h30m\` or \`7d\`. A formula has at most ${MAX_STEPS.toLocaleString('en')} steps with those that it expands, on at most ${MAX_LEVELS} levels; a list at most ${MAX_ITEMS.toLocaleString('en')} items.`

export const formulasPage = (): string =>
  page('Formulas and orders', INTRO, [
    ...automationFiles().map(fileSection),
    togetherSection(),
    languageSection(),
    droppedSection(),
  ])

function togetherSection(): string {
  const { excludes = {}, needs = {} } = shapeOf(Step).annotation.rules ?? {}
  const rows = Object.entries(excludes).map(([key, others]) => [`\`${key}\``, codeList(others)])
  const wanted = Object.entries(needs).map(([key, other]) => `\`${key}\` needs \`${other}\`.`)
  return [
    '## What does not go together',
    table(['A step with', 'has none of'], rows),
    `${wanted.join(' ')} Ids are unique among siblings, and \`needs\` names siblings; circles are refused.`,
  ].join('\n\n')
}

const MEANINGS: Readonly<Record<(typeof RESERVED_NAMES)[number], string>> = {
  bead: 'What the molecule is about: `members` are those of a convoy.',
  steps:
    'Steps that are done, as `steps.<id>`: those that this one, or a group around it, needs, directly or by way of others. The output of a group is that of its steps by id, that of a repeated step a list in the order of the items.',
  item: 'In what is repeated: the item, or the number. `as` gives it another name.',
  index: 'In what is repeated: which one it is, from 1.',
  attempt: 'Which attempt it is, from 1.',
  previous: 'The attempt before; nil in the first.',
  molecule: 'The molecule; alone, its id.',
  city: 'The city; alone, its name.',
  rig: 'The rig, if there is one; alone, its name.',
  event: 'In orders: the last event that one was started by. Formulas get what they need of it as variables.',
  events: 'In orders: all of them, up to 100.',
}

function languageSection(): string {
  const fields: Readonly<Record<string, readonly string[]>> = { ...NAME_FIELDS, steps: STEP_FIELDS }
  const names = RESERVED_NAMES.map((name) => [`\`${name}\``, codeList(fields[name] ?? []), MEANINGS[name]])
  const { filters, tags } = expressionEngine()
  return [
    '## The language',
    'Texts are templates and conditions are expressions of [Liquid](https://liquidjs.com). `title`, `description`, `target`, `assignee`, `tags`, `metadata`, `with`, `match`, `timer` and `manual` are templates; `condition`, `in`, `count` and `range` are expressions, without braces. What they read is looked up when the file is loaded: variables by their names, and these.',
    table(['Name', 'Fields', 'Meaning'], names),
    [
      '- What a template prints must be there: a key that is missing in an output fails the step. In expressions, in `if` and before `default` it is nil.',
      '- A condition is true, false or nil; anything else fails the step, because `""`, `0` and `"false"` are true to Liquid. Write `count > 0`, or `text != ""`.',
      '- `and` and `or` do not stand in one expression: it would be read from the right to the left.',
      '- `steps[name]` is refused: steps are read by their ids.',
      '- Values are data: they are put in once, and never read as a template. Lists and objects are printed as JSON. Commands (`exec`, `check` of an order) are no templates: they get values as `SVC_VAR_<NAME>` and on stdin.',
      "- `{% render 'name', key: value %}` puts in the fragment `template-fragments/name.template.md`, which sees what it is passed and all that the text sees.",
      '- A text is rendered in 50 ms or not at all.',
    ].join('\n'),
    `Tags: ${codeList(Object.keys(tags).sort())}.`,
    `Filters: ${codeList(Object.keys(filters).sort())}.`,
  ].join('\n\n')
}

function droppedSection(): string {
  const rows = [...DROPPED_FORMULA_KEYS, ...DROPPED_ORDER_KEYS].map(([key, hint]) => [`\`${key}\``, hint])
  const unique = [...new Map(rows.map((row) => [row.join(), row])).values()]
  return [
    '## Keys of other systems',
    'They are refused, with what to write instead.',
    table(['Key', 'Instead'], unique),
  ].join('\n\n')
}

/** Declarations become commands: flags, arguments and help from the table of the operation (`declaration.ts`). */
import type { OperationId } from '../../contract/index.ts'
import {
  type ArgumentSpec,
  type CommandSpec,
  type Completed,
  type FlagSpec,
  keyFlag,
  watchFlag,
  yesFlag,
} from '../base/command.ts'
import { waitFlags } from './accepted.ts'
import type { Declaration } from './declaration.ts'
import { type FieldFlag, flagsOfField, wordOf } from './field-flags.ts'
import { ifMatchFlag, setFlags, unsetFlag } from './fields.ts'
import { pageFlags } from './paged.ts'
import { type Plan, type Positional, planRun } from './run.ts'
import type { FieldRow, Table } from './table.ts'

/** Declares commands of a family: their words, what they call, and the rest. */
export const commandsOf =
  <Ids extends OperationId>(table: Table<Ids>) =>
  <Id extends Ids>(words: string, operation: Id, declared: Declaration<Id>): CommandSpec =>
    specOf({ words, operation, declared, row: table[operation] })

const queryFlag: FlagSpec = {
  flags: '--query <expression>',
  description: 'All beads that satisfy this, as `svcctl bead query` finds them, instead of ids.',
  field: 'q',
}

function specOf<Id extends OperationId>(
  named: Pick<Plan<Id>, 'words' | 'operation' | 'declared' | 'row'>,
): CommandSpec {
  const { words, operation, declared, row } = named
  const { also = [], summary, description, more = [] } = declared
  const [noun = '', ...verbs] = words.split(' ')
  const rows = new Map<string, FieldRow>(Object.entries(row.fields))
  const positionals = (declared.arguments ?? []).map((name) => positionalOf(name, rows, declared.called ?? {}))
  const each = positionals.find((one) => one.isEach)
  const isQueried = noun === 'bead' && each?.field === 'id'
  const fields = fieldFlagsOf(declared, rows, positionals)
  const isFleet = row.lists === true && !positionals.some(({ row: at }) => at?.at === 'params')
  const isWatched = row.lists === true && row.method === 'GET'
  const flags = [
    ...fields.flat(),
    ...more,
    ...(isQueried ? [queryFlag] : []),
    ...(declared.json === true ? [...setFlags, ...(row.method === 'PATCH' ? [unsetFlag] : [])] : []),
    ...(row.paged === true ? pageFlags : []),
    ...(isWatched ? [watchFlag] : []),
    ...(row.accepts === undefined ? [] : waitFlags),
    ...(declared.asks === undefined ? [] : [yesFlag]),
    ...(row.matches === true ? [ifMatchFlag] : []),
    ...(row.keyed === true ? [keyFlag] : []),
  ]
  const operands = [...positionals.map((one) => argumentOf(declared, one, isQueried)), ...(declared.operands ?? [])]
  const spec = {
    path: [noun, ...verbs] as const,
    operations: [operation, ...also],
    summary: summary ?? row.summary,
    ...textOf(description ?? (summary === undefined ? row.description : undefined)),
    arguments: operands,
    flags,
    leaves: new Map<string, string>(Object.entries(declared.leaves ?? {})),
    isFleet,
    isWatched,
    examples: Object.entries(declared.examples).map(([line, does]) => ({ line, does })),
  }
  const plan: Plan<Id> = {
    ...named,
    positionals,
    each,
    isQueried,
    isFleet: isFleet && row.city === true,
    fields: fields.map(([flag]) => flag),
    spelled: { flags, arguments: operands },
  }
  return { ...spec, run: planRun(plan) }
}

const textOf = (description: string | undefined) => (description === undefined ? {} : { description })

function fieldFlagsOf<Id extends OperationId>(
  { flags = {}, says = {}, completes = {}, leaves = {}, json }: Declaration<Id>,
  rows: ReadonlyMap<string, FieldRow>,
  positionals: readonly Positional[],
): readonly (readonly [FieldFlag, ...FlagSpec[]])[] {
  const spellings = new Map<string, string>(Object.entries(flags))
  const sentences = new Map<string, string>(Object.entries(says))
  const completed = new Map<string, Completed>(Object.entries(completes))
  return [...rows]
    .filter(([field]) => !Object.hasOwn(leaves, field) && !positionals.some((one) => one.field === field))
    .map(([field, row]) =>
      flagsOfField(field, row, {
        spelling: spellings.get(field),
        says: sentences.get(field),
        isSetting: json === true,
        complete: completed.get(field),
      }),
    )
}

function positionalOf(name: string, rows: ReadonlyMap<string, FieldRow>, called: object): Positional {
  const field = name.replaceAll(/[<>[\].]/g, '')
  const row = rows.get(field)
  const isVariadic = name.includes('...')
  const isEach = isVariadic && (row === undefined || (row.at === 'params' && row.many !== true))
  return {
    field,
    row,
    name: new Map<string, string>(Object.entries(called)).get(field) ?? wordOf(field).replaceAll('-', '_'),
    isVariadic,
    isOptional: name.startsWith('['),
    isEach,
  }
}

function argumentOf<Id extends OperationId>(
  { says = {}, completes = {} }: Declaration<Id>,
  { field, row, name, isVariadic, isOptional, isEach }: Positional,
  isQueried: boolean,
): ArgumentSpec {
  const [open, close] = isOptional || (isEach && isQueried) ? '[]' : '<>'
  const isCity = field === 'cityName'
  const said = new Map<string, string>(Object.entries(says)).get(field)
  const complete = new Map<string, Completed>(Object.entries(completes)).get(field)
  return {
    name: `${open}${name}${isVariadic ? '...' : ''}${close}`,
    field,
    description: said ?? (isCity ? 'Name or path (default: the city in scope).' : (row?.says ?? '')),
    ...(row?.choices === undefined ? {} : { choices: row.choices }),
    ...(complete === undefined ? (isCity ? { complete: 'city' } : {}) : { complete }),
  }
}

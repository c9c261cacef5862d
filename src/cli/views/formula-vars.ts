/** Variables of formulas as people write them: texts, each read by the type that the formula declares. */
import type { CallOptions, Client } from '../../client/client.ts'
import type { VarType } from '../../contract/automation/var-text.ts'
import type { FlagSpec } from '../base/command.ts'
import { usageError } from '../base/failure.ts'

export const varFlag: FlagSpec = {
  flags: '--var <name=value>',
  repeatable: true,
  field: 'vars',
  description: 'Value of a variable, read by its type; repeatable.',
}

interface Of {
  readonly cityName: string
  readonly formula: string
  readonly rig: string | undefined
  readonly options: CallOptions
}

/** What nobody declares is left to the server, which knows what was meant. */
export async function varsFrom(
  client: Client,
  texts: readonly string[],
  { cityName, formula, rig, options }: Of,
): Promise<Readonly<Record<string, unknown>>> {
  if (texts.length === 0) return {}
  const { body } = await client.call('get-formula', { params: { cityName, name: formula }, query: { rig }, ...options })
  return readVars(texts, new Map(body.vars.map(({ name, type }) => [name, type])))
}

/** NAME=VALUE pairs; one without a type is text. */
export async function readVars(
  texts: readonly string[],
  types: ReadonlyMap<string, VarType>,
): Promise<Readonly<Record<string, unknown>>> {
  const { parseVarText } = await import('../../contract/automation/var-text.ts')
  const pairs = texts.map((text): [string, unknown] => {
    const equals = text.indexOf('=')
    if (equals <= 0) throw usageError(`invalid --var "${text}": expected NAME=VALUE`)
    const [name, value] = [text.slice(0, equals), text.slice(equals + 1)]
    try {
      return [name, parseVarText(types.get(name) ?? 'string', value)]
    } catch (error) {
      throw usageError(`invalid --var ${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  })
  return Object.fromEntries(pairs)
}

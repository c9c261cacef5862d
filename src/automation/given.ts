/** Values that a step hands to the formula that it expands (`with`): what is wrong with them, as far as the file shows it. */
import type { VarDraft } from './draft.ts'
import { hasMarks } from './language.ts'
import type { Value } from './plan.ts'
import { readVarTexts, unknownVar, type VarDeclarations, varProblem } from './vars.ts'

interface Fault {
  readonly message: string
  readonly hint?: string
}

/** `commands`: names of the command variables that the step sees. */
export function givenProblem(
  name: string,
  value: Value,
  vars: VarDeclarations,
  commands: ReadonlySet<string>,
): Fault | undefined {
  return withProblem(name, value, vars) ?? commandProblem(name, value, vars, commands)
}

/** A value without a template is checked by the type of its variable. */
function withProblem(name: string, value: Value, vars: VarDeclarations): Fault | undefined {
  const declared = Object.hasOwn(vars, name) ? vars[name] : undefined
  if (declared === undefined) return unknownVar(name, vars)
  if (typeof value === 'string' && hasMarks(value)) return undefined
  const read = readVarTexts(vars, { [name]: value })
  if (read.issues !== undefined) return read.issues[0]
  const message = varProblem(declared, read.values[name] ?? null)
  return message === undefined ? undefined : { message }
}

/** A command comes from the file or from a command that its formula was started with, never from other data. */
function commandProblem(
  name: string,
  value: Value,
  vars: VarDeclarations,
  commands: ReadonlySet<string>,
): Fault | undefined {
  const declared = Object.hasOwn(vars, name) ? vars[name] : undefined
  if (declared?.type !== 'command' || typeof value !== 'string' || !hasMarks(value)) return undefined
  const [, passed = ''] = /^\{\{-?\s*([A-Za-z_]\w*)\s*-?\}\}$/.exec(value) ?? []
  if (commands.has(passed)) return undefined
  const message = `\`${name}\` is a command: it is a fixed text, or exactly one variable of the type \`command\``
  return {
    message,
    hint: `write \`with = { ${name} = "{{ ${name} }}" }\`, and \`[vars.${name}]\` with \`type = "command"\``,
  }
}

export const commandsOf = (vars: ReadonlyMap<string, VarDraft>): ReadonlySet<string> =>
  new Set([...vars].flatMap(([name, { declaration }]) => (declaration.type === 'command' ? [name] : [])))

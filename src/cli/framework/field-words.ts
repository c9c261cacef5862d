/** How the command line says a field of a request, so that an error names what was typed. Pure. */
import {
  type ArgumentSpec,
  argumentName,
  type CommandSpec,
  type FlagSpec,
  fieldName,
  flagName,
  flagWords,
  type Input,
  snakeCase,
} from '../base/command.ts'

/**
 * `body.priority` → `--priority` where that was given, `body.metadata.a` → `--meta a`, `path.id` → `<id>`; else as the API
 * names it.
 */
export function saidAs(
  location: string,
  { flags = [], arguments: operands = [] }: Pick<CommandSpec, 'flags' | 'arguments'>,
  input: Input,
): string {
  const [, field, inside = ''] = /^(?:body|path|query)\.(\w+)(.*)$/s.exec(location) ?? []
  if (field === undefined) return location
  const word = flagWord(field, flags, input) ?? operandWord(field, operands)
  return word === undefined ? location : `${word}${inside.replace(/^\./, ' ')}`
}

const flagWord = (field: string, flags: readonly FlagSpec[], input: Input): string | undefined => {
  const flag = flags.find((one) => fieldName(one) === field && input.has(flagName(one.flags)))
  return flag === undefined ? undefined : flagWords(flag.flags).find((word) => word.startsWith('--'))
}

const operandWord = (field: string, operands: readonly ArgumentSpec[]): string | undefined => {
  const operand = operands.find((one) => [field, snakeCase(field)].includes(one.field ?? argumentName(one.name)))
  return operand === undefined ? undefined : `<${argumentName(operand.name)}>`
}

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
 * `body.priority` → `--priority` or `--set priority`, `body.metadata.a` → `--meta a`, `path.id` → `<id>`; as the API names it where no word says
 * it, or it may have been said as JSON.
 */
export function saidAs(
  location: string,
  { flags = [], arguments: operands = [] }: Pick<CommandSpec, 'flags' | 'arguments'>,
  input: Input,
): string {
  const [, field, inside = ''] = /^(?:body|path|query)\.(\w+)(.*)$/s.exec(location) ?? []
  if (field === undefined) return location
  if (input.texts('set').some((text) => /^[^=.]*/.exec(text)?.[0] === field)) return `--set ${field}${inside}`
  const given = flags.filter((one) => input.has(flagName(one.flags)))
  const other = given.some(({ flags: words }) => /^--(?:set|data) /.test(words)) ? [] : flags
  const word = flagWord(field, given) ?? operandWord(field, operands) ?? flagWord(field, other)
  return word === undefined ? location : `${word}${inside.replace(/^\./, ' ')}`
}

const flagWord = (field: string, flags: readonly FlagSpec[]): string | undefined => {
  const flag = flags.find((one) => fieldName(one) === field)
  return flag === undefined ? undefined : flagWords(flag.flags).find((word) => word.startsWith('--'))
}

const operandWord = (field: string, operands: readonly ArgumentSpec[]): string | undefined => {
  const operand = operands.find((one) => [field, snakeCase(field)].includes(one.field ?? argumentName(one.name)))
  return operand === undefined ? undefined : `<${argumentName(operand.name)}>`
}

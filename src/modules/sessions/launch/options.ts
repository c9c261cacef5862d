/** The options of a provider: what is effective, and what it adds to the command line (sheet 04 §6.3). Pure. */
import { invalidField } from '../../../kernel/problem.ts'
import type { AgentView, ProviderView } from '../record/config-view.ts'

type Options = Readonly<Record<string, string>>
type Option = NonNullable<ProviderView['options_schema']>[number]

/** Later wins: the schema's default, the provider's, the agent's, the session's. */
export function effectiveOptions(provider: ProviderView, agent: AgentView | undefined, chosen: Options): Options {
  const defaults = (provider.options_schema ?? []).flatMap(({ key, default: preset }) =>
    preset === undefined ? [] : [[key, preset] as const],
  )
  return { ...Object.fromEntries(defaults), ...provider.option_defaults, ...agent?.option_defaults, ...chosen }
}

/** 422 for a key or a value that the provider does not have. */
export function checkOptions(provider: ProviderView, chosen: Options, location: string): void {
  for (const [key, value] of Object.entries(chosen)) {
    const option = findOption(provider, key)
    if (option === undefined) throw invalidField(`${location}.${key}`, 'the provider has no such option', value)
    const values = (option.choices ?? []).map((choice) => choice.value)
    if (value !== '' && !values.includes(value))
      throw invalidField(`${location}.${key}`, `must be one of ${values.map((one) => one || '""').join(', ')}`, value)
  }
}

export const findOption = (provider: ProviderView, key: string): Option | undefined =>
  provider.options_schema?.find((option) => option.key === key)

/** `args` without what the options say in another way, and with what they say, in the order of the schema. */
export function withOptions(provider: ProviderView, args: readonly string[], options: Options): readonly string[] {
  const schema = provider.options_schema ?? []
  let stripped = [...args]
  for (const { choices = [] } of schema)
    for (const { flag_args = [], flag_aliases = [] } of choices)
      for (const spelling of [flag_args, ...flag_aliases]) stripped = without(stripped, spelling)
  const added = schema.flatMap(({ key, choices = [] }) => {
    const value = options[key]
    return choices.find((choice) => choice.value === value)?.flag_args ?? []
  })
  return [...stripped, ...added]
}

/** What the options say in variables, and as a mode of the agent protocol. */
export function beyondFlags(
  provider: ProviderView,
  options: Options,
): { readonly env: Readonly<Record<string, string>>; readonly acpMode: string | undefined } {
  const chosen = (provider.options_schema ?? []).flatMap(
    ({ key, choices = [] }) => choices.find(({ value }) => value === options[key]) ?? [],
  )
  return {
    env: Object.assign({}, ...chosen.map(({ env = {} }) => env)),
    acpMode: chosen.findLast(({ acp_mode: mode }) => mode !== undefined)?.acp_mode,
  }
}

function without(args: readonly string[], words: readonly string[]): string[] {
  if (words.length === 0) return [...args]
  const kept: string[] = []
  for (let at = 0; at < args.length; ) {
    const matches = words.every((word, offset) => args[at + offset] === word)
    if (!matches) kept.push(args[at] ?? '')
    at += matches ? words.length : 1
  }
  return kept
}

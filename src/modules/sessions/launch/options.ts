/** The options of a provider: what is effective, and what it adds to the command line (sheet 04 §6.3). Pure. */
import { invalidField } from '../../../kernel/problem.ts'
import type { AgentView, ProviderView } from '../record/config-view.ts'

/** A model with its provider and its region. */
const MAX_FREE_CHARACTERS = 200
const FREE = '{value}'

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
    if (option.free_args !== undefined) checkFree(value, `${location}.${key}`)
    else if (value !== '' && !values.includes(value))
      throw invalidField(`${location}.${key}`, `must be one of ${values.map((one) => one || '""').join(', ')}`, value)
  }
}

/** It becomes one argument: nothing that reads as a flag, and nothing that a terminal would draw. */
function checkFree(value: string, location: string): void {
  if (value.startsWith('-') || value.length > MAX_FREE_CHARACTERS || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(value))
    throw invalidField(location, `at most ${MAX_FREE_CHARACTERS} characters of one line, and no flag`, value)
}

export const findOption = (provider: ProviderView, key: string): Option | undefined =>
  provider.options_schema?.find((option) => option.key === key)

/** `args` without what the options say in another way, and with what they say, in the order of the schema. */
export function withOptions(provider: ProviderView, args: readonly string[], options: Options): readonly string[] {
  const schema = provider.options_schema ?? []
  let stripped = [...args]
  for (const { key, choices = [], free_args = [] } of schema) {
    // Arguments of the person's own stay where nothing else was chosen.
    if ((options[key] ?? '') !== '') stripped = without(stripped, free_args)
    for (const { flag_args = [], flag_aliases = [] } of choices)
      for (const spelling of [flag_args, ...flag_aliases]) stripped = without(stripped, spelling)
  }
  return [...stripped, ...schema.flatMap((option) => saidBy(option, options[option.key]))]
}

function saidBy({ choices = [], free_args }: Option, value: string | undefined): readonly string[] {
  const chosen = choices.find((choice) => choice.value === value)
  if (chosen !== undefined) return chosen.flag_args ?? []
  if (free_args === undefined || value === undefined || value === '') return []
  return free_args.map((word) => word.replaceAll(FREE, () => value))
}

/** The option that says what an agent may do unasked; what it is set to by the protocol is its `mode`. */
export const PERMISSION_MODE = 'permission_mode'

export interface Setting {
  readonly key: string
  readonly value: string
}

/** What the agent protocol says for an option: undefined where only a start can say it. */
export function settingOf(provider: ProviderView, key: string, value: string): Setting | undefined {
  if (value === '') return undefined
  const choice = findOption(provider, key)?.choices?.find((one) => one.value === value)
  if (choice?.acp_mode !== undefined) return { key: 'mode', value: choice.acp_mode }
  if (key !== PERMISSION_MODE) return { key, value }
  // A mode in the agent's own word stands for itself.
  return choice === undefined ? { key: 'mode', value } : undefined
}

/** What an agent behind the protocol is set to at its start. Where flags say the rest, only its mode. */
export function settingsOf(provider: ProviderView, options: Options): Readonly<Record<string, string>> {
  const said = Object.entries(options).flatMap(([key, value]) => settingOf(provider, key, value) ?? [])
  const left = provider.acp_args === undefined ? said.filter(({ key }) => key === 'mode') : said
  return Object.fromEntries(left.map(({ key, value }) => [key, value]))
}

/** What the options say in variables. */
export function optionsEnv(provider: ProviderView, options: Options): Readonly<Record<string, string>> {
  const chosen = (provider.options_schema ?? []).flatMap(
    ({ key, choices = [] }) => choices.find(({ value }) => value === options[key]) ?? [],
  )
  return Object.assign({}, ...chosen.map(({ env = {} }) => env))
}

function without(args: readonly string[], words: readonly string[]): string[] {
  if (words.length === 0) return [...args]
  const kept: string[] = []
  for (let at = 0; at < args.length; ) {
    const matches = words.every((word, offset) => fits(args[at + offset], word))
    if (!matches) kept.push(args[at] ?? '')
    at += matches ? words.length : 1
  }
  return kept
}

/** `{value}` alone is any argument; inside of a word it is the rest of it. */
function fits(arg: string | undefined, word: string): boolean {
  if (arg === undefined || !word.includes(FREE)) return arg === word
  const [before = '', after = ''] = word.split(FREE)
  return arg.startsWith(before) && arg.slice(before.length).endsWith(after)
}

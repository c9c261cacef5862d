/** `svcctl provider …`: what agents of a city run on. */
import type { PatchBody } from '../../contract/base/merge-patch.ts'
import type { ProviderCreateRequest, ProviderInfo } from '../../contract/providers.ts'
import { type CommandSpec, type Input, keyFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { bodyOf, ifMatchFlag, setFlags, unsetFlag } from '../base/fields.ts'
import { type AnswerOf, fieldsOver, type InCity, inCity, printsItem, printsList, type View } from '../base/in-city.ts'
import type { Column } from '../base/output.ts'
import { providerReadiness } from './health.ts'

const COLUMNS: readonly Column<ProviderInfo>[] = [
  { header: 'NAME', value: (provider) => provider.name },
  { header: 'DISPLAY_NAME', value: (provider) => provider.display_name },
  { header: 'BUILTIN', value: (provider) => provider.builtin },
  { header: 'DECLARED', value: (provider) => provider.city_level },
  { header: 'USED', value: (provider) => provider.used },
  { header: 'COMMAND', value: (provider) => provider.command },
  { header: 'CHAIN', value: (provider) => provider.chain.join(' < ') },
  { header: 'ARGS', value: (provider) => provider.args?.join(' '), wide: true },
  { header: 'ACP_COMMAND', value: (provider) => provider.acp_command, wide: true },
  { header: 'PROMPT_MODE', value: (provider) => provider.prompt_mode, wide: true },
  { header: 'ENV', value: (provider) => Object.keys(provider.env ?? {}).join(', '), wide: true },
  { header: 'FILE', value: ({ file, line }) => (file === undefined ? undefined : `${file}:${line}`), wide: true },
  { header: 'REVISION', value: (provider) => provider.revision, wide: true },
]
const PROVIDER: View<ProviderInfo> = { columns: COLUMNS, name: ({ name }) => name }
const DELETED: View<AnswerOf<'delete-provider'>> = {
  columns: [
    { header: 'STATUS', value: (deleted) => deleted.status },
    { header: 'NAME', value: (deleted) => deleted.name },
    { header: 'REVISION', value: (deleted) => deleted.revision },
  ],
  name: ({ name }) => name,
}

interface Choice {
  readonly name: string
  readonly option: string
  readonly preset: string | undefined
  readonly choices: string
}
const CHOICES: View<Choice> = {
  columns: [
    { header: 'NAME', value: (item) => item.name },
    { header: 'OPTION', value: (item) => item.option },
    { header: 'DEFAULT', value: (item) => item.preset },
    { header: 'CHOICES', value: (item) => item.choices },
  ],
  name: (item) => `${item.name} ${item.option}`,
}

const itemParams = ({ cityName, input }: InCity) => ({ cityName, name: input.required('name') })

async function list(context: Context, input: Input): Promise<number> {
  return input.on('options') ? listChoices(context, input) : listProviders(context, input)
}

const listProviders = printsList(PROVIDER, ({ client, cityName, options }) =>
  client.call('list-providers', { params: { cityName }, ...options }),
)

async function listChoices(context: Context, input: Input): Promise<number> {
  const { body, text } = await inCity(context, input, ({ client, cityName, options }) =>
    client.call('list-public-providers', { params: { cityName }, ...options }),
  )
  const items = body.items.flatMap((provider) =>
    provider.options_schema.map((option) => ({
      name: provider.name,
      option: option.key,
      preset: provider.effective_defaults[option.key],
      choices: option.choices.map(({ value }) => value).join(', '),
    })),
  )
  await context.print.list({ items, ...CHOICES, json: text })
  return EXIT.ok
}

const get = printsItem(PROVIDER, (city) =>
  city.client.call('get-provider', { params: itemParams(city), ...city.options }),
)

const create = printsItem(
  PROVIDER,
  ({ client, cityName, options }, fields) =>
    client.call('create-provider', { params: { cityName }, body: bodyOf<ProviderCreateRequest>(fields), ...options }),
  fieldsOver((_, input) => ({
    name: input.required('name'),
    base: input.text('base'),
    command: input.text('command'),
    display_name: input.text('displayName'),
  })),
)

const update = printsItem(
  PROVIDER,
  (city, fields) =>
    city.client.call('patch-provider', { params: itemParams(city), body: bodyOf<PatchBody>(fields), ...city.options }),
  fieldsOver(),
)

const remove = printsItem(DELETED, (city) =>
  city.client.call('delete-provider', { params: itemParams(city), ...city.options }),
)

const provider = { name: '<name>', description: 'Name of the provider.' } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['provider', 'list'],
    operations: ['list-providers', 'list-public-providers'],
    flags: [{ flags: '--options', description: 'What a session may choose of each, instead.' }],
    examples: [
      { line: 'svcctl provider list', does: 'declared ones first, then the other built-in ones' },
      { line: 'svcctl provider list --options', does: 'their options, defaults and choices' },
    ],
    run: list,
  },
  {
    path: ['provider', 'get'],
    operations: ['get-provider'],
    arguments: [provider],
    examples: [{ line: 'svcctl provider get claude -o json', does: 'everything about one' }],
    run: get,
  },
  {
    path: ['provider', 'create'],
    operations: ['create-provider'],
    arguments: [provider],
    flags: [
      { flags: '--base <provider>', description: 'What it derives from: builtin:NAME, provider:NAME or a name.' },
      { flags: '--command <command>', description: 'Program that it starts.' },
      { flags: '--display-name <text>', description: 'What people see.' },
      ...setFlags,
      ifMatchFlag,
      keyFlag,
    ],
    examples: [
      {
        line: 'svcctl provider create claude --base builtin:claude',
        does: 'a built-in one with changes of this city; as it is it needs none',
      },
      {
        line: `svcctl provider create careful --base claude --set option_defaults.permission_mode=plan`,
        does: 'derive one',
      },
    ],
    run: create,
  },
  {
    path: ['provider', 'update'],
    operations: ['patch-provider'],
    arguments: [provider],
    flags: [...setFlags, unsetFlag, ifMatchFlag],
    examples: [
      { line: 'svcctl provider update careful --set env.MODE=fast --unset display_name', does: 'change two fields' },
    ],
    run: update,
  },
  {
    path: ['provider', 'delete'],
    operations: ['delete-provider'],
    arguments: [provider],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl provider delete careful', does: 'remove it, where nothing uses it' }],
    run: remove,
  },
  {
    path: ['provider', 'readiness'],
    operations: ['get-provider-readiness', 'get-city-provider-readiness'],
    arguments: [{ name: '[items...]', description: 'Providers; all where absent.' }],
    flags: [{ flags: '--fresh' }],
    examples: [{ line: 'svcctl provider readiness claude --fresh', does: 'can it be used on this host, now' }],
    run: providerReadiness,
  },
]

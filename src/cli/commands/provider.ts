/** `svcctl provider …`: what agents of a city run on. */

import type { ProviderInfo } from '../../contract/providers.ts'
import type { CommandSpec } from '../base/command.ts'
import { EXIT } from '../base/failure.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { placeOf } from '../print/columns.ts'
import { view } from '../print/view.ts'
import { PROVIDERS as TABLE } from '../tables/providers.ts'
import { providerReadiness } from './health.ts'

const words = (parts: readonly (string | undefined)[]) => parts.filter((part) => part !== undefined).join(' ')
const PROVIDER = view<ProviderInfo>()('name display_name builtin DECLARED command CHAIN', {
  wide: 'ARGS prompt_mode ENV FILE revision ACP RESUMES HOOKS PERMISSIONS MODELS BUSY DIALOGS USAGE CHECKED',
  as: {
    ACP: ({ harness }) => words([harness?.acp?.command, ...(harness?.acp?.args ?? [])]),
    RESUMES: 'harness.resumable',
    HOOKS: ({ harness }) =>
      harness?.hooks && words([...harness.hooks.events, harness.hooks.permission ? '(asks for leave)' : undefined]),
    PERMISSIONS: ({ harness }) =>
      harness?.permission_mode &&
      `${harness.permission_mode.default}, of ${harness.permission_mode.choices.join(', ')}`,
    MODELS: ({ harness }) => harness?.models.join(', '),
    BUSY: ({ harness }) => harness?.screen.busy.join(', '),
    DIALOGS: ({ harness }) => harness?.screen.startup_dialogs.join(', '),
    USAGE: ({ harness }) =>
      harness?.counts_usage ? 'counted' : harness?.acp ? 'counted over ACP, else not counted' : 'not counted',
    CHECKED: ({ harness }) => harness?.sources.map(({ version, where }) => `${version} (${where})`).join('; '),
    DECLARED: 'city_level',
    CHAIN: (provider) => provider.chain.join(' < '),
    ARGS: (provider) => provider.args?.join(' '),
    ENV: (provider) => Object.keys(provider.env ?? {}).join(', '),
    FILE: placeOf,
  },
})
const DELETED = view<AnswerOf<'delete-provider'>>()('status name revision', { name: 'name' })

interface Choice {
  readonly name: string
  readonly option: string
  readonly preset: string | undefined
  readonly choices: readonly string[]
}
const CHOICES = view<Choice>()('name option DEFAULT choices', {
  as: { DEFAULT: 'preset' },
  name: (item) => `${item.name} ${item.option}`,
})

async function list({ context, input, client, cityName, options, send }: Call<'list-providers'>): Promise<number> {
  if (!input.on('options')) {
    const { body, text } = await send()
    await context.print.list({ items: body.items, ...PROVIDER, json: text })
    return EXIT.ok
  }
  const { body, text } = await client.call('list-public-providers', { params: { cityName }, ...options })
  const items = body.items.flatMap((provider) =>
    provider.options_schema.map((option) => ({
      name: provider.name,
      option: option.key,
      preset: provider.effective_defaults[option.key],
      choices: option.choices.map(({ value }) => value),
    })),
  )
  await context.print.list({ items, ...CHOICES, json: text })
  return EXIT.ok
}

const command = commandsOf(TABLE)
const NAME = { completes: { name: 'provider' } } as const
const SETTINGS = {
  says: {
    base: 'What it derives from: builtin:NAME, provider:NAME or a name.',
    command: 'Program that it starts.',
    display_name: 'What people see.',
  },
} as const

export const commands: readonly CommandSpec[] = [
  command('provider list', 'list-providers', {
    also: ['list-public-providers'],
    more: [{ flags: '--options', description: 'What a session may choose of each, instead.' }],
    view: PROVIDER,
    run: list,
    examples: {
      'svcctl provider list': 'declared ones first, then the other built-in ones',
      'svcctl provider list --options': 'their options, defaults and choices',
    },
  }),
  command('provider get', 'get-provider', {
    ...NAME,
    arguments: ['<name...>'],
    view: PROVIDER,
    examples: { 'svcctl provider get claude -o json': 'everything about one' },
  }),
  command('provider create', 'create-provider', {
    ...SETTINGS,
    arguments: ['<name>'],
    json: true,
    view: PROVIDER,
    examples: {
      'svcctl provider create claude --base builtin:claude': 'let the city use a built-in one',
      'svcctl provider create careful --base claude --option-defaults permission_mode=plan': 'derive one',
    },
  }),
  command('provider update', 'patch-provider', {
    ...NAME,
    ...SETTINGS,
    arguments: ['<name...>'],
    json: true,
    view: PROVIDER,
    examples: { 'svcctl provider update careful --env MODE=fast --unset display_name': 'change two fields' },
  }),
  command('provider delete', 'delete-provider', {
    ...NAME,
    arguments: ['<name...>'],
    view: DELETED,
    examples: { 'svcctl provider delete careful': 'remove it, where nothing uses it' },
  }),
  providerReadiness('provider readiness'),
]

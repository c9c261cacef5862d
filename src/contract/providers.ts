/** Providers: the programs that agents run on, as a city has them (sheet 07 §§2.4, 8.4; decisions 29, 33). */

import { family } from './base/family.ts'
import { mergePatchBody } from './base/merge-patch.ts'
import { CityNameParam, Revision } from './base/names.ts'
import { listBody } from './base/paging.ts'
import {
  array,
  boolean,
  component,
  described,
  integer,
  literal,
  object,
  optional,
  record,
  type Static,
  string,
} from './base/schema.ts'
import { Provider } from './config-schema.ts'

export const PROVIDER_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]*$'
/** A path of its own, so no provider can have this name. */
export const RESERVED_PROVIDER_NAME = 'public'

export const ProviderSpec = component(
  'ProviderSpec',
  { ...Provider.properties },
  { description: 'The fields of `[providers.<name>]`.' },
)
export type ProviderSpec = Static<typeof ProviderSpec>

const { command, args, acp_command, acp_args, prompt_mode, prompt_flag, ready_delay_ms, env, display_name, base } =
  Provider.properties

export const HarnessFacts = component(
  'HarnessFacts',
  {
    name: string({ description: 'Built-in provider that knows it.' }),
    resumable: boolean({ description: 'A conversation has a key to go on by; else every start begins a new one.' }),
    names_conversations: boolean({
      description: 'A new conversation gets its id from us, so that its key is known at once.',
    }),
    acp: optional(
      object(
        { command: string(), args: array(string()) },
        { description: 'How it speaks the Agent Client Protocol; absent: it is not known to.' },
      ),
    ),
    hooks: optional(
      object(
        {
          events: array(string(), { description: 'What it reports to us, in its own words.' }),
          permission: boolean({ description: 'It asks us before it asks at its terminal.' }),
          files: array(string(), { description: 'Laid for each session, in a directory of the session.' }),
          flags: array(string(), { description: 'Flags that tell it of them.' }),
          env: array(string(), { description: 'Variables that tell it of them.' }),
        },
        { description: 'How it tells what it does; absent: its screen, or the protocol, is all there is.' },
      ),
    ),
    screen: object({
      prompt: optional(string({ description: 'What its input line begins with.' })),
      busy: array(string(), { description: 'Words that say that a turn is under way.' }),
      startup_dialogs: array(string(), {
        description: 'Dialogs of its start that are answered where that is configured.',
      }),
      approval: boolean({ description: 'The wording of its questions is known; menus are seen without.' }),
    }),
    counts_usage: boolean({
      description: 'On a terminal, its log tells the tokens of each turn; over ACP the protocol does.',
    }),
    permission_mode: optional(
      object(
        { default: string(), choices: array(string()) },
        { description: 'What it may do unasked; the default skips no question that it would ask.' },
      ),
    ),
    models: array(string(), { description: 'Suggestions; any text is taken.' }),
    sources: array(object({ version: string(), where: string() }), {
      description: 'What this was checked against.',
    }),
  },
  { description: 'What is known of the program of a provider: of the built-in one at the end of its chain.' },
)
export type HarnessFacts = Static<typeof HarnessFacts>

export const ProviderInfo = component(
  'ProviderInfo',
  {
    name: string(),
    display_name,
    builtin: boolean({ description: 'There is a built-in provider of this name.' }),
    city_level: boolean({
      description:
        'Declared in files. A built-in one that is not works as it stands, and can be declared under its name.',
    }),
    used: boolean({ description: 'The workspace, the defaults, an agent or another provider names it.' }),
    base,
    chain: array(string(), {
      description: '`provider:<name>` and `builtin:<name>`, from itself to the last base.',
    }),
    command,
    args,
    acp_command,
    acp_args,
    prompt_mode,
    prompt_flag,
    ready_delay_ms,
    env,
    harness: optional(HarnessFacts),
    raw: described(ProviderSpec, 'As declared, before its base; values of `env` masked.'),
    resolved: described(ProviderSpec, 'The whole chain and every patch as one; values of `env` masked.'),
    file: optional(string({ description: 'File that declares it.' })),
    line: optional(integer({ minimum: 1 })),
    revision: Revision,
  },
  {
    description: 'A provider. Fields beside `raw` and `resolved` are the resolved ones.',
  },
)
export type ProviderInfo = Static<typeof ProviderInfo>

export const PublicProvider = component(
  'PublicProvider',
  {
    name: string(),
    display_name: optional(string()),
    builtin: boolean(),
    city_level: boolean(),
    options_schema: array(
      object({
        key: string(),
        label: string(),
        type: literal('select'),
        default: string({ description: "A choice's value; empty: the program decides." }),
        choices: array(object({ value: string(), label: string() })),
        free: boolean({ description: 'Any text is taken; the choices are suggestions.' }),
      }),
    ),
    effective_defaults: record(string(), {
      description: 'What a session gets that chooses nothing, by option.',
    }),
  },
  {
    description: 'What somebody who starts a session needs to know: never a command, an argument or a variable.',
  },
)
export type PublicProvider = Static<typeof PublicProvider>

const name = string({
  pattern: PROVIDER_NAME_PATTERN,
  minLength: 1,
  maxLength: 64,
  not: { const: RESERVED_PROVIDER_NAME },
  description: 'Letters, digits, `.`, `_` and `-`; not `public`.',
  examples: ['my-shell'],
})

export const ProviderCreateRequest = component(
  'ProviderCreateRequest',
  {
    name,
    ...Provider.properties,
    base: optional(
      string({ description: '`builtin:<name>`, `provider:<name>` or a name.', examples: ['builtin:shell'] }),
    ),
  },
  { description: '`command` or `base` is required.' },
)
export type ProviderCreateRequest = Static<typeof ProviderCreateRequest>

export const ProviderPatchRequest = mergePatchBody(
  'ProviderPatchRequest',
  Provider.properties,
  'JSON Merge Patch of what is declared: null unsets a field, lists replace, maps merge.',
)

export const DeletedProvider = component('DeletedProvider', {
  status: literal('deleted'),
  name: string(),
  revision: string({ description: 'Of the configuration without it.' }),
})

const providers = family(
  { name: 'Providers', about: 'Programs that agents run on.' },
  '/v0/city/{cityName}/providers',
  {
    cityName: CityNameParam,
    name: string({ minLength: 1, description: 'Name of the provider.', examples: ['shell'] }),
  },
  { replyHeaders: ['X-SVC-Index', 'ETag'] },
)
const provider = providers.at('/{name}', { problems: ['provider-not-found'] })
const change = provider.with({
  headers: ['If-Match'],
  replyHeaders: ['X-SVC-Config-Rejected'],
  problems: ['provider-builtin', 'pack-derived', 'conflict-config'],
  emits: ['config.reloaded'],
})

export const listProviders = providers.get('list-providers', '', {
  summary: 'List providers',
  description:
    'The declared ones by name, then the other built-in ones, which need no declaration. `used` says what the city has of them.',
  replies: { 200: listBody('ListBodyProviderInfo', ProviderInfo) },
})

export const listPublicProviders = providers.get('list-public-providers', '/public', {
  summary: 'List providers with their options',
  description: 'What a session may choose: options with their choices and defaults, over the whole chain of bases.',
  replies: { 200: listBody('ListBodyPublicProvider', PublicProvider) },
})

export const createProvider = providers.post('create-provider', '', {
  summary: 'Declare a provider',
  description: 'Adds `[providers.<name>]` to `city.toml`.',
  body: ProviderCreateRequest,
  headers: ['Idempotency-Key', 'If-Match'],
  replyHeaders: ['X-SVC-Config-Rejected'],
  replies: { 201: ProviderInfo },
  problems: ['name-taken', 'conflict-config', 'invalid-config'],
  emits: ['config.reloaded'],
})

export const getProvider = provider.get('get-provider', '', {
  summary: 'Get a provider',
  description: 'What it comes to with all that it is based on.',
  replies: { 200: ProviderInfo },
})

export const patchProvider = change.patch('patch-provider', '', {
  summary: 'Change a declared provider',
  description: 'JSON Merge Patch of its declaration, in the file that has it; an empty object changes nothing.',
  body: ProviderPatchRequest,
  replies: { 200: ProviderInfo },
  problems: ['invalid-config'],
})

export const providerOperations = [
  listProviders,
  listPublicProviders,
  createProvider,
  getProvider,
  patchProvider,
  change.delete('delete-provider', '', {
    summary: 'Remove a declared provider',
    description:
      'Refused while an agent, a session or another provider refers to it. Who refers to a built-in one by its name goes on with that as it is built in.',
    replies: { 200: DeletedProvider },
    problems: ['still-referenced'],
  }),
] as const

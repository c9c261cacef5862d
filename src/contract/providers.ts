/** Providers: the programs that agents run on, as a city has them (sheet 07 §§2.4, 8.4; decisions 29, 33). */
import Type, { type Static } from 'typebox'
import { mergePatchBody } from './base/merge-patch.ts'
import { CityNameParam, Revision } from './base/names.ts'
import { operation } from './base/operation.ts'
import { listBody } from './base/paging.ts'
import { Provider } from './config-schema.ts'

export const PROVIDER_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]*$'
/** A path of its own, so no provider can have this name. */
export const RESERVED_PROVIDER_NAME = 'public'

export const ProviderSpec = Type.Object(
  { ...Provider.properties },
  { $id: 'ProviderSpec', additionalProperties: false, description: 'The fields of `[providers.<name>]`.' },
)
export type ProviderSpec = Static<typeof ProviderSpec>

const { command, args, acp_command, acp_args, prompt_mode, prompt_flag, ready_delay_ms, env, display_name, base } =
  Provider.properties

export const ProviderInfo = Type.Object(
  {
    name: Type.String(),
    display_name,
    builtin: Type.Boolean({ description: 'There is a built-in provider of this name.' }),
    city_level: Type.Boolean({
      description: 'Declared in files; what is not can be read, and declared under its name.',
    }),
    base,
    chain: Type.Array(Type.String(), {
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
    raw: Type.Intersect([ProviderSpec], { description: 'As declared, before its base; values of `env` masked.' }),
    resolved: Type.Intersect([ProviderSpec], {
      description: 'The whole chain and every patch as one; values of `env` masked.',
    }),
    file: Type.Optional(Type.String({ description: 'File that declares it.' })),
    line: Type.Optional(Type.Integer({ minimum: 1 })),
    revision: Revision,
  },
  {
    $id: 'ProviderInfo',
    additionalProperties: false,
    description: 'A provider. Fields beside `raw` and `resolved` are the resolved ones.',
  },
)
export type ProviderInfo = Static<typeof ProviderInfo>

export const PublicProvider = Type.Object(
  {
    name: Type.String(),
    display_name: Type.Optional(Type.String()),
    builtin: Type.Boolean(),
    city_level: Type.Boolean(),
    options_schema: Type.Array(
      Type.Object(
        {
          key: Type.String(),
          label: Type.String(),
          type: Type.Literal('select'),
          default: Type.String({ description: "A choice's value; empty: the program decides." }),
          choices: Type.Array(
            Type.Object({ value: Type.String(), label: Type.String() }, { additionalProperties: false }),
          ),
        },
        { additionalProperties: false },
      ),
    ),
    effective_defaults: Type.Record(Type.String(), Type.String(), {
      description: 'What a session gets that chooses nothing, by option.',
    }),
  },
  {
    $id: 'PublicProvider',
    additionalProperties: false,
    description: 'What somebody who starts a session needs to know: never a command, an argument or a variable.',
  },
)
export type PublicProvider = Static<typeof PublicProvider>

const name = Type.String({
  pattern: PROVIDER_NAME_PATTERN,
  minLength: 1,
  maxLength: 64,
  not: { const: RESERVED_PROVIDER_NAME },
  description: 'Letters, digits, `.`, `_` and `-`; not `public`.',
  examples: ['my-shell'],
})

export const ProviderCreateRequest = Type.Object(
  {
    name,
    ...Provider.properties,
    base: Type.Optional(
      Type.String({ description: '`builtin:<name>`, `provider:<name>` or a name.', examples: ['builtin:shell'] }),
    ),
  },
  { $id: 'ProviderCreateRequest', additionalProperties: false, description: '`command` or `base` is required.' },
)
export type ProviderCreateRequest = Static<typeof ProviderCreateRequest>

export const ProviderPatchRequest = mergePatchBody(
  'ProviderPatchRequest',
  Provider.properties,
  'JSON Merge Patch of what is declared: null unsets a field, lists replace, maps merge.',
)

export const DeletedProvider = Type.Object(
  {
    status: Type.Literal('deleted'),
    name: Type.String(),
    revision: Type.String({ description: 'Of the configuration without it.' }),
  },
  { $id: 'DeletedProvider', additionalProperties: false },
)

const path = '/v0/city/{cityName}/providers'
const cityParams = Type.Object({ cityName: CityNameParam })
const params = Type.Object({
  cityName: CityNameParam,
  name: Type.String({ minLength: 1, description: 'Name of the provider.', examples: ['shell'] }),
})

export const listProviders = operation({
  id: 'list-providers',
  method: 'GET',
  path,
  family: 'Providers',
  summary: 'List providers',
  description: 'The declared ones by name, then the other built-in ones.',
  params: cityParams,
  replies: { 200: listBody('ListBodyProviderInfo', ProviderInfo) },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: [],
})

export const listPublicProviders = operation({
  id: 'list-public-providers',
  method: 'GET',
  path: `${path}/public`,
  family: 'Providers',
  summary: 'List providers with their options',
  description: 'What a session may choose: options with their choices and defaults, over the whole chain of bases.',
  params: cityParams,
  replies: { 200: listBody('ListBodyPublicProvider', PublicProvider) },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: [],
})

export const createProvider = operation({
  id: 'create-provider',
  method: 'POST',
  path,
  family: 'Providers',
  summary: 'Declare a provider',
  description: 'Adds `[providers.<name>]` to `city.toml`.',
  params: cityParams,
  body: ProviderCreateRequest,
  headers: ['Idempotency-Key', 'If-Match'],
  replies: { 201: ProviderInfo },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['name-taken', 'conflict-config', 'invalid-config'],
  emits: ['config.reloaded'],
})

export const getProvider = operation({
  id: 'get-provider',
  method: 'GET',
  path: `${path}/{name}`,
  family: 'Providers',
  summary: 'Get a provider',
  description: 'What it comes to with all that it is based on.',
  params,
  replies: { 200: ProviderInfo },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['provider-not-found'],
})

export const patchProvider = operation({
  id: 'patch-provider',
  method: 'PATCH',
  path: `${path}/{name}`,
  family: 'Providers',
  summary: 'Change a declared provider',
  description: 'JSON Merge Patch of its declaration, in the file that has it; an empty object changes nothing.',
  params,
  body: ProviderPatchRequest,
  headers: ['If-Match'],
  replies: { 200: ProviderInfo },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['provider-not-found', 'provider-builtin', 'pack-derived', 'conflict-config', 'invalid-config'],
  emits: ['config.reloaded'],
})

export const deleteProvider = operation({
  id: 'delete-provider',
  method: 'DELETE',
  path: `${path}/{name}`,
  family: 'Providers',
  summary: 'Remove a declared provider',
  description: 'Refused while an agent, a session or another provider refers to it; what is built in stays.',
  params,
  headers: ['If-Match'],
  replies: { 200: DeletedProvider },
  replyHeaders: ['X-SVC-Index', 'ETag'],
  problems: ['provider-not-found', 'provider-builtin', 'pack-derived', 'still-referenced', 'conflict-config'],
  emits: ['config.reloaded'],
})

export const providerOperations = [
  listProviders,
  listPublicProviders,
  createProvider,
  getProvider,
  patchProvider,
  deleteProvider,
] as const

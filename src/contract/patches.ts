/** Patches: a city's edits of agents, rigs and providers that another layer defines (sheet 07 §§8.2, 8.3). */

import { mergePatchBody } from './base/merge-patch.ts'
import { CityNameParam, Revision } from './base/names.ts'
import { operation } from './base/operation.ts'
import { listBody } from './base/paging.ts'
import { choice, component, integer, literal, object, optional, raw, type Schema, string } from './base/schema.ts'
import { AgentPatch, ProviderPatch, RigPatch } from './config-schema.ts'

export const PATCH_KINDS = ['agents', 'rigs', 'providers'] as const
export type PatchKind = (typeof PATCH_KINDS)[number]

type Fields = Record<string, Schema>
/** What a patch says, by field; the schemas below are the exact sets. */
export interface PatchFields {
  readonly name: string
  readonly dir?: string
  readonly [field: string]: unknown
}
export interface PatchItem extends PatchFields {
  readonly file: string
  readonly line: number
  readonly revision: string
}

const typed = <T>(id: string, properties: Fields, description: string) =>
  raw<T>({ ...object(properties), $id: id, description })

const named = (fields: Fields, description: string): Fields => ({
  ...fields,
  name: string({ minLength: 1, description }),
})
const dir = optional(string({ description: 'Rig that the agent is in; absent or empty: the city.' }))

const FIELDS = {
  agents: { ...named(AgentPatch.properties, 'Agent, as `[<binding>.]<name>`.'), dir },
  rigs: named(RigPatch.properties, 'Rig.'),
  providers: named(ProviderPatch.properties, 'Provider, which must be declared.'),
} as const satisfies Record<PatchKind, Fields>

const SEMANTICS =
  'Each field replaces what it patches; maps merge; `<list>_append` appends after that, `<map>_remove` deletes keys last. An empty list or text sets it empty.'

const itemOf = (id: string, fields: Fields) =>
  typed<PatchItem>(
    id,
    {
      ...fields,
      file: string({ description: 'File that has the patch.' }),
      line: integer({ minimum: 0 }),
      revision: Revision,
    },
    `A patch. ${SEMANTICS} Values of \`env\` are masked.`,
  )
export const AgentPatchItem = itemOf('AgentPatchItem', FIELDS.agents)
export const RigPatchItem = itemOf('RigPatchItem', FIELDS.rigs)
export const ProviderPatchItem = itemOf('ProviderPatchItem', FIELDS.providers)

/** The whole patch; with its target in the path, the body need not name it. */
const bodyOf = (id: string, fields: Fields) => typed<PatchFields>(id, fields, `A whole patch. ${SEMANTICS}`)
const namelessOf = (id: string, { name: _, ...fields }: Fields) =>
  typed<Partial<PatchFields>>(
    id,
    { ...fields, name: optional(string({ description: 'The one of the path.' })) },
    `A whole patch; what it is about stands in the path. ${SEMANTICS}`,
  )
const mergeOf = (id: string, { name: _, dir: __, ...fields }: Fields) =>
  mergePatchBody(id, fields, 'JSON Merge Patch of the patch: null drops a field from it, lists replace, maps merge.')

const BODIES = {
  agents: bodyOf('AgentPatchBody', FIELDS.agents),
  rigs: bodyOf('RigPatchBody', FIELDS.rigs),
  providers: bodyOf('ProviderPatchBody', FIELDS.providers),
}
const NAMELESS = {
  agents: namelessOf('AgentPatchReplacement', FIELDS.agents),
  rigs: namelessOf('RigPatchReplacement', FIELDS.rigs),
  providers: namelessOf('ProviderPatchReplacement', FIELDS.providers),
}
const MERGES = {
  agents: mergeOf('AgentPatchChange', FIELDS.agents),
  rigs: mergeOf('RigPatchChange', FIELDS.rigs),
  providers: mergeOf('ProviderPatchChange', FIELDS.providers),
}

export const DeletedPatch = component('DeletedPatch', {
  status: literal('deleted'),
  kind: choice(PATCH_KINDS),
  name: string(),
  dir: optional(string()),
  revision: string({ description: 'Of the configuration without it.' }),
})

const root = '/v0/city/{cityName}/patches'
const cityParams = object({ cityName: CityNameParam })
const target = (description: string, example: string) => string({ minLength: 1, description, examples: [example] })
const agentParams = object({
  cityName: CityNameParam,
  base: target('Agent of the city, as `[<binding>.]<name>`.', 'worker'),
})
const rigAgentParams = object({
  cityName: CityNameParam,
  dir: target('Rig that the agent is in.', 'shop'),
  base: target('Agent of the rig, as `[<binding>.]<name>`.', 'worker'),
})
const rigParams = object({ cityName: CityNameParam, name: target('Name of the rig.', 'shop') })
const providerParams = object({ cityName: CityNameParam, name: target('Name of the provider.', 'shell') })

const replyHeaders = ['X-SVC-Index', 'ETag'] as const
const writeProblems = ['conflict-config', 'invalid-config'] as const

// ---- agents ---------------------------------------------------------------------------------------------------------

export const listAgentPatches = operation({
  id: 'list-agent-patches',
  method: 'GET',
  path: `${root}/agents`,
  family: 'Config',
  summary: 'List patches of agents',
  description: 'In the order in which they apply.',
  params: cityParams,
  replies: { 200: listBody('ListBodyAgentPatchItem', AgentPatchItem) },
  replyHeaders,
  problems: [],
})

export const putAgentPatch = operation({
  id: 'put-agent-patch',
  method: 'PUT',
  path: `${root}/agents`,
  family: 'Config',
  summary: 'Create or replace a patch of an agent',
  description: 'The body names the agent by `name` and `dir`.',
  params: cityParams,
  body: BODIES.agents,
  headers: ['If-Match'],
  replies: { 200: AgentPatchItem, 201: AgentPatchItem },
  replyHeaders,
  problems: writeProblems,
  emits: ['config.reloaded'],
})

export const getAgentPatch = operation({
  id: 'get-agent-patch',
  method: 'GET',
  path: `${root}/agents/{base}`,
  family: 'Config',
  summary: 'Get the patch of an agent of the city',
  description: 'The fields that it sets. What the agent comes to with it is in `GET /config`.',
  params: agentParams,
  replies: { 200: AgentPatchItem },
  replyHeaders,
  problems: ['patch-not-found'],
})

export const replaceAgentPatch = operation({
  id: 'replace-agent-patch',
  method: 'PUT',
  path: `${root}/agents/{base}`,
  family: 'Config',
  summary: 'Create or replace the patch of an agent of the city',
  description: 'What the body does not name is no longer patched. Written to `city.toml` and applied at once.',
  params: agentParams,
  body: NAMELESS.agents,
  headers: ['If-Match'],
  replies: { 200: AgentPatchItem, 201: AgentPatchItem },
  replyHeaders,
  problems: writeProblems,
  emits: ['config.reloaded'],
})

export const mergeAgentPatch = operation({
  id: 'merge-agent-patch',
  method: 'PATCH',
  path: `${root}/agents/{base}`,
  family: 'Config',
  summary: 'Change fields of the patch of an agent of the city',
  description:
    'JSON Merge Patch: `null` takes a field out of the patch, an absent one stays. Written to `city.toml` and applied at once.',
  params: agentParams,
  body: MERGES.agents,
  headers: ['If-Match'],
  replies: { 200: AgentPatchItem },
  replyHeaders,
  problems: ['patch-not-found', ...writeProblems],
  emits: ['config.reloaded'],
})

export const deleteAgentPatch = operation({
  id: 'delete-agent-patch',
  method: 'DELETE',
  path: `${root}/agents/{base}`,
  family: 'Config',
  summary: 'Remove the patch of an agent of the city',
  description: 'What it changed is again as the definition of the agent says.',
  params: agentParams,
  headers: ['If-Match'],
  replies: { 200: DeletedPatch },
  replyHeaders,
  problems: ['patch-not-found', ...writeProblems],
  emits: ['config.reloaded'],
})

export const getAgentPatchQualified = operation({
  ...getAgentPatch,
  id: 'get-agent-patch-qualified',
  path: `${root}/agents/{dir}/{base}`,
  summary: 'Get the patch of an agent of a rig',
  description: 'The fields that it sets. What the agent comes to with it is in `GET /config`.',
  params: rigAgentParams,
})

export const replaceAgentPatchQualified = operation({
  ...replaceAgentPatch,
  id: 'replace-agent-patch-qualified',
  path: `${root}/agents/{dir}/{base}`,
  summary: 'Create or replace the patch of an agent of a rig',
  description: 'What the body does not name is no longer patched. Written to `city.toml` and applied at once.',
  params: rigAgentParams,
})

export const mergeAgentPatchQualified = operation({
  ...mergeAgentPatch,
  id: 'merge-agent-patch-qualified',
  path: `${root}/agents/{dir}/{base}`,
  summary: 'Change fields of the patch of an agent of a rig',
  description:
    'JSON Merge Patch: `null` takes a field out of the patch, an absent one stays. Written to `city.toml` and applied at once.',
  params: rigAgentParams,
})

export const deleteAgentPatchQualified = operation({
  ...deleteAgentPatch,
  id: 'delete-agent-patch-qualified',
  path: `${root}/agents/{dir}/{base}`,
  summary: 'Remove the patch of an agent of a rig',
  description: 'What it changed is again as the definition of the agent says.',
  params: rigAgentParams,
})

// ---- rigs -----------------------------------------------------------------------------------------------------------

export const listRigPatches = operation({
  ...listAgentPatches,
  id: 'list-rig-patches',
  path: `${root}/rigs`,
  summary: 'List patches of rigs',
  replies: { 200: listBody('ListBodyRigPatchItem', RigPatchItem) },
})

export const putRigPatch = operation({
  ...putAgentPatch,
  id: 'put-rig-patch',
  path: `${root}/rigs`,
  summary: 'Create or replace a patch of a rig',
  description: 'The body names the rig.',
  body: BODIES.rigs,
  replies: { 200: RigPatchItem, 201: RigPatchItem },
})

export const getRigPatch = operation({
  ...getAgentPatch,
  id: 'get-rig-patch',
  path: `${root}/rigs/{name}`,
  summary: 'Get the patch of a rig',
  description: 'The fields that it sets. What the rig comes to with it is in `GET /rigs/{name}`.',
  params: rigParams,
  replies: { 200: RigPatchItem },
})

export const replaceRigPatch = operation({
  ...replaceAgentPatch,
  id: 'replace-rig-patch',
  path: `${root}/rigs/{name}`,
  summary: 'Create or replace the patch of a rig',
  description: 'What the body does not name is no longer patched. Written to `city.toml` and applied at once.',
  params: rigParams,
  body: NAMELESS.rigs,
  replies: { 200: RigPatchItem, 201: RigPatchItem },
})

export const mergeRigPatch = operation({
  ...mergeAgentPatch,
  id: 'merge-rig-patch',
  path: `${root}/rigs/{name}`,
  summary: 'Change fields of the patch of a rig',
  description:
    'JSON Merge Patch: `null` takes a field out of the patch, an absent one stays. Written to `city.toml` and applied at once.',
  params: rigParams,
  body: MERGES.rigs,
  replies: { 200: RigPatchItem },
})

export const deleteRigPatch = operation({
  ...deleteAgentPatch,
  id: 'delete-rig-patch',
  path: `${root}/rigs/{name}`,
  summary: 'Remove the patch of a rig',
  description: 'What it changed is again as the definition of the rig says.',
  params: rigParams,
})

// ---- providers ------------------------------------------------------------------------------------------------------

export const listProviderPatches = operation({
  ...listAgentPatches,
  id: 'list-provider-patches',
  path: `${root}/providers`,
  summary: 'List patches of providers',
  replies: { 200: listBody('ListBodyProviderPatchItem', ProviderPatchItem) },
})

export const putProviderPatch = operation({
  ...putAgentPatch,
  id: 'put-provider-patch',
  path: `${root}/providers`,
  summary: 'Create or replace a patch of a provider',
  description: 'The body names the provider.',
  body: BODIES.providers,
  replies: { 200: ProviderPatchItem, 201: ProviderPatchItem },
})

export const getProviderPatch = operation({
  ...getAgentPatch,
  id: 'get-provider-patch',
  path: `${root}/providers/{name}`,
  summary: 'Get the patch of a provider',
  description: 'The fields that it sets. What the provider comes to with it is in `GET /providers/{name}`.',
  params: providerParams,
  replies: { 200: ProviderPatchItem },
})

export const replaceProviderPatch = operation({
  ...replaceAgentPatch,
  id: 'replace-provider-patch',
  path: `${root}/providers/{name}`,
  summary: 'Create or replace the patch of a provider',
  description: 'What the body does not name is no longer patched. Written to `city.toml` and applied at once.',
  params: providerParams,
  body: NAMELESS.providers,
  replies: { 200: ProviderPatchItem, 201: ProviderPatchItem },
})

export const mergeProviderPatch = operation({
  ...mergeAgentPatch,
  id: 'merge-provider-patch',
  path: `${root}/providers/{name}`,
  summary: 'Change fields of the patch of a provider',
  description:
    'JSON Merge Patch: `null` takes a field out of the patch, an absent one stays. Written to `city.toml` and applied at once.',
  params: providerParams,
  body: MERGES.providers,
  replies: { 200: ProviderPatchItem },
})

export const deleteProviderPatch = operation({
  ...deleteAgentPatch,
  id: 'delete-provider-patch',
  path: `${root}/providers/{name}`,
  summary: 'Remove the patch of a provider',
  description: 'What it changed is again as the definition of the provider says.',
  params: providerParams,
})

export const patchOperations = [
  listAgentPatches,
  putAgentPatch,
  getAgentPatch,
  replaceAgentPatch,
  mergeAgentPatch,
  deleteAgentPatch,
  getAgentPatchQualified,
  replaceAgentPatchQualified,
  mergeAgentPatchQualified,
  deleteAgentPatchQualified,
  listRigPatches,
  putRigPatch,
  getRigPatch,
  replaceRigPatch,
  mergeRigPatch,
  deleteRigPatch,
  listProviderPatches,
  putProviderPatch,
  getProviderPatch,
  replaceProviderPatch,
  mergeProviderPatch,
  deleteProviderPatch,
] as const

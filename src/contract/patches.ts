/** Patches: a city's edits of agents, rigs and providers that another layer defines (sheet 07 §§8.2, 8.3). */

import { family, qualified } from './base/family.ts'
import { mergePatchBody } from './base/merge-patch.ts'
import { CityNameParam, QualifiedName, Revision } from './base/names.ts'
import { listBody } from './base/paging.ts'
import { choice, component, integer, literal, object, optional, raw, type Schema, string } from './base/schema.ts'
import { CONFIG } from './config.ts'
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

export const DeletedPatch = component('DeletedPatch', {
  status: literal('deleted'),
  kind: choice(PATCH_KINDS),
  name: string(),
  dir: optional(string()),
  revision: string({ description: 'Of the configuration without it.' }),
})

const target = (description: string, example: string) => string({ minLength: 1, description, examples: [example] })

/** The operations on the patches of one kind of things; `to` is where what comes of one is shown. */
function patchesOf<
  const Kind extends 'agent' | 'rig' | 'provider',
  const At extends string,
  const Params extends { readonly cityName: typeof CityNameParam },
>(kind: Kind, at: At, params: Params, { a, to, named, ...of }: KindOfPatches) {
  const all = family(CONFIG, `/v0/city/{cityName}/patches/${kind}s` as const, params, {
    replyHeaders: ['X-SVC-Index', 'ETag'],
  })
  const one = all.at(at, { replies: { 200: of.item }, problems: ['patch-not-found'] })
  const written = {
    headers: ['If-Match'],
    replyHeaders: ['X-SVC-Config-Rejected'],
    problems: ['conflict-config', 'invalid-config'],
    emits: ['config.reloaded'],
  } as const
  const change = one.with(written)
  const put = all.with({ ...written, replies: { 200: of.item, 201: of.item } })
  return [
    all.get(`list-${kind}-patches` as const, '', {
      summary: `List patches of ${kind}s`,
      description: 'In the order in which they apply.',
      replies: { 200: listBody(`ListBody${of.name}Item`, of.item) },
    }),
    put.put(`put-${kind}-patch` as const, '', {
      summary: `Create or replace a patch of ${a}`,
      description: `The body names the ${kind}${named}.`,
      body: of.body,
    }),
    one.get(`get-${kind}-patch` as const, '', {
      summary: `Get the patch of ${a}`,
      description: `The fields that it sets. What the ${kind} comes to with it is in \`${to}\`.`,
    }),
    put.put(`replace-${kind}-patch` as const, at, {
      summary: `Create or replace the patch of ${a}`,
      description: 'What the body does not name is no longer patched. Written to `city.toml` and applied at once.',
      body: of.nameless,
    }),
    change.patch(`merge-${kind}-patch` as const, '', {
      summary: `Change fields of the patch of ${a}`,
      description:
        'JSON Merge Patch: `null` takes a field out of the patch, an absent one stays. Written to `city.toml` and applied at once.',
      body: of.merge,
    }),
    change.delete(`delete-${kind}-patch` as const, '', {
      summary: `Remove the patch of ${a}`,
      description: `What it changed is again as the definition of the ${kind} says.`,
      replies: { 200: DeletedPatch },
    }),
  ] as const
}

/** What differs between the kinds, and the schemas of their patches. */
function kindOf(name: string, fields: Fields, a: string, to: string, named = '') {
  return {
    name,
    a,
    to,
    named,
    item: itemOf(`${name}Item`, fields),
    body: bodyOf(`${name}Body`, fields),
    nameless: namelessOf(`${name}Replacement`, fields),
    merge: mergeOf(`${name}Change`, fields),
  }
}
type KindOfPatches = ReturnType<typeof kindOf>

const [listAgentPatches, putAgentPatch, ...agentPatch] = patchesOf(
  'agent',
  '/{base}',
  {
    cityName: CityNameParam,
    base: target('Agent, as `[<binding>.]<name>`; one of a rig is `<rig>/<name>`, its slash written `%2F`.', 'worker'),
  },
  kindOf('AgentPatch', FIELDS.agents, 'an agent', 'GET /config', ' by `name` and `dir`'),
)
const rigPatches = patchesOf(
  'rig',
  '/{name}',
  { cityName: CityNameParam, name: target('Name of the rig.', 'shop') },
  kindOf('RigPatch', FIELDS.rigs, 'a rig', 'GET /rigs/{name}'),
)
const providerPatches = patchesOf(
  'provider',
  '/{name}',
  { cityName: CityNameParam, name: target('Name of the provider.', 'shell') },
  kindOf('ProviderPatch', FIELDS.providers, 'a provider', 'GET /providers/{name}'),
)

export const patchOperations = [
  listAgentPatches,
  putAgentPatch,
  ...qualified('base', QualifiedName, agentPatch),
  ...rigPatches,
  ...providerPatches,
] as const

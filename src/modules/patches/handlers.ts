/** Handlers of the patches family (sheet 07 §§8.2, 8.3): one entry per target, kept in `city.toml` unless it is elsewhere already. */

import type { PatchBody } from '../../contract/base/merge-patch.ts'
import type { Schema } from '../../contract/base/schema.ts'
import { AgentPatch, ProviderPatch, RigPatch } from '../../contract/config-schema.ts'
import type { PatchFields, PatchItem, PatchKind, patchOperations } from '../../contract/patches.ts'
import {
  type Configuration,
  mergePatch,
  plainTable,
  rewriteTable,
  type TextFiles,
  type TreeFiles,
  tablesAt,
  waitingHeader,
} from '../../files/configuration.ts'
import type { ConfigIssue } from '../../files/issues.ts'
import { maskedCopy, unmasked } from '../../files/mask.ts'
import type { PlainTable } from '../../files/toml.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import { definitionHash } from '../../kernel/etag.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'

/** A patch as a file says it. */
export interface StoredPatch {
  readonly file: string
  readonly line: number
  readonly fields: PlainTable
}

export interface PatchCity<View> {
  readonly store: Pick<Store, 'log'>
  readonly config: Configuration<View>
}

export interface PatchHandlersDeps<View> {
  /** Patches of the kind in the order in which they apply. */
  readonly patches: (config: View, kind: PatchKind) => readonly StoredPatch[]
  readonly tree: (files: TextFiles) => TreeFiles
}

/** What a patch is about. `dir` of an agent of the city is empty; rigs and providers have none. */
interface Target {
  readonly kind: PatchKind
  readonly name: string
  readonly dir: string
}

const HOME = 'city.toml'
/** Key of each kind in files. */
const SCHEMAS = { agents: AgentPatch, rigs: RigPatch, providers: ProviderPatch } as const satisfies Record<
  PatchKind,
  Schema
>
const TABLES = { agents: 'agent', rigs: 'rigs', providers: 'providers' } as const satisfies Record<PatchKind, string>

export function createPatchHandlers<View extends { readonly revision: string }>(deps: PatchHandlersDeps<View>) {
  const { tree } = deps

  const find = (config: View, target: Target): StoredPatch | undefined => {
    const stored = deps.patches(config, target.kind).filter(({ fields }) => isFor(fields, target))
    return stored.find(({ file }) => file === HOME) ?? stored[0]
  }
  const need = (config: View, target: Target): StoredPatch => {
    const found = find(config, target)
    if (found === undefined) throw problem('patch-not-found', `there is no patch of ${nameOf(target)}`)
    return found
  }

  const answer = (
    city: PatchCity<View>,
    config: View,
    target: Target,
    status = 200,
    rejected: readonly ConfigIssue[] = [],
  ): Reply<PatchItem> => {
    const body = itemOf(need(config, target), target.kind)
    return {
      status,
      body,
      headers: { ETag: `"${body.revision}"`, 'X-SVC-Index': String(city.store.log.head), ...waitingHeader(rejected) },
    }
  }

  const list = (city: PatchCity<View>, kind: PatchKind) => {
    const { store, config } = city
    const current = config.current()
    const items = deps.patches(current, kind).map((stored) => itemOf(stored, kind))
    return ok({ items, total: items.length }, { ETag: `"${current.revision}"`, 'X-SVC-Index': String(store.log.head) })
  }

  const get = (city: PatchCity<View>, target: Target) => answer(city, city.config.current(), target)

  /** Creates the patch, or makes it say what the body says and nothing else. */
  const put = async (
    city: PatchCity<View>,
    target: Target,
    body: Partial<PatchFields>,
    ifMatch: string | undefined,
    actor: string,
  ) => {
    const { config } = city
    const { name: _name, dir: _dir, ...fields } = plainTable(body)
    const outcome = await config.edit({
      waits: 'drafted',
      ifMatch,
      etag: (current) => revisionOf(find(current, target)),
      actor,
      change: (files, current) => {
        const edited = tree(files)
        const at = locate(edited, find(current, target), target)
        if (at === undefined) {
          edited.addElement(HOME, ['patches', TABLES[target.kind]], {
            ...keysOf(target),
            ...unmasked({}, fields, SCHEMAS[target.kind]),
          })
          return true
        }
        const { name, dir, ...before } = at.fields
        const keys = { ...(name === undefined ? {} : { name }), ...(dir === undefined ? {} : { dir }) }
        rewriteTable(edited, at.file, at.path, at.fields, {
          ...keys,
          ...unmasked(before, fields, SCHEMAS[target.kind]),
        })
        return false
      },
    })
    return answer(city, outcome.config, target, outcome.result ? 201 : 200, outcome.rejected)
  }

  const merge = async (
    city: PatchCity<View>,
    target: Target,
    body: PatchBody,
    ifMatch: string | undefined,
    actor: string,
  ) => {
    const { config } = city
    const outcome = await config.edit({
      waits: 'drafted',
      ifMatch,
      etag: (current) => revisionOf(need(current, target)),
      actor,
      change: (files, current) => {
        const edited = tree(files)
        const at = located(edited, need(current, target), target)
        rewriteTable(
          edited,
          at.file,
          at.path,
          at.fields,
          unmasked(at.fields, mergePatch(at.fields, body), SCHEMAS[target.kind]),
        )
      },
    })
    return answer(city, outcome.config, target, 200, outcome.rejected)
  }

  const remove = async (city: PatchCity<View>, target: Target, ifMatch: string | undefined, actor: string) => {
    const { store, config } = city
    const { kind, name, dir } = target
    const outcome = await config.edit({
      waits: 'drafted',
      ifMatch,
      etag: (current) => revisionOf(need(current, target)),
      actor,
      change: (files, current) => {
        const edited = tree(files)
        const at = located(edited, need(current, target), target)
        edited.remove(at.file, at.path)
      },
    })
    const { revision } = outcome.config
    const body = { status: 'deleted' as const, kind, name, ...(dir === '' ? {} : { dir }), revision }
    return ok(body, {
      ETag: `"${revision}"`,
      'X-SVC-Index': String(store.log.head),
      ...waitingHeader(outcome.rejected),
    })
  }

  return defineHandlers<typeof patchOperations, PatchCity<View>>({
    'list-agent-patches': ({ city }) => list(city, 'agents'),
    'put-agent-patch': ({ body, header, city, actor }) => put(city, agentOf(body), body, header('if-match'), actor),
    'get-agent-patch': ({ params, city }) => get(city, agent(params)),
    'replace-agent-patch': ({ params, body, header, city, actor }) =>
      put(city, sameTarget(agent(params), body), body, header('if-match'), actor),
    'merge-agent-patch': ({ params, body, header, city, actor }) =>
      merge(city, agent(params), body, header('if-match'), actor),
    'delete-agent-patch': ({ params, header, city, actor }) => remove(city, agent(params), header('if-match'), actor),
    'list-rig-patches': ({ city }) => list(city, 'rigs'),
    'put-rig-patch': ({ body, header, city, actor }) => put(city, rig(body), body, header('if-match'), actor),
    'get-rig-patch': ({ params, city }) => get(city, rig(params)),
    'replace-rig-patch': ({ params, body, header, city, actor }) =>
      put(city, sameTarget(rig(params), body), body, header('if-match'), actor),
    'merge-rig-patch': ({ params, body, header, city, actor }) =>
      merge(city, rig(params), body, header('if-match'), actor),
    'delete-rig-patch': ({ params, header, city, actor }) => remove(city, rig(params), header('if-match'), actor),
    'list-provider-patches': ({ city }) => list(city, 'providers'),
    'put-provider-patch': ({ body, header, city, actor }) => put(city, provider(body), body, header('if-match'), actor),
    'get-provider-patch': ({ params, city }) => get(city, provider(params)),
    'replace-provider-patch': ({ params, body, header, city, actor }) =>
      put(city, sameTarget(provider(params), body), body, header('if-match'), actor),
    'merge-provider-patch': ({ params, body, header, city, actor }) =>
      merge(city, provider(params), body, header('if-match'), actor),
    'delete-provider-patch': ({ params, header, city, actor }) =>
      remove(city, provider(params), header('if-match'), actor),
  })
}

/** An agent of a rig is `<rig>/<name>`. */
function agent({ base }: { readonly base: string }): Target {
  const slash = base.indexOf('/')
  return { kind: 'agents', name: base.slice(slash + 1), dir: base.slice(0, Math.max(slash, 0)) }
}
const agentOf = ({ name, dir }: PatchFields): Target => ({ kind: 'agents', name, dir: dir ?? '' })
const rig = ({ name }: { readonly name: string }): Target => ({ kind: 'rigs', name, dir: '' })
const provider = ({ name }: { readonly name: string }): Target => ({ kind: 'providers', name, dir: '' })

/** The target of the path; refuses a body that names another one. */
function sameTarget(target: Target, body: Partial<PatchFields>): Target {
  for (const field of ['name', 'dir'] as const) {
    const named = body[field]
    if (named !== undefined && named !== target[field])
      throw invalidField(`body.${field}`, `is not what the path names: ${target[field]}`, named)
  }
  return target
}

const nameOf = ({ kind, name, dir }: Target): string =>
  `the ${kind.slice(0, -1)} ${dir === '' ? name : `${dir}/${name}`}`
const keysOf = ({ name, dir }: Target): PlainTable => (dir === '' ? { name } : { dir, name })
const isFor = ({ name, dir = '' }: PlainTable, target: Target): boolean => name === target.name && dir === target.dir

/** Hash of the stored definition; of nothing where there is none yet. */
const revisionOf = (stored: StoredPatch | undefined): string =>
  stored === undefined ? definitionHash({}) : definitionHash({ file: stored.file, fields: stored.fields })

function itemOf(stored: StoredPatch, kind: PatchKind): PatchItem {
  const { name, ...fields } = maskedCopy(stored.fields, SCHEMAS[kind])
  return { ...fields, name: String(name), file: stored.file, line: stored.line, revision: revisionOf(stored) }
}

interface Located {
  readonly file: string
  readonly path: readonly (string | number)[]
  readonly fields: PlainTable
}

/** Where in its file the patch stands; undefined where there is none. */
function locate(tree: TreeFiles, stored: StoredPatch | undefined, target: Target): Located | undefined {
  if (stored === undefined) return undefined
  const { file } = stored
  const table = TABLES[target.kind]
  const entries = tablesAt(tree.read(file), 'patches', table)
  const index = entries.findIndex((fields) => isFor(fields, target))
  const fields = entries[index]
  return fields === undefined ? undefined : { file, path: ['patches', table, index], fields }
}

function located(tree: TreeFiles, stored: StoredPatch, target: Target): Located {
  const found = locate(tree, stored, target)
  if (found === undefined)
    throw problem('conflict-config', `${stored.file} has the patch in a way that cannot be edited`)
  return found
}

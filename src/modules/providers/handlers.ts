/** Handlers of the providers family (sheet 07 §8.4). */

import { Provider } from '../../contract/config-schema.ts'
import type { ProviderInfo, ProviderSpec, PublicProvider, providerOperations } from '../../contract/providers.ts'
import {
  type Configuration,
  mergePatch,
  plainTable,
  type Referrer,
  rewriteTable,
  type TextFiles,
  type TreeFiles,
  waitingHeader,
} from '../../files/configuration.ts'
import type { ConfigIssue } from '../../files/issues.ts'
import { maskedCopy, unmasked } from '../../files/mask.ts'
import type { PlainTable } from '../../files/toml.ts'
import { isPlainTable } from '../../files/toml.ts'
import { factsOf } from '../../harnesses/facts.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import { definitionHash } from '../../kernel/etag.ts'
import { unknownName } from '../../kernel/near-names.ts'
import { present } from '../../kernel/present.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'

/** A provider as files declare it. */
export interface Declaration {
  /** Before its base and before patches. */
  readonly raw: object
  readonly file: string
  readonly line: number
  /** Undefined where it stands in a file of the city; else the pack that brings it. */
  readonly pack: string | undefined
}

export interface ProvidersView {
  readonly revision: string
  readonly agents: readonly { readonly provider: string }[]
  readonly providers: Readonly<Record<string, { readonly chain: readonly string[]; readonly resolved: object }>>
}

export interface ProviderCity<View> {
  readonly store: Pick<Store, 'keys' | 'log'>
  readonly config: Configuration<View>
}

export interface ProviderHandlersDeps<View> {
  /** Built-in providers, in the order of the API. */
  readonly presets: ReadonlyMap<string, object>
  readonly declaration: (config: View, name: string) => Declaration | undefined
  readonly referrers: (config: View, name: string) => readonly Referrer[]
  readonly tree: (files: TextFiles) => TreeFiles
}

const HOME = 'city.toml'

export function createProviderHandlers<View extends ProvidersView>(deps: ProviderHandlersDeps<View>) {
  const { presets, tree } = deps

  /** Names in the order of the list: declared ones, then the other built-in ones. */
  const names = ({ providers }: View): readonly string[] => {
    const declared = Object.keys(providers).sort()
    return [...declared, ...[...presets.keys()].filter((name) => !Object.hasOwn(providers, name))]
  }

  const unknown = (config: View, name: string) => unknownName('provider-not-found', 'provider', name, names(config))

  const info = (config: View, name: string): ProviderInfo => {
    const declared = deps.declaration(config, name)
    const preset = presets.get(name)
    const composed = Object.hasOwn(config.providers, name) ? config.providers[name] : undefined
    const spec = declared?.raw ?? preset
    if (spec === undefined) throw unknown(config, name)
    const raw = specOf(spec)
    const resolved = specOf(composed?.resolved ?? spec)
    const { display_name, command, args, acp_command, acp_args, prompt_mode, prompt_flag, ready_delay_ms, env } =
      resolved
    const shown = {
      display_name,
      base: raw.base,
      command,
      args,
      acp_command,
      acp_args,
      prompt_mode,
      prompt_flag,
      ready_delay_ms,
      env,
    }
    const chain = [...(composed?.chain ?? [`builtin:${name}`])]
    const harness = factsOf(chain.at(-1)?.replace(/^builtin:/, '') ?? '')
    return {
      name,
      builtin: preset !== undefined,
      city_level: declared !== undefined,
      used: isUsed(config, name),
      chain,
      ...present(shown),
      ...(harness === undefined ? {} : { harness }),
      raw,
      resolved,
      ...(declared === undefined || declared.line === 0 ? {} : { file: declared.file, line: declared.line }),
      revision: revisionOf(config, name),
    }
  }

  const isUsed = (config: View, name: string): boolean =>
    config.agents.some((agent) => agent.provider === name) ||
    deps.referrers(config, name).some(({ kind }) => kind !== 'patch')

  const revisionOf = (config: View, name: string): string => {
    const declared = deps.declaration(config, name)
    const spec = declared?.raw ?? presets.get(name)
    if (spec === undefined) throw unknown(config, name)
    return definitionHash({ name, file: declared?.file, spec })
  }

  const answer = (
    { store }: ProviderCity<View>,
    item: ProviderInfo,
    status = 200,
    rejected: readonly ConfigIssue[] = [],
  ): Reply<ProviderInfo> => ({
    status,
    body: item,
    headers: { ETag: `"${item.revision}"`, 'X-SVC-Index': String(store.log.head), ...waitingHeader(rejected) },
  })

  /** The declaration in a file of the city, which is the only kind that can be changed. */
  const editable = (config: View, name: string): Declaration => {
    const declared = deps.declaration(config, name)
    if (declared === undefined && presets.has(name)) {
      throw problem('provider-builtin', `${name} is built in: declare it first, with base = "builtin:${name}"`)
    }
    if (declared === undefined) throw unknown(config, name)
    if (declared.pack !== undefined)
      throw problem(
        'pack-derived',
        `${name} belongs to the pack ${declared.pack}: patch it, or declare one of its name`,
      )
    return declared
  }

  return defineHandlers<typeof providerOperations, ProviderCity<View>>({
    'list-providers': ({ city }) => {
      const { store, config } = city
      const current = config.current()
      const items = names(current).map((name) => info(current, name))
      return ok(
        { items, total: items.length },
        { ETag: `"${current.revision}"`, 'X-SVC-Index': String(store.log.head) },
      )
    },

    'list-public-providers': ({ city }) => {
      const { store, config } = city
      const current = config.current()
      const items = names(current).map((name) => publicView(info(current, name)))
      return ok(
        { items, total: items.length },
        { ETag: `"${current.revision}"`, 'X-SVC-Index': String(store.log.head) },
      )
    },

    'get-provider': ({ params, city }) => {
      return answer(city, info(city.config.current(), params.name))
    },

    'create-provider': async ({ body, header, claim, city, actor }) => {
      const { name, ...fields } = body
      let rejected: readonly ConfigIssue[] = []
      const created = await city.store.keys.once(claim, async () => {
        const values = unmasked({}, plainTable(fields), Provider)
        if (values['command'] === undefined && values['base'] === undefined) {
          throw invalidField('body.command', '`command` or `base` is required')
        }
        const outcome = await city.config.edit({
          waits: 'drafted',
          ifMatch: header('if-match'),
          actor,
          claim,
          reply: ({ config }) => answer(city, info(config, name), 201),
          change: (files, config) => {
            const declared = deps.declaration(config, name)
            if (declared !== undefined && declared.pack === undefined) {
              throw problem('name-taken', `there is a provider ${name} already, in ${declared.file}`)
            }
            tree(files).addTable(HOME, ['providers', name], values)
          },
        })
        rejected = outcome.rejected
        return answer(city, info(outcome.config, name), 201)
      })
      // A stored answer is a body without its headers.
      return answer(city, created.body, created.status, rejected)
    },

    'patch-provider': async ({ params, body, header, city, actor }) => {
      const { name } = params
      const outcome = await city.config.edit({
        waits: 'drafted',
        ifMatch: header('if-match'),
        etag: (config) => revisionOf(config, name),
        actor,
        change: (files, config) => {
          const { file } = editable(config, name)
          const edited = tree(files)
          const before = declaredIn(edited, file, name)
          rewriteTable(edited, file, ['providers', name], before, unmasked(before, mergePatch(before, body), Provider))
        },
      })
      return answer(city, info(outcome.config, name), 200, outcome.rejected)
    },

    'delete-provider': async ({ params, header, city, actor }) => {
      const { name } = params
      const { config, rejected } = await city.config.edit({
        waits: 'drafted',
        ifMatch: header('if-match'),
        etag: (current) => revisionOf(current, name),
        actor,
        referrers: (current) => deps.referrers(current, name),
        change: (files, current) => tree(files).remove(editable(current, name).file, ['providers', name]),
      })
      const index = String(city.store.log.head)
      const headers = { ETag: `"${config.revision}"`, 'X-SVC-Index': index, ...waitingHeader(rejected) }
      return ok({ status: 'deleted', name, revision: config.revision }, headers)
    },
  })
}

/** A copy of a checked definition, with its secrets masked: the one place that gives it its type. */
function specOf(definition: object): ProviderSpec {
  const spec: ProviderSpec = maskedCopy(definition, Provider)
  return spec
}

function declaredIn(tree: TreeFiles, file: string, name: string): PlainTable {
  const { providers } = tree.read(file)
  const found = isPlainTable(providers) && Object.hasOwn(providers, name) ? providers[name] : undefined
  if (!isPlainTable(found))
    throw problem('conflict-config', `${file} does not declare the provider ${name} in a way that can be edited`)
  return found
}

function publicView({ name, display_name, builtin, city_level, resolved }: ProviderInfo): PublicProvider {
  const options = (resolved.options_schema ?? []).filter(({ omit }) => omit !== true)
  return {
    name,
    ...(display_name === undefined ? {} : { display_name }),
    builtin,
    city_level,
    options_schema: options.map(({ key, label, default: preset, choices, free_args }) => ({
      key,
      label: label ?? key,
      type: 'select',
      default: preset ?? '',
      choices: (choices ?? []).map(({ value, label: text }) => ({ value, label: text ?? value })),
      free: free_args !== undefined,
    })),
    effective_defaults: Object.fromEntries(
      options.map(({ key, default: preset }) => [key, resolved.option_defaults?.[key] ?? preset ?? '']),
    ),
  }
}

/** Handlers of the configuration family: one small function per operation. */
import { cut } from '../../contract/base/text.ts'
import type { AgentPrompt, ConfigFile, ConfigFilePutResult, configOperations } from '../../contract/config.ts'
import { FragmentFile } from '../../contract/config-schema.ts'
import { checkTable } from '../../files/check-table.ts'
import { waitingHeader } from '../../files/configuration.ts'
import { diskFiles } from '../../files/files.ts'
import { IssueList } from '../../files/issues.ts'
import { readToml } from '../../files/toml.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Job, JobFailure, type Jobs } from '../../kernel/jobs.ts'
import { unknownName } from '../../kernel/near-names.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import type { LoadOptions } from './compose/context.ts'
import type { EffectiveAgent, EffectiveConfig } from './compose/effective.ts'
import { summarize, toDetail } from './edit/answers.ts'
import type { ConfigService } from './edit/service.ts'
import { defaultConfig } from './load/defaults.ts'
import { ownFileKind, ownHash, safePath } from './load/own-files.ts'
import { renderPrompt } from './prompt/prompt.ts'
import { filterFacts, promptData } from './prompt/prompt-data.ts'
import { explain, maskValues } from './show/explain.ts'
import { checkView, effectiveView, explanationView, fileRevision, rawView } from './show/views.ts'

/** A running city, as far as its configuration is concerned. */
export interface ConfigCity {
  readonly name: string
  readonly path: string
  readonly suspended: boolean
  readonly store: Pick<Store, 'log'>
  readonly config: ConfigService
  readonly launch: Jobs['launch']
}

export interface ConfigHandlersDeps {
  readonly clock: Clock
  readonly loadOptions: (dir: string) => LoadOptions
  readonly apiUrl: () => string
}

const RELOAD_DEADLINE_MS = 300_000

export function createConfigHandlers({ clock, loadOptions, apiUrl }: ConfigHandlersDeps) {
  const index = ({ store }: ConfigCity) => ({ 'X-SVC-Index': String(store.log.head) })
  const known = new Map<string, EffectiveConfig>()
  // The same for ever: it is made of this program, and of the city's name and place.
  const defaultsOf = ({ name, path }: ConfigCity): EffectiveConfig => {
    const kept = known.get(name)
    if (kept?.dir === path) return kept
    const made = defaultConfig(path, name, loadOptions(path))
    known.set(name, made)
    return made
  }

  const promptOf = (city: ConfigCity, name: string): Reply<AgentPrompt> => {
    const headers = index(city)
    const service = city.config
    const current = service.current()
    const agent = current.agents.find(({ identity }) => identity === name)
    if (agent === undefined)
      throw unknownName(
        'agent-not-found',
        'agent',
        name,
        current.agents.map(({ identity }) => identity),
      )
    return ok(previewPrompt(service, current, agent), headers)
  }

  return defineHandlers<typeof configOperations, ConfigCity>({
    'get-config': ({ query, city }) => {
      const headers = index(city)
      const service = city.config
      if (query.view === 'raw') {
        const files = service.readFiles()
        return ok(rawView(service.revision, service, files), { ...headers, ETag: `"${ownHash(files)}"` })
      }
      const surroundings = { suspended: city.suspended, apiUrl: apiUrl() }
      return ok(effectiveView(service.current(), service, service.warnings, surroundings), {
        ...headers,
        ETag: `"${service.revision}"`,
      })
    },

    'explain-config': ({ query, city }) => {
      const headers = index(city)
      const current = city.config.current()
      return ok(explanationView(current, explain(defaultsOf(city)), query), {
        ...headers,
        ETag: `"${current.revision}"`,
      })
    },

    'validate-config': async ({ city }) => ok(checkView(await city.config.check()), index(city)),

    'check-config': async ({ body, city }) => {
      const service = city.config
      const known = service.readFiles()
      for (const path of Object.keys(body.files)) {
        if (!known.has(path)) checkedPath(city.path, path, `body.files.${cut(path, 200)}`)
      }
      const outcome = await service.check(new Map(Object.entries(body.files)))
      const loose = Object.entries(body.files).flatMap(([path, text]) =>
        text === null ? [] : looseFragment(path, text, outcome.read),
      )
      const issues = [...outcome.issues, ...loose]
      return ok(checkView({ ...outcome, issues, valid: issues.length === 0 }), index(city))
    },

    'reload-config': ({ body, claim, city }) =>
      city.launch({
        operation: 'config.reload',
        subject: city.name,
        input: { soft: body?.soft === true },
        claim,
      }),

    'get-config-defaults': ({ city }) => {
      const status = { loadedAt: clock.now(), lastError: undefined }
      return ok(effectiveView(defaultsOf(city), status, [], { suspended: false, apiUrl: apiUrl() }))
    },

    'list-config-files': ({ city }) => {
      const headers = index(city)
      const own = city.config.readFiles()
      const items = [...own].map(([path, bytes]) => ({
        path,
        kind: ownFileKind(path) ?? ('fragment' as const),
        revision: fileRevision(bytes),
        bytes: bytes.length,
      }))
      return ok({ items, total: items.length }, { ...headers, ETag: `"${ownHash(own)}"` })
    },

    'get-config-file': ({ params: { path }, city }) => {
      const headers = index(city)
      const service = city.config
      const text = service.readText(path)
      if (text === undefined) throw problem('config-file-not-found', `there is no configuration file ${cut(path, 200)}`)
      const body = fileView(path, text, service.revision)
      return ok(body, { ...headers, ETag: `"${body.revision}"` })
    },

    'put-config-file': async ({ params: { path }, query, body, header, city, actor }) => {
      const service = city.config
      const ifMatch = header('if-match')
      const dryRun = query.dry_run === true
      const outcome = await service.edit({
        actor,
        ifMatch,
        dryRun,
        // Who names the file as it is on disk has seen what is wrong with it.
        mends: ifMatch !== undefined && ifMatch.trim() !== '*',
        waits: 'text',
        etag: (_, edit) => {
          const text = edit.get(path)
          if (text === undefined && ifMatch !== undefined) throw problem('precondition-failed', `there is no ${path}`)
          return text === undefined ? '' : fileRevision(text)
        },
        change: (edit) => {
          const created = edit.get(path) === undefined
          const loose = looseFragment(path, body.text, new Set(edit.list()))
          edit.set(path, body.text)
          if (loose.length > 0) throw problem('invalid-config', summarize(loose), { errors: loose.map(toDetail) })
          return created
        },
      })
      const { result: created, changed, warnings, rejected } = outcome
      const view = fileView(path, body.text, outcome.config.revision)
      const reply: ConfigFilePutResult = {
        ...view,
        changed,
        dry_run: dryRun,
        warnings: warnings.map((issue) => ({ ...issue })),
        ...(rejected.length === 0 ? {} : { rejected: rejected.map((issue) => ({ ...issue })) }),
      }
      return {
        status: created && !dryRun ? 201 : 200,
        body: reply,
        headers: { ...index(city), ETag: `"${view.revision}"`, ...waitingHeader(rejected) },
      }
    },

    'get-agent-prompt': ({ params, city }) => promptOf(city, params.agent),
  })
}

/** The job behind `POST /config/reload`. */
export function reloadJob({ name, config }: Pick<ConfigCity, 'name' | 'config'>): Job<'config.reload'> {
  return {
    operation: 'config.reload',
    deadlineMs: RELOAD_DEADLINE_MS,
    resumable: true,
    async run(request) {
      const { outcome, revision, warnings, issues } = await config.reload('reload', request.input.soft === true)
      if (outcome === 'rejected') throw new JobFailure('config_invalid', summarize(issues), issues)
      return () => ({
        type: 'request.result.config.reload',
        actor: 'supervisor',
        subject: name,
        payload: {
          request_id: request.id,
          outcome,
          revision,
          warnings: warnings.slice(0, 100).map((issue) => ({ ...issue })),
        },
      })
    },
  }
}

function fileView(path: string, text: string, configRevision: string): ConfigFile {
  return {
    path,
    kind: ownFileKind(path) ?? 'fragment',
    revision: fileRevision(text),
    text,
    config_revision: configRevision,
  }
}

function checkedPath(dir: string, path: string, location: string): void {
  if (ownFileKind(path) !== undefined && safePath(dir, diskFiles(), path) !== undefined) return
  throw invalidField(location, 'is not a configuration file of the city', path.slice(0, 200))
}

/** A fragment that no file includes yet is part of no configuration: it is checked by itself. */
function looseFragment(path: string, text: string, included: ReadonlySet<string>) {
  if (ownFileKind(path) !== 'fragment' || included.has(path)) return []
  const issues = new IssueList()
  const table = readToml(text, path, 'fragment', issues)
  if (table !== undefined) checkTable(table, FragmentFile, issues)
  return issues.errors
}

function previewPrompt(service: ConfigService, config: EffectiveConfig, agent: EffectiveAgent): AgentPrompt {
  const render = (of: EffectiveAgent) =>
    renderPrompt(config, of, promptData(config, of), filterFacts(config), service.files)
  try {
    const real = render(agent)
    const shown = agent.env === undefined ? real : render({ ...agent, env: maskValues(agent.env) })
    return {
      agent: agent.identity,
      text: shown.text,
      ...(real.version === undefined ? {} : { version: real.version }),
      sha256: real.sha256,
      fragments: [...real.fragments],
      warnings: real.text === '' ? ['the prompt is empty'] : [],
    }
  } catch (error) {
    throw problem(
      'invalid-config',
      `the prompt of ${agent.identity} cannot be rendered: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

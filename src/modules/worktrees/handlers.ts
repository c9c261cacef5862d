/** Handlers of worktrees. */
import { existsSync } from 'node:fs'
import type { Worktree, worktreeOperations } from '../../contract/worktrees.ts'
import { WORKTREE_STATES } from '../../contract/worktrees.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import type { Store } from '../../kernel/store.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import type { Worktrees } from './service.ts'
import type { WorktreeRecord } from './store.ts'

export interface WorktreeCity {
  readonly store: Pick<Store, 'log'>
  readonly worktrees: Worktrees
}

/** How long a caller that wants a fresh look waits for it. */
const LOOK_MS = 10_000
/** How long every caller waits for the first look at a new worktree. */
const FIRST_LOOK_MS = 2_000

export function createWorktreeHandlers({ clock }: { readonly clock: Clock }) {
  const look = async ({ facts }: Worktrees, names: readonly string[], fresh: boolean | undefined): Promise<void> => {
    const late = Promise.withResolvers<void>()
    const cancel = clock.after(fresh === true ? LOOK_MS : FIRST_LOOK_MS, late.resolve)
    const looked = fresh === true ? Promise.all(names.map((name) => facts.look(name))) : facts.first(names)
    await Promise.race([late.promise, looked])
    cancel()
  }
  const indexOf = ({ store }: WorktreeCity) => ({ 'X-SVC-Index': String(store.log.head) })

  return defineHandlers<typeof worktreeOperations, WorktreeCity>({
    'list-worktrees': async (call) => {
      const { query, signal, city } = call
      await waitForChange(city.store.log, query, clock, signal, ({ type }) => type.startsWith('worktree.'))
      const { worktrees } = call.city
      const names = worktrees.all().map(({ name }) => name)
      await look(worktrees, names, query.fresh)
      const headers = indexOf(call.city)
      const items = worktrees.all().map((record) => wireOf(worktrees, record))
      return ok({ items, total: items.length }, headers)
    },

    'get-worktree': async ({ params, query, city }) => {
      city.worktrees.need(params.name)
      await look(city.worktrees, [params.name], query.fresh)
      const headers = indexOf(city)
      return ok(wireOf(city.worktrees, city.worktrees.need(params.name)), headers)
    },

    'delete-worktree': async ({ params, query, city }) => {
      const gone = await city.worktrees.delete(params.name, query.force === true)
      return ok({ status: 'deleted' as const, name: params.name, ...gone })
    },

    'prune-worktrees': async ({ body, city }) => ok(await city.worktrees.prune(body?.dry_run === true)),
  })
}

function wireOf(worktrees: Worktrees, record: WorktreeRecord): Worktree {
  const { name, rig, state, kept_reason, error } = record
  const fact = worktrees.facts.of(name)
  const log = worktrees.logOf(name)
  return {
    name,
    path: record.path,
    branch: record.branch,
    session_id: record.session_id,
    ...(rig === '' ? {} : { rig }),
    repository: record.repository,
    state: WORKTREE_STATES.find((one) => one === state) ?? 'closing',
    base_ref: record.base_ref,
    base: record.base,
    ...(state === 'kept' && kept_reason !== undefined ? { kept_reason } : {}),
    ...(error === undefined ? {} : { error }),
    ...(existsSync(log) ? { log } : {}),
    ...(fact?.there === true
      ? {
          ...(fact.head === undefined ? {} : { head: fact.head }),
          ...(fact.headBranch === undefined ? {} : { head_branch: fact.headBranch }),
          dirty: fact.dirty,
          ahead: fact.ahead,
          behind: fact.behind,
          merged: fact.merged,
          pushed: fact.pushed,
          ...(fact.sizeBytes === undefined ? {} : { size_bytes: fact.sizeBytes }),
          observed_at: isoTime(fact.observedAt),
        }
      : {}),
    created_at: isoTime(record.created_at),
    updated_at: isoTime(record.updated_at),
  }
}

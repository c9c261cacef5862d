/** Worktrees: git worktrees of sessions that work isolated. */

import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { CityNameParam, Timestamp } from './base/names.ts'
import { BlockingQuery, listBody } from './base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  object,
  optional,
  type Static,
  string,
} from './base/schema.ts'

export const WORKTREE_STATES = ['adding', 'setting_up', 'ready', 'failed', 'closing', 'kept'] as const
export const KEPT_REASONS = ['dirty', 'ignored', 'unmerged', 'unpushed', 'locked', 'moved', 'unknown'] as const
export type KeptReason = (typeof KEPT_REASONS)[number]

const count = (description: string) => integer({ minimum: 0, description })
const keptReason = choice(KEPT_REASONS, {
  description:
    '`dirty`: changes that are in no commit, or an operation such as a rebase under way. `ignored`: files that git ignores, that nobody can make again and that no start has laid there. `unmerged`, `unpushed`: commits that are nowhere else. `locked`: by `git worktree lock`. `moved`: somebody has it elsewhere. `unknown`: git did not say, or its `.git` leads elsewhere.',
})

const headBranch = string({
  description:
    'Branch that is checked out, where it is another than `branch`: the work on it stays when the worktree goes.',
})

export const Worktree = component('Worktree', {
  name: string({ description: 'Unique in the city; the last part of its path and of its branch.' }),
  path: string({ description: 'Where it is: below `.svc/worktrees/` of the city.' }),
  branch: string({
    description: 'Its own branch: `svc/<name>`, or `svc-worktree/<name>` where a branch is called `svc`.',
  }),
  session_id: string({ description: 'Session that works in it, or did.' }),
  rig: optional(
    string({
      description:
        'Rig whose repository it is of: that of its agent, else the one in whose directory its session works. Absent: none.',
    }),
  ),
  repository: string({ description: 'Directory of the repository.' }),
  state: choice(WORKTREE_STATES, {
    description:
      '`failed`: a command of its set-up failed, the next start of its session tries again. `closing`: its session is closed, and it is being looked at. `kept`: its session is closed, and it has what is nowhere else.',
  }),
  base_ref: string({ description: 'Branch, tag or commit that it began at.' }),
  base: string({ description: 'Commit that it began at.' }),
  kept_reason: optional(keptReason),
  error: optional(string({ description: 'Why its set-up failed, which files it is kept for, or what git said.' })),
  log: optional(string({ description: 'File with the output of its set-up.' })),
  head: optional(string({ description: 'Commit that is checked out.' })),
  head_branch: optional(headBranch),
  dirty: optional(boolean({ description: 'It has changes that are in no commit.' })),
  ahead: optional(count('Commits that `base_ref` lacks.')),
  behind: optional(count('Commits of `base_ref` that it lacks.')),
  merged: optional(boolean({ description: 'What it has is in its base branch too, as commits or as their content.' })),
  pushed: optional(boolean({ description: 'Its commit is on a remote, as last fetched or pushed.' })),
  size_bytes: optional(count('What it takes on the disk.')),
  observed_at: optional({
    ...Timestamp,
    description: 'When the fields from `head` on were looked at; absent: not yet.',
  }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Worktree = Static<typeof Worktree>

export const WorktreePruneRequest = component('WorktreePruneRequest', {
  dry_run: optional(boolean({ description: 'Only say what would happen.' })),
})
export const WorktreePruned = component('WorktreePruned', {
  dry_run: boolean(),
  removed: array(string(), { description: 'Names of those that are removed; with `dry_run`: that would be.' }),
  kept: array(object({ name: string(), reason: keptReason }), {
    description: 'Those of closed sessions that stay, and why.',
  }),
  truncated: optional(boolean({ description: 'True: there were more. Ask again.' })),
})
export type WorktreePruned = Static<typeof WorktreePruned>
export const DeletedWorktree = component('DeletedWorktree', {
  status: literal('deleted'),
  name: string(),
  branch: string(),
  branch_deleted: boolean({ description: 'False: it has commits that are nowhere else, or is checked out elsewhere.' }),
})

const worktrees = family(
  { name: 'Worktrees', about: 'Git worktrees of sessions that work isolated from each other.' },
  '/v0/city/{cityName}/worktrees',
  {
    cityName: CityNameParam,
    name: string({ minLength: 1, maxLength: 256, description: 'Name of the worktree.', examples: ['fix-login'] }),
  },
  {},
)
const one = worktrees.at('/{name}', { problems: ['worktree-not-found'] })
const fresh = optional(boolean({ description: 'Look now, for at most 10 s, instead of saying what was seen last.' }))

export const listWorktrees = worktrees.get('list-worktrees', '', {
  summary: 'List worktrees',
  description:
    'By name. What git says of them was looked at a little while ago; whoever reads makes the next look come. The first look at a new one is waited for, 2 s at most.',
  query: object({ fresh, ...BlockingQuery }),
  replies: { 200: listBody('ListBodyWorktree', Worktree) },
  replyHeaders: ['X-SVC-Index'],
})

export const getWorktree = one.get('get-worktree', '', {
  summary: 'Get a worktree',
  description: 'With what git said of it when it was last looked at; the first look is waited for, 2 s at most.',
  query: object({ fresh }),
  replies: { 200: Worktree },
  replyHeaders: ['X-SVC-Index'],
})

export const pruneWorktrees = worktrees.post('prune-worktrees', '/prune', {
  summary: 'Remove worktrees that are not needed',
  description:
    'Looks at those of closed sessions again: what is clean, and merged or pushed by now, is removed with its branch.',
  body: WorktreePruneRequest,
  bodyOptional: true,
  replies: { 200: WorktreePruned },
  emits: ['worktree.removed', 'worktree.kept'],
})

export const worktreeOperations = [
  listWorktrees,
  pruneWorktrees,
  getWorktree,
  one.delete('delete-worktree', '', {
    summary: 'Remove a worktree',
    description:
      'Of a closed session, where it is clean, and merged or pushed; its branch goes with it. With `force` also another one, with what is in no commit: a branch with commits that are nowhere else stays.',
    query: object({ force: optional(boolean({ description: 'Also what would be lost with it.' })) }),
    replies: { 200: DeletedWorktree },
    problems: ['conflict-wrong-state'],
    emits: ['worktree.removed'],
  }),
] as const

const about = {
  name: string(),
  session_id: string(),
  rig: optional(string()),
  path: string(),
  branch: string(),
}
export const WorktreePayload = component('WorktreePayload', {
  ...about,
  base_ref: string(),
  base: string(),
  error: optional(string({ description: 'Why its set-up failed, with the end of its output.' })),
  log: optional(string({ description: 'File with the output of its set-up.' })),
})
export const WorktreeKeptPayload = component('WorktreeKeptPayload', {
  ...about,
  head_branch: optional(headBranch),
  why: keptReason,
  message: optional(string({ description: 'More about it.' })),
})
export const WorktreeRemovedPayload = component('WorktreeRemovedPayload', {
  ...about,
  head_branch: optional(headBranch),
  branch_deleted: boolean(),
})

const inLog = { log: 'city', emittedBy: 'worktrees', subject: 'its name' } as const
export const WORKTREE_EVENT_TYPES = {
  'worktree.created': { payload: WorktreePayload, ...inLog, when: 'it is there, and its set-up begins' },
  'worktree.ready': { payload: WorktreePayload, ...inLog, when: 'its set-up is over: its session can start' },
  'worktree.failed': { payload: WorktreePayload, ...inLog, when: 'it could not be made, or its set-up failed' },
  'worktree.kept': {
    payload: WorktreeKeptPayload,
    ...inLog,
    when: 'its session was closed, and it has what is nowhere else',
  },
  'worktree.removed': { payload: WorktreeRemovedPayload, ...inLog, when: 'it was removed' },
} as const satisfies EventTypes

/** `svcctl worktree …`: git worktrees of sessions that work isolated. */

import type { Worktree } from '../../contract/worktrees.ts'
import type { CommandSpec } from '../base/command.ts'
import { size } from '../base/progress.ts'
import type { AnswerOf } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { view } from '../print/view.ts'
import { WORKTREES as TABLE } from '../tables/worktrees.ts'

const WORKTREE = view<Worktree>()('name state WHY branch session_id AHEAD SIZE', {
  wide: 'path rig base_ref base head behind dirty merged pushed repository error log observed_at created_at',
  as: {
    WHY: ({ kept_reason: why, dirty }: Worktree) => why ?? (dirty === true ? 'dirty' : undefined),
    AHEAD: 'ahead',
    SIZE: ({ size_bytes: bytes }: Worktree) => (bytes === undefined ? undefined : size(bytes)),
  },
})
const DELETED = view<AnswerOf<'delete-worktree'>>()('status name branch branch_deleted', { name: 'name' })
const PRUNED = view<AnswerOf<'prune-worktrees'>>()('REMOVED KEPT dry_run truncated', {
  as: {
    REMOVED: ({ removed }: AnswerOf<'prune-worktrees'>) => (removed.length === 0 ? 'none' : removed.join(', ')),
    KEPT: ({ kept }: AnswerOf<'prune-worktrees'>) =>
      kept.length === 0 ? 'none' : kept.map(({ name, reason }) => `${name} (${reason})`).join(', '),
  },
  name: ({ removed }) => removed.join('\n'),
})

const command = commandsOf(TABLE)

export const commands: readonly CommandSpec[] = [
  command('worktree list', 'list-worktrees', {
    view: WORKTREE,
    examples: {
      'svcctl worktree list': 'where sessions work, and what was kept',
      'svcctl worktree list --fresh -o wide': 'look first, and say more',
    },
  }),
  command('worktree get', 'get-worktree', {
    arguments: ['<name...>'],
    view: WORKTREE,
    examples: { 'svcctl worktree get fix-login --fresh': 'what is in it now' },
  }),
  command('worktree remove', 'delete-worktree', {
    arguments: ['<name...>'],
    asks: (names) => `Remove worktree ${names}?`,
    view: DELETED,
    examples: {
      'svcctl worktree remove fix-login --yes': 'it is merged, or pushed',
      'svcctl worktree remove fix-login --force --yes': 'with what is in no commit',
    },
  }),
  command('worktree prune', 'prune-worktrees', {
    view: PRUNED,
    examples: {
      'svcctl worktree prune --dry-run': 'what is merged by now',
      'svcctl worktree prune': 'remove it',
    },
  }),
]

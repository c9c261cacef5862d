/** `svcctl rig …`: project directories of a city. */

import { resolve } from 'node:path'
import type { RigInfo } from '../../contract/rigs.ts'
import type { CommandSpec } from '../base/command.ts'
import { usageError } from '../base/failure.ts'
import type { AnswerOf } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { anyOf, placeOf } from '../print/columns.ts'
import { view } from '../print/view.ts'
import { RIGS as TABLE } from '../tables/rigs.ts'

const RIG = view<RigInfo>()('name prefix suspended AGENTS path git.branch CHANGED', {
  wide: 'default_branch git.ahead git.behind GIT_OBSERVED_AT last_activity suspended_on_start FILE revision',
  as: {
    AGENTS: (rig) => `${rig.running_count} of ${rig.agent_count} running`,
    CHANGED: 'git.changed_files',
    GIT_OBSERVED_AT: 'git.observed_at',
    FILE: placeOf,
  },
})
const DELETED = view<AnswerOf<'delete-rig'>>()('status name REMOVED revision', {
  as: { REMOVED: ({ removed }) => anyOf(removed) },
  name: 'name',
})

const command = commandsOf(TABLE)
const NAME = { completes: { name: 'rig' } } as const
const GIT = {
  flags: { git: '--no-git' },
  says: { git: 'Without what git says of its directory.' },
  fill: () => ({ git: true }),
} as const

const act = (action: 'suspend' | 'resume' | 'restart', summary: string, does: string): CommandSpec =>
  command(`rig ${action}`, 'act-on-rig', {
    ...NAME,
    summary,
    arguments: ['<name...>'],
    leaves: { action: 'it is the name of the command' },
    fill: () => ({ action }),
    view: RIG,
    examples: { [`svcctl rig ${action} shop`]: does },
  })

export const commands: readonly CommandSpec[] = [
  command('rig list', 'list-rigs', {
    ...GIT,
    view: RIG,
    examples: { 'svcctl rig list': 'all rigs, with their branches' },
  }),
  command('rig get', 'get-rig', {
    ...GIT,
    ...NAME,
    arguments: ['<name...>'],
    view: RIG,
    examples: { 'svcctl rig get shop': 'one rig' },
  }),
  command('rig create', 'create-rig', {
    arguments: ['<name>', '[path]'],
    says: {
      path: 'Its directory, relative to here.',
      git_url: 'Clone this repository into rigs/NAME of the city.',
      prefix: 'Of the ids of its beads (default: made from the name).',
      default_branch: 'Its mainline (default: found).',
    },
    completes: { path: 'file' },
    json: true,
    change: ({ path, git_url: url }, { io }) => {
      if (path !== undefined && url !== undefined) throw usageError('a directory and --git-url are mutually exclusive')
      // Relative to here, as everywhere on a command line; the server makes it relative to the city where it is inside.
      return path === undefined ? {} : { path: resolve(io.cwd, path.replace(/^~(?=\/|$)/, io.home)) }
    },
    view: RIG,
    examples: {
      'svcctl rig create shop ~/src/shop': 'a directory that is there already',
      'svcctl rig create shop --git-url https://github.com/acme/shop': 'a fresh clone',
    },
  }),
  command('rig update', 'patch-rig', {
    ...NAME,
    arguments: ['<name...>'],
    json: true,
    view: RIG,
    examples: { 'svcctl rig update shop --default-branch main': 'change a field' },
  }),
  command('rig delete', 'delete-rig', {
    ...NAME,
    arguments: ['<name...>'],
    asks: (names, input) =>
      input.on('cascade') ? `Remove rig ${names} with everything that refers to it? Its directory stays.` : undefined,
    view: DELETED,
    examples: {
      'svcctl rig delete shop': 'remove it, where nothing refers to it',
      'svcctl rig delete shop --cascade --yes': 'with its agents, patches and sessions',
    },
  }),
  act('suspend', 'Suspend a rig: none of its agents is started', 'keep it, but let nothing run in it'),
  act('resume', 'Resume a suspended rig', 'let its agents run again'),
  act('restart', 'End the sessions of a rig, so that they start again', 'start its agents anew'),
]

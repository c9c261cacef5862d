/** `svcctl rig …`: project directories of a city. */
import { resolve } from 'node:path'
import type { PatchBody } from '../../contract/base/merge-patch.ts'
import type { RigCreateRequest, RigInfo } from '../../contract/rigs.ts'
import { settle, waitFlags } from '../base/accepted.ts'
import { type CommandSpec, type Input, keyFlag, yesFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { bodyOf, ifMatchFlag, readFields, setFlags, unsetFlag } from '../base/fields.ts'
import {
  type AnswerOf,
  allColumns,
  fieldsOver,
  type InCity,
  inCity,
  printsItem,
  printsList,
  type View,
} from '../base/in-city.ts'
import type { Column } from '../base/output.ts'

const COLUMNS: readonly Column<RigInfo>[] = [
  { header: 'NAME', value: (rig) => rig.name },
  { header: 'PREFIX', value: (rig) => rig.prefix },
  { header: 'SUSPENDED', value: (rig) => rig.suspended },
  { header: 'AGENTS', value: (rig) => `${rig.running_count} of ${rig.agent_count} running` },
  { header: 'PATH', value: (rig) => rig.path },
  { header: 'BRANCH', value: ({ git }) => git?.branch },
  { header: 'CHANGED', value: ({ git }) => git?.changed_files },
  { header: 'DEFAULT_BRANCH', value: (rig) => rig.default_branch, wide: true },
  { header: 'AHEAD', value: ({ git }) => git?.ahead, wide: true },
  { header: 'BEHIND', value: ({ git }) => git?.behind, wide: true },
  { header: 'GIT_OBSERVED_AT', value: ({ git }) => git?.observed_at, kind: 'time', wide: true },
  { header: 'LAST_ACTIVITY', value: (rig) => rig.last_activity, kind: 'time', wide: true },
  { header: 'SUSPENDED_ON_START', value: (rig) => rig.suspended_on_start, wide: true },
  { header: 'FILE', value: ({ file, line }) => (file === undefined ? undefined : `${file}:${line}`), wide: true },
  { header: 'REVISION', value: (rig) => rig.revision, wide: true },
]
const RIG: View<RigInfo> = { columns: COLUMNS, name: ({ name }) => name }
const DELETED: View<AnswerOf<'delete-rig'>> = {
  columns: [
    { header: 'STATUS', value: (deleted) => deleted.status },
    { header: 'NAME', value: (deleted) => deleted.name },
    { header: 'REMOVED', value: ({ removed }) => (removed.length === 0 ? undefined : removed.join(', ')) },
    { header: 'REVISION', value: (deleted) => deleted.revision },
  ],
  name: ({ name }) => name,
}

const itemParams = ({ cityName, input }: InCity) => ({ cityName, name: input.required('name') })
const gitQuery = ({ input }: InCity) => ({ git: input.choice('git') ?? true })

const list = printsList(RIG, (city) =>
  city.client.call('list-rigs', { params: { cityName: city.cityName }, query: gitQuery(city), ...city.options }),
)

const get = printsItem(RIG, (city) =>
  city.client.call('get-rig', { params: itemParams(city), query: gitQuery(city), ...city.options }),
)

async function create(context: Context, input: Input): Promise<number> {
  const [given, url] = [input.text('path'), input.text('gitUrl')]
  if (given !== undefined && url !== undefined) throw usageError('a directory and --git-url are mutually exclusive')
  const fields = await readFields(context, input, {
    name: input.required('name'),
    // Relative to here, as everywhere on a command line; the server makes it relative to the city where it is inside.
    ...(given === undefined ? {} : { path: resolve(context.io.cwd, given.replace(/^~(?=\/|$)/, context.io.home)) }),
    git_url: url,
    prefix: input.text('prefix'),
    default_branch: input.text('defaultBranch'),
  })
  return inCity(context, input, async ({ client, cityName, options }) => {
    const { body, text } = await client.call('create-rig', {
      params: { cityName },
      body: bodyOf<RigCreateRequest>(fields),
      ...options,
    })
    if ('request_id' in body) return settle(context, input, 'rig.create', { ...body, city: cityName }, text)
    await context.print.item({ item: body, ...allColumns(RIG), json: text })
    return EXIT.ok
  })
}

const update = printsItem(
  RIG,
  (city, fields) =>
    city.client.call('patch-rig', { params: itemParams(city), body: bodyOf<PatchBody>(fields), ...city.options }),
  fieldsOver(),
)

const deleteRig = printsItem(DELETED, (city) =>
  city.client.call('delete-rig', {
    params: itemParams(city),
    query: { cascade: city.input.on('cascade') ? true : undefined },
    ...city.options,
  }),
)

async function remove(context: Context, input: Input): Promise<number> {
  const question = `Remove rig ${input.required('name')} with everything that refers to it? Its directory stays.`
  if (input.on('cascade')) await context.confirm(question, input.on('yes'))
  return deleteRig(context, input)
}

const act = (action: 'suspend' | 'resume' | 'restart') =>
  printsItem(RIG, (city) =>
    city.client.call('act-on-rig', { params: { ...itemParams(city), action }, ...city.options }),
  )

const rig = { name: '<name>', description: 'Name of the rig.' } as const
const gitFlag = { flags: '--no-git', description: 'Without what git says of its directory.' } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['rig', 'list'],
    operations: ['list-rigs'],
    flags: [gitFlag],
    examples: [{ line: 'svcctl rig list', does: 'all rigs, with their branches' }],
    run: list,
  },
  {
    path: ['rig', 'get'],
    operations: ['get-rig'],
    arguments: [rig],
    flags: [gitFlag],
    examples: [{ line: 'svcctl rig get shop', does: 'one rig' }],
    run: get,
  },
  {
    path: ['rig', 'create'],
    operations: ['create-rig'],
    arguments: [rig, { name: '[path]', description: 'Its directory, relative to here.', complete: 'file' }],
    flags: [
      { flags: '--git-url <url>', description: 'Clone this repository into rigs/NAME of the city.' },
      { flags: '--prefix <prefix>', description: 'Of the ids of its beads; made from the name where absent.' },
      { flags: '--default-branch <branch>', description: 'Its mainline; found where absent.' },
      ...setFlags,
      ...waitFlags,
      ifMatchFlag,
      keyFlag,
    ],
    examples: [
      { line: 'svcctl rig create shop ~/src/shop', does: 'a directory that is there already' },
      { line: 'svcctl rig create shop --git-url https://github.com/acme/shop', does: 'a fresh clone' },
    ],
    run: create,
  },
  {
    path: ['rig', 'update'],
    operations: ['patch-rig'],
    arguments: [rig],
    flags: [...setFlags, unsetFlag, ifMatchFlag],
    examples: [{ line: 'svcctl rig update shop --set default_branch=main', does: 'change a field' }],
    run: update,
  },
  {
    path: ['rig', 'delete'],
    operations: ['delete-rig'],
    arguments: [rig],
    flags: [{ flags: '--cascade' }, yesFlag, ifMatchFlag],
    examples: [
      { line: 'svcctl rig delete shop', does: 'remove it, where nothing refers to it' },
      { line: 'svcctl rig delete shop --cascade --yes', does: 'with its agents, patches and sessions' },
    ],
    run: remove,
  },
  {
    path: ['rig', 'suspend'],
    operations: ['act-on-rig'],
    summary: 'Suspend a rig: none of its agents is started',
    arguments: [rig],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl rig suspend shop', does: 'keep it, but let nothing run in it' }],
    run: act('suspend'),
  },
  {
    path: ['rig', 'resume'],
    operations: ['act-on-rig'],
    summary: 'Resume a suspended rig',
    arguments: [rig],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl rig resume shop', does: 'let its agents run again' }],
    run: act('resume'),
  },
  {
    path: ['rig', 'restart'],
    operations: ['act-on-rig'],
    summary: 'End the sessions of a rig, so that they start again',
    arguments: [rig],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl rig restart shop', does: 'start its agents anew' }],
    run: act('restart'),
  },
]

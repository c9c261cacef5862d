/** `svcctl rig …`: project directories of a city. */
import { resolve } from 'node:path'
import type { PatchBody } from '../../contract/merge-patch.ts'
import type { RigCreateRequest, RigInfo } from '../../contract/rigs.ts'
import { settle, waitFlags } from '../accepted.ts'
import { type CommandSpec, type Input, keyFlag } from '../command.ts'
import type { Context } from '../context.ts'
import { EXIT, usageError } from '../failure.ts'
import { bodyOf, ifMatchFlag, preconditionOf, readFields, setFlags, unsetFlag } from '../fields.ts'
import type { Column } from '../output.ts'

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
const ITEM_COLUMNS = COLUMNS.map((column) => ({ ...column, wide: false }))
const name = (rig: { readonly name: string }): string => rig.name

async function list(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const query = { git: input.choice('git') ?? true }
  const { body, text } = await client.call('list-rigs', { params: { cityName }, query, signal: limit.signal })
  await context.print.list({ items: body.items, columns: COLUMNS, name, json: text })
  return EXIT.ok
}

async function get(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('get-rig', {
    params: { cityName, name: input.required('name') },
    query: { git: input.choice('git') ?? true },
    signal: limit.signal,
  })
  return show(context, body, text)
}

async function create(context: Context, input: Input): Promise<number> {
  const [given, url, prefix, branch] = [
    input.text('path'),
    input.text('gitUrl'),
    input.text('prefix'),
    input.text('defaultBranch'),
  ]
  if (given !== undefined && url !== undefined) throw usageError('a directory and --git-url are mutually exclusive')
  const fields = await readFields(context, input, {
    name: input.required('name'),
    // Relative to here, as everywhere on a command line; the server makes it relative to the city where it is inside.
    ...(given === undefined ? {} : { path: resolve(context.io.cwd, given.replace(/^~(?=\/|$)/, context.io.home)) }),
    ...(url === undefined ? {} : { git_url: url }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(branch === undefined ? {} : { default_branch: branch }),
  })
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('create-rig', {
    params: { cityName },
    body: bodyOf<RigCreateRequest>(fields),
    headers: preconditionOf(input),
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  if ('request_id' in body) return settle(context, input, 'rig.create', { ...body, city: cityName }, text)
  return show(context, body, text)
}

async function update(context: Context, input: Input): Promise<number> {
  const fields = await readFields(context, input)
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('patch-rig', {
    params: { cityName, name: input.required('name') },
    body: bodyOf<PatchBody>(fields),
    headers: preconditionOf(input),
    signal: limit.signal,
  })
  return show(context, body, text)
}

async function remove(context: Context, input: Input): Promise<number> {
  const rig = input.required('name')
  const cascade = input.on('cascade')
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  if (cascade)
    await context.confirm(`Remove rig ${rig} with everything that refers to it? Its directory stays.`, input.on('yes'))
  const client = await context.client()
  const { body, text } = await client.call('delete-rig', {
    params: { cityName, name: rig },
    query: { cascade: cascade ? true : undefined },
    headers: preconditionOf(input),
    signal: limit.signal,
  })
  await context.print.item({
    item: body,
    columns: [
      { header: 'STATUS', value: (deleted) => deleted.status },
      { header: 'NAME', value: name },
      { header: 'REMOVED', value: ({ removed }) => (removed.length === 0 ? undefined : removed.join(', ')) },
      { header: 'REVISION', value: (deleted) => deleted.revision },
    ],
    name,
    json: text,
  })
  return EXIT.ok
}

function act(action: 'suspend' | 'resume' | 'restart') {
  return async (context: Context, input: Input): Promise<number> => {
    using limit = context.within()
    const cityName = await context.needCity(undefined, limit.signal)
    const client = await context.client()
    const { body, text } = await client.call('act-on-rig', {
      params: { cityName, name: input.required('name'), action },
      headers: preconditionOf(input),
      signal: limit.signal,
    })
    await context.print.item({
      item: body,
      columns: [
        { header: 'STATUS', value: (result) => result.status, kind: 'state' },
        { header: 'RIG', value: (result) => result.rig },
        { header: 'SUSPENDED', value: (result) => result.suspended },
        { header: 'KILLED', value: ({ killed }) => killed?.length },
        { header: 'FAILED', value: ({ failed }) => failed?.length },
      ],
      name: (result) => result.rig,
      json: text,
    })
    return body.status === 'ok' ? EXIT.ok : EXIT.operationFailed
  }
}

async function show(context: Context, item: RigInfo, json: string): Promise<number> {
  await context.print.item({ item, columns: ITEM_COLUMNS, name, json })
  return EXIT.ok
}

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
    flags: [{ flags: '--cascade' }, { flags: '-y, --yes', description: 'Do not ask.' }, ifMatchFlag],
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

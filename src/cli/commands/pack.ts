/** `svcctl pack …`: what a city imports. */

import { cut } from '../../contract/base/text.ts'
import type { CachedPack, Pack, PackIssue, PackStatus } from '../../contract/packs.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { size } from '../base/progress.ts'
import type { AnswerOf, Call, SaidOf } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { placeOf } from '../print/columns.ts'
import { view } from '../print/view.ts'
import { PACKS as TABLE } from '../tables/packs.ts'
import { offerTrust, packOf, packsOf, question, sayUntrusted, showRuns } from '../views/pack-trust.ts'
import { whyText } from '../views/pack-why.ts'

const PACK = view<Pack>()('name scope kind state TRUSTED version PINNED source', {
  wide: 'pin.commit pin.content_hash pin.fetched file provides.agents revision',
  as: { TRUSTED: (pack) => (pack.trusted ? 'yes' : 'no'), PINNED: 'pin.version' },
})
const ISSUE = view<PackIssue>()('severity code name scope message hint', { name: 'code' })
const STATUS = view<PackStatus>()('name scope state TRUSTED version PINNED UPGRADE NEWEST SIZE source', {
  wide: 'pin.commit FILE',
  as: {
    TRUSTED: ({ trusted }) => (trusted ? 'yes' : 'no'),
    PINNED: 'pin.version',
    UPGRADE: 'upgrade.version',
    NEWEST: 'newest.version',
    SIZE: ({ bytes }) => (bytes === undefined ? undefined : size(bytes)),
    FILE: placeOf,
  },
})
const CACHED = view<CachedPack>()('REPOSITORY COMMIT SIZE LAST_USED cities', {
  wide: 'id',
  as: {
    REPOSITORY: ({ repository, id }) => repository ?? id,
    COMMIT: ({ commit }) => commit && cut(commit, 12),
    SIZE: ({ bytes }) => size(bytes),
    LAST_USED: 'last_used_at',
  },
  name: 'id',
})
const DELETED = view<AnswerOf<'remove-pack'>>()('status name scope source', { name: 'name' })

/** What was fetched is asked about once it is there. */
async function asksTrust({
  context,
  input,
  show,
}: Pick<Call<'add-pack'>, 'context' | 'input' | 'show'>): Promise<number> {
  const exitCode = await show()
  if (exitCode !== EXIT.ok || input.on('trust')) return exitCode
  const waited = input.choice('wait') ?? context.io.stdout.isTerminal
  if (waited) await offerTrust(context, input)
  else if (await isFromElsewhere(context, input)) await sayUntrusted(context)
  return exitCode
}

/** What is added says so; of an upgrade it is what the city imports already. */
async function isFromElsewhere(context: Context, input: Input): Promise<boolean> {
  const source = input.text('source')
  if (source !== undefined) return !/^(?:builtin:|[./])/.test(source)
  return (await packsOf(context, input)).some(({ pin }) => pin !== undefined)
}

/** What is not from git has none, and is trusted. */
const NO_COMMIT = '0'.repeat(40)

/** Shown and asked about, unless the commit is named: then somebody has looked. */
async function commitToTrust(
  context: Call<'trust-pack'>['context'],
  input: Call<'trust-pack'>['input'],
): Promise<SaidOf<'trust-pack'>> {
  if (input.has('commit')) return {}
  const item = await packOf(context, input, input.required('name'), input.text('scope'))
  if (!item.trusted) {
    await showRuns(context, item)
    await context.confirm(question(item), input.on('yes'))
  }
  if (item.pin === undefined && item.kind === 'git')
    throw usageError(`${item.name} is not installed`, 'run `svcctl pack install`')
  return { scope: item.scope, commit: item.pin?.commit ?? NO_COMMIT }
}

async function check({ context, send }: Call<'check-packs'>): Promise<number> {
  const { body, text } = await send()
  await context.print.list({ items: body.issues, ...ISSUE, json: text })
  return body.ok ? EXIT.ok : EXIT.operationFailed
}

async function status({ context, send }: Call<'check-packs'>): Promise<number> {
  const { body: found, text } = await send()
  await context.print.list({ items: found.packs, ...STATUS, json: text })
  for (const { name, remote_error } of found.packs)
    if (remote_error !== undefined) await context.note(`warning: ${name}: ${remote_error}`)
  const errors = found.issues.filter(({ severity }) => severity === 'error').length
  if (errors > 0) await context.note(`${errors} of its packs cannot be used as they are: see \`svcctl pack check\``)
  return EXIT.ok
}

async function cache({ context, send }: Call<'list-pack-cache'>): Promise<number> {
  const { body, text } = await send()
  await context.print.list({ items: body.items, ...CACHED, json: text })
  for (const failure of body.partial_errors ?? []) await context.note(`warning: ${failure}`)
  if (context.print.isForPeople) await context.note(`${body.total} checkouts, ${size(body.bytes)}`)
  return EXIT.ok
}

async function prune({ context, send }: Call<'prune-pack-cache'>): Promise<number> {
  await context.print.require(CACHED)
  const { body: done, text } = await send()
  await context.print.list({ items: done.removed, ...CACHED, json: text })
  const went = done.dry_run ? 'would go' : 'are gone'
  await context.note(`${done.removed.length} checkouts ${went} (${size(done.removed_bytes)}), ${done.kept} stay`)
  return EXIT.ok
}

const command = commandsOf(TABLE)
const NAME = {
  says: { name: 'Name of the import.', scope: '`city`, `rig:<name>` or `default-rig` (default: the city).' },
} as const

export const commands: readonly CommandSpec[] = [
  command('pack list', 'list-packs', {
    view: PACK,
    examples: { 'svcctl pack list': 'what the city of this directory imports' },
  }),
  command('pack get', 'get-pack', {
    ...NAME,
    arguments: ['<name...>'],
    view: PACK,
    examples: { 'svcctl pack get core': 'where it is from, and what it brings' },
  }),
  command('pack add', 'add-pack', {
    arguments: ['<source>'],
    says: {
      name: 'What to call it (default: from the source).',
      trust: 'Let it start what it brings, unseen.',
      scope: NAME.says.scope,
    },
    run: asksTrust,
    examples: {
      'svcctl pack add ./packs/review': 'a pack of this city',
      'svcctl pack add https://git.example.org/teams/packs.git//review': 'the highest release from git',
    },
  }),
  command('pack trust', 'trust-pack', {
    arguments: ['<name>'],
    says: { ...NAME.says, commit: 'The commit that was looked at (default: shows it and asks).' },
    fill: commitToTrust,
    view: PACK,
    examples: { 'svcctl pack trust review': 'shows what it would run, and asks' },
  }),
  command('pack remove', 'remove-pack', {
    ...NAME,
    arguments: ['<name...>'],
    view: DELETED,
    examples: { 'svcctl pack remove review': 'unless something still names what it brings' },
  }),
  command('pack install', 'install-packs', {
    examples: { 'svcctl pack install --wait': 'pin and fetch what is not there' },
  }),
  command('pack upgrade', 'upgrade-packs', {
    arguments: ['[names...]'],
    says: { names: 'Imports to upgrade (default: all).' },
    run: asksTrust,
    examples: { 'svcctl pack upgrade review': 'the highest release that its version allows' },
  }),
  command('pack check', 'check-packs', {
    description: 'Exit code 9 when something is wrong.',
    leaves: { remote: '`svcctl pack status --remote` asks them' },
    run: check,
    examples: { 'svcctl pack check': 'compare imports, lock and cache' },
  }),
  command('pack status', 'check-packs', {
    summary: 'Every import, and what has become of it',
    says: { remote: 'Asks the repositories for newer releases.' },
    run: status,
    examples: {
      'svcctl pack status': 'pinned, there, trusted, changed on disk, how large',
      'svcctl pack status --remote': 'what an upgrade would bring',
    },
  }),
  command('pack why', 'explain-pack', {
    arguments: ['<name>'],
    says: { name: 'Of an import at any depth, or of the pack itself.' },
    print: ({ print }, { body, text }) => print.text({ text: whyText(body), json: text }),
    examples: { 'svcctl pack why review': 'which import in which file leads to it, and what it brings' },
  }),
  command('pack cache', 'list-pack-cache', {
    view: CACHED,
    run: cache,
    examples: { 'svcctl pack cache': 'what lies on this machine, how large, and who needs it' },
  }),
  command('pack prune', 'prune-pack-cache', {
    run: prune,
    examples: {
      'svcctl pack prune --dry-run': 'what no city needs and nobody used for a week',
      'svcctl pack prune --max-age 0s': 'everything that no city needs',
    },
  }),
]

/** Asking whether a pack from elsewhere may start what it brings: what that is, and at which commit, is shown first. */
import type { Pack, PackRun } from '../../contract/packs.ts'
import type { Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { inCity } from '../framework/in-city.ts'

const MAX_LINES = 40

/** Goes through what is imported and not trusted: asks somebody who is there, tells everybody else how to. */
export async function offerTrust(context: Context, input: Input): Promise<void> {
  for (const { name, scope, trusted, pin } of await packsOf(context, input)) {
    if (trusted || pin === undefined) continue
    const pack = await packOf(context, input, name, scope)
    if (!context.canAsk) {
      await context.note(
        `${name} is not trusted: nothing of it is started; see \`${look(name)}\`, then \`${allow(name)}\``,
      )
      continue
    }
    await showRuns(context, pack)
    if (await context.agrees(question(pack))) await trust(context, input, pack, pin.commit)
    else await context.note(`it stays untrusted: nothing of it is started until \`${allow(name)}\``)
  }
}

/** Where nobody waits for the end, and so nobody can be asked. */
export const sayUntrusted = (context: Context): Promise<void> =>
  context.note('a pack from elsewhere starts nothing until it is trusted: `svcctl pack trust NAME`')

export function packsOf(context: Context, input: Input): Promise<readonly Pack[]> {
  return inCity(context, input, async ({ client, cityName, options: { signal } }) => {
    return (await client.call('list-packs', { params: { cityName }, signal })).body.items
  })
}

export function packOf(context: Context, input: Input, name: string, scope: string | undefined): Promise<Pack> {
  return inCity(context, input, async ({ client, cityName, options }) => {
    const { signal } = options
    return (await client.call('get-pack', { params: { cityName, name }, query: { scope }, signal })).body
  })
}

function trust(context: Context, input: Input, { name, scope }: Pack, commit: string) {
  return inCity(context, input, ({ client, cityName, options: { signal } }) =>
    client.call('trust-pack', { params: { cityName, name }, query: { scope }, body: { commit }, signal }),
  )
}

export const question = ({ name, pin }: Pack): string =>
  `Trust ${name} at ${pin?.commit ?? 'no commit'}? It may then start this, as your user.`

/** On stderr: stdout has the answer. */
export async function showRuns(context: Context, { name, source, runs = [] }: Pack): Promise<void> {
  await context.note(`${name} (${source}) would run:`)
  if (runs.length === 0) await context.note('  nothing that its files name')
  for (const run of runs.slice(0, MAX_LINES)) await context.note(`  ${lineOf(run)}`)
  if (runs.length > MAX_LINES) await context.note(`  and ${runs.length - MAX_LINES} more: ${look(name)}`)
}

const lineOf = ({ file, key, command }: PackRun): string =>
  key === '' ? `${file} (executable)` : `${file}: ${key} = ${command}`
const look = (name: string): string => `svcctl pack get ${name} -o yaml`
const allow = (name: string): string => `svcctl pack trust ${name}`

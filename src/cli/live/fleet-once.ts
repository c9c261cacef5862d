/** The fleet as it is now, for whoever reads no screen: a table, or JSON. */

import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { view } from '../print/view.ts'
import { Feed } from './feed.ts'
import type { City } from './fleet.ts'
import { nameOf } from './rows.ts'

interface Line {
  readonly city: string
  readonly status: string
  readonly session?: string
  readonly id?: string
  readonly state?: string
  readonly bead?: string | undefined
  readonly since?: string
  readonly needs?: string | undefined
  readonly last_output?: string | undefined
}

const LINE = view<Line>()('city status session state bead since needs last_output', {
  wide: 'id',
  name: ({ id, city }) => id ?? city,
})

/** Cities and their sessions. */
export async function printFleet(context: Context, city: string | undefined): Promise<number> {
  const feed = new Feed(context, await context.client(), context.io.signal, () => undefined)
  await feed.load()
  const wanted = () => feed.fleet.cities.filter(({ info }) => city === undefined || info.name === city)
  await feed.peekOnce(
    wanted().flatMap(({ info, sessions }) =>
      sessions.flatMap(({ id, running }) => (running ? [{ city: info.name, id }] : [])),
    ),
  )
  const cities = wanted()
  const { outputs } = feed.fleet
  const items = cities.flatMap((one) => linesOf(one, outputs))
  const json = JSON.stringify({
    items,
    total: items.length,
    cities: cities.map(({ info, status, needs }) => ({ ...info, ...(status && { summary: status }), needs })),
  })
  await context.print.list({ items, ...LINE, json })
  for (const { info, trouble } of cities)
    if (trouble !== undefined) await context.note(`warning: ${info.name}: ${trouble}`)
  return EXIT.ok
}

function linesOf({ info, sessions, questions }: City, outputs: ReadonlyMap<string, string>): readonly Line[] {
  const { name: city, status } = info
  const asked = new Map(questions.map(({ session_id, prompt, kind }) => [session_id, prompt ?? kind]))
  if (sessions.length === 0) return [{ city, status }]
  return sessions.map((session) => ({
    ...{ city, status, session: nameOf(session), id: session.id, state: session.state, bead: session.active_bead },
    ...{
      since: session.state_since,
      needs: asked.get(session.id),
      last_output: lastLine(outputs.get(`${city} ${session.id}`)),
    },
  }))
}

const lastLine = (output = ''): string | undefined => output.split('\n').findLast((line) => /\S/.test(line))

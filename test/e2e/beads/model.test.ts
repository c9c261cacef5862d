/** The life of beads against a plain model of it, over HTTP, with every answer checked against the contract. A failure prints its seed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Clock, systemClock } from '../../../src/kernel/clock.ts'
import { BeadCity } from '../../support/bead-city.ts'
import { beadLife, FOUND_LIVES, makeSome } from '../../support/bead-commands.ts'
import { type BeadDoor, doorTo } from '../../support/bead-door.ts'
import { BeadModel } from '../../support/bead-model.ts'
import { at } from '../../support/document.ts'
import { fc } from '../../support/random.ts'
import { newCity, outcome, runHere } from '../../support/running.ts'

/** The time of day moves only when it is told to, timers as always; in all less than a lease, so that none lapses. */
class SteppedClock implements Clock {
  #now = Date.UTC(2026, 4, 1, 10)
  readonly monotonic = systemClock.monotonic
  readonly after = systemClock.after

  now = (): number => this.#now
  step(ms: number): void {
    this.#now += ms
  }
}

const CITY = `[workspace]
provider = "shell"
[providers.shell]
base = "builtin:shell"
[[rigs]]
name = "shop"
path = "shop"
prefix = "sh"
`

/** Until there are none: the next life begins with nothing. */
async function deleteAll(door: BeadDoor): Promise<void> {
  for (;;) {
    const { body } = await door.ask('list-beads', { query: { all: true, limit: 1 } })
    if (body['total'] === 0) break
    const id = String(at(body, 'items', 0, 'id'))
    await door.ask('delete-bead', { params: { id }, query: { cascade: true } })
  }
  await door.news()
}

test('whatever is done to beads over HTTP, they, what is ready, hooks and the log are what a plain model says', async () => {
  const clock = new SteppedClock()
  await using running = await runHere({ clock })
  const dir = await newCity(running.api, running.work, 'alpha')
  const city = new BeadCity(running.api)
  writeFileSync(join(dir, 'city.toml'), CITY)
  const reload = await running.api.post(`${city.base}/config/reload`)
  await outcome(running.api, String(at(reload.body, 'request_id')))
  const door = await doorTo(city, { now: clock.now, pass: async (ms) => clock.step(ms) })
  // All waits together are shorter than a lease, whose timer does not know about them. Convoys close by themselves: not here.
  const life = beadLife({ commands: 30, wait: 25_000, types: ['task', 'bug', 'epic', 'message'] })
  await fc.assert(
    fc.asyncProperty(life, async (commands) => {
      await deleteAll(door)
      const model = new BeadModel(clock.now())
      await makeSome({ model, door })
      await fc.asyncModelRun(() => ({ model, real: door }), commands)
    }),
    { numRuns: 5, examples: [...FOUND_LIVES] },
  )
})

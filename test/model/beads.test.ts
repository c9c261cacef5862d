/** The whole life of beads against a plain model of it, in this process, with leases that lapse. A failure prints its seed. */
import { test } from 'node:test'
import { beadLife, FOUND_LIVES, makeSome } from '../support/bead-commands.ts'
import { openDoor } from '../support/bead-door.ts'
import { BeadModel } from '../support/bead-model.ts'
import { fc } from '../support/random.ts'

const HALF_AN_HOUR = 1_800_000

test('whatever is done to beads in whatever order, they, what is ready, hooks and the log are what a plain model says', async () => {
  await fc.assert(
    fc.asyncProperty(beadLife({ commands: 60, wait: HALF_AN_HOUR }), async (commands) => {
      using door = openDoor()
      const model = new BeadModel(door.now())
      await makeSome({ model, door })
      await fc.asyncModelRun(() => ({ model, real: door }), commands)
    }),
    { numRuns: 25, examples: [...FOUND_LIVES] },
  )
})

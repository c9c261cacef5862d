/**
 * The bounded form of `npm run fuzz`: requests generated from `openapi.json` and bytes that are hardly HTTP, against a
 * real supervisor.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type DocumentedOperation, OPERATIONS } from '../support/contract-document.ts'
import { isSteering } from '../support/fuzzed-city.ts'
import { FuzzedSupervisor } from '../support/fuzzed-supervisor.ts'
import { type Campaign, fuzzBytes, fuzzOperation, isStrict } from '../support/fuzzing.ts'
import { SEED } from '../support/random.ts'
import { RAW_CASES, rawFaults } from '../support/raw-cases.ts'
import { exchangeBytes, keptAlive } from '../support/wire.ts'

/** `npm run fuzz` sends more. */
const RUNS = 10
/** So often anew where nothing of it was right. */
const TRIES = 5
/** Of families that write files, and whose schemas leave much to their rules. */
const LOOSE_RUNS = 4
/** Each is followed by bringing the city up again. */
const STEERING_RUNS = 5
const RAW_RUNS = 60

function runsOf(operation: DocumentedOperation): number {
  if (isSteering(operation.id)) return STEERING_RUNS
  return isStrict(operation) ? RUNS : LOOSE_RUNS
}

describe('whatever is sent, the answer is one that the contract declares', () => {
  const agent = keptAlive()
  const seen = new Map<string, number>()
  let supervisor: FuzzedSupervisor
  let campaign: Campaign

  before(async () => {
    supervisor = await FuzzedSupervisor.start()
    const { url, work, world } = supervisor
    campaign = { url, work, world, agent, seed: SEED, seen }
  })
  after(async () => {
    agent.destroy()
    await supervisor[Symbol.asyncDispose]()
  })

  for (const operation of OPERATIONS) {
    test(`${operation.method} ${operation.path}: breaches are refused, the rest is answered as declared`, async () => {
      const succeeded = () =>
        !isStrict(operation) || [...seen.keys()].some((key) => key.startsWith(`${operation.id} 2`))
      for (let tries = 0; tries === 0 || (tries < TRIES && !succeeded()); tries++)
        await fuzzOperation(operation, { ...campaign, seed: SEED + tries }, runsOf(operation))
      assert.ok(succeeded(), 'no generated request succeeded: add what exists to `worldFor` in test/support/fuzzing.ts')
    })
  }

  for (const [name, bytes] of RAW_CASES) {
    test(`${name} is refused with Problem Details or a closed connection`, async () => {
      assert.deepEqual(rawFaults(await exchangeBytes(supervisor.url, Buffer.from(bytes))), [])
    })
  }

  test('bytes that are hardly HTTP are refused with Problem Details or a closed connection', () =>
    fuzzBytes(campaign, RAW_RUNS))

  test('after all of that the server is well, has reported no failure, and its agents end with their cities', async () => {
    assert.deepEqual(await supervisor.faults(), [])
    assert.deepEqual(await supervisor.end(), [])
  })
})

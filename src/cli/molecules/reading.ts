/** A molecule with its steps, read and waited for. */
import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import { ApiProblem, Unreachable } from '../../client/problems.ts'
import type { Molecule, MoleculeStep } from '../../contract/automation/molecules.ts'
import { EXIT, Failure } from '../base/failure.ts'

/** A molecule of a city. */
export interface Spot {
  readonly cityName: string
  readonly id: string
}

export interface Seen {
  readonly molecule: Molecule
  readonly steps: readonly MoleculeStep[]
}

const PAGE = 1_000

export async function readMolecule(client: Client, spot: Spot, signal: AbortSignal): Promise<Seen> {
  const { body: molecule } = await client.call('get-molecule', { params: spot, signal })
  const steps: MoleculeStep[] = []
  for (let cursor: string | undefined; ; ) {
    const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
    const { body } = await client.call('list-molecule-steps', { params: spot, query, signal })
    steps.push(...body.items)
    cursor = body.next_cursor
    if (cursor === undefined) return { molecule, steps }
  }
}

export const isOver = ({ status }: Pick<Molecule, 'status'>): boolean =>
  status === 'completed' || status === 'failed' || status === 'canceled'

const WAIT_MS = 60_000
const AGAIN_MS = 1_000

/** Until it has ended; a server that is away for a while is waited for. */
export async function waitForEnd(client: Client, params: Spot, signal: AbortSignal): Promise<Molecule> {
  for (let index: number | undefined; ; ) {
    signal.throwIfAborted()
    const query = index === undefined ? {} : { index, wait: `${WAIT_MS}ms` }
    try {
      const { body, headers } = await client.call('get-molecule', { params, query, signal })
      if (isOver(body)) return body
      index = Number(headers.get('x-svc-index'))
    } catch (error) {
      if (!mayPass(error)) throw error
      client.lost()
      await delay(client.clock, AGAIN_MS, signal)
    }
  }
}

/** A city that starts again is found once more. */
export const mayPass = (error: unknown): boolean =>
  error instanceof Unreachable ||
  (error instanceof ApiProblem && (error.status >= 500 || error.status === 429 || error.code === 'city-not-found'))

/** What one that has not passed ends the command with; undefined: it has. */
export function failureOf({ id, status, failure }: Molecule): Failure | undefined {
  if (status === 'completed') return undefined
  const why = failure === undefined ? '' : `: ${failure.step_id}: ${failure.reason}: ${failure.message}`
  return new Failure(
    EXIT.operationFailed,
    `the molecule ${id} ${status === 'failed' ? 'failed' : 'was canceled'}${why}`,
  )
}

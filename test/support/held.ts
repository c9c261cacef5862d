/**
 * What a server of a test sent or logged that differs from the contract: the server writes it into a file, and the test
 * fails of it (`src/http/conformance.ts`). A server that nobody disposes of is asked when the process of the test ends.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const FAULTS_VARIABLE = 'SVC_CONTRACT_FAULTS'
/** Its value in the environment of benchmarks: their servers check nothing. */
export const UNHELD = 'off'

const open = new Set<HeldServer>()
process.on('exit', () => {
  for (const server of open) {
    const faults = server.faults()
    if (faults.length === 0) continue
    process.stderr.write(`${sentence(faults)}\n`)
    process.exitCode = 1
  }
})

export class HeldServer {
  readonly #dir = mkdtempSync(join(tmpdir(), 'svc-held-'))

  constructor() {
    open.add(this)
  }

  /** For the environment of the server. */
  get env(): Readonly<Record<string, string>> {
    return { [FAULTS_VARIABLE]: process.env[FAULTS_VARIABLE] === UNHELD ? '' : join(this.#dir, 'faults') }
  }

  /** Fails where the server has noted faults; also after it was killed. */
  assertNone(): void {
    if (!open.has(this)) return
    const faults = this.faults()
    if (faults.length > 0) throw new Error(sentence(faults))
  }

  /** Returns each different fault once, and forgets the server. */
  faults(): readonly string[] {
    open.delete(this)
    const faults = faultsIn(join(this.#dir, 'faults'))
    rmSync(this.#dir, { recursive: true, force: true })
    return faults
  }
}

const sentence = (faults: readonly string[]): string => `the server differs from its contract:\n${faults.join('\n')}`

function faultsIn(file: string): readonly string[] {
  try {
    return [...new Set(readFileSync(file, 'utf8').split('\n'))].filter((line) => line !== '')
  } catch {
    return []
  }
}

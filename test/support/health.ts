/** Watching `/health` from another thread while a test does something to the server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { at } from './document.ts'

/** A server that gives way to others answers in a few milliseconds; the rest is what a busy machine adds. */
const SLOWEST_MS = 1_500
/** So often at most somebody has to be given a processor before an answer is here, each time as late as we were. */
const TURNS = 8

export class HealthWatch implements AsyncDisposable {
  readonly #worker: Worker

  constructor(url: string) {
    this.#worker = new Worker(new URL('./health-watch.ts', import.meta.url), { workerData: { url } })
  }

  /** Every answer since the last look was 200, and none was later than the machine made it. */
  async answers(withinMs = SLOWEST_MS): Promise<number> {
    const seen = once(this.#worker, 'message')
    this.#worker.postMessage('what have you seen?')
    const [found]: unknown[] = await seen
    assert.deepEqual(at(found, 'failures'), [])
    const slowest = Number(at(found, 'slowestMs'))
    const latest = Number(at(found, 'latestMs'))
    assert.ok(slowest < withinMs + TURNS * latest, `/health took ${slowest} ms, while we were ${latest} ms late`)
    return slowest
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

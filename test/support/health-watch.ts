// A thread that asks `/health` again and again, so that a busy test does not look like a slow server. Answers every
// message with what it has seen since the last one; by how long its own thread was kept from running, too.
import { parentPort, workerData } from 'node:worker_threads'

const PAUSE_MS = 100
const DEADLINE_MS = 20_000
const url: string = workerData.url
let slowestMs = 0
let latestMs = 0
let failures: string[] = []

parentPort?.on('message', () => {
  parentPort?.postMessage({ slowestMs, latestMs, failures })
  slowestMs = 0
  latestMs = 0
  failures = []
})

for (;;) {
  const startedAt = performance.now()
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(DEADLINE_MS) })
    await response.arrayBuffer()
    if (response.status !== 200) failures.push(`status ${response.status}`)
  } catch (error) {
    failures.push(String(error))
  }
  slowestMs = Math.max(slowestMs, performance.now() - startedAt)
  const due = performance.now() + PAUSE_MS
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  latestMs = Math.max(latestMs, performance.now() - due)
}

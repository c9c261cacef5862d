import assert from 'node:assert/strict'

/** A look is often a request, whose answer is checked: where four files wait, looking every 10 ms is most of the machine's work. */
const SHORTEST_MS = 10
const LONGEST_MS = 100
/** What looking less often may add to a wait. */
const SHARE = 0.1

/** Waits until `look` gives something; fails with `what` after the deadline. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  deadlineMs = 90_000,
): Promise<T> {
  const begun = performance.now()
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    const waited = performance.now() - begun
    assert.ok(waited < deadlineMs, `not within ${deadlineMs} ms: ${what}`)
    const pause = Math.min(Math.max(waited * SHARE, SHORTEST_MS), LONGEST_MS)
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}

/** The way in for hooks, which run several times in a turn: nothing is loaded that they do not need. */
import { homedir } from 'node:os'
import { runHook } from './run.ts'

const MAX_INPUT = 16 * 1024 * 1024
/** A harness writes it at once; one that does not must not be kept waiting. */
const INPUT_MS = 2_000

/** `session report --from <harness>`. */
export async function main([, , , from = '']: readonly string[], cwd: string): Promise<number> {
  const { env } = process
  await runHook(from, {
    env,
    cwd,
    home: env['HOME'] ?? homedir(),
    input: readInput,
    print: (text) => new Promise((resolve) => process.stdout.write(text, () => resolve())),
    now: () => Date.now(),
  })
  return 0
}

function readInput(): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const done = () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks).toString('utf8'))
    }
    const timer = setTimeout(done, INPUT_MS)
    process.stdin.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= MAX_INPUT) chunks.push(chunk)
    })
    process.stdin.once('end', done)
    process.stdin.once('error', done)
  })
}

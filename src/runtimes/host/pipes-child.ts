/**
 * A program without a terminal, on pipes (decision 53): for those that misbehave on a terminal, and where there is no pty.
 * It cannot be interrupted by a key, and nobody can tell whether it is idle.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import type { Clock } from '../../kernel/clock.ts'
import { type ChildContext, ChildStartError, type HostedChild, type StartChild } from '../process/hosted-child.ts'
import type { Delivery, DeliveryOutcome } from '../process/runtime.ts'

const WRITE_MS = 30_000
/** How long a process that outlives the root may keep the pipes, and with them the exit, back. */
const DRAIN_MS = 200

export const startPipesChild: StartChild = async (context) => {
  const { command, args, env, workDir } = context.spec
  try {
    // `detached`: a session of its own, so that one signal reaches what it starts.
    const child = spawn(command, args, { env, cwd: workDir, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
    return hosted(context, child)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ChildStartError('spawn_failed', `could not start ${command}: ${why}`)
  }
}

function hosted(context: ChildContext, child: ChildProcessWithoutNullStreams): HostedChild {
  const { clock, emit, output } = context
  const pid = child.pid ?? 0
  if (child.pid !== undefined) context.spawned(child.pid)
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => output(chunk))
    stream.on('error', () => {})
  }
  child.on('error', () => {})
  child.stdin.on('error', () => {}) // Each write learns of it by its callback.
  child.once('exit', (code, signal) => {
    const tell = once(() => emit({ type: 'exit', code: code ?? undefined, signal: signal ?? undefined }))
    child.once('close', tell)
    clock.after(DRAIN_MS, tell)
  })
  return {
    activity: 'unknown',
    pending: undefined,
    conversationId: undefined,
    deliver: (delivery, signal) => deliver(child, clock, delivery, signal),
    interrupt: () => Promise.resolve(false),
    answer: () => Promise.resolve(false),
    terminate() {
      try {
        process.kill(-pid, 'SIGTERM')
      } catch {
        // ESRCH: it has ended.
      }
    },
  }
}

function deliver(
  { stdin }: ChildProcessWithoutNullStreams,
  clock: Clock,
  { text }: Delivery,
  signal: AbortSignal,
): Promise<DeliveryOutcome> {
  if (!stdin.writable || signal.aborted) {
    return Promise.resolve({ state: 'failed', code: 'closed', message: 'the program reads no input any more' })
  }
  // What an earlier message left behind would go first; how far that got nobody knows.
  if (stdin.writableLength > 0) {
    return Promise.resolve({ state: 'failed', code: 'timeout', message: 'the program has not read the message before' })
  }
  return new Promise((resolve) => {
    const uncertain = (message: string) => settle({ state: 'uncertain', message })
    const settle = once((outcome: DeliveryOutcome) => {
      cancel()
      signal.removeEventListener('abort', onAbort)
      resolve(outcome)
    })
    const onAbort = () => uncertain('the program ended while the message was written')
    const cancel = clock.after(WRITE_MS, () => uncertain('the program stopped reading in the middle of the message'))
    signal.addEventListener('abort', onAbort, { once: true })
    stdin.write(`${text}\n`, (error) => {
      if (error) uncertain(`the message was not written to its end: ${error.message}`)
      else settle({ state: 'delivered' })
    })
  })
}

function once<Args extends unknown[]>(work: (...args: Args) => void): (...args: Args) => void {
  let done = false
  return (...args) => {
    if (done) return
    done = true
    work(...args)
  }
}

/** Somebody who removes an empty directory again and again, as a host that leaves as the last one does once. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** After each removal it lets the other side be for a moment: where the machine is busy, that would never come to anything. */
const PROGRAM = `const { rmdirSync } = require('node:fs')
const moment = new Int32Array(new SharedArrayBuffer(4))
process.send('ready')
for (;;)
  try {
    rmdirSync(process.argv[1])
    Atomics.wait(moment, 0, 0, 1)
  } catch {}`

/** Resolves when it is at it. */
export async function startLeaver(directory: string): Promise<Disposable> {
  const leaver = spawn(process.execPath, ['-e', PROGRAM, directory], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  await once(leaver, 'message')
  return { [Symbol.dispose]: () => leaver.kill('SIGKILL') }
}

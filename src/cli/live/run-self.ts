/** Another command of this program, in a process of its own that has the terminal meanwhile. */
import { spawn } from 'node:child_process'
import type { Context } from '../base/context.ts'

export function runSelf({ io, options }: Context, words: readonly string[]): Promise<void> {
  const [, entry = ''] = process.argv
  const server = options.api === undefined ? [] : ['--api', options.api]
  // Everybody on the machine can read the arguments of a process.
  const env = { ...io.env, ...(options.token === undefined ? {} : { SVC_TOKEN: options.token }) }
  return new Promise((resolve, reject) => {
    const all = [...process.execArgv, entry, ...words, ...server]
    // It ends with this one: nobody would give the terminal back from it.
    const child = spawn(process.execPath, all, { stdio: 'inherit', env, signal: io.signal })
    child.once('error', reject)
    child.once('exit', () => resolve())
  })
}

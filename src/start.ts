/** `serve` is the supervisor, everything else the command line. Only the one that is asked for is loaded. */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'

// In a directory of the user's own: what lies in the one for temporary files may be somebody else's, and it would be run.
const { XDG_CACHE_HOME, HOME } = process.env
const caches = XDG_CACHE_HOME || (HOME ? join(HOME, '.cache') : undefined)
if (caches !== undefined) enableCompileCache(join(caches, 'svcctl'))
/** By then a supervisor has loaded itself and its cities. */
const LOADED_AFTER_MS = 2_000
const argv = process.argv.slice(2)
/** One may be gone that a shell still stands in, as the worktree of a session that has ended: the shell knows its name. */
function workingDirectory(): string {
  try {
    return process.cwd()
  } catch {
    return process.env.PWD || '/'
  }
}
const cwd = workingDirectory()
/** `session report --from <harness>` and no more: it runs several times in a turn, and loads nothing that it does not need. */
const isHook = ([noun, verb, flag, , ...more]: readonly string[]) =>
  noun === 'session' && verb === 'report' && flag === '--from' && more.length === 0

if (argv[0] === 'serve') {
  // What is loaded at the start stays, so the young generation would grow to 32 MiB with it, and an idle process keep them.
  setFlagsFromString('--semi-space-growth-factor=1')
  setTimeout(() => setFlagsFromString('--semi-space-growth-factor=2'), LOADED_AFTER_MS).unref()
  // What is made for a request that waits for the disk or for a service outlives a collection or two, and V8 would make its like
  // where old objects live from then on: each dead one there keeps alive what it pointed to, until all of the memory is collected.
  setFlagsFromString('--no-allocation-site-pretenuring')
  const { main } = await import('./supervisor/serve.ts')
  process.exitCode = await main(argv.slice(1), {
    env: process.env,
    cwd,
    stdout: process.stdout,
    stderr: process.stderr,
  })
} else if (isHook(argv)) {
  const { main } = await import('./cli/hooks/main.ts')
  process.exit(await main(argv, cwd))
} else {
  const [{ main }, { createProcessIo }] = await Promise.all([import('./cli/main.ts'), import('./cli/process-io.ts')])
  // Every write was awaited; what may still be open (kept-alive sockets, stdin) is not worth waiting for.
  process.exit(await main(argv, createProcessIo(cwd)))
}

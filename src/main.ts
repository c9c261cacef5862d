/** Entry: `serve` is the supervisor, everything else the command line. Only the one that is asked for is loaded. */
import { enableCompileCache } from 'node:module'

enableCompileCache()
const argv = process.argv.slice(2)

if (argv[0] === 'serve') {
  const { main } = await import('./supervisor/serve.ts')
  process.exitCode = await main(argv.slice(1), { env: process.env, stdout: process.stdout, stderr: process.stderr })
} else {
  const [{ main }, { createProcessIo }] = await Promise.all([import('./cli/main.ts'), import('./cli/process-io.ts')])
  // Every write was awaited; what may still be open (kept-alive sockets, stdin) is not worth waiting for.
  process.exit(await main(argv, createProcessIo()))
}

// The program in a checkout, command line and supervisor. JavaScript, because the first file is loaded before there is a compile cache: stripping
// its types would load Node's stripper, which takes longer than everything else that a command does.
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// As in src/start.ts, which comes too late for itself.
const { XDG_CACHE_HOME, HOME } = process.env
const caches = XDG_CACHE_HOME || (HOME ? join(HOME, '.cache') : undefined)
if (caches !== undefined) enableCompileCache(join(caches, 'svcctl'))
await import('../src/start.ts')

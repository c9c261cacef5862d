// The program in a checkout, command line and supervisor. JavaScript, because the first file is loaded before there is a compile cache: stripping
// its types would load Node's stripper, which takes longer than everything else that a command does.
import { enableCompileCache } from 'node:module'

enableCompileCache()
await import('../src/main.ts')

/** Files that programs write while tests look. */
import { existsSync, readFileSync } from 'node:fs'
import { eventually } from './http.ts'

/** What is in it, once its last line is whole: a shell makes a file before it writes there. */
export const written = (path: string): Promise<string> =>
  eventually(`${path} is written`, () => {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
    return text.endsWith('\n') ? text : undefined
  })

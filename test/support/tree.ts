/** What stands in a directory, for "nothing was written" and "byte for byte as before". */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Every path below a directory with what it is: mode and contents of files, targets of links. */
export function snapshot(directory: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(directory, name)
    const stat = lstatSync(path)
    const mode = (stat.mode & 0o7777).toString(8)
    if (stat.isSymbolicLink()) found[name] = `link ${readlinkSync(path)}`
    else if (stat.isDirectory()) found[name] = `directory ${mode}`
    else found[name] = `file ${mode} ${stat.mtimeMs} ${readFileSync(path).toString('base64')}`
  }
  return found
}

/** How much a commit would write, as `git ls-tree -r -l -z` lists it: counted before anything of it is on disk. */
import { ASSET_BYTES } from '../../../files/read.ts'
import type { TreeLimits } from '../../../files/tree.ts'

const MIB = 1024 * 1024

/** Why the listed files are too much for a pack; undefined where they are not. */
export function tooMuch(listing: string, limits: TreeLimits): string | undefined {
  const directories = new Set<string>()
  let bytes = 0
  let files = 0
  for (const line of listing.split('\0')) {
    const [, size = '0', path = ''] = /^\d+ \w+ [0-9a-f]+ +(\d+|-)\t(.*)$/s.exec(line) ?? []
    if (path === '') continue
    const own = size === '-' ? 0 : Number(size)
    const shown = JSON.stringify(path.slice(0, 200))
    if (own > ASSET_BYTES) return `the file ${shown} of the pack is larger than ${ASSET_BYTES / MIB} MiB`
    const parts = path.split('/')
    if (parts.length - 1 > limits.depth) return `the pack is nested more than ${limits.depth} levels deep`
    for (let depth = 1; depth < parts.length; depth++) directories.add(parts.slice(0, depth).join('/'))
    bytes += own
    files += 1
    if (files + directories.size > limits.entries)
      return `the pack has more than ${limits.entries} files and directories`
    if (bytes > limits.bytes) return `the pack holds more than ${limits.bytes / MIB} MiB`
  }
  return undefined
}

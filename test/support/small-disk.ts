/** Disks that are soon full: file systems of a few megabytes, where this machine lets us mount them. */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A small file system of its own, where this machine lets us. */
function mountSmall(path: string, megabytes: number): (Disposable & { readonly path: string }) | string {
  mkdirSync(path, { recursive: true })
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path])
  if (status !== 0) return `cannot mount a small file system here: ${String(stderr).trim()}`
  return { path, [Symbol.dispose]: () => void spawnSync('umount', ['-l', path]) }
}

/** Fills the disk to the last byte; what is returned gives the space back. */
export function fill(directory: string): () => void {
  const ballast = join(directory, 'ballast')
  const file = openSync(ballast, 'w')
  for (let block = 65_536; block >= 1; block = Math.floor(block / 2)) {
    try {
      for (;;) if (writeSync(file, Buffer.alloc(block)) < block) break
    } catch {
      // No room for a block of this size: smaller ones.
    }
  }
  closeSync(file)
  return () => rmSync(ballast)
}

/** Leaves so much room; what is returned gives the rest back. */
export function fillBut(directory: string, bytes: number): () => void {
  const ballast = join(directory, 'ballast')
  const { bavail, bsize } = statfsSync(directory)
  writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - bytes)))
  return () => rmSync(ballast)
}

/** Skips the test where nothing can be mounted. */
export function mounted(
  t: { skip(message: string): void },
  path: string,
  megabytes: number,
): (Disposable & { readonly path: string }) | undefined {
  const disk = mountSmall(path, megabytes)
  if (typeof disk !== 'string') return disk
  t.skip(disk)
  return undefined
}

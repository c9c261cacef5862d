/** Another user of this machine: who runs the tests as root can start his programs. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { chmodSync, constants, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSocketTable } from '../../src/kernel/peers/peer-users.ts'
import type { SocketTable } from '../../src/kernel/peers/sockets.ts'

export const NOBODY = 65_534
export const asRoot = { skip: process.platform !== 'linux' || process.getuid?.() !== 0, timeout: 60_000 }

let copied: string | undefined

/** Runs a text of JavaScript as nobody, with these arguments. */
export function spawnAsNobody(program: string, args: readonly string[], stdio: SpawnOptions['stdio']): ChildProcess {
  return spawn(node(), ['-e', program, ...args], { uid: NOBODY, gid: NOBODY, cwd: '/', env: {}, stdio })
}

/** A Node that everybody may run: the one of a checkout may lie below a directory that is closed to others. */
function node(): string {
  if (copied !== undefined) return copied
  const directory = mkdtempSync(join(tmpdir(), 'svc-node-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  chmodSync(directory, 0o755)
  copied = join(directory, 'node')
  copyFileSync(process.execPath, copied, constants.COPYFILE_FICLONE)
  chmodSync(copied, 0o755)
  return copied
}

/** The sockets of this machine, all of them held by this user: whoever runs the tests, root too, is another one. */
export function socketsHeldBy(uid: number): SocketTable | undefined {
  const table = openSocketTable()
  return (
    table && {
      holders: (sides) => table.holders(sides).map((holder) => (holder === undefined ? undefined : { ...holder, uid })),
    }
  )
}

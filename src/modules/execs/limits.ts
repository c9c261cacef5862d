/** How much of everything a city's commands may have, and what of a command is refused before it is begun. */
import { problem } from '../../kernel/problem.ts'
import type { ExecOwner, NewExec } from './ports.ts'

/** Slots of each owner: nobody's command waits for somebody else's. */
export const SLOTS: Readonly<Record<ExecOwner, number>> = { check: 16, condition: 8, order: 16 }

export const LIMITS = {
  queued: 50_000,
  specBytes: 16 * 1024 * 1024,
  /** The kernel takes no longer argument. */
  commandBytes: 120 * 1024,
  tailBytes: 64 * 1024,
  graceMs: 2_000,
  interruptions: 5,
} as const

const ID = /^[A-Za-z0-9_-]{1,100}$/

/** What is stored of it. */
export function checked(exec: NewExec): string {
  const { id, owner, ref, ...rest } = exec
  if (!ID.test(id)) throw new Error(`no id of a command: ${id}`)
  if (Buffer.byteLength(exec.command) > LIMITS.commandBytes)
    throw problem('payload-too-large', `the command is longer than ${LIMITS.commandBytes / 1024} KiB`)
  const spec = JSON.stringify(rest)
  if (Buffer.byteLength(spec) > LIMITS.specBytes)
    throw problem('payload-too-large', `what the command is to read is larger than ${LIMITS.specBytes / 1024 ** 2} MiB`)
  return spec
}

/** Earlier versions ran agents under tmux, one server per city. Nobody asks it anything any more, so it is ended by its id. */
import { readdirSync } from 'node:fs'
import type { Database } from '../../kernel/database.ts'
import { RUNTIME_REMOVED } from '../../modules/sessions/record/schema.ts'
import { commandLineOf } from '../../runtimes/process/process-identity.ts'
import { socketNameOf } from '../../runtimes/socket-directory.ts'

/** Only for a city that had agents there when it was last open. They themselves are ended by their tokens. */
export function endOldTerminals(db: Database, cityPath: string): void {
  if (db.get('SELECT 1 FROM sessions WHERE reason = ? AND process = 1', RUNTIME_REMOVED) === undefined) return
  // Wherever its socket was: the place hangs on the environment of the supervisor that started it.
  const socket = `/${socketNameOf(cityPath)}/tmux `
  for (const pid of readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)) {
    const command = commandLineOf(pid)
    if (/^(?:\S*\/)?tmux /.test(command) && command.includes(socket)) end(pid)
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch {
    // It has ended, or is somebody else's.
  }
}

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { createTmuxRuntime } from '../../src/runtimes/tmux/runtime.ts'
import { terminalShell } from '../support/shell-program.ts'
import { withoutTmux } from '../support/tmux-city.ts'
import { runtimeConformance } from './conformance.ts'

const sockets = new Map<string, string>()

/** Not in the city's directory: that is removed before the server of what a test left is ended. */
function socketOf(city: string): string {
  const known = sockets.get(city) ?? join(mkdtempSync(join(tmpdir(), 'svc-socket-')), 'tmux')
  sockets.set(city, known)
  return known
}

const log = { warn: () => {} }
const make = (city: string) => createTmuxRuntime({ clock: systemClock, log, socket: socketOf(city), env: process.env })

suite('under tmux', { skip: withoutTmux }, () => {
  after(() => {
    for (const socket of sockets.values()) {
      spawnSync('tmux', ['-S', socket, 'kill-server'])
      rmSync(join(socket, '..'), { recursive: true, force: true })
    }
  })
  runtimeConformance('a shell in a tmux pane', make, terminalShell)
})

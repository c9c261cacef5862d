// Hosts of one city have their sockets in one directory: who leaves as the last one removes it.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startLeaver } from '../../../test/support/leaver.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { systemClock } from '../../kernel/clock.ts'
import { type ControlDeps, openControlSocket } from './control-socket.ts'

const ROUNDS = 300

test('a host finds a place for its socket however often others take the directory along', async () => {
  using directory = temporaryDirectory()
  const sockets = join(directory.path, 'sockets')
  const deps: ControlDeps = {
    identity: { sessionId: 's', generation: 1, token: 't' },
    clock: systemClock,
    status: () => assert.fail('nobody asks'),
    handlers: Object.create(null),
  }
  using _ = await startLeaver(sockets)
  for (let round = 0; round < ROUNDS; round++) {
    const path = join(sockets, `${round}.host`)
    const socket = await openControlSocket(path, deps)
    assert.ok(existsSync(path))
    socket.close()
  }
})

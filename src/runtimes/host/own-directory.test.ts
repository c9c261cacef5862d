import assert from 'node:assert/strict'
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { type Look, look } from '../../kernel/look.ts'
import { watchOwnDirectory } from './own-directory.ts'

const CODES = ['EACCES', 'ELOOP', 'EIO', 'ESTALE', 'ENOSPC']
const HOUR_MS = 3_600_000

/** A watched directory whose file system a test can break. */
function watched({ watchFails = false } = {}) {
  const temporary = temporaryDirectory()
  const directory = join(temporary.path, 'run')
  mkdirSync(directory)
  const clock = new ManualClock()
  const state = { gone: 0, code: undefined as string | undefined, changed: () => {}, lost: () => {} }
  const begin = () =>
    watchOwnDirectory({
      directory,
      clock,
      onGone: () => {
        state.gone++
      },
      look: (path): Look => (state.code === undefined ? look(path) : { is: 'unknown', code: state.code }),
      watch: (_path, onChange, onError) => {
        if (watchFails) throw new Error('ENOSPC: no watches left')
        state.changed = onChange
        state.lost = onError
      },
    })
  return { directory, clock, state, begin, [Symbol.dispose]: () => temporary[Symbol.dispose]() }
}

suite('the directory of a host', () => {
  for (const code of CODES) {
    test(`${code} of the directory of a session, for a moment or for hours, ends no agent`, async () => {
      using run = watched()
      run.begin()
      run.state.code = code
      run.state.changed()
      await run.clock.advance(HOUR_MS)
      run.state.code = undefined
      run.state.changed()
      await run.clock.advance(HOUR_MS)
      assert.equal(run.state.gone, 0)
    })

    test(`${code} at the first check, before the agent starts, ends no agent later`, async () => {
      using run = watched({ watchFails: code === 'ENOSPC' })
      run.state.code = code
      run.begin()
      run.state.code = undefined
      await run.clock.advance(HOUR_MS)
      assert.equal(run.state.gone, 0)
      renameSync(run.directory, `${run.directory}.removed`)
      await run.clock.advance(HOUR_MS)
      assert.equal(run.state.gone, 1, 'a directory that is gone is still seen')
    })
  }

  test('a city that is moved away and back within a second keeps its agents', async () => {
    using run = watched()
    run.begin()
    renameSync(run.directory, `${run.directory}.away`)
    run.state.changed()
    await run.clock.advance(1_000)
    renameSync(`${run.directory}.away`, run.directory)
    await run.clock.advance(HOUR_MS)
    assert.equal(run.state.gone, 0)
  })

  for (const broken of [false, true])
    test(`a deleted session ends its agent${broken ? ', also where changes are not reported' : ''}`, async () => {
      using run = watched()
      run.begin()
      if (broken) run.state.lost()
      renameSync(run.directory, `${run.directory}.removed`)
      if (!broken) run.state.changed()
      assert.equal(run.state.gone, 0, 'one check alone says nothing')
      await run.clock.advance(30_000)
      assert.equal(run.state.gone, 1)
    })

  test('another directory under the name of a session is not the one of its agent', async () => {
    using run = watched()
    run.begin()
    renameSync(run.directory, `${run.directory}.removed`)
    mkdirSync(run.directory)
    run.state.changed()
    await run.clock.advance(30_000)
    assert.equal(run.state.gone, 1)
  })
})

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import { parseSource } from '../../../files/pack-source.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { Git, GitError } from './git.ts'

const access = { addresses: ['192.0.2.1'], signal: new AbortController().signal }

for (const [version, isRefused] of [
  ['1.9.5', true],
  ['2.36.6', true],
  ['2.37.0', false],
  ['2.39.5 (Apple Git-154)', false],
  ['3.0', false],
] as const) {
  test(`git ${version} ${isRefused ? 'cannot be kept at a vetted address, and is not used' : 'is used'}`, async () => {
    using directory = temporaryDirectory()
    const script = `#!/bin/sh\ncase "$*" in *--version) echo "git version ${version}" ;; *) exit 0 ;; esac\n`
    writeFileSync(join(directory.path, 'git'), script, { mode: 0o755 })
    const git = new Git({ env: { PATH: directory.path }, clock: systemClock })
    const remote = parseSource('https://git.example.org/x.git')
    assert.ok(remote.kind === 'git')
    const asked = git.refs(remote, access)
    if (!isRefused) assert.deepEqual(await asked, { head: undefined, tags: [] })
    else await assert.rejects(asked, (error) => error instanceof GitError && error.reason === 'missing')
  })
}

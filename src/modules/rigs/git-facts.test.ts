import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { git, makeRepository } from '../../../test/support/git-repository.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { StandInGit } from '../../files/git/stand-in.ts'
import { systemClock } from '../../kernel/clock.ts'
import { GitFacts, parseStatus } from './git-facts.ts'

const factsIn = (scratch: string) =>
  new GitFacts({
    clock: systemClock,
    git: new StandInGit({ clock: systemClock, env: process.env }, join(scratch, 'stand-ins')),
  })

const AT = '2026-01-01T00:00:00.000Z'
const status = (...records: readonly string[]): string => records.map((record) => `${record}\0`).join('')

test('a clean branch that is ahead and behind', () => {
  assert.deepEqual(
    parseStatus(
      status('# branch.oid 1', '# branch.head main', '# branch.upstream origin/main', '# branch.ab +2 -3'),
      AT,
    ),
    {
      branch: 'main',
      clean: true,
      changed_files: 0,
      ahead: 2,
      behind: 3,
      observed_at: AT,
    },
  )
})

test('every kind of change counts once, a rename too, whatever its old name looks like', () => {
  const text = status(
    '# branch.head main',
    '1 .M N... x',
    '2 R. N... R100 new',
    '? looks untracked',
    '? new file',
    'u UU N... both',
  )
  assert.equal(parseStatus(text, AT).changed_files, 4)
})

test('a checkout of a commit has no branch', () =>
  assert.equal(parseStatus(status('# branch.head (detached)'), AT).branch, ''))

test('real repositories: a clone behind its origin, a directory inside another repository, none at all', async () => {
  using scratch = temporaryDirectory()
  const facts = factsIn(scratch.path)
  const origin = join(scratch.path, 'origin')
  const clone = join(scratch.path, 'clone')
  makeRepository(origin)
  git(scratch.path, 'clone', '--quiet', origin, clone)
  writeFileSync(join(clone, 'mine'), 'x')
  git(clone, 'add', '.')
  git(clone, 'commit', '--quiet', '-m', 'mine')
  const seen = await facts.observe(clone)
  assert.deepEqual([seen?.branch, seen?.ahead, seen?.behind, seen?.clean], ['main', 1, 0, true])
  assert.deepEqual(facts.of(clone), seen, 'what was seen is remembered')
  mkdirSync(join(clone, 'inside'))
  assert.equal(await facts.observe(join(clone, 'inside')), undefined)
  assert.equal(await facts.observe(join(scratch.path, 'absent')), undefined)
  facts.close()
})

test('a repository cannot make the look run a program of its own', async () => {
  using scratch = temporaryDirectory()
  const facts = factsIn(scratch.path)
  const directory = join(scratch.path, 'evil')
  makeRepository(directory)
  git(directory, 'config', 'core.fsmonitor', `touch ${join(scratch.path, 'ran')}; false`)
  assert.equal((await facts.observe(directory))?.branch, 'main')
  assert.ok(!existsSync(join(scratch.path, 'ran')))
  facts.close()
})

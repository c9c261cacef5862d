import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { parseChanges } from './changes.ts'
import { parseListed } from './git.ts'
import { branchesOf, candidates, worktreeName } from './names.ts'

test('the list of git is read with locks, detached heads and names that have line breaks', () => {
  const text =
    'worktree /a\0HEAD 1\0branch refs/heads/main\0\0worktree /b\nc\0HEAD 2\0detached\0locked\0\0worktree /d\0HEAD 3\0branch refs/heads/svc/x\0locked by hand\0\0worktree /bare\0bare\0\0'
  assert.deepEqual(parseListed(text), [
    { path: '/a', head: '1', branch: 'main', locked: false },
    { path: '/b\nc', head: '2', branch: undefined, locked: true },
    { path: '/d', head: '3', branch: 'svc/x', locked: true },
    { path: '/bare', head: undefined, branch: undefined, locked: false },
  ])
})

test('the changes that git tells of are read, renames with one name', () => {
  assert.deepEqual(parseChanges(' M a\0R  new\0old\0?? dir/with space\0'), [
    { code: ' M', file: 'a' },
    { code: 'R ', file: 'new' },
    { code: '??', file: 'dir/with space' },
  ])
})

test('whatever a session is called, its worktree has a name that git and file systems take', () => {
  const cases = [
    ['fix-login', 'fix-login'],
    ['app/mayor', 'app-mayor'],
    ['../../etc', 'etc'],
    ['a..b', 'a.b'],
    ['x.lock', 'x'],
    ['-rf', 'rf'],
    ['ümlaut', 'mlaut'],
    ['…', 'session'],
    ['', 'session'],
  ] as const
  for (const [handle, name] of cases) assert.equal(worktreeName(handle), name)
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (handle) => {
      const name = worktreeName(handle)
      assert.match(name, /^[A-Za-z0-9_][A-Za-z0-9._-]*$/)
      assert.doesNotMatch(name, /\.\.|\.$|\.lock$/)
    }),
  )
  assert.deepEqual(branchesOf('a'), ['svc/a', 'svc-worktree/a'])
  assert.deepEqual([...candidates('a')].slice(0, 3), ['a', 'a-2', 'a-3'])
})

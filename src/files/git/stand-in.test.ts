import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { git, makeRepository } from '../../../test/support/git-repository.ts'
import { fc } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { systemClock } from '../../kernel/clock.ts'
import { placeAround, placeAt } from './place.ts'
import { isHarmless, parseSettings, settingsText } from './settings.ts'
import { GitError, StandInGit } from './stand-in.ts'

const gitIn = (scratch: string) => new StandInGit({ clock: systemClock, env: process.env }, join(scratch, 'stand-ins'))

/** Settings with which a repository makes some command of git run a program. */
const PROGRAMS = [
  'core.fsmonitor',
  'core.sshCommand',
  'core.askPass',
  'core.editor',
  'core.pager',
  'core.alternateRefsCommand',
  'credential.helper',
  'credential.https://example.org.helper',
  'filter.x.clean',
  'filter.x.smudge',
  'filter.x.process',
  'merge.x.driver',
  'diff.x.command',
  'diff.x.textconv',
  'diff.external',
  'gpg.program',
  'alias.status',
  'pager.status',
  'remote.origin.uploadpack',
  'remote.origin.vcs',
  'uploadpack.packObjectsHook',
  'hook.x.command',
  'sequence.editor',
  'trailer.x.command',
  'interactive.diffFilter',
  'browser.x.cmd',
  'submodule.x.update',
] as const

test('no setting of a repository that names a program makes git run it', async () => {
  using scratch = temporaryDirectory()
  const repository = join(scratch.path, 'evil')
  const ran = join(scratch.path, 'ran')
  const program = join(scratch.path, 'program')
  writeFileSync(program, `#!/bin/sh\necho "$0 $*" >>${ran}\nexec cat\n`)
  chmodSync(program, 0o755)
  makeRepository(repository)
  git(repository, 'branch', 'side')
  for (const name of PROGRAMS) git(repository, 'config', name, program)
  git(repository, 'config', 'hook.x.event', 'reference-transaction')
  git(repository, 'config', 'core.hooksPath', scratch.path)
  for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change', 'pre-auto-gc'])
    symlinkSync(program, join(scratch.path, hook))
  const included = join(scratch.path, 'included')
  writeFileSync(included, `[filter "y"]\n\tclean = ${program}\n[core]\n\tfsmonitor = ${program}\n`)
  git(repository, 'config', 'include.path', included)
  git(repository, 'config', `includeIf.gitdir:${scratch.path}/**.path`, included)
  git(repository, 'config', 'extensions.worktreeConfig', 'true')
  writeFileSync(join(repository, '.git', 'config.worktree'), `[filter "z"]\n\tclean = ${program}\n`)
  writeFileSync(
    join(repository, '.git', 'info', 'attributes'),
    '*.md filter=x diff=x merge=x\n*.txt filter=y\n* filter=z\n',
  )
  writeFileSync(join(repository, 'README.md'), '# Hallo\n')
  writeFileSync(join(repository, 'new.txt'), 'new\n')
  rmSync(ran, { force: true })

  const own = gitIn(scratch.path)
  const place = placeAt(repository)
  assert.ok(place)
  const made = join(scratch.path, 'made')
  const asked: readonly (readonly [args: readonly string[], call?: object])[] = [
    [['status', '--porcelain', '--ignored=matching']],
    [['diff', '--stat']],
    [['merge-tree', '--write-tree', 'main', 'side']],
    [['for-each-ref']],
    [['update-ref', '-d', 'refs/heads/side']],
    [['hash-object', '--', join(repository, 'README.md')]],
    [['worktree', 'list', '--porcelain', '-z']],
    [['worktree', 'add', '--quiet', '-b', 'more', '--', made, 'main'], { checksOut: true, made: () => {} }],
  ]
  for (const [args, call] of asked) assert.equal((await own.ask(place, args, call)).code, 0, args.join(' '))
  assert.ok(existsSync(join(made, 'README.md')))
  assert.ok(!existsSync(ran), existsSync(ran) ? readFileSync(ran, 'utf8') : '')
})

test('a worktree of a submodule, of a bare repository and of another worktree is found and asked', async () => {
  using scratch = temporaryDirectory()
  const main = join(scratch.path, 'main')
  makeRepository(main)
  git(main, 'worktree', 'add', '--quiet', '-b', 'side', join(scratch.path, 'side'))
  git(scratch.path, 'clone', '--quiet', '--bare', main, 'bare')
  mkdirSync(join(scratch.path, 'side', 'deep', 'er'), { recursive: true })
  const own = gitIn(scratch.path)
  const headOf = async (directory: string) => {
    const place = placeAround(directory)
    assert.ok(place, directory)
    return (await own.ask(place, ['symbolic-ref', '--short', 'HEAD'])).stdout.trim()
  }
  assert.equal(await headOf(main), 'main')
  assert.equal(await headOf(join(scratch.path, 'side', 'deep', 'er')), 'side')
  assert.equal(await headOf(join(scratch.path, 'bare')), 'main')
  assert.equal(placeAround(join(scratch.path, 'stand-ins')), undefined)
})

test('what is no configuration, and a pipe in its place, is an error and no wait', { timeout: 20_000 }, async () => {
  using scratch = temporaryDirectory()
  const repository = join(scratch.path, 'odd')
  makeRepository(repository)
  const place = placeAt(repository)
  assert.ok(place)
  const own = gitIn(scratch.path)
  appendFileSync(join(repository, '.git', 'config'), '[[[\n')
  await assert.rejects(own.ask(place, ['status']), GitError)
  rmSync(join(repository, '.git', 'config'))
  git(scratch.path, 'init', '--quiet', 'other')
  const { execFileSync } = await import('node:child_process')
  execFileSync('mkfifo', [join(repository, '.git', 'config')])
  await assert.rejects(own.ask(place, ['status']), /no file that can be read/)
})

test('settings that git may see come out of the file as they went in', async () => {
  using scratch = temporaryDirectory()
  const file = join(scratch.path, 'config')
  // As git takes a name between quotes, and any value.
  const between = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => !/[\n\0]/.test(text))
  const value = fc.string({ maxLength: 40 }).filter((text) => !/[\0\r]/.test(text))
  fc.assert(
    fc.property(between, value, (name, text) => {
      const settings = [
        { name: `remote.${name}.url`, value: text },
        { name: 'core.eol', value: 'lf' },
      ]
      writeFileSync(file, settingsText(settings))
      const read = parseSettings(git(scratch.path, 'config', '--file', file, '--list', '-z'))
      assert.deepEqual(read, settings)
    }),
    { numRuns: 40 },
  )
})

test('git-lfs is run where it is named as git lfs install does it, and no other program under its name', () => {
  assert.ok(isHarmless({ name: 'filter.lfs.process', value: 'git-lfs filter-process' }))
  assert.ok(!isHarmless({ name: 'filter.lfs.process', value: 'git-lfs filter-process; id' }))
  assert.ok(!isHarmless({ name: 'filter.lfs.process', value: './git-lfs filter-process' }))
})

// Sessions that work in git worktrees of their own: made, used again, removed or kept. Real repositories, real processes.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { pruneWorktrees } from '../../../src/contract/worktrees.ts'
import { fresh } from '../../support/fresh.ts'
import { git, makeRepository } from '../../support/git-repository.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { outcome, type Running, run } from '../../support/running.ts'
import { WorktreeCity } from '../../support/worktree-city.ts'
import { written } from '../../support/written.ts'

const timeout = 480_000

// Each has a city and repositories of its own, and waits for processes most of the time.
suite('sessions in worktrees', { concurrency: 2 }, () => {
  let running: Running
  before(async () => {
    running = await run()
  })
  after(() => running[Symbol.asyncDispose]())
  const newTrees = (more?: string) => WorktreeCity.start(running, more, fresh('trees'))

  test('two sessions of one rig do not see each other’s changes, and work on branches of their own', {
    timeout,
  }, async () => {
    const trees = await newTrees()
    const { city } = trees
    const [one, other] = await Promise.all([trees.create('fix-login'), trees.create('fix-logout')])
    const [first, second] = [await trees.of(one), await trees.of(other)]
    assert.equal(first.branch, 'svc/fix-login')
    assert.equal(first.path, join(city.dir, '.svc', 'worktrees', 'app', 'fix-login'))
    assert.equal((await city.get(one)).work_dir, first.path)
    assert.equal((await city.get(one)).worktree, 'fix-login')
    await city.message(one, 'echo mine > README.md; echo $SVC_BRANCH > branch; pwd > where')
    assert.equal(await written(join(first.path, 'where')), `${first.path}\n`)
    assert.equal(readFileSync(join(first.path, 'branch'), 'utf8').trim(), 'svc/fix-login')
    assert.equal(readFileSync(join(second.path, 'README.md'), 'utf8'), '# Hello\n')
    assert.equal(readFileSync(join(trees.rig, 'README.md'), 'utf8'), '# Hello\n')
    assert.equal(trees.git('status', '--porcelain'), '')
    // Who asks for a fresh look waits ten seconds for it at most: git may take longer on a busy machine.
    const seen = await eventually('its change is seen', async () => {
      const found = await trees.get('fix-login')
      return found.dirty ? found : undefined
    })
    assert.deepEqual([seen.dirty, seen.ahead, seen.merged, seen.rig, seen.base_ref], [true, 0, true, 'app', 'main'])
    assert.ok((seen.size_bytes ?? 0) > 0 && seen.observed_at !== undefined)
    const types = (await city.events('worktree.*')).map(({ type }) => type)
    for (const type of ['worktree.created', 'worktree.ready']) assert.ok(types.includes(type), `${type} in ${types}`)
  })

  test('many sessions of one repository that start at once all get their worktree', { timeout }, async () => {
    const trees = await newTrees()
    const ids = await Promise.all(Array.from({ length: 12 }, (_, number) => trees.create(`at-once-${number}`)))
    assert.deepEqual(new Set((await trees.all()).map(({ session_id: id }) => id)), new Set(ids))
    await Promise.all(ids.map((id) => trees.close(id)))
    // Each of them takes a few runs of git, one after the other in one repository.
    await eventually('all are gone', async () => ((await trees.all()).length === 0 ? true : undefined), 60_000)
    assert.equal(trees.git('worktree', 'list', '--porcelain').match(/^worktree /gm)?.length, 1)
  })

  test('a closed session leaves nothing where nothing would be lost, and everything else stays and is said', {
    timeout,
  }, async () => {
    const trees = await newTrees()
    const { city } = trees

    await test.test('untouched', async () => {
      const id = await trees.create('untouched')
      const tree = await trees.of(id)
      await trees.close(id)
      await trees.gone(tree)
      assert.ok(!trees.branches().includes('svc/untouched'))
      assert.ok(!trees.git('worktree', 'list').includes('untouched'))
    })

    await test.test('dirty', async () => {
      const id = await trees.create('dirty')
      const tree = await trees.of(id)
      writeFileSync(join(tree.path, 'new'), 'work')
      await trees.close(id)
      assert.equal((await trees.kept('dirty')).kept_reason, 'dirty')
      const told = (await city.events('worktree.kept', { subject: 'dirty' }))[0]
      assert.equal(told?.payload['why'], 'dirty')
      assertProblem(await city.send('DELETE', '/worktrees/dirty'), 'conflict-wrong-state')
      const pruned = await city.done('POST', '/worktrees/prune', {})
      assert.deepEqual(pruned['kept'], [{ name: 'dirty', reason: 'dirty' }])
      assert.equal(readFileSync(join(tree.path, 'new'), 'utf8'), 'work')
      rmSync(join(tree.path, 'new'))
      assert.deepEqual((await city.done('POST', '/worktrees/prune', { dry_run: true }))['removed'], ['dirty'])
      assert.ok(existsSync(tree.path))
      assert.deepEqual((await city.done('POST', '/worktrees/prune', {}))['removed'], ['dirty'])
      await trees.gone(tree)
    })

    await test.test('unmerged, then merged', async () => {
      const id = await trees.create('unmerged')
      const tree = await trees.of(id)
      writeFileSync(join(tree.path, 'feature'), 'work')
      trees.inside(tree, 'add', '.')
      trees.inside(tree, 'commit', '-qm', 'feature')
      await trees.close(id)
      const kept = await trees.kept('unmerged')
      assert.deepEqual([kept.kept_reason, kept.ahead, kept.merged, kept.dirty], ['unmerged', 1, false, false])
      trees.git('merge', '-q', '--squash', 'svc/unmerged')
      trees.git('commit', '-qm', 'squashed')
      assert.deepEqual((await city.done('POST', '/worktrees/prune', {}))['removed'], ['unmerged'])
      await trees.gone(tree)
      assert.ok(!trees.branches().includes('svc/unmerged'))
    })

    await test.test('pushed', async () => {
      const remote = join(running.work, 'remote.git')
      git(running.work, 'init', '-q', '--bare', remote)
      trees.git('remote', 'add', 'origin', remote)
      const [id, not] = [await trees.create('pushed'), await trees.create('unpushed')]
      for (const session of [id, not]) {
        const tree = await trees.of(session)
        writeFileSync(join(tree.path, tree.name), 'work')
        trees.inside(tree, 'add', '.')
        trees.inside(tree, 'commit', '-qm', 'work')
      }
      const tree = await trees.of(id)
      trees.inside(tree, 'push', '-q', 'origin', 'svc/pushed')
      await Promise.all([trees.close(id), trees.close(not)])
      await trees.gone(tree)
      assert.ok(!trees.branches().includes('svc/pushed'))
      assert.equal((await trees.kept('unpushed')).kept_reason, 'unpushed')
      // Force takes the directory; commits that are nowhere else stay on their branch.
      const gone = await city.done('DELETE', '/worktrees/unpushed?force=true')
      assert.equal(gone['branch_deleted'], false)
      assert.ok(trees.branches().includes('svc/unpushed'))
    })

    await test.test('detached, rebasing, locked', async () => {
      const id = await trees.create('detached')
      const tree = await trees.of(id)
      trees.inside(tree, 'checkout', '-q', '--detach')
      trees.inside(tree, 'commit', '-q', '--allow-empty', '-m', 'on no branch')
      trees.inside(tree, 'commit', '-q', '--allow-empty', '-m', 'on no branch either')
      writeFileSync(join(tree.path, 'more'), 'x')
      trees.inside(tree, 'add', '.')
      trees.inside(tree, 'commit', '-q', '-m', 'with content')
      await trees.close(id)
      assert.equal((await trees.kept('detached')).kept_reason, 'unpushed')

      const other = await trees.create('rebasing')
      const half = await trees.of(other)
      mkdirSync(join(trees.inside(half, 'rev-parse', '--absolute-git-dir'), 'rebase-merge'))
      await trees.close(other)
      assert.equal((await trees.kept('rebasing')).kept_reason, 'dirty')

      const third = await trees.create('locked')
      trees.git('worktree', 'lock', (await trees.of(third)).path)
      await trees.close(third)
      assert.equal((await trees.kept('locked')).kept_reason, 'locked')
    })
  })

  test('a woken session finds its worktree as it left it, and another session of that alias gets another', {
    timeout,
  }, async () => {
    const trees = await newTrees()
    const { city } = trees
    const id = await trees.create('again')
    const tree = await trees.of(id)
    writeFileSync(join(tree.path, 'work'), 'half done')
    await city.done('POST', `/sessions/${id}/suspend`)
    await city.is(id, 'suspended')
    await city.done('POST', `/sessions/${id}/wake`)
    await city.is(id, 'active')
    assert.deepEqual((await trees.of(id)).path, tree.path)
    assert.equal(readFileSync(join(tree.path, 'work'), 'utf8'), 'half done')

    // A directory that is gone is made again, with the commits of its branch.
    trees.inside(tree, 'add', '.')
    trees.inside(tree, 'commit', '-qm', 'kept')
    await city.done('POST', `/sessions/${id}/suspend`)
    await city.is(id, 'suspended')
    rmSync(tree.path, { recursive: true })
    await city.done('POST', `/sessions/${id}/wake`)
    await city.is(id, 'active')
    assert.equal(readFileSync(join(tree.path, 'work'), 'utf8'), 'half done')

    await trees.close(id)
    assert.equal((await trees.kept('again')).kept_reason, 'unmerged')
    const second = await trees.of(await trees.create('again'))
    assert.deepEqual([second.name, second.branch], ['again-2', 'svc/again-2'])
    assert.ok(!existsSync(join(second.path, 'work')))

    // A branch of a person is nobody's to take.
    trees.git('branch', 'svc/theirs')
    const third = await trees.of(await trees.create('theirs'))
    assert.equal(third.branch, 'svc/theirs-2')
    await trees.close(third.session_id)
    await trees.gone(third)
    assert.ok(trees.branches().includes('svc/theirs'))
  })

  test('a worktree that a person moved is not made twice, and not removed', { timeout }, async () => {
    const trees = await newTrees()
    const { city } = trees
    const id = await trees.create('moved')
    const tree = await trees.of(id)
    const home = join(running.work, 'my-desk')
    await city.done('POST', `/sessions/${id}/suspend`)
    await city.is(id, 'suspended')
    trees.git('worktree', 'move', tree.path, home)
    await city.done('POST', `/sessions/${id}/wake`)
    const failed = await eventually('its start has failed', async () => {
      return (await city.events('session.start_failed', { subject: id }))[0]
    })
    assert.equal(failed.payload['reason'], 'worktree-failed')
    await trees.close(id)
    assert.equal((await trees.kept('moved')).kept_reason, 'moved')
    assertProblem(await city.send('DELETE', '/worktrees/moved?force=true'), 'conflict-wrong-state')
    assert.ok(existsSync(join(home, 'README.md')))
    renameSync(home, tree.path)
  })

  test('the set-up runs before the agent, longer than a start may take, and says why it failed', {
    timeout,
  }, async () => {
    const setup =
      '[worktrees]\nsetup = ["sleep 5; echo installed > installed; echo generated > README.md", "test -e ../../../pass || { echo no pass; exit 3; }"]\n'
    const trees = await newTrees(setup)
    const { city } = trees
    city.write('city.toml', city.read('city.toml').replace('[session]\n', '[session]\nstartup_timeout = "4s"\n'))
    const reload = await outcome(city.api, String((await city.done('POST', '/config/reload')).request_id))
    assert.equal(reload.status, 'succeeded')

    const accepted = await city.done('POST', '/sessions', { kind: 'agent', name: 'app/coder', alias: 'deps' })
    const id = String(accepted['session_id'])
    await eventually('its progress shows', async () =>
      (await city.get(id)).reason === 'setting-up-worktree' ? true : undefined,
    )
    const request = await outcome(city.api, String(accepted['request_id']))
    assert.equal(request.status, 'failed')
    const message = String(request.error_message)
    assert.match(message, /exit status 3[\s\S]*no pass[\s\S]*runtime\/worktrees\/deps\.log/)
    assert.equal((await trees.get('deps')).state, 'failed')
    assert.match(readFileSync(join(city.dir, '.svc/runtime/worktrees/deps.log'), 'utf8'), /no pass/)

    city.write('.svc/pass', '')
    await city.done('POST', `/sessions/${id}/wake`)
    await city.is(id, 'active')
    const tree = await trees.of(id)
    assert.equal(tree.state, 'ready')
    // What the set-up made is nobody's work.
    await trees.close(id)
    await trees.gone(tree)

    // Changed by somebody, it is.
    const second = await trees.of(await trees.create('deps'))
    writeFileSync(join(second.path, 'installed'), 'and changed')
    await trees.close(second.session_id)
    assert.equal((await trees.kept('deps')).kept_reason, 'dirty')
  })

  test('a directory without a repository is refused at once, and other places work', { timeout }, async () => {
    const trees = await newTrees()
    const { city } = trees
    const refused = await city.send('POST', '/sessions', { kind: 'provider', name: 'bash', isolation: 'worktree' })
    assertProblem(refused, 'conflict-config')
    assert.match(refused.text, /no git repository/)

    // A part of a larger repository, a bare one, and one without a commit.
    const mono = join(running.work, 'mono')
    makeRepository(mono)
    mkdirSync(join(mono, 'packages/api'), { recursive: true })
    writeFileSync(join(mono, 'packages/api/index'), 'x')
    git(mono, 'add', '.')
    git(mono, 'commit', '-qm', 'api')
    const part = await city.start({ alias: 'part', isolation: 'worktree', work_dir: join(mono, 'packages/api') })
    const tree = await trees.of(part)
    assert.equal((await city.get(part)).work_dir, join(tree.path, 'packages/api'))
    assert.equal(tree.rig, undefined)
    await trees.close(part)
    await trees.gone(tree)

    const bare = join(running.work, 'bare.git')
    git(running.work, 'clone', '-q', '--bare', mono, bare)
    const inBare = await trees.of(await city.start({ alias: 'inbare', isolation: 'worktree', work_dir: bare }))
    assert.ok(existsSync(join(inBare.path, 'packages/api/index')))
    await trees.close(inBare.session_id)
    await trees.gone(inBare)

    const empty = join(running.work, 'empty')
    git(running.work, 'init', '-q', empty)
    assertProblem(
      await city.send('POST', '/sessions', { kind: 'provider', name: 'bash', isolation: 'worktree', work_dir: empty }),
      'conflict-config',
    )
    assertProblem(await city.send('GET', '/worktrees/none'), 'worktree-not-found')
    // An agent that is isolated, and a session of it that is not.
    const plain = await trees.create('plain', { isolation: 'none' })
    assert.equal((await city.get(plain)).work_dir, trees.rig)
    assert.equal((await city.get(plain)).worktree, undefined)
  })

  test('one of a session that no agent has is of the rig in whose directory it works', { timeout }, async () => {
    const trees = await newTrees()
    const { city } = trees
    trees.git('branch', 'next')
    const inner = join(trees.rig, 'docs')
    mkdirSync(inner)
    symlinkSync(trees.rig, join(city.dir, 'linked'))
    const rigs = ['name = "app"\npath = "app"\ndefault_branch = "next"', 'name = "docs"\npath = "app/docs"']
    await city.configure(rigs.map((rig) => `[[rigs]]\n${rig}\n`).join(''))
    const places = [
      ['direct', trees.rig, 'app', 'next'],
      ['below', join(trees.rig, '.git', '..'), 'app', 'next'],
      ['linked', join(city.dir, 'linked'), 'app', 'next'],
      ['inner', inner, 'docs', 'main'],
    ] as const
    for (const [alias, directory, rig, base] of places) {
      const tree = await trees.of(await city.start({ alias, isolation: 'worktree', work_dir: directory }))
      const { path, base_ref: ref } = tree
      assert.deepEqual([tree.rig, path, ref], [rig, join(city.dir, '.svc', 'worktrees', rig, alias), base], alias)
    }
    const [made] = await city.events('worktree.ready', { subject: 'direct' })
    assert.equal(made?.payload['rig'], 'app')
  })

  test('submodules with commits of their own keep a worktree', { timeout }, async () => {
    const library = join(running.work, 'library')
    makeRepository(library)
    const setup = '[worktrees]\nsetup = ["git -c protocol.file.allow=always submodule update -q --init"]\n'
    const trees = await newTrees(setup)
    trees.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', library, 'lib')
    trees.git('commit', '-qm', 'library')
    const [clean, worked] = [await trees.of(await trees.create('clean')), await trees.of(await trees.create('worked'))]
    assert.ok(existsSync(join(clean.path, 'lib/README.md')))
    const lib = join(worked.path, 'lib')
    git(lib, 'commit', '-q', '--allow-empty', '-m', 'only here')
    git(lib, 'checkout', '-q', '--detach', 'HEAD')
    trees.inside(worked, 'add', 'lib')
    trees.inside(worked, 'commit', '-qm', 'newer library')
    trees.git('merge', '-q', 'svc/worked')
    await trees.close(clean.session_id)
    await trees.gone(clean)
    await trees.close(worked.session_id)
    assert.equal((await trees.kept(basename(worked.path))).kept_reason, 'unpushed')
  })

  test('a link in the place of worktrees leads nobody elsewhere', { timeout }, async () => {
    const trees = await newTrees()
    const elsewhere = join(running.work, 'elsewhere')
    mkdirSync(elsewhere)
    mkdirSync(join(trees.city.dir, '.svc/worktrees'), { recursive: true })
    symlinkSync(elsewhere, join(trees.city.dir, '.svc/worktrees/app'))
    const accepted = await trees.city.done('POST', '/sessions', { kind: 'agent', name: 'app/coder', alias: 'led' })
    const request = await outcome(trees.city.api, String(accepted['request_id']))
    assert.match(JSON.stringify(request), /leads out of/)
    assert.ok(!existsSync(join(elsewhere, 'led')))
  })

  test('files that git ignores keep a worktree, and those that tools make again do not', { timeout }, async () => {
    const trees = await newTrees('[worktrees]\nsetup = ["mkdir cfg && echo 1 > cfg/local"]\ndisposable = ["*.log"]\n')
    writeFileSync(
      join(trees.rig, '.gitignore'),
      '.env\nnotes/\nnode_modules/\n*.log\ncfg/\ntarget/\n__pycache__/\nlocal.json\n',
    )
    writeFileSync(join(trees.rig, 'local.json'), '{}')
    writeFileSync(join(trees.rig, 'Cargo.toml'), '')
    trees.git('add', '--force', '.gitignore', 'local.json', 'Cargo.toml')
    trees.git('commit', '-qm', 'ignore')
    const [work, litter, hidden] = await Promise.all([
      trees.create('work'),
      trees.create('litter'),
      trees.create('hide'),
    ])
    const [one, other, third] = [await trees.of(work), await trees.of(litter), await trees.of(hidden)]
    mkdirSync(join(one.path, 'notes'))
    writeFileSync(join(one.path, 'notes/handoff.md'), 'what is left to do')
    writeFileSync(join(one.path, '.env'), 'TOKEN=only-here')
    for (const directory of ['node_modules/left-pad', 'src/__pycache__', 'target/debug'])
      mkdirSync(join(other.path, directory), { recursive: true })
    for (const file of ['node_modules/left-pad/index.js', 'src/__pycache__/a.pyc', 'target/debug/app', 'a.log'])
      writeFileSync(join(other.path, file), 'x')
    // Git is told to pass over a file, as people do with their own settings.
    trees.inside(third, 'update-index', '--skip-worktree', 'local.json')
    writeFileSync(join(third.path, 'local.json'), '{"mine": true}')
    await Promise.all([work, litter, hidden].map((id) => trees.close(id)))
    await trees.gone(other)
    const kept = await trees.kept('work')
    assert.equal(kept.kept_reason, 'ignored')
    assert.match(kept.error ?? '', /\.env, notes\/handoff\.md$/)
    assert.equal((await trees.kept('hide')).kept_reason, 'dirty')
    const [event] = (await trees.city.events('worktree.kept')).filter(({ subject }) => subject === 'work')
    assert.match(JSON.stringify(event), /notes\/handoff\.md/)
    assert.deepEqual(
      (await trees.city.api.ask(pruneWorktrees, `${trees.city.base}/worktrees/prune`, { body: {} })).removed,
      [],
    )
    assert.equal(readFileSync(join(one.path, '.env'), 'utf8'), 'TOKEN=only-here')
  })

  test('a worktree whose .git leads elsewhere is kept, and git runs nothing that it names', { timeout }, async () => {
    const trees = await newTrees()
    const tree = await trees.of(await trees.create('escape'))
    const ran = join(running.work, fresh('ran'))
    const fake = join(tree.path, 'fake')
    git(tree.path, 'init', '-q', '--bare', fake)
    git(fake, 'config', 'core.bare', 'false')
    git(fake, 'config', 'core.worktree', tree.path)
    git(fake, 'config', 'filter.x.clean', `sh -c 'touch ${ran}; cat'`)
    writeFileSync(join(fake, 'info/attributes'), '* filter=x\n')
    rmSync(join(tree.path, '.git'))
    writeFileSync(join(tree.path, '.git'), `gitdir: ${fake}\n`)
    git(tree.path, 'add', 'README.md')
    writeFileSync(join(tree.path, 'README.md'), '# Changed\n')
    rmSync(ran, { force: true })
    // The repository itself, which commits of a worktree must be able to write to.
    trees.git('config', 'filter.y.clean', `sh -c 'touch ${ran}; cat'`)
    trees.git('config', 'merge.y.driver', `touch ${ran}`)
    writeFileSync(join(trees.rig, '.git/info/attributes'), '* filter=y merge=y\n')
    await trees.get('escape')
    await trees.close(tree.session_id)
    const kept = await trees.kept('escape')
    assert.equal(kept.kept_reason, 'unknown')
    assert.match(kept.error ?? '', /leads to .*fake, which is not where/)
    await eventually('the rig is looked at', async () => {
      const rig = await trees.city.send('GET', '/rigs/app?git=true')
      return rig.text.includes('observed_at') ? true : undefined
    })
    await trees.city.api.ask(pruneWorktrees, `${trees.city.base}/worktrees/prune`, { body: {} })
    assert.ok(!existsSync(ran), 'no program of the repository or the worktree ran')
  })

  test('the branch that an agent switched to is named, and a branch called svc is no obstacle', {
    timeout,
  }, async () => {
    const trees = await newTrees()
    const switched = await trees.of(await trees.create('switched'))
    trees.inside(switched, 'switch', '-qc', 'feature/real-name')
    trees.inside(switched, 'commit', '-qm', 'work', '--allow-empty')
    assert.equal((await trees.get('switched')).head_branch, 'feature/real-name')
    await trees.close(switched.session_id)
    await trees.gone(switched)
    assert.match(JSON.stringify(await trees.city.events('worktree.removed')), /"head_branch":"feature\/real-name"/)
    trees.git('branch', 'svc/login/form')
    const beside = await trees.of(await trees.create('login'))
    assert.equal(beside.branch, 'svc-worktree/login')
    trees.git('branch', '-D', 'svc/login/form')
    trees.git('branch', 'svc')
    const named = await trees.of(await trees.create('named'))
    assert.equal(named.branch, 'svc-worktree/named')
    await trees.close(named.session_id)
    await trees.gone(named)
  })

  test('a filter that cannot be run ends the start and says how to go on', { timeout }, async () => {
    const trees = await newTrees()
    writeFileSync(join(trees.rig, '.gitattributes'), '*.bin filter=sealed\n')
    writeFileSync(join(trees.rig, 'a.bin'), 'x')
    trees.git('add', '.')
    trees.git('commit', '-qm', 'sealed')
    trees.git('config', 'filter.sealed.smudge', 'cat')
    trees.git('config', 'filter.sealed.required', 'true')
    const accepted = await trees.city.done('POST', '/sessions', { kind: 'agent', name: 'app/coder', alias: 'sealed' })
    const request = await outcome(trees.city.api, String(accepted['request_id']))
    assert.match(JSON.stringify(request), /git config --global filter\.sealed\.smudge/)
  })
})

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { anExec, type ExecCity, openExecCity } from '../../../test/support/exec-city.ts'
import { eventually } from '../../../test/support/http.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { variableOf } from '../../runtimes/process/process-tree.ts'
import type { ExecOutcome } from './ports.ts'
import type { ExecsDeps } from './service.ts'

const ENV = { PATH: process.env['PATH'], HOME: '/home/ana', LC_ALL: 'C', LC_TIME: 'C', SECRET: 'x', CI: 'true' }

/** A city of its own for each test. */
const inCity = (what: string, check: (city: ExecCity) => Promise<void>, more: Partial<ExecsDeps> = {}) =>
  test(what, { timeout: 120_000 }, async () => {
    using directory = temporaryDirectory()
    await using city = await openExecCity(directory.path, more)
    await check(city)
  })

const endOf = (outcome: ExecOutcome): unknown =>
  outcome.kind === 'exited' ? outcome.exit_code : outcome.kind === 'signal' ? outcome.signal : outcome.kind

const filesOf = ({ path }: ExecCity): readonly string[] => readdirSync(join(path, '.svc/runtime/exec'))

/** Gone, or nobody has waited for it yet. */
function isAlive(pid: number): boolean {
  return variableOf(pid, 'SVC_EXEC_ID') !== undefined
}

inCity('a command runs once its transaction has committed, and its owner is told how it ended', async (city) => {
  const passed = await city.run('echo out; echo err >&2', { owner: 'order', ref: 'run-1' })
  assert.deepEqual([endOf(passed), passed.output, passed.truncated, passed.error], [0, 'out\nerr\n', false, undefined])
  const [told] = city.ends
  assert.deepEqual([told?.exec.owner, told?.exec.ref], ['order', 'run-1'])
  assert.ok(passed.ended_at >= (told?.exec.started_at ?? Number.POSITIVE_INFINITY))
  await eventually('no file is left', () => (filesOf(city).length === 0 ? true : undefined))
  assert.deepEqual(city.execs.counts, { running: 0, queued: 0 })
})

inCity('what is not committed does not run', async (city) => {
  await assert.rejects(
    city.db.write((tx) => {
      city.execs.begin(tx, anExec('echo >> ran'))
      throw new Error('no')
    }),
  )
  await city.run('echo >> other')
  assert.equal(city.file('ran'), '')
  assert.equal(city.file('other'), '\n')
})

inCity('codes of exit and signals are told as the shell tells them', async (city) => {
  const commands = [
    'exit 3',
    'kill -9 $$',
    'kill -TERM $$',
    'exit 255',
    'nowhere-to-be-found',
    '/',
    'if',
    'true | false',
  ]
  const ends = await Promise.all(commands.map((command) => city.run(command)))
  assert.deepEqual(ends.map(endOf), [3, 'SIGKILL', 'SIGTERM', 255, 127, 126, 2, 1])
})

inCity(
  'a command is what sh runs, exactly as written',
  async (city) => {
    const written = [
      ['printf \'%s|\' "$0" $# "$*"', 'sh|0||'.replace('sh', '/bin/sh')],
      ['-x', undefined],
      ['-- echo', undefined],
      ['\n\n  echo a\n# a comment\necho b', 'a\nb\n'],
      ["echo 'it'\"'\"'s' \"$((1 + 2))\" `echo x` \\\\", "it's 3 x \\\n"],
      ['cat <<END\n$HOME é 日本\nEND', '/home/ana é 日本\n'],
      ['dir=1 n=2 command=3; echo $dir$n$command; echo hello > /dev/stderr; echo $- | grep -c i', '123\nhello\n0\n'],
      ["exec 3>&1; echo x >&3; exec >&-; echo y >&3; trap 'echo bye >&2' EXIT", 'x\ny\nbye\n'],
    ] as const
    for (const [command, output] of written) {
      const found = await city.run(command)
      if (output === undefined) assert.equal(endOf(found), 127, command)
      else assert.equal(found.output, output, command)
    }
  },
  { env: ENV },
)

inCity(
  'a command sees what decision 97 lists, and nothing else',
  async (city) => {
    const about = {
      ...{ rig: 'app', file_dir: '/f', molecule_id: 'al-1', step_id: 'a.b', bead_id: 'al-2', attempt: 3 },
      ...{ order: 'nightly', run_id: 'run-1' },
    }
    const id = await city.begin('env -0 | sort -z', {
      about,
      env: { OWN: 'mine', FROM: '$SECRET', LC_ALL: 'C.UTF-8', SVC_CITY: 'other' },
      inherit_env: ['CI', 'ABSENT'],
      vars: { tag: 'v1', 'with-dash': true, many: [1, 'a'], none: null },
    })
    const { output } = await city.ended(id)
    const found = Object.fromEntries(
      output
        .split('�')
        .filter((line) => line !== '')
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    assert.deepEqual(found, {
      PATH: `/opt/svc:${process.env['PATH']}`,
      PWD: city.path,
      ...{ HOME: '/home/ana', LC_ALL: 'C.UTF-8', LC_TIME: 'C', CI: 'true', OWN: 'mine', FROM: 'x' },
      ...{ SVC_HOME: join(city.path, 'home'), SVC_CITY: 'alpha', SVC_CITY_PATH: city.path, SVC_EXEC_ID: id },
      ...{ SVC_RIG: 'app', SVC_FILE_DIR: '/f', SVC_MOLECULE_ID: 'al-1', SVC_STEP_ID: 'a.b', SVC_BEAD_ID: 'al-2' },
      ...{ SVC_ATTEMPT: '3', SVC_ORDER: 'nightly', SVC_RUN_ID: 'run-1' },
      ...{ SVC_VAR_TAG: 'v1', SVC_VAR_WITH_DASH: 'true', SVC_VAR_MANY: '[1,"a"]', SVC_VAR_NONE: 'null' },
    })
  },
  { env: ENV },
)

inCity('its context is JSON on its standard input; one that does not read it ends as well', async (city) => {
  const stdin = { event: { type: 'a.b', text: 'é\n"quoted"' }, list: Array.from({ length: 50_000 }, (_, i) => i) }
  const { output } = await city.run('cat > in; wc -c < in', { stdin })
  assert.deepEqual(JSON.parse(city.file('in')), stdin)
  assert.equal(Number(output), Buffer.byteLength(JSON.stringify(stdin)))
  assert.equal(endOf(await city.run('exit 0', { stdin })), 0)
})

inCity('it works in its directory, and does not start where that is not there', async (city) => {
  mkdirSync(join(city.path, 'rig with space'))
  writeFileSync(join(city.path, 'file'), '')
  assert.equal((await city.run('pwd', { cwd: 'rig with space' })).output, `${city.path}/rig with space\n`)
  assert.equal((await city.run('pwd', { cwd: '/' })).output, '/\n')
  for (const cwd of ['missing', 'file']) {
    const found = await city.run('echo ran >> ran', { cwd })
    assert.deepEqual(
      [found.kind, found.error],
      ['not_started', `the working directory ${join(city.path, cwd)} is not there`],
    )
  }
  assert.equal(city.file('ran'), '')
})

inCity('a variable that is too large, or has a NUL, is left out and named; the command runs', async (city) => {
  const vars = { large: 'x'.repeat(200_000), fine: 'yes', nul: 'a\0b' }
  const stdin = { vars }
  const env = { BAD: 'a\0b', HUGE: 'x'.repeat(200_000) }
  const command = 'echo "$SVC_VARS_LEFT_OUT|$SVC_VAR_FINE|$(test -z "$SVC_VAR_LARGE" && echo none)|$(wc -c)"'
  const found = await city.run(command, { vars, stdin, env })
  assert.equal(endOf(found), 0)
  const [named = '', fine, large, read] = found.output.trim().split('|')
  assert.deepEqual(named.split(' ').sort(), ['BAD', 'HUGE', 'SVC_VAR_LARGE', 'SVC_VAR_NUL'])
  assert.deepEqual([fine, large], ['yes', 'none'])
  assert.equal(Number(read), Buffer.byteLength(JSON.stringify(stdin)))
})

inCity('variables that are too much together: those that fit are there, the others are named', async (city) => {
  const vars = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`v${at}`, 'x'.repeat(100_000)]))
  const found = await city.run('echo "$(printf %s "$SVC_VAR_V0" | wc -c) $SVC_VARS_LEFT_OUT"', { vars })
  assert.equal(endOf(found), 0)
  assert.match(found.output, /^ *100000 .*SVC_VAR_V9$/m)
})

inCity(
  'a check is not told where the token of the owner is; orders are',
  async (city) => {
    for (const [owner, told] of [
      ['check', 'none'],
      ['order', 'some'],
    ] as const) {
      const found = await city.run('test -z "$SVC_HOME" && echo none || echo some', { owner })
      assert.equal(found.output.trim(), told)
    }
  },
  { homeHasToken: true },
)

inCity(
  'a command of a pack that is not trusted does not start',
  async (city) => {
    const found = await city.run('echo ran >> ran', { about: { file_dir: '/packs/far/orders' } })
    assert.equal(found.kind, 'not_started')
    assert.match(found.error ?? '', /^untrusted_pack: the pack far is not trusted: .*`svcctl pack trust far`$/)
    assert.equal(city.file('ran'), '')
  },
  { untrustedPack: (directory) => (directory.startsWith('/packs/far') ? 'far' : undefined) },
)

inCity('at its deadline a command is asked to end, and what it says then is told', async (city) => {
  const started = performance.now()
  const found = await city.run("trap 'echo cleaning; exit 0' TERM; echo begun; while :; do sleep 0.05; done", {
    timeout_ms: 3_000,
  })
  assert.equal(found.kind, 'timed_out')
  // The shell may say of its `sleep` that it was terminated.
  assert.match(found.output, /^begun\n(?:Terminated\n)?cleaning\n$/)
  assert.ok(performance.now() - started < 20_000)
})

inCity('one that ignores TERM and has forked out of its tree is killed with all that it started', async (city) => {
  const stray = 'echo $$ >> pids; while :; do sleep 1; done'
  writeFileSync(join(city.path, 'stray.sh'), stray)
  const command = `
    trap '' TERM HUP INT
    (trap '' TERM; sh stray.sh) &
    setsid sh stray.sh &
    (setsid sh stray.sh >/dev/null 2>&1 &)
    (env -i /bin/sh stray.sh &)
    sh stray.sh`
  const found = await city.run(command, { timeout_ms: 4_000 })
  assert.equal(found.kind, 'timed_out')
  const pids = city.file('pids').trim().split('\n').map(Number)
  assert.equal(pids.length, 5)
  for (const pid of pids) assert.equal(isAlive(pid), false, `${pid} is gone`)
})

inCity('what a command leaves running ends with it, also where that keeps its output open', async (city) => {
  const started = performance.now()
  const found = await city.run('(while :; do sleep 1; done) & echo $! > pid; echo said; exit 4')
  assert.deepEqual([endOf(found), found.output], [4, 'said\n'])
  assert.ok(performance.now() - started < 15_000)
  assert.equal(isAlive(Number(city.file('pid'))), false)
})

inCity('output without end is cut at its limit, on the disk too; the end of it is kept', async (city) => {
  const id = await city.begin('trap "" PIPE; yes 0123456789abcde; while :; do echo still 2>/dev/null; done')
  let most = 0
  const watched = eventually('the end', () => {
    const file = join(city.path, '.svc/runtime/exec', id, 'output.1')
    most = Math.max(most, statSync(file, { throwIfNoEntry: false })?.size ?? 0)
    return city.ends.length > 0 ? true : undefined
  })
  const found = await city.ended(id)
  await watched
  assert.deepEqual(
    [endOf(found), found.error, found.truncated],
    ['SIGKILL', 'it was ended because it wrote more than 64 MiB', true],
  )
  assert.equal(Buffer.byteLength(found.output), 65_536)
  assert.match(found.output, /^[0-9a-e\n]*$/)
  assert.ok(most <= 64 * 1024 * 1024 + 512, `${most}`)
})

inCity('of much output the last 64 KiB are told, and of bytes that are no text a text', async (city) => {
  const much = await city.run("seq 1 100000; printf 'end'")
  assert.equal(Buffer.byteLength(much.output), 65_536)
  assert.deepEqual([much.truncated, much.output.endsWith('99999\n100000\nend')], [true, true])
  const wide = await city.run('yes 日本語 | head -c 200000')
  assert.ok(Buffer.byteLength(wide.output) <= 65_536 && Buffer.byteLength(wide.output) > 65_530)
  assert.doesNotMatch(wide.output.slice(0, -1), /�/)
  const binary = await city.run("printf 'a\\0b\\377\\376c\\033[31m'")
  assert.deepEqual([binary.output, binary.truncated], ['a�b��c\x1b[31m', false])
  const random = await city.run('head -c 3000000 /dev/urandom')
  assert.ok(Buffer.byteLength(random.output) <= 65_536)
  assert.equal(random.output.isWellFormed(), true)
})

inCity('sixteen run at once, the others in the order in which they were begun', async (city) => {
  const command = 'echo $SVC_VAR_N >> begun; while [ ! -e go ]; do sleep 0.05; done; echo $SVC_VAR_N >> ended'
  const ids: string[] = []
  for (let n = 1; n <= 40; n++) ids.push(await city.begin(command, { vars: { n } }))
  await eventually('16 run', () => (city.file('begun').split('\n').length === 17 ? true : undefined))
  assert.deepEqual(city.execs.counts, { running: 16, queued: 24 })
  assert.deepEqual([city.execs.find(ids[0] ?? '')?.state, city.execs.find(ids[39] ?? '')?.state], ['running', 'queued'])
  writeFileSync(join(city.path, 'go'), '')
  for (const id of ids) assert.equal(endOf(await city.ended(id)), 0)
  const begun = city.file('begun').trim().split('\n').map(Number)
  assert.equal(new Set(begun).size, 40)
  assert.ok(begun.slice(0, 16).every((n) => n <= 16))
})

inCity('who cancels hears no more of it: one that waits never runs, one that runs is ended', async (city) => {
  const ids: string[] = []
  for (let n = 1; n <= 18; n++) ids.push(await city.begin('echo $$ >> pids; while :; do sleep 1; done'))
  await eventually('16 run', () => (city.file('pids').split('\n').length === 17 ? true : undefined))
  const [last = '', first = ''] = [ids[17], ids[0]]
  await city.db.write((tx) => {
    city.execs.cancel(tx, last)
    city.execs.cancel(tx, first)
    city.execs.cancel(tx, first)
    city.execs.cancel(tx, 'ex-none')
  })
  assert.equal(city.execs.find(last), undefined)
  await eventually('its turn is the next one', () => (city.file('pids').split('\n').length === 18 ? true : undefined))
  assert.deepEqual([city.execs.find(first), city.execs.counts], [undefined, { running: 16, queued: 0 }])
  await city.db.write((tx) => {
    for (const id of ids) city.execs.cancel(tx, id)
  })
  await eventually('all are gone', () => (city.execs.counts.running === 0 ? true : undefined))
  assert.deepEqual(city.ends, [])
  for (const pid of city.file('pids').trim().split('\n')) assert.equal(isAlive(Number(pid)), false)
  await eventually('no file is left', () => (filesOf(city).length === 0 ? true : undefined))
})

inCity('one that is cancelled in the transaction that began it, or right behind it, leaves nothing', async (city) => {
  for (let n = 0; n < 10; n++) {
    const id = await city.begin('echo >> ran; sleep 30')
    await city.db.write((tx) => city.execs.cancel(tx, id))
  }
  await eventually('all are gone', () => (city.execs.counts.running === 0 ? true : undefined))
  assert.deepEqual(city.ends, [])
})

inCity(
  'secrets that it was given are not told',
  async (city) => {
    const found = await city.run('echo "$API_TOKEN $LONG $HOME $SHORT"; printf "%s\\n" "$PEM"', {
      env: { API_TOKEN: '$SECRET', SHORT: 'plain', LONG: 'correct-horse', PEM: 'BEGIN-KEY\nabcdefghij\nEND' },
    })
    assert.equal(found.output, '*** *** /home/ana plain\n***\n')
  },
  { env: { ...ENV, SECRET: 's3cret' } },
)

inCity('an owner that throws is asked again, and does not keep the others from their turns', async (city) => {
  let asked = 0
  city.execs.own('condition', {
    ended: () => {
      asked++
      throw new Error('a mistake')
    },
  })
  await city.begin('true', { owner: 'condition' })
  assert.equal(endOf(await city.run('true')), 0)
  await eventually('it is given up', () => (city.execs.counts.running === 0 ? true : undefined))
  assert.equal(asked, 5)
})

inCity('what cannot be kept is refused before it is begun', async (city) => {
  await assert.rejects(city.begin('x'.repeat(200_000)), /longer than 120 KiB/)
  await assert.rejects(city.begin('true', { stdin: 'x'.repeat(17 * 1024 * 1024) }), /larger than 16 MiB/)
  await assert.rejects(city.begin('true', { id: '../etc' }), /no id of a command/)
  assert.deepEqual(city.execs.counts, { running: 0, queued: 0 })
})

inCity('thousands that are begun at once wait, and more than the limit are refused', async (city) => {
  const blockers: string[] = []
  for (let n = 0; n < 16; n++) blockers.push(await city.begin('sleep 60'))
  const ids = Array.from({ length: 5_000 }, (_, n) => `ex-many-${n}`)
  await city.db.write((tx) => {
    for (const id of ids) city.execs.begin(tx, anExec('true', { id }))
  })
  assert.deepEqual(city.execs.counts, { running: 16, queued: 5_000 })
  await city.db.write((tx) => tx.run('UPDATE execs SET seq = seq + 50000 WHERE id = ?', 'ex-many-4999'))
  await assert.rejects(city.begin('true'), /50000 commands are waiting already/)
  await city.db.write((tx) => {
    for (const id of [...ids, ...blockers]) city.execs.cancel(tx, id)
  })
  await eventually('all are gone', () => (city.execs.counts.running === 0 ? true : undefined))
})

inCity(
  'commands of one owner wait for each other alone: a check starts while orders have all their slots',
  async (city) => {
    for (let n = 0; n < 17; n++) await city.begin('sleep 60', { owner: 'order' })
    assert.deepEqual(city.execs.counts, { running: 16, queued: 1 })
    for (const owner of ['check', 'condition'] as const) assert.equal(endOf(await city.run('true', { owner })), 0)
    assert.deepEqual(city.execs.counts, { running: 16, queued: 1 })
  },
)

inCity('an owner is told when a command that waited starts, and of none that did not', async (city) => {
  const started: string[] = []
  city.execs.own('condition', { started: (_tx, { id }) => started.push(id), ended: () => {} })
  const first = await city.begin('sleep 60', { owner: 'condition' })
  for (let n = 0; n < 7; n++) await city.begin('sleep 60', { owner: 'condition' })
  const waiting = await city.begin('sleep 60', { owner: 'condition' })
  assert.deepEqual(started, [])
  await city.db.write((tx) => city.execs.cancel(tx, first))
  await eventually('it starts', async () => (started.length > 0 ? true : undefined))
  assert.deepEqual(started, [waiting])
})

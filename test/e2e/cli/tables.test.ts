// Tables on real terminals: narrow, usual, wide and without a width; with colours and without any escape code.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { cliHere } from '../../support/cli.ts'
import { newCity, type Running, run } from '../../support/running.ts'

const ENTRY = resolve(import.meta.dirname, '../../../tools/svcctl.mjs')
let running: Running
let ids: readonly string[]
before(async () => {
  running = await run()
  await newCity(running.api, running.work, 'demo')
  const env = { SVC_API: running.server.url, SVC_CITY: 'demo' }
  const does = async (...words: readonly string[]) => {
    const { out, err, code } = await cliHere(words, { env })
    assert.equal(code, 0, err)
    return out.trim()
  }
  const made: string[] = []
  for (const title of ['Paint the fence of the neighbour, who asked for green', '修理前门的锁', 'Short'])
    made.push(await does('bead', 'create', title, '-p', '1', '-o', 'name'))
  ids = made
  await does('bead', 'claim', made[2] ?? '', '--assignee', 'ann')
  writeFileSync(join(running.work, 'beads.jsonl'), `${JSON.stringify({ id: 'de-zz9', title: 'Imported' })}\n`)
})
after(() => running[Symbol.asyncDispose]())

interface Shown {
  readonly bytes: string
  /** As a terminal shows it, without empty lines at the end. */
  readonly screen: string
}

async function onTerminal(words: string, columns: number, more: NodeJS.ProcessEnv = {}): Promise<Shown> {
  const { SVC_CITY: _1, NO_COLOR: _2, ...rest } = process.env
  const env = { ...rest, SVC_HOME: running.server.home, SVC_API: '', TERM: 'xterm-256color', ...more }
  // A terminal cannot be opened without a width, but one can be taken away.
  const script = `stty cols ${columns} rows 60; exec "$0" "$1" ${words}`
  const shell = spawn('sh', ['-c', script, process.execPath, ENTRY], {
    cols: columns || 80,
    rows: 60,
    cwd: join(running.work, 'demo'),
    env,
  })
  let bytes = ''
  shell.onData((data) => {
    bytes += data
  })
  await new Promise((done) => shell.onExit(done))
  const terminal = new xterm.Terminal({ cols: columns || 1_000, rows: 60, allowProposedApi: true })
  await new Promise<void>((done) => terminal.write(bytes, done))
  const { active } = terminal.buffer
  const lines = Array.from({ length: active.length }, (_, y) => active.getLine(y)?.translateToString(true) ?? '')
  return { bytes, screen: steady(lines.join('\n').trimEnd()) }
}

/** What differs from run to run, in as many letters. */
const steady = (text: string): string =>
  ids
    .reduce((said, id, at) => said.replaceAll(id, `de-${String(at + 1).repeat(id.length - 3)}`), text)
    .replaceAll(/(\d+s ago|now)$/gm, 'AGE')

const WHOLE = [
  'ID      P  STATUS       TYPE  ASSIGNEE  TITLE                                                  AGE',
  'de-333  1  in_progress  task  ann       Short                                                  AGE',
  'de-222  1  open         task            修理前门的锁                                           AGE',
  'de-111  1  open         task            Paint the fence of the neighbour, who asked for green  AGE',
]

const SCREENS: Readonly<Record<number, readonly string[]>> = {
  40: [
    'ID      P  STATUS      TYPE  TITLE …',
    'de-333  1  in_progre…  task  Short',
    'de-222  1  open        task  修理前门的…',
    'de-111  1  open        task  Paint the …',
  ],
  80: [
    'ID      P  STATUS       TYPE  ASSIGNEE  TITLE                            AGE',
    'de-333  1  in_progress  task  ann       Short                            AGE',
    'de-222  1  open         task            修理前门的锁                     AGE',
    'de-111  1  open         task            Paint the fence of the neighbo…  AGE',
  ],
  200: WHOLE,
  0: WHOLE,
}

suite('a list of beads', () => {
  for (const [columns, lines] of Object.entries(SCREENS))
    test(`in a terminal of ${columns === '0' ? 'no width' : `${columns} columns`}`, { timeout: 60_000 }, async () => {
      const { screen } = await onTerminal('bead list', Number(columns))
      // How wide an age is, is not the same in every run, and what is left is for the title.
      const same = (text: string) => text.replaceAll(/ {2,}/g, '  ').replaceAll(/Paint the.*?…/g, 'Paint the…')
      assert.deepEqual(screen.split('\n').map(same), lines.map(same))
    })

  test('with columns and an order of one’s own', { timeout: 60_000 }, async () => {
    const { screen } = await onTerminal('bead list --sort title --columns title,status,metadata.team', 80)
    assert.deepEqual(screen.split('\n'), [
      'TITLE                                                  STATUS       METADATA.TE…',
      'Paint the fence of the neighbour, who asked for green  open',
      'Short                                                  in_progress',
      '修理前门的锁                                           open',
    ])
  })
})

suite('no escape code at all', () => {
  const commands = [
    'bead list',
    'bead get ID',
    'status',
    'city list',
    'needs',
    'bead import ../beads.jsonl',
    'help bead',
  ]
  for (const [how, env, flag] of [
    ['in a dumb terminal', { TERM: 'dumb' }, ''],
    ['with NO_COLOR', { NO_COLOR: '1' }, ''],
    ['with --no-color', {}, ' --no-color'],
  ] as const)
    test(how, { timeout: 120_000 }, async () => {
      for (const words of commands) {
        const { bytes } = await onTerminal(words.replace('ID', ids[0] ?? '') + flag, 80, env)
        assert.ok(bytes.length > 0, words)
        // The bar of an import is drawn over, which is no colour; a dumb terminal has none.
        const said = words.startsWith('bead import') && !('TERM' in env) ? bytes.replaceAll('\u001b[K', '') : bytes
        assert.ok(!said.includes('\u001b'), `${words}: ${JSON.stringify(bytes)}`)
      }
    })

  test('and there are some where nobody asked', { timeout: 60_000 }, async () => {
    assert.ok((await onTerminal('bead list', 80)).bytes.includes('\u001b[2m'))
  })
})

suite('every format', () => {
  const env = () => ({ SVC_API: running.server.url, SVC_CITY: 'demo' })
  const print = async (...words: readonly string[]): Promise<string> => {
    const { out, err, code } = await cliHere(words, { env: env() })
    assert.equal(code, 0, err)
    return steady(out)
  }
  const list = (...words: readonly string[]) =>
    print('bead', 'list', '--sort', 'title', '--limit', '3', '--status', 'open', ...words)

  test('of a list', async () => {
    assert.match(await list('-o', 'yaml'), /^items:\n {2}- id: de-\w+\n {4}title: /)
    assert.match(
      await list('-o', 'jsonpath={range .items[*]}{.title}{"\\n"}{end}'),
      /^Imported\nPaint the fence .*\n修理前门的锁\n$/,
    )
    assert.match(
      await list('-o', 'template={{.title}} is {{.status}}'),
      /^Imported is open\nPaint .* is open\n修理前门的锁 is open\n$/,
    )
    assert.match(await list('-o', 'name'), /^de-zz9\nde-111\nde-222\n$/)
    const body = JSON.parse(await list('-o', 'json'))
    assert.deepEqual(
      body.items.map(({ id }: { readonly id: string }) => id),
      ['de-zz9', 'de-111', 'de-222'],
    )
    assert.equal(typeof body.total, 'number')
  })

  test('of one thing, of a stream, of text', async () => {
    const [id = ''] = ids
    assert.equal(await print('bead', 'get', id, '-o', 'jsonpath={.status} {.priority}'), 'open 1\n')
    assert.equal(await print('bead', 'get', id, '-o', 'template={{id}}:{{priority}}'), 'de-111:1\n')
    assert.match(
      await print('events', '--type', 'bead.created', '-o', 'template={{.subject}}'),
      /^de-111\nde-222\nde-333\n/,
    )
    assert.match(await print('events', '--type', 'city.started', '-o', 'yaml'), /^---\nseq: \d+\ntype: city.started\n/)
    assert.match(await print('config', 'get', 'city.toml', '-o', 'jsonpath={.path}'), /^city\.toml\n$/)
  })

  test('a column or an order that nobody knows is a usage error that names those that there are', async () => {
    for (const flag of ['--sort', '--columns']) {
      const { code, err } = await cliHere(['bead', 'list', flag, 'titel'], { env: env() })
      assert.equal(code, 2)
      assert.match(err, /^error: there is no field "titel" here\nhint: fields: .*\bassignee\b.*\btitle\b/)
    }
  })
})

// What `svcctl bead` sends and draws, against a server of a few lines; the real one is in test/e2e/cli.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { cliHere, type WorldOptions } from '../../test/support/cli.ts'
import { answerJson, answerProblem, fastClock, type Script, scriptedServer } from '../../test/support/cli-server.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import type { Bead, BeadGraphResponse } from '../contract/beads.ts'
import { NOUNS } from './nouns.ts'
import { graphLines } from './views/bead-graph.ts'

const AT = '2026-05-01T10:00:00.000Z'
const bead = (id: string, more: Partial<Bead> = {}): Bead => ({
  id,
  title: `About ${id}`,
  status: 'open',
  issue_type: 'task',
  created_at: AT,
  updated_at: AT,
  is_blocked: false,
  revision: 1,
  ...more,
})
const listOf = (items: readonly unknown[], more: object = {}) => ({ items, total: items.length, ...more })
const CITY = {
  name: 'alpha',
  uid: 'u',
  path: '/cities/alpha',
  running: true,
  status: 'running',
  host: 'h',
  observed_at: AT,
}

/** Runs words in the city `alpha`; the script sees what is not the list of cities. */
async function against(script: Script, words: readonly string[], options: WorldOptions = {}) {
  let count = 0
  await using server = await scriptedServer((request, response) => {
    if (request.url.startsWith('/v0/cities')) return answerJson(response, 200, listOf([CITY]))
    count += 1
    return script(request, response, count - 1)
  })
  const io = { newKey: () => 'key-1', ...options.io }
  const result = await cliHere(words, {
    ...options,
    io,
    env: { SVC_API: server.url, SVC_CITY: 'alpha', ...options.env },
  })
  const requests = server.requests.filter(({ url }) => !url.startsWith('/v0/cities'))
  return { ...result, requests, query: new URL(requests[0]?.url ?? '/', server.url).searchParams }
}
const answering =
  (body: unknown, headers: Record<string, string> = {}): Script =>
  (_, response) =>
    answerJson(response, 200, body, headers)
const bodyOf = (requests: readonly { readonly body: string }[]): unknown => JSON.parse(requests[0]?.body ?? 'null')

suite('words', () => {
  test('a command of three words is found, explained and completed', async () => {
    const one = answering(bead('al-1'))
    const { requests } = await against(one, ['-o', 'name', 'bead', 'dep', '-t', 'waits-for', 'add', 'al-1', 'al-2'])
    assert.equal(requests[0]?.url, '/v0/city/alpha/beads/al-1/deps')
    assert.deepEqual(bodyOf(requests), { depends_on_id: 'al-2', type: 'waits-for' })
    const help = await cliHere(['help', 'bead', 'dep'])
    assert.match(help.out, /^Usage: svcctl bead dep COMMAND/)
    assert.match(help.out, /remove +Remove a dependency/)
    const wrong = await cliHere(['bead', 'dep', 'ad', 'x', 'y'])
    assert.deepEqual([wrong.code, wrong.out], [2, ''])
    assert.match(wrong.err, /unknown command 'ad'\nhint: did you mean add\?/)
    assert.equal((await cliHere(['bead', 'dep', 'add', 'x'])).code, 2)
    const next = async (...words: string[]) => (await completed(words)).map((candidate) => candidate.split('\t')[0])
    assert.deepEqual(await next('bead', 'dep', ''), ['list', 'add', 'remove'])
    assert.deepEqual(await next('bead', 'de'), ['delete', 'dep'])
    assert.ok((await next('bead', 'dep', 'list', '--')).includes('--direction'))
    assert.deepEqual(await next('bead', 'dep', 'list', '--direction', ''), ['down', 'up', 'both'])
  })

  async function completed(words: readonly string[]): Promise<readonly string[]> {
    const { out } = await cliHere(['__complete', ...words])
    return out.split('\n').filter((line) => line !== '')
  }

  test('no flag of a command has the name of one that every command has', async () => {
    for (const { load } of Object.values(NOUNS)) {
      for (const { path } of (await load()).commands) {
        const { code, err } = await cliHere([...path, '--help'])
        assert.equal(code, 0, `${path.join(' ')}: ${err}`)
      }
    }
  })
})

suite('what is sent', () => {
  test('filters of a list', async () => {
    const words =
      'bead list -s open -s closed -t bug -l ui -l x -a amy --unassigned -p 0 --meta k=v --q cache --limit 7'
    const { query } = await against(answering(listOf([])), words.split(' '))
    assert.deepEqual(
      [...query].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      [
        ['assignee', 'amy'],
        ['label', 'ui'],
        ['label', 'x'],
        ['limit', '7'],
        ['metadata', 'k=v'],
        ['priority', '0'],
        ['q', 'cache'],
        ['status', 'open'],
        ['status', 'closed'],
        ['type', 'bug'],
        ['unassigned', 'true'],
      ],
    )
  })

  test('times may be told from now', async () => {
    const clock = { ...fastClock(), now: () => Date.parse(AT) }
    const past = await against(answering(listOf([])), ['bead', 'list', '--updated-after', '1d'], { io: { clock } })
    assert.equal(past.query.get('updated_after'), '2026-04-30T10:00:00.000Z')
    const future = await against(answering(bead('al-1')), ['bead', 'create', 'x', '--defer-until', '1h30m'], {
      io: { clock },
    })
    assert.deepEqual(bodyOf(future.requests), { title: 'x', defer_until: '2026-05-01T11:30:00.000Z' })
    const day = await against(answering(bead('al-1')), ['bead', 'create', 'x', '--defer-until', '2026-05-02'])
    assert.deepEqual(bodyOf(day.requests), { title: 'x', defer_until: new Date('2026-05-02T00:00').toISOString() })
    for (const wrong of ['soon', '-1d', 'may 3', '2026-13-01']) {
      const words = ['bead', 'list', `--created-after=${wrong}`]
      const { code, err, requests } = await against(answering(listOf([])), words)
      assert.deepEqual([code, requests.length], [2, 0])
      assert.match(err, /expected a time such as .+, or a duration such as 7d/)
    }
  })

  test('a new bead: words, flags, then JSON on top', async () => {
    const { requests } = await against(
      answering(bead('al-1')),
      [
        ...['bead', 'create', 'Fix', 'it', '-t', 'bug', '-p', '1', '-l', 'ui', '-l', 'x', '--needs', 'al-2'],
        ...['--meta', 'a=b=c', '--set', 'metadata.d=1', '-d', '-', '--idempotency-key', 'mine'],
      ],
      { input: 'two\nlines' },
    )
    assert.deepEqual(bodyOf(requests), {
      title: 'Fix it',
      issue_type: 'bug',
      priority: 1,
      description: 'two\nlines',
      labels: ['ui', 'x'],
      metadata: { a: 'b=c', d: 1 },
      needs: ['al-2'],
    })
    assert.equal(requests[0]?.headers['idempotency-key'], 'mine')
  })

  test('a change, with what is cleared and the revision that it is for', async () => {
    const words = 'bead update al-1 -s closed --remove-label x --unset assignee --if-match 4'
    const { requests } = await against(answering(bead('al-1')), words.split(' '))
    assert.deepEqual(bodyOf(requests), { status: 'closed', remove_labels: ['x'], assignee: null })
    assert.deepEqual([requests[0]?.method, requests[0]?.headers['if-match']], ['PATCH', '"4"'])
  })

  test('a close, with what came out of it', async () => {
    const sent = async (...words: string[]) =>
      bodyOf((await against(answering(bead('al-1')), ['bead', 'close', 'al-1', ...words])).requests)
    assert.deepEqual(await sent(), {})
    assert.deepEqual(await sent('-r', 'done', '--outcome', 'pass', '--result', '{"a":1}', '--commit', 'c'), {
      reason: 'done',
      outcome: 'pass',
      output: { a: 1 },
      commit: 'c',
    })
    for (const [words, output] of [
      [['just text'], 'just text'],
      [['[1]'], [1]],
      [['null'], null],
      [['verdict=clean'], { verdict: 'clean' }],
      [['modules=["a","b"]', 'n=2', 'note=a=b', 'none='], { modules: ['a', 'b'], n: 2, note: 'a=b', none: '' }],
    ] as const)
      assert.deepEqual(await sent(...words.flatMap((word) => ['--result', word])), { output })
  })

  test('a close of several results needs their keys, and says which session it comes from', async () => {
    const close = ['bead', 'close', 'al-1', '--result', 'a=1']
    assert.equal((await against(answering(bead('al-1')), [...close, '--result', 'two'])).code, 2)
    const env = { SVC_SESSION_ID: 's-1' }
    assert.deepEqual(bodyOf((await against(answering(bead('al-1')), close, { env })).requests), {
      output: { a: 1 },
      session_id: 's-1',
    })
  })

  test('in a session the one who claims is the session, unless somebody else is named', async () => {
    const env = { SVC_AGENT: 'mayor', SVC_SESSION_NAME: 'mayor-1', SVC_SESSION_ID: 's-1' }
    const claimed = answering({ claimed: true, bead: bead('al-1') })
    const sent = async (words: string, more: Record<string, string> = env) =>
      bodyOf((await against(claimed, words.split(' '), { env: more })).requests)
    assert.deepEqual(await sent('bead claim al-1 --branch b'), {
      assignee: 'mayor-1',
      branch: 'b',
      session_id: 's-1',
      session_name: 'mayor-1',
    })
    assert.deepEqual(await sent('bead claim al-1 -a amy'), { assignee: 'amy' })
    assert.deepEqual(await sent('bead hook --claim --drain-ack'), {
      agent: 'mayor',
      session_id: 's-1',
      session_name: 'mayor-1',
      drain_ack: true,
    })
    assert.deepEqual(await sent('bead hook amy --claim'), { agent: 'amy' })
    for (const words of ['bead claim al-1', 'bead hook', 'bead hook amy --drain-ack']) {
      const { code, requests } = await against(claimed, words.split(' '))
      assert.deepEqual([code, requests.length], [2, 0], words)
    }
  })

  test('a question of several words is one expression', async () => {
    const { query } = await against(answering(listOf([])), ['bead', 'query', 'status=open', 'AND', 'priority<2'])
    assert.equal(query.get('q'), 'status=open AND priority<2')
  })
})

suite('pages', () => {
  const pages: Script = ({ url }, response) => {
    const cursor = Number(new URL(url, 'http://x').searchParams.get('cursor') ?? 0)
    const limit = Number(new URL(url, 'http://x').searchParams.get('limit'))
    const items = Array.from({ length: Math.min(limit, 2_500 - cursor) }, (_, at) => bead(`al-${cursor + at}`))
    const next = cursor + items.length
    answerJson(response, 200, { items, total: 2_500, ...(next < 2_500 ? { next_cursor: String(next) } : {}) })
  }
  const lines = (text: string) => text.split('\n').length - 1

  test('a list ends after a hundred and says so; --limit and --paginate go on', async () => {
    const first = await against(pages, ['bead', 'list', '-o', 'name'])
    assert.equal(lines(first.out), 100)
    assert.match(first.err, /showing the first 100; --limit N or --paginate gets more/)
    const more = await against(pages, ['bead', 'list', '-o', 'name', '--limit', '1500'])
    assert.deepEqual([lines(more.out), more.requests.length], [1_500, 2])
    const all = await against(pages, ['bead', 'list', '-o', 'jsonl', '--paginate'])
    assert.deepEqual([lines(all.out), all.err], [2_500, ''])
    for (const wrong of [
      ['--limit', '0'],
      ['--limit', 'x'],
      ['--limit', '5', '--paginate'],
    ])
      assert.equal((await against(pages, ['bead', 'list', ...wrong])).code, 2)
  })
})

suite('waiting for work', () => {
  test('ready --wait asks again, from where the last answer was, until something is ready', async () => {
    const script: Script = (_, response, count) =>
      answerJson(response, 200, listOf(count < 2 ? [] : [bead('al-9')]), { 'x-svc-index': String(40 + count) })
    const { out, requests, code } = await against(script, ['bead', 'ready', '--wait', '5m', '-o', 'name'])
    assert.deepEqual([code, out, requests.length], [0, 'al-9\n', 3])
    const asked = requests.map(({ url }) => new URL(url, 'http://x').searchParams)
    assert.deepEqual(
      asked.map((query) => query.get('index')),
      [null, '40', '41'],
    )
    for (const query of asked.slice(1)) assert.match(query.get('wait') ?? '', /^120000ms$/)
  })

  test('without --wait, and after it, nothing ready is an empty list', async () => {
    const none: Script = (_, response) => answerJson(response, 200, listOf([]), { 'x-svc-index': '1' })
    assert.equal((await against(none, ['bead', 'ready'])).requests.length, 1)
    const { code, out } = await against(none, ['bead', 'ready', '--wait', '20s'], { io: { clock: fastClock() } })
    assert.deepEqual([code, out], [0, ''])
  })
})

suite('what is shown', () => {
  test('a table for people: state in words, cut to the width', async () => {
    const items = [bead('al-1', { is_blocked: true, priority: 0, title: 'x'.repeat(200) }), bead('al-2')]
    const { out } = await against(answering(listOf(items)), ['bead', 'list', '--no-color'], {
      terminal: true,
      columns: 72,
    })
    const [header = '', first = '', second = ''] = out.split('\n')
    assert.match(header, /^ID +P +STATUS +TYPE +TITLE +AGE$/)
    assert.match(first, /^al-1 +0 +open, blocked +task +x+… +\d+d ago$/)
    assert.match(second, /^al-2 +open +task/)
    for (const line of [header, first, second]) assert.ok(line.length <= 72, line)
  })

  test('a page in a terminal, fields elsewhere', async () => {
    const script: Script = ({ url }, response) => {
      if (url.endsWith('/deps')) {
        const edge = { issue_id: 'al-1', depends_on_id: 'al-2', type: 'blocks', status: 'open', title: 'Before' }
        return answerJson(response, 200, {
          children: [bead('al-3')],
          dependencies: [edge],
          dependents: [{ ...edge, issue_id: 'al-3', depends_on_id: 'al-1', type: 'parent-child' }],
        })
      }
      if (url.includes('/comments')) return answerJson(response, 200, { items: [], total: 2 })
      return answerJson(response, 200, bead('al-1', { description: 'one\n\u001b[31mtwo', labels: ['a', 'b'] }))
    }
    const page = await against(script, ['bead', 'get', 'al-1', '--no-color'], { terminal: true, columns: 100 })
    assert.match(page.out, /^labels: +a, b$/m)
    assert.match(page.out, /^one\n\\x1b\[31mtwo$/m)
    assert.match(page.out, /^depends on +blocks +al-2 +open +Before$/m)
    assert.match(page.out, /^child +parent-child +al-3 +open +About al-3$/m)
    assert.doesNotMatch(page.out, /needed by/)
    assert.match(page.out, /^2 comments: svcctl bead comment list al-1$/m)
    assert.equal(page.requests.length, 3)
    const fields = await against(script, ['bead', 'get', 'al-1'])
    assert.match(fields.out, /^description\tone\\n\\x1b\[31mtwo$/m)
    assert.equal(fields.requests.length, 1)
  })

  test('a bead needs what it depends on now, not what it was created with', async () => {
    const edge = (type: string, other: string) => ({ issue_id: 'al-1', depends_on_id: other, type })
    const dependencies = [edge('blocks', 'al-3'), edge('related', 'al-4'), edge('parent-child', 'al-5')]
    const { out } = await against(answering(bead('al-1', { needs: ['al-2'], dependencies })), ['bead', 'get', 'al-1'])
    assert.match(out, /^needs\tal-3, related:al-4$/m)
    const none = await against(answering(bead('al-1', { needs: ['al-2'] })), ['bead', 'get', 'al-1'])
    assert.doesNotMatch(none.out, /al-2/)
  })

  const graph: BeadGraphResponse = {
    root: bead('al-r', { title: 'Root' }),
    beads: [
      bead('al-r', { title: 'Root' }),
      bead('al-a', { status: 'closed', parent: 'al-r' }),
      bead('al-b', { status: 'in_progress', assignee: 'amy', parent: 'al-r' }),
      bead('al-c', { is_blocked: true, parent: 'al-b' }),
      bead('al-d', { is_blocked: true }),
    ],
    deps: [
      { from: 'al-r', to: 'al-a', kind: 'parent-child' },
      { from: 'al-r', to: 'al-b', kind: 'parent-child' },
      { from: 'al-b', to: 'al-c', kind: 'parent-child' },
      { from: 'al-a', to: 'al-c', kind: 'blocks' },
      { from: 'al-b', to: 'al-c', kind: 'waits-for' },
      { from: 'al-c', to: 'al-a', kind: 'relates-to' },
    ],
    membership: 'direct-root-id+parent-closure',
  }
  const plain = { width: 100, paint: (_: string, text: string) => text }

  test('a graph is a tree, with what each bead waits for', async () => {
    const drawn = [
      '○ al-r Root',
      '├─ ✓ al-a About al-a',
      '├─ ▶ al-b About al-b (amy)',
      '│  └─ ■ al-c About al-c ← waits for al-b',
      '└─ ■ al-d About al-d ← waits for something outside',
    ]
    assert.deepEqual(graphLines(graph, plain), drawn)
    const { out } = await against(answering(graph), ['bead', 'graph', 'al-r'])
    assert.equal(out, `${drawn.join('\n')}\n`)
    const coloured = await against(answering(graph), ['bead', 'graph', 'al-r'], { terminal: true, columns: 20 })
    assert.ok(coloured.out.includes('\u001b[32m✓\u001b[39m al-a'))
    assert.match(coloured.out, /…$/m)
    assert.equal((await against(answering(graph), ['bead', 'graph', 'al-r', '-o', 'name'])).out.split('\n')[4], 'al-d')
  })

  test('a graph keeps its width also in wide letters, and a circle of parents is cut open', () => {
    const wide = { ...graph, beads: [], deps: [], root: bead('al-r', { title: '修复登录页面的错误'.repeat(9) }) }
    const [line = ''] = graphLines(wide, { ...plain, width: 40 })
    assert.equal(line, '○ al-r 修复登录页面的错误修复登录页面的…')
    const circle = ['al-x', 'al-y'].map((id) => bead(id))
    const deps = [
      { from: 'al-x', to: 'al-y', kind: 'parent-child' },
      { from: 'al-y', to: 'al-x', kind: 'parent-child' },
    ]
    assert.deepEqual(graphLines({ ...graph, beads: [graph.root, ...circle], deps }, plain), [
      '○ al-r Root',
      '○ al-x About al-x',
      '└─ ○ al-y About al-y',
    ])
  })

  test('a chain of ten thousand is drawn without running out of stack or memory', () => {
    const beads = Array.from({ length: 10_000 }, (_, at) => bead(`al-${at}`))
    const deps = beads.slice(1).map(({ id }, at) => ({ from: `al-${at}`, to: id, kind: 'parent-child' }))
    const [root = bead('none')] = beads
    const lines = graphLines({ root, beads, deps, membership: 'direct-root-id+parent-closure' }, plain)
    assert.equal(lines.length, 10_000)
    assert.ok(Math.max(...lines.map((line) => line.length)) < 400)
  })
})

suite('import and export', () => {
  const counts = { created: 1, updated: 0, unchanged: 0, skipped: 0, failed: 0, warnings: [], errors: [] }

  test('lines arrive as they are, from a file and from a pipe', async () => {
    using scratch = temporaryDirectory()
    const text = '{"id":"al-1","title":"a\u2028b"}\n\r\n{"id":"al-2","title":"ü"}'
    writeFileSync(join(scratch.path, 'in.jsonl'), text)
    const words = ['bead', 'import', 'in.jsonl', '--rig', 'shop', '--dry-run']
    const file = await against(answering(counts), words, { cwd: scratch.path })
    assert.deepEqual([file.code, file.err], [0, ''])
    assert.equal(file.requests[0]?.body, text)
    assert.deepEqual(Object.fromEntries(file.query), { rig: 'shop', dry_run: 'true' })
    assert.equal(file.requests[0]?.headers['content-type'], 'application/x-ndjson')
    assert.match(file.out, /^created\t1\nupdated\t0\n/)
    const pipe = await against(answering(counts), ['bead', 'import', '-'], { input: text })
    assert.equal(pipe.requests[0]?.body, text)
  })

  test('a terminal sees a bar, which goes away; --quiet keeps it away', async () => {
    using scratch = temporaryDirectory()
    writeFileSync(join(scratch.path, 'in.jsonl'), '{"id":"al-1","title":"a"}\n'.repeat(10))
    const run = (...more: string[]) =>
      against(answering(counts), ['bead', 'import', 'in.jsonl', ...more], { cwd: scratch.path, terminal: true })
    const { err } = await run()
    assert.ok(err.includes(`\r${'█'.repeat(24)} 100 %  1 KiB  10 lines\u001b[K`), err)
    assert.ok(err.endsWith('\r\u001b[K'))
    assert.equal((await run('-q')).err, '')
    const narrow = await against(answering(counts), ['bead', 'import', 'in.jsonl'], {
      cwd: scratch.path,
      terminal: true,
      columns: 40,
    })
    assert.ok(narrow.err.includes(`\r${'█'.repeat(24)} 100 %  1 KiB …\u001b[K`), narrow.err)
  })

  test('lines that failed are told of on stderr, and are exit code 1', async () => {
    const body = {
      ...counts,
      failed: 3,
      errors: [{ line: 2, id: 'al-2', detail: 'no title' }],
      warnings: [{ line: 1, detail: 'dangling\u0007' }],
    }
    const { code, err, out } = await against(answering(body), ['bead', 'import', '-'], { input: '{}' })
    assert.equal(code, 1)
    assert.equal(err, 'warning: line 1: dangling\\x07\nerror: line 2 (al-2): no title\nerror: 2 more lines failed\n')
    assert.match(out, /^failed\t3$/m)
  })

  test('a file that cannot be read is a usage error, before anything is sent', async () => {
    using scratch = temporaryDirectory()
    for (const file of ['missing.jsonl', '.']) {
      const { code, err, requests } = await against(answering(counts), ['bead', 'import', file], { cwd: scratch.path })
      assert.deepEqual([code, requests.length], [2, 0])
      assert.match(err, /^error: cannot open /)
    }
  })

  test('an import that breaks off says that it can be done again', async () => {
    const { code, err } = await against((_, response) => void response.destroy(), ['bead', 'import', '-'], {
      input: '{}',
    })
    assert.equal(code, 12)
    assert.match(err, /^error: the import broke off: cannot reach .+\nhint: do it again: what was imported stays/)
  })

  const exporting =
    (text: string, whole = true): Script =>
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' })
      response.write(text)
      if (whole) response.end()
      else setImmediate(() => response.destroy())
    }

  test('an export is the lines as they came, on stdout or in a file', async () => {
    using scratch = temporaryDirectory()
    const text = '{"id":"al-1","title":"a\u2028b"}\n{"id":"al-2"}\n'
    assert.equal((await against(exporting(text), ['bead', 'export', '-s', 'closed'])).out, text)
    const { out, err, code } = await against(exporting(text), ['bead', 'export', 'out.jsonl'], { cwd: scratch.path })
    assert.deepEqual([code, out, err], [0, '', '2 beads in out.jsonl\n'])
    assert.equal(readFileSync(join(scratch.path, 'out.jsonl'), 'utf8'), text)
  })

  test('an export that breaks off leaves what was there, and nothing half', async () => {
    using scratch = temporaryDirectory()
    writeFileSync(join(scratch.path, 'out.jsonl'), 'before')
    const { code } = await against(exporting('{"id":"al-1"}\n', false), ['bead', 'export', 'out.jsonl'], {
      cwd: scratch.path,
    })
    assert.equal(code, 7)
    assert.equal(readFileSync(join(scratch.path, 'out.jsonl'), 'utf8'), 'before')
    assert.deepEqual(readdirSync(scratch.path), ['out.jsonl'])
    mkdirSync(join(scratch.path, 'dir'))
    const wrong = await against(exporting(''), ['bead', 'export', 'nowhere/out.jsonl'], { cwd: scratch.path })
    assert.equal(wrong.code, 2)
  })

  test('a server that takes too long is exit code 8', async () => {
    const { code, err } = await against(() => undefined, ['bead', 'export', '--timeout', '10s'], {
      io: { clock: fastClock() },
    })
    assert.equal(code, 8)
    assert.match(err, /the export took longer than 10 s/)
  })
})

suite('completion', () => {
  const script: Script = ({ url }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://x')
    const closed = searchParams.get('status') === 'closed'
    if (pathname.endsWith('/convoys'))
      return answerJson(response, 200, listOf([{ ...bead('al-c'), progress: { total: 3, closed: 1 } }]))
    if (pathname.endsWith('/rigs')) return answerJson(response, 200, listOf([{ name: 'shop', path: '/src/shop' }]))
    if (pathname.endsWith('/beads/query')) return answerJson(response, 200, listOf([bead('al-old'), bead('bal-old')]))
    return answerJson(response, 200, listOf([bead(closed ? 'al-done' : 'al-1', { title: 'a\nb\u001b[31m' })]))
  }
  const completed = async (words: string) => {
    // Its patience is short; a slow machine must not decide this test.
    const io = { clock: new ManualClock() }
    const { out, requests } = await against(script, ['__complete', ...words.split(' ')], { io })
    return { found: out.split('\n').filter((line) => line !== ''), requests }
  }

  test('ids of beads and convoys, and names of rigs, with what they are about', async () => {
    assert.deepEqual((await completed('bead get ')).found, ['al-1\topen: a b\\x1b[31m'])
    assert.deepEqual((await completed('bead reopen ')).found, ['al-done\topen: a b\\x1b[31m'])
    assert.deepEqual((await completed('convoy close ')).found, ['al-c\t1 of 3: About al-c'])
    assert.deepEqual((await completed('bead list --rig ')).found, ['shop\t/src/shop'])
    for (const words of ['bead dep add al-9 ', 'convoy add al-c al-9 ', 'bead create x --parent '])
      assert.deepEqual((await completed(words)).found.length, 1, words)
  })

  test('what is typed of an id is looked for among all that are open, not only among the newest', async () => {
    const { found, requests } = await completed('bead get al-o')
    assert.deepEqual(found, ['al-old\topen: About al-old'])
    assert.equal(new URL(requests[0]?.url ?? '', 'http://x').searchParams.get('q'), 'id~"al-o"')
  })
})

suite('refusals', () => {
  test('what the server refuses is told by the words of the command line', async () => {
    const said = async (words: readonly string[], ...locations: readonly string[]) => {
      const errors = locations.map((location) => ({ location, message: 'is wrong' }))
      const refused: Script = (_, response) =>
        answerJson(response, 422, { detail: 'validation_failed: x', code: 'validation-failed', status: 422, errors })
      const { err, code } = await against(refused, words)
      assert.equal(code, 6)
      return err.split('\n').filter((line) => line.endsWith('is wrong'))
    }
    const create = ['bead', 'create', 'x', '-p', '9', '-l', '', '--meta', 'svc.a=1']
    assert.deepEqual(
      await said(create, 'body.priority', 'body.labels[0]', 'body.metadata.svc.a', 'body.title', 'body.parent'),
      [
        '  --priority: is wrong',
        '  --label[0]: is wrong',
        '  --meta svc.a: is wrong',
        '  <title>: is wrong',
        '  --parent: is wrong',
      ],
    )
    assert.deepEqual(await said(['bead', 'query', 'a'], 'query.q'), ['  <expression>: is wrong'])
    assert.deepEqual(await said(['bead', 'close', '--query', 'a='], 'query.q'), ['  --query: is wrong'])
    assert.deepEqual(await said(['bead', 'list', '--created-after', '1d'], 'query.created_after', 'header.x'), [
      '  --created-after: is wrong',
      '  header.x: is wrong',
    ])
    assert.deepEqual(await said(['convoy', 'add', 'al-c', 'al-1'], 'path.id', 'body.items[0]'), [
      '  <id>: is wrong',
      '  <items>[0]: is wrong',
    ])
    assert.deepEqual(
      await said(['agent', 'create', 'a', '--set', 'env.A=1', '--set', 'frob=1'], 'body.env.A', 'body.frob'),
      ['  --set env.A: is wrong', '  --set frob: is wrong'],
    )
  })

  test('what the detail says already is not said again', async () => {
    const saying = async (detail: string, ...errors: readonly { location: string; message: string }[]) => {
      const refused: Script = (_, response) =>
        answerJson(response, 422, { detail, code: 'validation-failed', status: 422, errors })
      return (await against(refused, ['bead', 'create', 'x', '-p', '9'])).err.replace(/^request id: .*\n/m, '')
    }
    const priority = { location: 'body.priority', message: 'must be <= 4' }
    assert.equal(
      await saying('validation_failed: body.priority: must be <= 4', priority),
      'error: validation_failed: --priority: must be <= 4\n',
    )
    assert.equal(
      await saying('validation_failed: body.priority: must be <= 4', priority, {
        location: 'body.a',
        message: 'is $& wrong',
      }),
      'error: validation_failed: --priority: must be <= 4\n  body.a: is $& wrong\n',
    )
    assert.equal(await saying('conflict: no', priority), 'error: conflict: no\n  --priority: must be <= 4\n')
  })

  test('words that no server would understand are usage errors, before anything is sent', async () => {
    for (const [words, said] of [
      [['bead', 'list', '-s', 'opne'], /^error: invalid --status "opne": expected open, in_progress, closed$/m],
      [['completion', 'pwsh'], /^error: invalid <shell> "pwsh": expected bash, zsh, fish$/m],
      [['bead', 'get', ''], /^error: <id> must not be empty$/m],
      [
        ['bead', 'close'],
        /^error: missing required argument 'id', or --query .+\nhint: see: svcctl bead close --help$/m,
      ],
      [['bead', 'graph', ''], /^error: <id> must not be empty$/m],
      [['bead', 'dep', 'remove', 'al-1', '..'], /^error: <depends_on_id> cannot be "\.\."/m],
    ] as const) {
      const { code, err, requests } = await against(answering(bead('al-1')), words)
      assert.deepEqual([code, requests.length], [2, 0], err)
      assert.match(err, said)
    }
  })

  test('who has it is a conflict, exit code 5; one that is not there, 3', async () => {
    const held: Script = (_, response) => answerProblem(response, 409, 'conflict-claimed', 'conflict: amy has al-1')
    assert.equal((await against(held, ['bead', 'claim', 'al-1', '-a', 'bob'])).code, 5)
    const gone: Script = (_, response) => answerProblem(response, 404, 'bead-not-found', 'not_found: no bead al-1')
    assert.equal((await against(gone, ['bead', 'get', 'al-1'])).code, 3)
  })

  test('what is for good asks in a terminal, and needs --yes elsewhere', async () => {
    const deleted = answering({ status: 'deleted', id: 'al-1', deleted: ['al-1'] })
    assert.equal((await against(deleted, ['bead', 'delete', 'al-1'])).code, 2)
    const no = await against(deleted, ['bead', 'delete', 'al-1'], { terminal: true, input: 'n\n' })
    assert.deepEqual([no.code, no.requests.length], [1, 0])
    const yes = await against(deleted, ['bead', 'delete', 'al-1', '--cascade'], { terminal: true, input: 'y\n' })
    assert.deepEqual([yes.code, yes.requests[0]?.url], [0, '/v0/city/alpha/beads/al-1?cascade=true'])
  })

  test('a change whose answer could not be shown as asked is not made', async () => {
    const words = [
      ['bead', 'create', 'x', '--columns', 'titel'],
      ['bead', 'close', 'al-1', '--sort', 'prioritty'],
      ['bead', 'close', 'al-1', 'al-2', '--columns', 'id,sttus'],
      ['bead', 'delete', 'al-1', '--yes', '--columns', 'gone'],
      ['bead', 'batch', '-', '--columns', 'titel'],
      ['bead', 'import', '-', '--columns', 'titel'],
      ['bead', 'hook', 'mayor', '--claim', '--columns', 'titel'],
      ['session', 'create', 'worker', '--columns', 'nonsense'],
      ['session', 'deliveries', 's', '--cancel', 'd-1', '--columns', 'nonsense'],
      ['convoy', 'check', '--columns', 'nonsense'],
      ['patch', 'put', 'rig', 'shop', '--columns', 'nonsense'],
      ['pack', 'prune', '--columns', 'nonsense'],
      ['config', 'edit', '--yes', '--columns', 'nonsense'],
    ]
    for (const line of words) {
      const { code, requests, err } = await against(answering({}), line, { input: '{"nodes":[]}' })
      assert.deepEqual([code, requests.length], [2, 0], `${line.join(' ')}: ${err}`)
      assert.match(err, /there is no field/, line.join(' '))
    }
  })

  test('columns that only one of several shapes of an answer has are no reason to refuse', async () => {
    const accepted = { request_id: 'req-1', event_cursor: '1' }
    const script: Script = (_, response) => answerJson(response, 202, accepted)
    const create = ['session', 'create', 'worker', '--no-wait', '--columns']
    assert.equal((await against(script, [...create, 'request_id'])).out, 'request_id\treq-1\n')
    assert.equal((await against(script, [...create, 'request_id,session.alias'])).code, 0)
    const several = await against(answering(bead('al-1')), ['bead', 'close', 'al-1', 'al-2', '--columns', 'id,age'])
    assert.deepEqual([several.code, several.requests.length], [0, 2])
  })

  test('a plan that is no object, and numbers that are none, are not sent', async () => {
    for (const words of [
      ['bead', 'batch', '-'],
      ['bead', 'create', 'x', '-p', 'high'],
      ['bead', 'create', 'x', '--meta', 'novalue'],
      ['bead', 'create', 'x', '--defer-until', 'later'],
    ]) {
      const { code, requests, err } = await against(answering({ ids: {} }), words, { input: '[1]' })
      assert.deepEqual([code, requests.length], [2, 0], `${words.join(' ')}: ${err}`)
    }
    const { requests, out } = await against(
      answering({ ids: { a: 'al-1' } }),
      ['bead', 'batch', '-', '--rig', 'shop'],
      {
        input: '{"nodes":[{"key":"a","title":"A"}]}',
      },
    )
    assert.deepEqual(bodyOf(requests), { nodes: [{ key: 'a', title: 'A' }], rig: 'shop' })
    assert.equal(out, 'a\tal-1\n')
  })
})

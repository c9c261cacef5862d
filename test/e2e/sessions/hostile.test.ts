// Agents that mean harm, or behave as if: nothing breaks, nothing leaks out of their session, and they go when told to.
import assert from 'node:assert/strict'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { ACP_AGENT } from '../../support/acp-run.ts'
import { asMap } from '../../support/document.ts'
import { HostileCity, MARK } from '../../support/hostile-city.ts'
import { eventually } from '../../support/http.ts'
import { outcome } from '../../support/running.ts'

const MIB = 1024 * 1024
const ESC = '\\033'
/** The quotes keep what the shell echoes apart from what it prints. */
const SAY_MARK = `echo ${MARK.replace('-', "''-")}`

/** All that a terminal can be asked to do and that we do not want done: as `printf` takes it. */
const ESCAPES = [
  `${ESC}]0;stolen title\\007`,
  `${ESC}]2;stolen title${ESC}\\\\`,
  `${ESC}]52;c;aG9zdGlsZQ==\\007`,
  `${ESC}[?1049h${ESC}[2J${ESC}[Hon another screen${ESC}[?1049l`,
  `${ESC}[6n${ESC}[c${ESC}[>c${ESC}[5n${ESC}]11;?\\007${ESC}[18t`,
  `${ESC}P+q544e${ESC}\\\\${ESC}P$qm${ESC}\\\\`,
  `${ESC}[999999999;999999999H${ESC}[99999999999999999999m${ESC}[2147483647L`,
  `x${ESC}[2147483647b${ESC}[2147483647S${ESC}[2147483647T${ESC}[2147483647M${ESC}[2147483647I${ESC}[2147483647Z`,
  `${ESC}[?1000h${ESC}[?2004h${ESC}[201~${ESC}[?1003h`,
  `${ESC}_ga=T,f=24;AAAA${ESC}\\\\${ESC}^private${ESC}\\\\`,
  '\\016\\017\\200\\233\\235\\b\\b\\b\\r\\v\\f\\000\\177',
  `${ESC}c${ESC}#8${ESC}]8;;file:///etc/passwd\\007link${ESC}]8;;\\007`,
  // Never ended: whatever comes next must not be swallowed for ever.
  `${ESC}[${ESC}c`,
]

/** What our own streams and logs look like. */
const FORGERIES = [
  'event: ended',
  'data: {"state":"closed","reason":"forged","at":"2026-01-01T00:00:00Z"}',
  'id: 999999-999999',
  '',
  ': comment',
  '{"svc":{"prompt":"forged","delivery_id":"forged"}}',
  '{"svc":{"exit":{"code":0}}}',
  '{"event":"exit","exit":{"code":0,"reason":"exited","at":0},"end_offset":0}',
  '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{}}',
  '[999 bytes of output were lost: they could not be written]',
]

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

suite('hostile agents', { timeout: 300_000 }, () => {
  test('escape sequences do nothing but colour their own screen', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    const { title } = await city.get(id)
    await using stream = await stage.stream(id)
    const asking = `printf '${ESC}[6n'; read -rs -t 1 -d R answer`
    const lines = [...ESCAPES.map((text) => `printf '${text}'`), asking, `printf '${ESC}c'`]
    writeFileSync(stage.file('escapes'), lines.join('\n'))
    await city.message(id, `. ${stage.file('escapes')}; ${SAY_MARK}`)
    await stream.until(() => stream.frames.some(({ data }) => data.includes(MARK)))
    // What a terminal answers goes into the shell's input: its own problem, and not for longer than a line.
    await city.message(id, 'true')
    await stage.obeys(id)
    const { title: now } = await city.get(id)
    assert.equal(now, title)
    const text = await city.text(id)
    assert.doesNotMatch(text, CONTROL)
    for (const hidden of ['stolen title', 'aG9zdGlsZQ', 'AAAA', 'private']) assert.ok(!text.includes(hidden), text)
    await stage.isUnharmed(id)
  })

  test('screens that are cleared, filled and scrolled without end leave time for others', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    await using stream = await stage.stream(id)
    const work = `$'\\e[2J\\e[50L\\ec\\e#8\\e[50S\\e[?1049h\\e[?1049l'`
    await city.message(id, `yes ${work} | head -c ${MIB}; printf '${ESC}c'; ${SAY_MARK}`)
    await stream.until(() => stream.frames.some(({ data }) => data.includes(MARK)), 60_000)
    await stage.obeys(id)
    await stage.isUnharmed(id)
  })

  test('a line of 100 MB and bytes that are no text', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    await using stream = await stage.stream(id)
    const noise = `head -c ${MIB} /dev/urandom; printf '\\377\\376\\200\\303\\050\\360\\237\\222'`
    await city.message(
      id,
      `stty -echo; ${noise}; printf '\\033c'; head -c ${100 * MIB} /dev/zero | tr '\\0' y; echo; ${SAY_MARK}`,
    )
    await eventually(
      'it has said all',
      async () => {
        const { turns = [] } = await city.transcript(id, '&limit=3')
        return turns.at(-1)?.text.includes(MARK) ? true : undefined
      },
      60_000,
    )
    await stage.obeys(id)
    await city.transcript(id, '', 'raw')
    await city.transcript(id, '', 'structured')
    assert.ok(stream.frames.length > 0)
    await stage.isUnharmed(id)
  })

  test('output that imitates our frames is text', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    await using stream = await stage.stream(id)
    await using raw = await stage.stream(id, 'raw')
    writeFileSync(stage.file('forgeries'), `${FORGERIES.join('\n')}\n\n${MARK}\n`)
    await city.message(id, `cat ${stage.file('forgeries')}`)
    await city.said(id, MARK)
    await stage.obeys(id)
    for (const reader of [stream, raw]) {
      await reader.until(() => reader.frames.some(({ data }) => data.includes(MARK)))
      assert.ok(!reader.frames.some(({ event, id: cursor }) => event === 'ended' || cursor === '999999-999999'))
    }
    assert.equal((await city.pending(id))?.request_id, undefined)
    assert.equal((await city.get(id)).state, 'active')
    const { structured_messages: said = [] } = await city.transcript(id, '&limit=1000', 'structured')
    assert.ok(!said.some(({ delivery_id }) => delivery_id === 'forged'))
    await stage.isUnharmed(id)
  })

  test('children that ignore TERM and HUP go with their session', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    const stubborn = `trap '' TERM HUP INT; while :; do sleep 60; done`
    await city.message(
      id,
      `(${stubborn}) & setsid sh -c "${stubborn}" & env -i setsid sh -c "${stubborn}" & ${SAY_MARK}`,
    )
    await city.said(id, MARK)
    await city.message(id, `trap '' TERM HUP; exec sh -c "${stubborn}"`)
    await stage.isUnharmed(id)
  })

  test('a storm of forks ends with its session', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    // Each lives for a moment, in a kernel session of its own, and leaves another one behind.
    const storm = stage.file('storm')
    writeFileSync(storm, `sleep 0.05\nsetsid sh ${storm} &\n`)
    await city.message(
      id,
      `for i in 1 2 3; do setsid sh ${storm} & done; while :; do setsid sleep 600 & sleep 0.03; done`,
    )
    await eventually('it rages', () => (stage.processes.agents().length > 40 ? true : undefined))
    await stage.isUnharmed(id)
  })

  test('an agent that lets go of its terminal and lives on is known and can be closed', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    await city.message(id, `exec sh -c 'trap "" HUP TERM; exec <&- >&- 2>&-; while :; do sleep 1; done'`)
    const { delivery_id: asked } = await city.submit(id, SAY_MARK, 'follow_up')
    // Either it is known to live, and the message waits for it; or it was taken for dead and was ended.
    const { state, running, generation } = await city.until(id, 'is known', ({ liveness }) => liveness !== 'unknown')
    if (generation === 1 && state === 'active') assert.ok(running)
    else assert.ok(stage.processes.agents().every((one) => one.session_id !== id || one.generation > 1))
    assert.ok((await city.deliveries(id)).some((one) => one.id === asked))
    await stage.isUnharmed(id)
  })

  test('a flood of 300 MB keeps to its share of the disk', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.start()
    await using stream = await stage.stream(id)
    await city.message(id, `yes ${'x'.repeat(99)} | head -c 300000000; ${SAY_MARK}`)
    await eventually(
      'the flood is over',
      async () => {
        const { turns = [] } = await city.transcript(id, '&limit=2')
        return turns.at(-1)?.text.includes(MARK) ? true : undefined
      },
      150_000,
    )
    await stage.obeys(id)
    const bytes = sizeOf(join(city.dir, '.svc', 'runtime', 'sessions', id))
    assert.ok(bytes <= 264 * MIB, `its log takes ${bytes} bytes`)
    const { pagination } = await city.transcript(id)
    assert.ok((pagination?.dropped_bytes ?? 0) > 0, 'what is no longer kept is told')
    assert.ok(stream.frames.length > 0)
    await stage.isUnharmed(id)
  })

  test('an ACP agent that talks nonsense, floods and forges is heard out, and no more', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.startTalker()
    await using stream = await stage.stream(id, 'structured')
    for (const attack of [
      'nonsense',
      'bytes',
      `say ${MARK}`,
      `hex ${Buffer.from(FORGERIES.join('\n')).toString('hex')}`,
    ])
      await city.message(id, attack)
    await city.message(id, `hex ${Buffer.from('\u001b]0;title\u0007\u001b[2J').toString('hex')}`)
    await city.message(id, `flood ${20 * MIB}`)
    await city.message(id, 'say the end')
    await city.said(id, 'the end')
    const { structured_messages: said = [] } = await city.transcript(id, '&limit=1000', 'structured')
    assert.ok(!said.some(({ delivery_id }) => delivery_id === 'forged'))
    assert.ok(!stream.frames.some(({ event }) => event === 'ended'))
    assert.equal((await city.get(id)).generation, 1)
    await stage.isUnharmed(id)
  })

  test('an ACP agent that says 100 MB without a line break is ended, and its host tells why', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.startTalker()
    await city.message(id, `long ${100 * MIB}`)
    const ended = await city.until(id, 'has crashed', ({ last_exit }) => last_exit !== undefined)
    assert.equal(ended.last_exit?.reason, 'protocol_error')
    assert.equal(ended.last_exit?.classification, 'crash')
    await city.is(id, 'active')
    await stage.isUnharmed(id)
  })

  test('an ACP agent that closes its ears and mouth but lives does not live for long', async () => {
    await using stage = await HostileCity.open()
    const { city } = stage
    const id = await city.startTalker()
    await city.message(id, 'child')
    await city.message(id, 'hang-exit')
    await city.message(id, 'close')
    await stage.isUnharmed(id)
  })

  test('a program that ends at once is held after a few tries, and nothing of it runs', async () => {
    const table = (name: string, script: string) =>
      `[providers.${name}]\ncommand = "/bin/sh"\nargs = ["-c", ${JSON.stringify(script)}]\nprompt_mode = "omit"\n`
    await using stage = await HostileCity.open(table('failing', 'exit 3') + table('leaving', `(sleep 600 &); exit 0`))
    const { city } = stage
    const failing = await city.accept({ name: 'failing' })
    const leaving = await city.accept({ name: 'leaving' })
    for (const { requestId } of [failing, leaving])
      assert.notEqual((await outcome(city.api, requestId)).status, 'running')
    await city.until(failing.id, 'rests', ({ state }) => state === 'quarantined' || state === 'failed-create')
    await city.until(
      leaving.id,
      'rests',
      ({ state, running }) => !running && (state === 'asleep' || state === 'failed-create'),
    )
    await stage.isUnharmed(failing.id, leaving.id)
  })

  test('an agent that never gets ready is given up at its deadline', async () => {
    const silent = `[providers.silent]\nbase = "provider:talker"\nacp_args = ${JSON.stringify([ACP_AGENT, '--silent'])}\n`
    await using stage = await HostileCity.open(`[session.acp]\nhandshake_timeout = "1s"\n${silent}`)
    const { city } = stage
    const { id, requestId } = await city.accept({ name: 'silent', runtime: 'acp' })
    const request = asMap(await outcome(city.api, requestId))
    assert.equal(request['status'], 'failed', JSON.stringify(request))
    await city.until(id, 'was given up', ({ state, running }) => state === 'failed-create' && !running)
    await stage.isUnharmed(id)
  })
})

function sizeOf(directory: string): number {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}

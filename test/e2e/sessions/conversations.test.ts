// Talking to agents over HTTP: what they say, in every format and page; what they ask; what waits for its turn.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { StructuredMessage, TranscriptFormat } from '../../../src/contract/sessions/session-transcript.ts'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { outcome, type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'
import { openStream } from '../../support/sse.ts'
import { written } from '../../support/written.ts'

describe('conversations', { concurrency: 3 }, () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha')
  })
  after(() => running[Symbol.asyncDispose]())

  const respond = (id: string, body: object) => city.send('POST', `${sessionPath(id)}/respond`, body)
  const idle = (id: string) =>
    city.until(id, 'has nothing to do', ({ queued, activity }) => queued === 0 && activity === 'idle')

  // --- Transcripts -----------------------------------------------------------------------------------------------------

  /** Ids of all entries, read in pages of this size. */
  async function paged(id: string, format: TranscriptFormat, limit: number, way: 'before' | 'after') {
    const ids: string[] = []
    const first = way === 'before' ? '' : `&after=${await firstEntry(id, format)}`
    for (let query = first; ; ) {
      const page = await city.transcript(id, `&limit=${limit}${query}`, format)
      const entries = idsOf(page)
      assert.ok(entries.length <= limit)
      if (way === 'before') ids.unshift(...entries)
      else ids.push(...entries)
      const more = way === 'before' ? page.pagination?.has_older_messages : page.pagination?.has_newer_messages
      if (more !== true) return ids
      query = `&${way}=${way === 'before' ? page.pagination?.before : page.pagination?.after}`
    }
  }
  const firstEntry = async (id: string, format: TranscriptFormat): Promise<string> =>
    idsOf(await city.transcript(id, '&limit=1000', format))[0] ?? assert.fail('nothing was said')

  for (const format of ['raw', 'structured'] as const) {
    test(`${format}: a transcript reads the same in pages of any size, from either end`, async () => {
      const talker = await city.startTalker()
      for (const text of ['say one', 'tool hammer\nsay two', 'plan', 'stream 5', 'say three']) {
        await city.message(talker, text)
      }
      await idle(talker)
      const shell = await city.start()
      for (const n of [1, 2, 3, 4]) {
        await city.message(shell, `echo out-$((${n}+0))-`)
        await city.said(shell, `out-${n}-`)
      }
      for (const id of [talker, shell]) {
        const whole = idsOf(await city.transcript(id, '&limit=1000', format))
        assert.ok(whole.length > 5, whole.join())
        assert.equal(new Set(whole).size, whole.length)
        for (const limit of [1, 2, 3, 100]) {
          assert.deepEqual(await paged(id, format, limit, 'before'), whole, `back by ${limit}`)
          assert.deepEqual(await paged(id, format, limit, 'after'), whole.slice(1), `on by ${limit}`)
        }
        await city.forget(id)
      }
    })
  }

  test('what a shell was told stands before what it answered, and no escape sequence is in the text', async () => {
    const id = await city.start()
    await city.message(id, `printf '\\033[31mred-%s\\033[0m\\n' $((3*3))`)
    await city.said(id, 'red-9')
    await city.message(id, 'echo second-$((4*4))')
    await city.said(id, 'second-16')
    const { format, turns = [] } = await city.transcript(id, '&limit=1000')
    assert.equal(format, 'text')
    const asked = turns.filter(({ role }) => role === 'user')
    assert.deepEqual(
      asked.map(({ text }) => text),
      [`printf '\\033[31mred-%s\\033[0m\\n' $((3*3))`, 'echo second-$((4*4))'],
    )
    const place = (text: string) => turns.findIndex((turn) => turn.text.includes(text))
    assert.ok(turns.indexOf(asked[0] ?? assert.fail()) < place('red-9'))
    assert.ok(place('red-9') < turns.indexOf(asked[1] ?? assert.fail()))
    assert.ok(turns.indexOf(asked[1] ?? assert.fail()) < place('second-16'))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    for (const { role, text } of turns) if (role === 'output') assert.doesNotMatch(text, /\u001b/)
    const raw = JSON.stringify(await city.transcript(id, '&limit=1000', 'raw'))
    assert.ok(raw.includes('\\u001b[31mred-9'))
    await city.forget(id)
  })

  test('a command line stands once in the transcript of a shell, however the shell draws it', async () => {
    const id = await city.start()
    await using stream = await openStream(city.api, `${city.base}${sessionPath(id)}/stream`)
    const commands = ['for i in 1 2 3; do echo $((i+10))-out; done', 'for i in 4 5; do\n  echo $((i+10))-out\ndone']
    for (const [index, command] of commands.entries()) {
      await city.message(id, command)
      await city.said(id, `${[13, 15][index]}-out\n`)
    }
    const outputs = (turns: readonly { role: string; text: string }[]) =>
      turns.filter(({ role }) => role === 'output').map(({ text }) => text)
    const [, first = '', second = ''] = outputs(await city.turns(id))
    assert.ok(first.startsWith(`${commands[0]}\n11-out\n12-out\n13-out\n`), first)
    assert.equal(second.match(/for i in/g)?.length, 1, second)
    await stream.until(() => stream.frames.some(({ data }) => data.includes('15-out')))
    await city.forget(id)
  })

  test('what a program draws anew is there once, and what it draws on a screen of its own is there', async () => {
    const id = await city.start()
    const lines = ['step %s', 'bar', '> ']
    const drawn = `printf '${lines.join('\\n')}'`
    await city.message(id, `for n in 1 2 3; do ${drawn} $n; printf '\\e[2A\\r'; done; printf '\\e[2B\\n'`)
    await city.said(id, 'step 3')
    const screen = `printf '\\e[?1049h\\e[Hfirst row\\nsecond row\\e[40;1H(%s)' END`
    await city.message(id, `${screen}; read -r _`)
    const text = await city.said(id, '(END)')
    assert.match(text, /\nstep 3\nbar\n> ?\n/)
    assert.doesNotMatch(text, /step [12]/)
    assert.match(text, /\nfirst row\nsecond row\n\(END\)$/)
    await city.forget(id)
  })

  test('what an agent says, thinks and does has a structure, and a user message names its delivery', async () => {
    const id = await city.startTalker()
    await city.message(id, 'think hard\ntool hammer\nsay done')
    await idle(id)
    const { structured_messages: messages = [], history } = await city.transcript(
      id,
      '&limit=1000&include_thinking=true',
      'structured',
    )
    const [delivery] = await city.deliveries(id)
    const user = messages.find(({ role }) => role === 'user')
    assert.equal(user?.delivery_id, delivery?.id)
    const blocks = messages.flatMap((message) => message.blocks)
    assert.deepEqual(
      blocks.filter(({ type }) => type !== 'unknown').map(({ type }) => type),
      ['text', 'thinking', 'tool_use', 'tool_result', 'text'],
    )
    const use = blocks.find((block) => block.type === 'tool_use')
    const result = blocks.find((block) => block.type === 'tool_result')
    assert.equal(result?.tool_call_id, use?.id)
    assert.equal(result?.content, 'output of hammer')
    assert.equal(messages.at(-1)?.stop_reason, 'end_turn')
    assert.equal(history?.tail_state.activity, 'idle')
    assert.deepEqual(history.tail_state.open_tool_call_ids, [])
    const conversation = await city.turns(id)
    assert.deepEqual(
      conversation.map(({ role, text }) => `${role}: ${text}`),
      [
        'user: think hard\ntool hammer\nsay done',
        'assistant: [hammer]',
        'result: [result] output of hammer',
        'assistant: done',
      ],
    )
    await city.forget(id)
  })

  test('a transcript goes on over restarts, stays after the session is closed, and goes with its record', async () => {
    const id = await city.startTalker()
    await city.message(id, 'say one')
    await idle(id)
    await city.done('POST', `${sessionPath(id)}/kill`)
    await city.until(id, 'is back', ({ state, generation }) => state === 'active' && generation === 2)
    await city.message(id, 'say two')
    await idle(id)
    await city.close(id)
    const said = (await city.turns(id)).filter(({ role }) => role === 'assistant').map(({ text }) => text)
    assert.deepEqual(said, ['one', 'two'])
    await city.done('DELETE', sessionPath(id))
    assertProblem(await city.send('GET', `${sessionPath(id)}/transcript`), 'session-not-found')
  })

  test('a page is asked for by one place, and by one that is there', async () => {
    const id = await city.start()
    const ask = (query: string) => city.send('GET', `${sessionPath(id)}/transcript?${query}`)
    const both = assertProblem(await ask('before=1-0&after=1-0'), 'validation-failed')
    assert.equal(both.errors?.[0]?.location, 'query.after')
    for (const query of ['before=99-0', 'after=1-77777', 'before=nonsense', 'after=1-0.99'])
      assertProblem(await ask(query), 'transcript-cursor-invalidated')
    assertProblem(await ask('format=screen'), 'validation-failed')
    assertProblem(await ask('limit=1001'), 'validation-failed')
    await city.forget(id)
  })

  // --- Questions -------------------------------------------------------------------------------------------------------

  const ANSWERS = [
    [{ action: 'approve' }, 'once'],
    [{ action: 'allow' }, 'once', 'approve'],
    [{ action: 'approve_always' }, 'always'],
    [{ action: 'approve_accept_edits' }, 'always', 'approve_always'],
    [{ action: 'deny' }, 'no'],
    [{ action: 'option', option_id: 'never' }, 'never'],
    [{ action: 'option', option_id: 'Always allow' }, 'always'],
    [{ action: 'cancel' }, 'cancelled'],
  ] as const
  for (const [body, chosen, meant = body.action] of ANSWERS) {
    test(`an agent that asks is answered with ${JSON.stringify(body)}, and goes on`, async () => {
      const id = await city.startTalker()
      const asked = await city.ask(id)
      assert.equal(asked.prompt, 'Use knife')
      assert.deepEqual(asked.options, ['Allow', 'Always allow', 'Reject', 'Never'])
      assert.deepEqual(asked.option_ids, ['once', 'always', 'no', 'never'])
      const listed = await city.done('GET', '/pending')
      assert.ok(JSON.stringify(listed).includes(asked.request_id))
      const session = await city.get(id)
      assert.equal(session.pending, asked.request_id)
      const answered = await respond(id, { ...body, request_id: asked.request_id })
      assert.equal(answered.status, 200, answered.text)
      await city.said(id, `permission: knife ${chosen}`)
      assert.equal(await city.pending(id), undefined)
      assertProblem(await respond(id, body), 'no-pending')
      const events = await city.told('session.pending session.pending_cleared', 2, { subject: id })
      assert.deepEqual(
        events.map(({ type, payload }) => [type, payload.outcome, payload.action]),
        [
          ['session.pending', undefined, undefined],
          ['session.pending_cleared', body.action === 'cancel' ? 'dismissed' : 'answered', meant],
        ],
      )
      await city.forget(id)
    })
  }

  test('questions that come together are asked one after the other, each answered for itself', async () => {
    const id = await city.startTalker()
    const first = await city.ask(id, 'knife fork')
    assertProblem(await respond(id, { action: 'approve', request_id: 'another' }), 'invalid-interaction')
    assertProblem(await respond(id, { action: 'option', option_id: 'spoon' }), 'invalid-interaction')
    assertProblem(await respond(id, { action: 'option' }), 'validation-failed')
    assertProblem(await respond(id, { action: 'perhaps' }), 'validation-failed')
    await respond(id, { action: 'approve', request_id: first.request_id })
    const second = await eventually('the second question', async () => {
      const pending = await city.pending(id)
      return pending?.request_id === first.request_id ? undefined : pending
    })
    await respond(id, { action: 'deny', request_id: second.request_id })
    await city.said(id, 'permission: fork no')
    await city.said(id, 'permission: knife once')
    await city.forget(id)
  })

  test('a message to an agent that asks is refused before the 202; one that may wait is typed after the answer', async () => {
    const id = await city.startTalker()
    await city.ask(id)
    const queued = (await city.get(id)).queued
    for (const rest of ['messages', 'prompt', 'submit'])
      assertProblem(
        await city.send('POST', `${sessionPath(id)}/${rest}`, { message: 'say no' }),
        'pending-interaction',
        /^pending_interaction: /,
      )
    assert.equal((await city.get(id)).queued, queued)
    const accepted = await city.submit(id, 'say later', 'follow_up')
    const request = await outcome(city.api, accepted.request_id)
    assert.equal(request.status, 'succeeded')
    assert.equal((await city.deliveries(id)).at(-1)?.state, 'queued')
    await respond(id, { action: 'approve' })
    await idle(id)
    const said = (await city.turns(id)).filter(({ role }) => role === 'assistant').map(({ text }) => text)
    assert.deepEqual(said.slice(-2), ['permission: knife once', 'later'])
    await city.forget(id)
  })

  test('a message that interrupts dismisses the question and is typed at once', async () => {
    const id = await city.startTalker()
    const asked = await city.ask(id)
    const accepted = await city.submit(id, 'say instead', 'interrupt_now')
    assert.equal((await outcome(city.api, accepted.request_id)).status, 'succeeded')
    await city.said(id, 'instead')
    assert.equal(await city.pending(id), undefined)
    const [cleared] = await city.told('session.pending_cleared', 1, { subject: id })
    assert.equal(cleared?.payload.request_id, asked.request_id)
    assert.equal(cleared.payload.outcome, 'dismissed')
    await city.forget(id)
  })

  // --- Turns and the queue ---------------------------------------------------------------------------------------------

  test('an agent at work is not interrupted by a message that follows up, and is by one that asks for it', async () => {
    const id = await city.startTalker()
    await city.message(id, 'stall')
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    const follow = await city.submit(id, 'say after', 'follow_up')
    const request = await outcome(city.api, follow.request_id)
    assert.equal(request.status, 'succeeded')
    const [event] = (await city.events('request.result.session.submit', { subject: id })).slice(-1)
    assert.equal(event?.payload.queued, true)
    assert.equal(event.payload.intent, 'follow_up')
    assert.equal((await city.get(id)).activity, 'in-turn')
    const now = await city.submit(id, 'say now', 'interrupt_now')
    await city.delivered(id, now.delivery_id ?? '')
    await city.said(id, 'now')
    const typed = (await city.turns(id)).filter(({ role }) => role === 'user').map(({ text }) => text)
    assert.deepEqual(typed, ['stall', 'say now', 'say after'], 'what is urgent goes first')
    await city.forget(id)
  })

  test('a queued message that is cancelled is never typed', async () => {
    const id = await city.startTalker()
    await city.message(id, 'stall')
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    const one = await city.submit(id, 'say never', 'follow_up')
    const two = await city.submit(id, 'say always', 'follow_up')
    const cancelled = await city.done('DELETE', `${sessionPath(id)}/deliveries/${one.delivery_id}`)
    assert.equal(cancelled.state, 'cancelled')
    const stopped = await city.done('POST', `${sessionPath(id)}/stop`)
    assert.equal(stopped.interrupted, true)
    await city.delivered(id, two.delivery_id ?? '')
    await city.said(id, 'always')
    assert.ok(!(await city.text(id)).includes('never'))
    const states = (await city.events('session.delivery', { subject: id }))
      .filter(({ payload }) => payload.delivery_id === one.delivery_id)
      .map(({ payload }) => payload.state)
    assert.deepEqual(states, ['queued', 'cancelled'])
    await city.forget(id)
  })

  test('a stop that an agent does not heed says so, and kills it where that is asked for', async () => {
    const toml = readFileSync(join(city.dir, 'city.toml'), 'utf8')
    await city.configure('', { 'city.toml': toml.replace('[session]\n', '[session]\ninterrupt_timeout = "1s"\n') })
    const id = await city.startTalker()
    const { generation } = await city.get(id)
    await city.message(id, 'deaf')
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    const urgent = await city.submit(id, 'say urgent', 'interrupt_now')
    const refused = await city.send('POST', `${sessionPath(id)}/stop`)
    assertProblem(refused, 'gateway-timeout')
    assert.match(String(at(refused.body, 'detail')), /works on.*svcctl session stop .* --force/)
    const forced = await city.done('POST', `${sessionPath(id)}/stop?force=true`)
    assert.deepEqual([forced.interrupted, forced.ended, forced.forced], [true, true, true])
    await city.until(id, 'is back', (one) => one.generation === generation + 1 && one.running)
    await city.delivered(id, urgent.delivery_id ?? '')
    assert.match(await city.said(id, 'urgent'), /urgent/)
    const [delivery] = await city.deliveries(id)
    assert.equal(delivery?.acknowledged_by, 'protocol')
    await city.forget(id)
    await city.configure()
  })

  test('a stop ends what a shell is doing, and the shell stays', async () => {
    const id = await city.start()
    const { pid } = await city.get(id)
    await city.message(id, "sh -c 'echo on > begun; exec sleep 1000'")
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    // bash loses an interrupt that comes while it starts a program.
    await written(join(city.dir, 'begun'))
    const stopped = await city.done('POST', `${sessionPath(id)}/stop`)
    assert.equal(stopped.interrupted, true)
    assert.equal(at(stopped, 'session', 'state'), 'active')
    await city.message(id, 'echo still-$((1+1))')
    await city.said(id, 'still-2')
    assert.equal((await idle(id)).pid, pid)
    const again = await city.done('POST', `${sessionPath(id)}/stop`)
    assert.equal(again.interrupted, false)
    const [call] = await eventually('the call is told', async () => {
      const calls = await city.events('worker.operation', { subject: id })
      const found = calls.filter(({ payload }) => payload.operation === 'interrupt')
      return found.length === 0 ? undefined : found
    })
    assert.equal(call?.payload.result, 'succeeded')
    await city.forget(id)
  })

  test('messages that come at once are all typed once, in the order of acceptance', async () => {
    const id = await city.startTalker()
    const sent = await Promise.all(
      Array.from({ length: 30 }, (_, n) => city.done('POST', `${sessionPath(id)}/messages`, { message: `say m${n}` })),
    )
    for (const { request_id } of sent) await outcome(city.api, String(request_id))
    await eventually('all are typed', async () => ((await city.get(id)).queued === 0 ? true : undefined))
    await idle(id)
    const order = (await city.deliveries(id)).map(({ text }) => text)
    const typed = (await city.turns(id)).filter(({ role }) => role === 'user').map(({ text }) => text)
    assert.deepEqual(typed, order)
    assert.equal(new Set(typed).size, 30)
    await city.forget(id)
  })

  test('a message that is sent again with its key is typed once', async () => {
    const id = await city.startTalker()
    const send = () =>
      city.send('POST', `${sessionPath(id)}/messages`, { message: 'say once' }, { 'idempotency-key': `key-${id}` })
    const first = await send()
    const again = await send()
    assert.equal(again.status, 202)
    assert.deepEqual(again.body, first.body)
    await city.said(id, 'once')
    await idle(id)
    assert.equal((await city.deliveries(id)).length, 1)
    await city.forget(id)
  })

  test('control characters do not reach a terminal, and everything else does', async () => {
    const id = await city.start()
    const keys = '\u001b[201~\u0003'
    await city.message(id, `echo 'é😀${keys}$x'`)
    await city.said(id, 'é😀[201~$x')
    assert.equal((await city.get(id)).state, 'active')
    await city.forget(id)
  })

  test('a message of a creation is the first that a program gets', async () => {
    const { id, requestId } = await city.accept({ name: 'talker', runtime: 'acp', message: 'say hello' })
    await city.api.post(`${city.base}${sessionPath(id)}/messages`, { message: 'say next' })
    await outcome(city.api, requestId)
    await idle(id)
    const said = (await city.turns(id)).filter(({ role }) => role === 'assistant').map(({ text }) => text)
    assert.deepEqual(said, ['hello', 'next'])
    assert.equal((await city.get(id)).title, 'say hello')
    await city.forget(id)
  })

  test('a message of 1 MiB is taken, whatever it is made of; a larger one is refused, and one of nothing but blanks', async () => {
    const id = await city.startTalker()
    const send = (message: string) => city.send('POST', `${sessionPath(id)}/messages`, { message })
    const whole = await send(`say ${'\n'.repeat(1_048_571)}x`)
    assert.equal(whole.status, 202, whole.text)
    await city.delivered(id, String(at(whole.body, 'delivery_id')))
    // Larger in bytes than in characters.
    const large = assertProblem(await send('é'.repeat(530_000)), 'validation-failed')
    assert.equal(large.errors?.[0]?.location, 'body.message')
    assertProblem(await send(' \n\t'), 'validation-failed')
    await city.forget(id)
  })
})

function idsOf(page: {
  readonly messages?: readonly { readonly id: string }[]
  readonly structured_messages?: readonly StructuredMessage[]
}): readonly string[] {
  return [...new Set((page.messages ?? page.structured_messages ?? []).map(({ id }) => id))]
}

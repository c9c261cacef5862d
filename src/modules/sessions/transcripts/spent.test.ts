import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../../test/support/random.ts'
import { usageLogOf } from '../../../harnesses/all.ts'
import type { ByteLog } from './entries.ts'
import { acpReader, harnessReader, type Place, readSpent, type SpentReader, type SpentTurn } from './spent.ts'

/** A log that grows. */
class Log implements ByteLog {
  #bytes = Buffer.alloc(0)
  say(...lines: readonly object[]): this {
    return this.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  }
  write(text: string): this {
    this.#bytes = Buffer.concat([this.#bytes, Buffer.from(text)])
    return this
  }
  startOffset = () => Promise.resolve(0)
  endOffset = () => Promise.resolve(this.#bytes.length)
  read = (offset: number, most: number) =>
    Promise.resolve({ offset, bytes: this.#bytes.subarray(offset, offset + most) })
}

/** Reads on from where it was, as often as there is something. */
async function readAll(log: ByteLog, reader: SpentReader, place?: Place, settled = false) {
  const turns: SpentTurn[] = []
  for (let at = place; ; ) {
    const found = await readSpent(log, reader, at, settled)
    if (found === undefined) return { turns, place: at }
    turns.push(...found.turns)
    at = found.position
    if (!found.more) return { turns, place: at, open: found.open, limit: found.limit }
  }
}

const readerOf = (harness: string, since = 0): SpentReader => {
  const rules = usageLogOf(harness)
  assert.ok(rules !== undefined)
  return harnessReader(rules, since, '1')
}
const claudeReader = readerOf('claude')
const answer = (id: string, output: number) => ({
  type: 'assistant',
  timestamp: '2026-11-22T10:00:00Z',
  message: { id, model: 'm', usage: { input_tokens: 1, output_tokens: output } },
})
const shown = (turns: readonly SpentTurn[]) => turns.map(({ id, output }) => `${id} ${output}`)

test('claude: the last line of an answer counts, and no line twice', async () => {
  const log = new Log().say({ type: 'user' }, answer('a', 1), answer('a', 8), { type: 'user' }, answer('b', 2))
  const first = await readAll(log, claudeReader)
  assert.deepEqual([shown(first.turns), first.open], [['a 8'], true])
  log.say(answer('b', 30))
  const second = await readAll(log, claudeReader, first.place)
  assert.deepEqual([shown(second.turns), second.open], [[], true])
  const third = await readAll(log, claudeReader, second.place, true)
  assert.deepEqual([shown(third.turns), third.open], [['b 30'], false])
  assert.deepEqual(await readAll(log, claudeReader, third.place, true), { turns: [], place: third.place })
})

test('half a line waits for its other half', async () => {
  const line = JSON.stringify(answer('a', 5))
  const log = new Log().write(line.slice(0, 40))
  const first = await readAll(log, claudeReader, undefined, true)
  assert.deepEqual(first.turns, [])
  log.write(`${line.slice(40)}\n`)
  assert.deepEqual(shown((await readAll(log, claudeReader, first.place, true)).turns), ['a 5'])
})

test('a log of many windows, with lines that are too long, is read to its end', async () => {
  const log = new Log()
  for (let n = 0; n < 2_000; n++) log.say(answer(`m${n}`, n), { type: 'user', text: 'x'.repeat(900) })
  log.write(`${'y'.repeat(40 * 1024 * 1024)}\n`).say(answer('last', 7))
  const { turns } = await readAll(log, claudeReader, undefined, true)
  assert.equal(turns.length, 2_001)
  assert.equal(new Set(turns.map(({ id }) => id)).size, 2_001)
})

test('what was said before the session began is not its own, and an error of the provider is a limit', async () => {
  const since = Date.parse('2026-11-22T12:00:00Z')
  const words = "You've hit your limit · resets 3pm"
  const log = new Log().say(
    answer('old', 1),
    {
      ...answer('new', 2),
      timestamp: '2026-11-22T12:00:01Z',
    },
    { type: 'assistant', isApiErrorMessage: true, message: { content: [{ type: 'text', text: words }] } },
  )
  const { turns, limit } = await readAll(log, readerOf('claude', since), undefined, true)
  assert.deepEqual([shown(turns), limit?.message], [['new 2'], words])
})

test('codex: counts that are told again count once; what came from a cache is apart', async () => {
  const count = (total: number, input: number, cached: number) => ({
    timestamp: '2026-11-22T10:00:00Z',
    type: 'event_msg',
    payload: {
      type: 'token_count',
      info: {
        total_token_usage: { total_tokens: total },
        last_token_usage: { input_tokens: input, cached_input_tokens: cached, output_tokens: 4 },
      },
    },
  })
  const log = new Log().say(
    { type: 'turn_context', payload: { model: 'gpt-x' } },
    count(100, 90, 60),
    count(100, 90, 60),
    count(150, 40, 0),
  )
  const { turns } = await readAll(log, readerOf('codex'), undefined, true)
  assert.deepEqual(
    turns.map(({ id, model, input, output, cache_read: cached }) => [id, model, input, output, cached]),
    [
      ['100', 'gpt-x', 30, 4, 60],
      ['150', 'gpt-x', 40, 4, 0],
    ],
  )
})

test('aider: each answer is a turn; who made it is not said where it hides that, nor the cost where it does not know', async () => {
  const send = (main_model: string, cost: number) => ({
    event: 'message_send',
    properties: { main_model, prompt_tokens: 2_000, completion_tokens: 30, total_tokens: 2_030, cost, total_cost: 9 },
    time: 1_795_341_600,
  })
  const log = new Log().say(
    { event: 'message_send_starting', properties: {}, time: 1_795_341_599 },
    send('gpt-5', 0.0004),
    send('openai/REDACTED', 0),
    send('None', 0),
  )
  const { turns, open } = await readAll(log, readerOf('aider'))
  assert.deepEqual(
    turns.map(({ model, input, output, cost_usd: cost }) => [model, input, output, cost]),
    [
      ['gpt-5', 2_000, 30, '0.0004'],
      [undefined, 2_000, 30, undefined],
      [undefined, 2_000, 30, undefined],
    ],
  )
  assert.equal(new Set(turns.map(({ id }) => id)).size, 3)
  assert.deepEqual([turns[0]?.at, open], [Date.parse('2026-11-22T10:00:00Z'), false])
})

const ended = (usage: object, more = {}) => ({ svc: { stop_reason: 'end_turn', usage, ...more } })
const said = (id: string) => ({ svc: { prompt: 'go', delivery_id: id } })

test('acp: the total says whether the cache and the thoughts are counted in it', async () => {
  const log = new Log().say(
    said('d1'),
    ended({ inputTokens: 10, outputTokens: 5, cachedReadTokens: 90, totalTokens: 105 }),
    said('d2'),
    ended({ inputTokens: 100, outputTokens: 5, cachedReadTokens: 90, totalTokens: 105 }),
    said('d3'),
    ended({ inputTokens: 10, outputTokens: 5, thoughtTokens: 3, totalTokens: 18 }),
    said('d4'),
    { svc: { stop_reason: 'cancelled' } },
    said('d5'),
    { svc: { stop_reason: 'error', message: 'Too many requests. Try again in 5s.' } },
  )
  const found = await readSpent(log, acpReader('1'), undefined, false)
  assert.deepEqual(
    found?.turns.map(({ id, input, output, cache_read: cached }) => [id, input, output, cached]),
    [
      ['d1', 10, 5, 90],
      ['d2', 10, 5, 90],
      ['d3', 10, 8, undefined],
    ],
  )
  assert.deepEqual([found?.untold, found?.limit?.source], [['d4', 'd5'], 'protocol'])
})

test('qwen: every answer of a model counts as it is told to its chat, what came from a cache apart', async () => {
  const at = '2026-11-22T21:38:18.867Z'
  const uiEvent = { 'event.name': 'qwen-code.api_response', response_id: 'chatcmpl-1', model: 'scripted' }
  const counts = {
    input_token_count: 11,
    output_token_count: 7,
    cached_content_token_count: 4,
    thoughts_token_count: 3,
  }
  const line = { uuid: 'u1', sessionId: 's', timestamp: at, type: 'system', subtype: 'ui_telemetry' }
  const log = new Log().say(
    {
      uuid: 'u0',
      timestamp: at,
      type: 'user',
      message: { role: 'user', parts: [{ text: '"qwen-code.api_response"' }] },
    },
    { ...line, systemPayload: { uiEvent: { ...uiEvent, ...counts } } },
    { ...line, uuid: 'u2', systemPayload: { uiEvent: { ...uiEvent, ...counts } } },
    { uuid: 'u3', timestamp: at, type: 'assistant', usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7 } },
  )
  const { turns } = await readAll(log, readerOf('qwen'), undefined, true)
  assert.deepEqual(
    turns.map(({ id, model, input, output, cache_read: cached }) => [id, model, input, output, cached]),
    [
      ['u1', 'scripted', 7, 7, 4],
      ['u2', 'scripted', 7, 7, 4],
    ],
  )
})

test('gemini: an answer that is told again with its tools counts once; thoughts and tools are counted', async () => {
  const tokens = { input: 11, output: 7, cached: 5, thoughts: 2, tool: 3, total: 23 }
  const said = { timestamp: '2026-11-22T21:28:05.428Z', type: 'gemini', content: '', model: 'gemini-2.5-flash' }
  const log = new Log().say(
    { sessionId: 'f1bd3801-c7a3-40f4-9496-bf178d0a1764', kind: 'main' },
    { $set: { messages: [{ ...said, id: 'm0', tokens }] } },
    { ...said, id: 'm1', tokens },
    { $set: { lastUpdated: said.timestamp } },
    { ...said, id: 'm2', tokens },
    { ...said, id: 'm2', tokens, toolCalls: [{ status: 'cancelled' }] },
    { id: 'm3', timestamp: said.timestamp, type: 'info', content: 'Request cancelled.' },
  )
  const { turns } = await readAll(log, readerOf('gemini'), undefined, true)
  assert.deepEqual(
    turns.map(({ id, model, input, output, cache_read: cached }) => [id, model, input, output, cached]),
    [
      ['m1', 'gemini-2.5-flash', 9, 9, 5],
      ['m2', 'gemini-2.5-flash', 9, 9, 5],
    ],
  )
})

const costs = (amount: number) => ({
  method: 'session/update',
  params: { update: { sessionUpdate: 'usage_update', used: 1, size: 9, cost: { amount, currency: 'USD' } } },
})

test('acp: a turn that goes on counts as far as its cost is known, and one that is cut as well', async () => {
  const log = new Log().say(said('d1'), costs(0.5), costs(0.75))
  const shownAs = (turns: readonly SpentTurn[]) => turns.map(({ id, cost_usd: cost, state }) => [id, cost, state])
  const first = await readAll(log, acpReader('1'))
  assert.deepEqual(shownAs(first.turns), [['d1', '0.75', 'open']])
  log.say(costs(1), { svc: { stop_reason: 'exited' } })
  const second = await readAll(log, acpReader('1'), first.place)
  assert.deepEqual(shownAs(second.turns), [['d1', '1.00', 'cut']])
})

test('acp: wherever a run is killed, no less is counted than the agent has reported', async () => {
  const random = seededRandom()
  for (let run = 0; run < 50; run++) {
    const log = new Log()
    const known = new Map<string, number>()
    let place: Place | undefined
    let reported = 0
    for (let step = 0, turn = 0; step < random.between(1, 40); step++) {
      if (step === 0 || random.chance(0.2)) {
        if (step > 0) log.say({ svc: { stop_reason: 'end_turn' } })
        log.say(said(`d${++turn}`))
      }
      if (random.chance(0.7)) log.say(costs(++reported))
      if (!random.chance(0.3)) continue
      place = await keep()
    }
    place = await keep()
    const all = [...known.values()].reduce((sum, cost) => sum + cost, 0)
    assert.equal(all, reported, `SVC_SEED=${random.seed} run ${run}`)

    async function keep() {
      const found = await readAll(log, acpReader('1'), place)
      for (const { id, cost_usd: cost } of found.turns) known.set(id, Math.max(known.get(id) ?? 0, Number(cost ?? 0)))
      return found.place
    }
  }
})

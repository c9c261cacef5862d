// Chaos at a real callback, once for real: refusals, pauses, cuts and silence, with a supervisor that is killed meanwhile.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { registerAdapter } from '../../src/contract/messaging/adapters.ts'
import { verify } from '../../src/messaging/signature.ts'
import { asMap, at } from '../support/document.ts'
import { type Api, eventually } from '../support/http.ts'
import { cityIs, newCity, run, runAgain } from '../support/running.ts'

const CITY = '/v0/city/alpha'

interface Heard {
  readonly id: string
  readonly attempt: number
  readonly room: string
  readonly text: string
}

/** A callback that behaves in each room as the room is called. */
class Callback {
  readonly heard: Heard[] = []
  /** Answers that nobody has got. */
  readonly silent: ServerResponse[] = []
  url = ''
  secret = ''
  forged = 0

  async listen(t: TestContext): Promise<void> {
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const bytes = Buffer.concat(chunks)
      const header = (name: string) => (typeof request.headers[name] === 'string' ? request.headers[name] : undefined)
      if (!verify([this.secret], header, bytes, Date.now()).valid || request.url !== '/hook/publish') this.forged++
      this.#answer(JSON.parse(bytes.toString()), response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    const address = server.address()
    assert.ok(typeof address === 'object' && address !== null)
    this.url = `http://127.0.0.1:${address.port}/hook`
  }

  #answer(sent: unknown, response: ServerResponse): void {
    const said = asMap(sent)
    const heard = {
      id: String(said['delivery_id']),
      attempt: Number(said['attempt']),
      room: String(at(said, 'conversation', 'conversation_id')),
      text: String(said['text']),
    }
    this.heard.push(heard)
    const first = heard.attempt === 1
    const taken = () =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ delivered: true, message_id: `m-${heard.id}` }))
    if (heard.room === '500' && first) response.writeHead(500).end('oops')
    else if (heard.room === '401' && first) response.writeHead(401).end()
    else if (heard.room === '422') response.writeHead(422).end('no such words')
    else if (heard.room === 'cut' && first) response.destroy()
    else if (heard.room === 'half' && first) {
      response.writeHead(200, { 'content-length': '50' }).write('{"delivered":')
      setImmediate(() => response.destroy())
    } else if (heard.room === 'silent' && heard.text === 'first' && first) this.silent.push(response)
    else taken()
  }

  of(room: string): readonly Heard[] {
    return this.heard.filter((one) => one.room === room)
  }
}

async function transcriptOf(api: Api, room: string): Promise<string> {
  const conversation = { provider: 'chat', account_id: 'a', conversation_id: room, kind: 'room' }
  const { body } = await api.post(`${CITY}/transcripts`, { conversation })
  return `${CITY}/transcripts/${String(at(body, 'transcript_id'))}/entries`
}

/** Says both, and does not wait for what becomes of them. */
async function say(api: Api, room: string): Promise<void> {
  const path = `${await transcriptOf(api, room)}?wait=0s`
  for (const text of ['first', 'second']) {
    const answer = await api.post(path, { text })
    assert.equal(answer.status, 200, answer.text)
  }
}

const itemsOf = (body: unknown): readonly unknown[] => {
  const items = at(body, 'items')
  return Array.isArray(items) ? items : assert.fail('no items')
}

/** Of the entries of a room, what they say and how they stand. */
async function entriesOf(api: Api, room: string): Promise<readonly string[]> {
  const { body } = await api.get(await transcriptOf(api, room))
  return itemsOf(body).map((entry) => `${String(at(entry, 'text'))} ${String(at(entry, 'delivery_status'))}`)
}

const settles = (api: Api, room: string, wanted: readonly string[]) =>
  eventually(`${room}: ${wanted.join(', ')}`, async () => {
    const entries = await entriesOf(api, room)
    return JSON.stringify(entries) === JSON.stringify(wanted) ? entries : undefined
  })

test('whatever a callback does, and whoever is killed meanwhile, all that can be said is said once and in order', async (t) => {
  const callback = new Callback()
  await callback.listen(t)
  await using first = await run()
  await newCity(first.api, first.work, 'alpha')
  const body = { provider: 'chat', account_id: 'a', callback_url: callback.url, generate_secret: true }
  callback.secret = (await first.api.ask(registerAdapter, `${CITY}/adapters`, { body })).secret ?? ''

  const rooms = ['well', '500', '401', '422', 'cut', 'half', 'silent']
  await Promise.all(rooms.map((room) => say(first.api, room)))
  await settles(first.api, '422', ['first dead', 'second dead'])
  await settles(first.api, 'well', ['first delivered', 'second delivered'])
  await eventually('somebody is silent', () => callback.silent[0])
  await first.server.kill('SIGKILL')

  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  const delivered = ['first delivered', 'second delivered']
  for (const room of rooms) await settles(second.api, room, room === '422' ? ['first dead', 'second dead'] : delivered)

  assert.equal(callback.forged, 0, 'each is signed')
  for (const room of rooms) {
    const heard = callback.of(room)
    assert.equal(new Set(heard.map(({ id }) => id)).size, 2, `${room}: the same message is the same delivery`)
    const texts = heard.map(({ text }) => text)
    assert.deepEqual(texts, texts.toSorted(), `${room}: in order`)
    const attempts = heard.map(({ text, attempt }) => `${text} ${attempt}`)
    assert.equal(new Set(attempts).size, attempts.length, `${room}: each attempt is one call`)
  }
  assert.deepEqual(
    callback.of('silent').map(({ text, attempt }) => `${text} ${attempt}`),
    ['first 1', 'first 2', 'second 1'],
    'what nobody answered is said again',
  )
  const dead = await second.api.get(`${CITY}/adapters/chat/a/deliveries?status=dead`)
  assert.deepEqual(
    itemsOf(dead.body).map((one) => [at(one, 'attempts'), at(one, 'failure_kind')]),
    [
      [1, 'permanent'],
      [1, 'permanent'],
    ],
  )
  assert.match(dead.text, /no such words/)
})

/** `kill -9` under what is said in chats: a message is there once or not at all, and a file whole or not at all. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Chat } from '../support/chat.ts'
import { at } from '../support/document.ts'
import { type Answer, Api } from '../support/http.ts'
import { cityIs, newCity, tokenOf } from '../support/running.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

/** After so many answers of a wave the supervisor dies; the last wave is left alone. */
const DEATHS = [0, 1, 12, 30]
const SENDS = 200

/** A supervisor that is killed and started again, with a chat of each life. */
class Lives implements AsyncDisposable {
  readonly home: string
  readonly dir: string
  chat: Chat
  #server: RunningSupervisor

  private constructor(server: RunningSupervisor, chat: Chat, dir: string) {
    this.#server = server
    this.home = server.home
    this.chat = chat
    this.dir = dir
  }

  static async begin(): Promise<Lives> {
    const server = await startSupervisor()
    const chat = new Chat(new Api(server.url, tokenOf(server.home)))
    const dir = await newCity(chat.api, server.work, 'alpha')
    await chat.register()
    return new Lives(server, chat, dir)
  }

  /** All at once; dies when so many of them are answered. Undefined where one was not. */
  async wave(sends: readonly (() => Promise<Answer>)[], dieAfter: number | undefined) {
    let answered = 0
    const enough = Promise.withResolvers<void>()
    if (dieAfter === 0) setImmediate(enough.resolve)
    const all = sends.map(async (send) => {
      const answer = await send().catch(() => undefined)
      answered++
      if (answered === dieAfter) enough.resolve()
      return answer
    })
    if (dieAfter !== undefined) {
      await enough.promise
      await this.#again()
    }
    return Promise.all(all)
  }

  async #again(): Promise<void> {
    await this.#server.kill('SIGKILL')
    this.chat.api.close()
    this.#server = await startSupervisor({ home: this.home })
    this.chat = new Chat(new Api(this.#server.url, tokenOf(this.home)))
    await cityIs(this.chat.api, 'alpha', 'running')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.chat.api.close()
    await this.#server[Symbol.asyncDispose]()
  }
}

test('what is sent 200 times under one key across deaths is one message, and so is what others say meanwhile', {
  timeout: 120_000,
}, async () => {
  await using lives = await Lives.begin()
  const id = await lives.chat.room('#once')
  const answers: (Answer | undefined)[] = []
  const waves = [...DEATHS, undefined]
  for (const [n, dieAfter] of waves.entries()) {
    const { chat } = lives
    const say = (text: string, key: string) => () => chat.publish(id, { text }, { headers: { 'idempotency-key': key } })
    const once = Array.from({ length: SENDS / waves.length }, () => say('once', 'k'))
    // Each of these is asked for in two lives.
    const others = [n - 1, n].flatMap((wave) => [0, 1, 2].map((m) => say(`${wave} ${m}`, `k ${wave} ${m}`)))
    answers.push(...(await lives.wave([...once, ...others], dieAfter)))
  }
  const ok = answers.filter((answer) => answer?.status === 200)
  for (const answer of answers)
    if (answer !== undefined && answer.status !== 200)
      assert.ok(['idempotency-in-flight', 'city-not-found', 'unavailable'].includes(String(at(answer.body, 'code'))))
  const entries = await lives.chat.entries(id)
  assert.deepEqual(
    entries.map(({ sequence }) => sequence),
    entries.map((_, n) => n + 1),
  )
  const texts = entries.map(({ text }) => text)
  assert.equal(new Set(texts).size, texts.length, 'nothing is there twice')
  assert.ok(texts.includes('once'))
  const places = new Map(entries.map(({ sequence, text }) => [text, sequence]))
  for (const answer of ok)
    assert.equal(
      at(answer?.body, 'transcript_entry', 'sequence'),
      places.get(String(at(answer?.body, 'transcript_entry', 'text'))),
      'what was answered is there',
    )
  const { total } = await lives.chat.done('GET', '/events?type=extmsg.outbound&limit=1')
  assert.equal(total, texts.length, 'each was delivered once')
})

test('a file whose upload was answered is there whole, and of others nothing is left', {
  timeout: 120_000,
}, async () => {
  await using lives = await Lives.begin()
  const kept = new Map<string, Buffer>()
  for (const dieAfter of [0, 1, 3, undefined]) {
    const { chat } = lives
    const files = Array.from({ length: 6 }, () => randomBytes(3 * 1024 * 1024))
    const answers = await lives.wave(
      files.map((bytes, n) => () => chat.upload(bytes, `file ${n}`)),
      dieAfter,
    )
    for (const [n, answer] of answers.entries()) {
      const bytes = files[n]
      if (answer?.status === 201 && bytes !== undefined) kept.set(String(at(answer.body, 'id')), bytes)
    }
  }
  assert.ok(kept.size >= 6)
  for (const [id, bytes] of kept) {
    const got = await lives.chat.send('GET', `/transcripts/attachments/${id}`)
    assert.ok(got.bytes.equals(bytes))
  }
  const root = join(lives.dir, '.svc', 'attachments')
  for (const directory of readdirSync(root)) {
    for (const file of readdirSync(join(root, directory))) {
      assert.notEqual(directory, 'incoming', 'halves of before are gone')
      const bytes = readFileSync(join(root, directory, file))
      assert.equal(createHash('sha256').update(bytes).digest('hex'), file)
    }
  }
})

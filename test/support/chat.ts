/** A chat for tests: a conversation of an adapter that takes what is said at once. */
import assert from 'node:assert/strict'
import { asMap, at } from './document.ts'
import type { Answer, Api, CallOptions } from './http.ts'

const ACCOUNT = { provider: 'streamed', account_id: 'tests' }

export class Chat {
  readonly api: Api
  readonly base: string

  constructor(api: Api, city = 'alpha') {
    this.api = api
    this.base = `/v0/city/${city}`
  }

  /** Through another client. */
  as(api: Api): Chat {
    return new Chat(api, this.base.slice('/v0/city/'.length))
  }

  send = (method: string, path: string, body?: unknown, rest: CallOptions = {}): Promise<Answer> =>
    this.api.call(method, `${this.base}${path}`, body === undefined ? rest : { ...rest, body })

  /** Sends what must succeed; the body of the answer. */
  async done(method: string, path: string, body?: unknown, rest?: CallOptions) {
    const answer = await this.send(method, path, body, rest)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    return asMap(answer.body)
  }

  register = () => this.done('POST', '/adapters', { ...ACCOUNT, transport: 'stream' })

  conversation = (name: string) => ({ ...ACCOUNT, conversation_id: name, kind: 'room' })

  /** Id of the transcript of a conversation, which is made. */
  async room(name: string): Promise<string> {
    return String((await this.done('POST', '/transcripts', { conversation: this.conversation(name) })).transcript_id)
  }

  publish = (id: string, body: object, rest?: CallOptions): Promise<Answer> =>
    this.send('POST', `/transcripts/${id}/entries`, body, rest)

  /** All that was said, ascending. */
  async entries(id: string): Promise<readonly { readonly sequence: number; readonly text: string }[]> {
    const all: { sequence: number; text: string }[] = []
    let cursor = ''
    do {
      const page = await this.done('GET', `/transcripts/${id}/entries?limit=1000${cursor}`)
      assert.ok(Array.isArray(page.items))
      all.push(
        ...page.items.map((item) => ({ sequence: Number(at(item, 'sequence')), text: String(at(item, 'text')) })),
      )
      cursor = page.next_cursor === undefined ? '' : `&cursor=${encodeURIComponent(String(page.next_cursor))}`
    } while (cursor !== '')
    return all
  }

  async upload(bytes: Buffer, filename: string, type = 'application/octet-stream'): Promise<Answer> {
    const path = `${this.base}/transcripts/attachments?filename=${encodeURIComponent(filename)}`
    return this.api.call('POST', path, { bytes, headers: { 'content-type': type } })
  }
}

/** A running city for tests of its work, over HTTP. */
import assert from 'node:assert/strict'
import { type Bead, getBead } from '../../src/contract/beads.ts'
import { asMap, at } from './document.ts'
import type { Answer, Api, CallOptions } from './http.ts'

export interface WorkEvent {
  readonly seq: number
  readonly type: string
  readonly actor: string
  readonly subject: string
  readonly payload: { readonly [key: string]: unknown }
}

export class BeadCity {
  readonly api: Api
  readonly base: string

  constructor(api: Api, name = 'alpha') {
    this.api = api
    this.base = `/v0/city/${name}`
  }

  send = (method: string, path: string, body?: unknown, headers: CallOptions['headers'] = {}): Promise<Answer> =>
    this.api.call(method, `${this.base}/beads${path}`, { headers, ...(body === undefined ? {} : { body }) })

  /** Sends what must succeed; the body of the answer. */
  async done(method: string, path: string, body?: unknown): Promise<{ readonly [key: string]: unknown }> {
    const answer = await this.send(method, path, body)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
    return asMap(answer.body)
  }

  /** Creates a bead and answers with its id. */
  async bead(title: string, more: object = {}): Promise<string> {
    return String((await this.done('POST', '', { title, ...more })).id)
  }

  get = (id: string): Promise<Bead> => this.api.ask(getBead, `${this.base}/beads/${id}`)

  async head(): Promise<number> {
    return Number((await this.api.get(`${this.base}/events?limit=1`)).headers['x-svc-index'])
  }

  /** What happened to beads after `seq`, oldest first. */
  async events(after = 0): Promise<readonly WorkEvent[]> {
    const { body } = await this.api.get(`${this.base}/events?type=bead.*&order=asc&limit=1000&after_seq=${after}`)
    const items = at(body, 'items')
    assert.ok(Array.isArray(items))
    return items.map((item) => ({
      seq: Number(at(item, 'seq')),
      type: String(at(item, 'type')),
      actor: String(at(item, 'actor')),
      subject: String(at(item, 'subject')),
      payload: asMap(at(item, 'payload')),
    }))
  }
}

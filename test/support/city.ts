/** A running city for tests: over HTTP, and by its files. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { asMap } from './document.ts'
import type { Answer, Api, CallOptions } from './http.ts'

export class City {
  readonly api: Api
  readonly name: string
  readonly dir: string
  readonly base: string

  constructor(api: Api, name: string, dir: string) {
    this.api = api
    this.name = name
    this.dir = dir
    this.base = `/v0/city/${name}`
  }

  send = (method: string, path: string, body?: unknown, headers: CallOptions['headers'] = {}): Promise<Answer> =>
    this.api.call(method, `${this.base}${path}`, { headers, ...(body === undefined ? {} : { body }) })

  /** Sends what must succeed; the body of the answer. */
  async done(method: string, path: string, body?: unknown): Promise<{ readonly [key: string]: unknown }> {
    const answer = await this.send(method, path, body)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
    return asMap(answer.body)
  }

  /** As a person saves a file. */
  write(path: string, content: string | Uint8Array, mode = 0o644): void {
    mkdirSync(dirname(join(this.dir, path)), { recursive: true })
    writeFileSync(join(this.dir, path), content, { mode })
  }
  read = (path: string): string => readFileSync(join(this.dir, path), 'utf8')
  remove = (path: string): void => rmSync(join(this.dir, path), { recursive: true, force: true })
}

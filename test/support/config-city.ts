/** A running city for tests of its configuration: its files by hand and over HTTP, and what its log says about them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { ConfigFile, EffectiveConfigBody } from '../../src/contract/config.ts'
import { getConfigFile } from '../../src/contract/config.ts'
import { City } from './city.ts'
import { asMap, at, isMap } from './document.ts'
import { type Answer, Api, type CallOptions, eventually } from './http.ts'
import type { RunningSupervisor } from './supervisor.ts'

export class ConfigCity extends City {
  get(path: string, options?: CallOptions): Promise<Answer> {
    return this.api.get(`${this.base}${path}`, options)
  }

  post(path: string, body?: unknown, options?: CallOptions): Promise<Answer> {
    return this.api.post(`${this.base}${path}`, body, options)
  }

  put(
    file: string,
    text: string,
    { ifMatch, dryRun = false }: { ifMatch?: string | undefined; dryRun?: boolean } = {},
  ): Promise<Answer> {
    const headers = ifMatch === undefined ? {} : { 'if-match': ifMatch }
    return this.api.call('PUT', `${this.filePath(file)}${dryRun ? '?dry_run=true' : ''}`, { body: { text }, headers })
  }

  filePath = (file: string): string => `${this.base}/config/files/${encodeURIComponent(file)}`

  file(file: string): Promise<ConfigFile> {
    return this.api.ask(getConfigFile, this.filePath(file))
  }

  async config(): Promise<EffectiveConfigBody> {
    const { body } = await this.get('/config')
    assert.ok(isEffective(body))
    return body
  }

  /** All events of these types, oldest first, page by page. */
  async events(...types: readonly string[]): Promise<readonly Event[]> {
    const query = types.map((type) => `type=${type}`).join('&')
    const events: Event[] = []
    for (let cursor = ''; ; ) {
      const { body } = await this.get(`/events?${query}&order=asc&limit=1000${cursor}`)
      const items = at(body, 'items')
      assert.ok(Array.isArray(items))
      for (const item of items)
        events.push({
          type: String(at(item, 'type')),
          actor: String(at(item, 'actor')),
          subject: String(at(item, 'subject')),
          payload: asMap(at(item, 'payload')),
        })
      const next = asMap(body)['next_cursor']
      if (next === undefined) return events
      cursor = `&cursor=${encodeURIComponent(String(next))}`
    }
  }

  /** The terminal event of a 202, by its payload. */
  outcome(accepted: Answer): Promise<Event> {
    assert.equal(accepted.status, 202, accepted.text)
    const id = at(accepted.body, 'request_id')
    return eventually(`the end of ${String(id)}`, async () =>
      (await this.events('request.*')).find(({ payload }) => payload.request_id === id),
    )
  }
}

export interface Event {
  readonly type: string
  readonly actor: string
  readonly subject: string
  readonly payload: { readonly [key: string]: unknown }
}

const isEffective = (body: unknown): body is EffectiveConfigBody => isMap(body) && body.view === 'effective'

/** Creates a city and waits until it runs. */
export async function createCity(supervisor: RunningSupervisor, path: string, name = path): Promise<ConfigCity> {
  const api = new Api(supervisor.url)
  const dir = join(supervisor.work, path)
  const created = await api.post('/v0/city', { dir, provider: 'shell' })
  assert.equal(created.status, 202, created.text)
  await running(api, name)
  return new ConfigCity(api, name, dir)
}

/** The same city under a supervisor that was started again. */
export async function cityAgain(supervisor: RunningSupervisor, name: string): Promise<ConfigCity> {
  const api = new Api(supervisor.url)
  await running(api, name)
  return new ConfigCity(api, name, join(supervisor.work, name))
}

const running = (api: Api, name: string): Promise<true> =>
  eventually(`${name} is running`, async () => {
    const { body } = await api.get('/v0/cities')
    const items = at(body, 'items')
    return Array.isArray(items) && items.some((item) => at(item, 'name') === name && at(item, 'running') === true)
      ? true
      : undefined
  })

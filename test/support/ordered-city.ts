/** A running city for tests of orders: their files as people save them, and what came of them over HTTP. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Order, OrderRun } from '../../src/contract/automation/orders.ts'
import { getOrder, listOrderHistory, runOrder } from '../../src/contract/automation/orders.ts'
import type { ConfigCity, Event } from './config-city.ts'
import { eventually } from './http.ts'

/** The file of an order: lines below `[order]`. */
export const orderFile = (...lines: readonly string[]): string => `[order]\n${lines.join('\n')}\n`

export class OrderedCity {
  readonly city: ConfigCity

  constructor(city: ConfigCity) {
    this.city = city
  }

  /** Saves the file, and waits until the city knows it. */
  async save(name: string, ...lines: readonly string[]): Promise<Order> {
    const before = await this.#find(name)
    this.city.write(`orders/${name}.toml`, orderFile(...lines))
    return eventually(`the order ${name} is known`, async () => {
      const order = await this.#find(name)
      return order !== undefined && order.revision !== before?.revision ? order : undefined
    })
  }

  get(name: string): Promise<Order> {
    return this.city.api.ask(getOrder, `${this.city.base}/orders/${name}`)
  }

  run(name: string, body: object = {}): Promise<OrderRun> {
    return this.city.api.ask(runOrder, `${this.city.base}/orders/${name}/run`, { body })
  }

  async runs(name: string, query = ''): Promise<readonly OrderRun[]> {
    const path = `${this.city.base}/orders/history?name=${encodeURIComponent(name)}&limit=1000${query}`
    return (await this.city.api.ask(listOrderHistory, path)).items
  }

  /** Runs of the order that have ended, newest first, once there are so many. */
  ended(name: string, count: number, deadlineMs = 30_000): Promise<readonly OrderRun[]> {
    return eventually(
      `${count} runs of ${name} have ended`,
      async () => {
        const runs = (await this.runs(name)).filter(({ status }) => status !== 'running')
        return runs.length >= count ? runs : undefined
      },
      deadlineMs,
    )
  }

  /** Its runs, once there are so many. */
  runsOnce(name: string, count: number): Promise<readonly OrderRun[]> {
    return eventually(`${name} has ${count} runs`, async () => {
      const runs = await this.runs(name)
      return runs.length >= count ? runs : undefined
    })
  }

  /** The run that is under way. */
  begun(name: string): Promise<OrderRun> {
    return eventually(`${name} runs`, async () => (await this.runs(name)).find(({ status }) => status === 'running'))
  }

  async emit(type: string, payload: object): Promise<number> {
    const { status, body, text } = await this.city.post('/events', { type, actor: 'test', subject: 'test', payload })
    assert.equal(status, 201, text)
    assert.ok(typeof body === 'object' && body !== null && 'seq' in body)
    return Number(body.seq)
  }

  async events(name: string): Promise<readonly Event[]> {
    return (await this.city.events('order.fired', 'order.completed', 'order.failed', 'order.skipped')).filter(
      ({ subject }) => subject === name,
    )
  }

  /** Lines of a file that commands append to. */
  lines(file: string): readonly string[] {
    const path = join(this.city.dir, file)
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
  }

  async #find(name: string): Promise<Order | undefined> {
    const { status } = await this.city.get(`/orders/${name}`)
    return status === 404 ? undefined : this.get(name)
  }
}

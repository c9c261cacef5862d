/** Supervisors and cities for tests: with settings, with a client, with cities that are up. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createCity, listCities } from '../../src/contract/cities.ts'
import { emitEvent } from '../../src/contract/events.ts'
import { getRequest, type RequestInfo } from '../../src/contract/requests.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { resolveSettings } from '../../src/supervisor/settings.ts'
import type { SupervisorDeps } from '../../src/supervisor/supervisor.ts'
import { endProcessesOf } from './city-processes.ts'
import { asMap } from './document.ts'
import { HeldServer } from './held.ts'
import { Api, eventually } from './http.ts'
import { type RunningSupervisor, type StartOptions, startSupervisor } from './supervisor.ts'
import { removeTree } from './temporary.ts'

export interface Settings extends StartOptions {
  /** Text of `supervisor.toml`. */
  readonly toml?: string
}

export interface Running extends AsyncDisposable {
  readonly server: RunningSupervisor
  readonly api: Api
  readonly work: string
}

/** A directory of its own with a home in it that already holds this `supervisor.toml`. */
export function homeWith(toml: string): { readonly root: string; readonly home: string } & Disposable {
  const root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const home = join(root, 'home')
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(join(home, 'supervisor.toml'), toml)
  return {
    root,
    home,
    [Symbol.dispose]() {
      endProcessesOf(root)
      removeTree(root)
    },
  }
}

/** A real supervisor with a client of it, both gone at the end. */
export async function run({ toml, ...options }: Settings = {}): Promise<Running> {
  const place = toml === undefined ? undefined : homeWith(toml)
  const server = await startSupervisor(place === undefined ? options : { ...options, home: place.home })
  const api = new Api(server.url, tokenOf(server.home))
  return {
    server,
    api,
    work: server.work,
    async [Symbol.asyncDispose]() {
      api.close()
      await server[Symbol.asyncDispose]()
      place?.[Symbol.dispose]()
    },
  }
}

/** The same home again, after the server before it has ended. */
export async function runAgain(home: string, options: StartOptions = {}): Promise<Running> {
  const server = await startSupervisor({ ...options, home })
  const api = new Api(server.url, tokenOf(home))
  return {
    server,
    api,
    work: resolve(home, '..'),
    async [Symbol.asyncDispose]() {
      api.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

export function tokenOf(home: string): string | undefined {
  const { token } = asMap(JSON.parse(readFileSync(join(home, 'endpoint.json'), 'utf8')))
  return typeof token === 'string' ? token : undefined
}

/** A supervisor in this process, for what cannot be provoked from outside (decision 28). */
export async function runHere(
  deps: Partial<SupervisorDeps> = {},
): Promise<{ readonly api: Api; readonly work: string } & AsyncDisposable> {
  const root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const settings = resolveSettings({ home: join(root, 'home'), port: '0' }, {}, root, root)
  const held = new HeldServer()
  // Few tests want it here, and it is most of what there is to load.
  const { startSupervisor: startHere } = await import('../../src/supervisor/supervisor.ts')
  const supervisor = await startHere({
    settings,
    clock: systemClock,
    userHome: root,
    version: '0.0.0',
    pid: process.pid,
    random: () => 0.5,
    ...deps,
    env: { ...(deps.env ?? process.env), ...held.env },
  })
  const api = new Api(supervisor.url)
  return {
    api,
    work: root,
    async [Symbol.asyncDispose]() {
      api.close()
      await supervisor.stop('SIGTERM')
      removeTree(root)
      held.assertNone()
    },
  }
}

/** What became of an accepted request. */
export function outcome(api: Api, requestId: string): Promise<RequestInfo> {
  return eventually(`request ${requestId} ends`, async () => {
    const request = await api.ask(getRequest, `/v0/requests/${requestId}`)
    return request.finished_at === undefined ? undefined : request
  })
}

export async function succeeds(api: Api, accepted: { readonly request_id: string }): Promise<RequestInfo> {
  const request = await outcome(api, accepted.request_id)
  assert.equal(request.status, 'succeeded', JSON.stringify(request))
  return request
}

/** Creates a city and waits until it is running; answers with its directory. */
export async function newCity(api: Api, work: string, name: string): Promise<string> {
  const dir = join(work, name)
  await succeeds(api, await api.ask(createCity, '/v0/city', { body: { dir, name } }))
  return dir
}

export async function cityItem(api: Api, name: string) {
  const { items } = await api.ask(listCities, '/v0/cities?limit=1000')
  return items.find((item) => item.name === name)
}

/** Waits until the list shows the city in this state. */
export function cityIs(api: Api, name: string, status: string) {
  return eventually(`${name} is ${status}`, async () => {
    const item = await cityItem(api, name)
    return item?.status === status ? item : undefined
  })
}

/** Emits and answers with the seq. */
export async function emit(
  api: Api,
  city: string,
  type: string,
  more: { readonly [key: string]: unknown } = {},
): Promise<number> {
  const { seq } = await api.ask(emitEvent, `/v0/city/${city}/events`, { body: { type, actor: 'test', ...more } })
  return seq
}

/** A supervisor with a city that stays up and one that may be steered, whatever a fuzzer does to them. */
import { asFields, asList } from './contract-document.ts'

/** Runs all the time; only read from and written to. */
export const CITY = 'fuzz-city'
/** Is started, stopped and unregistered by requests under test. */
export const STEERED = 'fuzz-steered'
/** What a supervisor that is fuzzed has for a shell: fuzzed messages must not be commands. */
export const HARMLESS_SHELL = { SHELL: '/bin/cat' } as const
const STEERING = new Set(['start-city', 'stop-city', 'restart-city', 'unregister-city'])

export const isSteering = (operationId: string): boolean => STEERING.has(operationId)

const DEADLINE_MS = 20_000
const POLL_MS = 20

/** Makes both, with events, and returns the request id of one. */
export async function prepareCities(url: string): Promise<string> {
  const first = await ensureCity(url, CITY)
  await ensureCity(url, STEERED)
  for (let n = 0; n < 5; n++) {
    const body = { type: 'fuzz.prepared', actor: 'fuzz', subject: `s-${n}`, payload: { n } }
    await post(url, `/v0/city/${CITY}/events`, body)
  }
  return first
}

/** Brings a city up from wherever it is; answers with the request id where it was made. */
export async function ensureCity(url: string, name: string): Promise<string> {
  const deadline = performance.now() + DEADLINE_MS
  let requestId = ''
  while (!(await isRunning(url, name))) {
    if (performance.now() > deadline) throw new Error(`${name} does not come up: ${await cityItem(url, name)}`)
    const answer = await bringUp(url, name)
    if (typeof answer.request_id === 'string') requestId = answer.request_id
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return requestId
}

/** Stops both, so that no agent outlives the supervisor. */
export async function stopCities(url: string): Promise<void> {
  for (const name of [CITY, STEERED]) await post(url, `/v0/city/${name}/stop`, { force: true })
}

async function isRunning(url: string, name: string): Promise<boolean> {
  const answer = await fetch(`${url}/v0/city/${name}`)
  await answer.arrayBuffer()
  return answer.status === 200
}

async function cityItem(url: string, name: string): Promise<string> {
  const list = asFields(await (await fetch(`${url}/v0/cities`)).json())
  return JSON.stringify(asList(list.items).find((item) => asFields(item).name === name) ?? 'not registered')
}

async function bringUp(url: string, name: string) {
  const started = await post(url, `/v0/city/${name}/start`)
  if (started.code !== 'city-not-found') return started
  const created = await post(url, '/v0/city', { dir: name })
  return created.code === 'city-already-initialized' ? post(url, '/v0/cities', { path: name }) : created
}

/** Unregisters what fuzzed creates left behind, so that the server holds few cities. */
export async function unregisterOthers(url: string): Promise<void> {
  const list = asFields(await (await fetch(`${url}/v0/cities`)).json())
  const names = asList(list.items).map((item) => String(asFields(item).name))
  for (const name of names.filter((one) => one !== CITY && one !== STEERED))
    await post(url, `/v0/city/${name}/unregister`)
}

async function post(url: string, path: string, body?: object) {
  const headers = { 'X-SVC-Request': 'fuzz', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) }
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return asFields(await answer.json())
}

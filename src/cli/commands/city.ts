/** `svcctl city …`. */
import { resolve } from 'node:path'
import type { CityGetResponse, CityInfo } from '../../contract/cities.ts'
import { parseTimeout, settle, waitFlags } from '../base/accepted.ts'
import { listedCity } from '../base/city-problem.ts'
import { type CommandSpec, type Input, keyFlag, yesFlag } from '../base/command.ts'
import { type Context, REQUEST_TIMEOUT_MS } from '../base/context.ts'
import { resolveCity } from '../base/discovery.ts'
import { EXIT, usageError } from '../base/failure.ts'
import type { Column } from '../base/output.ts'
import { listAll } from '../base/paged.ts'
import { CITY_STATUS, rejectedText } from '../views/city-status.ts'

const LIST_COLUMNS: readonly Column<CityInfo>[] = [
  { header: 'NAME', value: (city) => city.name },
  { header: 'STATUS', value: (city) => city.status, kind: 'state' },
  { header: 'RUNNING', value: (city) => city.running, kind: 'state' },
  { header: 'PATH', value: (city) => city.path },
  { header: 'ERROR', value: (city) => city.error ?? rejectedText(city.config_rejected) },
  { header: 'ATTEMPTS', value: (city) => city.attempts, wide: true },
  { header: 'RETRY_AT', value: (city) => city.retry_at, kind: 'time', wide: true },
  { header: 'UID', value: (city) => city.uid, wide: true },
  { header: 'HOST', value: (city) => city.host, wide: true },
  { header: 'OBSERVED_AT', value: (city) => city.observed_at, kind: 'time', wide: true },
]

const CITY_COLUMNS: readonly Column<CityGetResponse>[] = [
  { header: 'NAME', value: (city) => city.name },
  { header: 'STATUS', value: (city) => city.status, kind: 'state' },
  { header: 'RUNNING', value: (city) => city.running, kind: 'state' },
  { header: 'SUSPENDED', value: (city) => city.suspended },
  { header: 'PATH', value: (city) => city.path },
  { header: 'PROVIDER', value: (city) => city.provider },
  { header: 'UPTIME_SEC', value: (city) => city.uptime_sec },
  { header: 'AGENTS', value: (city) => city.agent_count },
  { header: 'RIGS', value: (city) => city.rig_count },
  { header: 'VERSION', value: (city) => city.version },
  { header: 'ERROR', value: (city) => rejectedText(city.config_rejected) },
  { header: 'UID', value: (city) => city.uid, wide: true },
  { header: 'REVISION', value: (city) => city.revision, wide: true },
]

const name = (item: { readonly name: string }): string => item.name

async function list(context: Context): Promise<number> {
  const client = await context.client()
  using limit = context.within()
  const all = await listAll((cursor) =>
    client.call('list-cities', { query: { limit: 1000, cursor }, signal: limit.signal }),
  )
  await context.print.list({ ...all, columns: LIST_COLUMNS, name })
  return EXIT.ok
}

async function get(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(input.text('city_name'), limit.signal)
  const client = await context.client()
  try {
    const { body, text } = await client.call('get-city', { params: { cityName }, signal: limit.signal })
    await context.print.item({ item: body, columns: CITY_COLUMNS, name, json: text })
  } catch (error) {
    const city = await listedCity(error, client, cityName, limit.signal)
    await context.print.item({ item: city, columns: LIST_COLUMNS, name, json: JSON.stringify(city) })
  }
  return EXIT.ok
}

async function status(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(input.text('city_name'), limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('get-city-status', { params: { cityName }, signal: limit.signal })
  await context.print.item({ item: body, ...CITY_STATUS, json: text })
  return EXIT.ok
}

async function health(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(input.text('city_name'), limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('get-city-health', { params: { cityName }, signal: limit.signal })
  await context.print.item({
    item: body,
    columns: [
      { header: 'CITY', value: (city) => city.city },
      { header: 'STATUS', value: (city) => city.status, kind: 'state' },
      { header: 'UPTIME_SEC', value: (city) => city.uptime_sec },
      { header: 'VERSION', value: (city) => city.version },
      { header: 'ERROR', value: (city) => rejectedText(city.config_rejected) },
    ],
    name: (item) => item.city,
    json: text,
  })
  return EXIT.ok
}

async function create(context: Context, input: Input): Promise<number> {
  const client = await context.client()
  using limit = context.within()
  const [cityName, provider, command] = [input.text('name'), input.text('provider'), input.text('startCommand')]
  const profile = PROFILES.find((known) => known === input.text('bootstrapProfile'))
  const { body, text } = await client.call('create-city', {
    body: {
      dir: directory(context, input.required('dir')),
      ...(cityName === undefined ? {} : { name: cityName }),
      ...(provider === undefined ? {} : { provider }),
      ...(command === undefined ? {} : { start_command: command }),
      ...(profile === undefined ? {} : { bootstrap_profile: profile }),
    },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  return settle(context, input, 'city.create', body, text)
}

const PROFILES = ['k8s-cell', 'kubernetes', 'kubernetes-cell', 'single-host-compat'] as const

// A relative directory is meant from here, not from the home of the supervisor's user.
const directory = (context: Context, text: string): string =>
  resolve(context.io.cwd, text.replace(/^~(?=\/|$)/, context.io.home))

async function adopt(context: Context, input: Input): Promise<number> {
  const client = await context.client()
  using limit = context.within()
  const cityName = input.text('name')
  const { body, text } = await client.call('adopt-city', {
    body: { path: directory(context, input.required('path')), ...(cityName === undefined ? {} : { name: cityName }) },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  if ('request_id' in body) return settle(context, input, 'city.create', body, text)
  await context.print.item({ item: body, columns: LIST_COLUMNS, name, json: text })
  return EXIT.ok
}

async function start(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(input.text('city_name'), limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('start-city', {
    params: { cityName },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  return settle(context, input, 'city.start', body, text)
}

async function restart(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(input.text('city_name'), limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('restart-city', {
    params: { cityName },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  return settle(context, input, 'city.restart', body, text)
}

async function stop(context: Context, input: Input): Promise<number> {
  const timeout = input.text('timeout')
  const timeoutMs = await parseTimeout(input, REQUEST_TIMEOUT_MS)
  // The server waits for the city that long; its answer needs a moment more.
  using limit = context.within(timeoutMs + 10_000)
  const cityName = await context.needCity(input.text('city_name'), limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('stop-city', {
    params: { cityName },
    body: { ...(timeout === undefined ? {} : { timeout }), ...(input.on('force') ? { force: true } : {}) },
    signal: limit.signal,
  })
  await context.print.item({
    item: body,
    columns: [
      { header: 'CITY', value: (result) => result.city },
      { header: 'STATUS', value: (result) => result.status },
      { header: 'ALREADY_STOPPED', value: (result) => result.already_stopped },
      { header: 'SESSIONS_STOPPED', value: (result) => result.sessions_stopped },
      { header: 'FORCED', value: (result) => result.forced },
    ],
    name: (result) => result.city,
    json: text,
  })
  return EXIT.ok
}

async function unregister(context: Context, input: Input): Promise<number> {
  const named = input.text('city_name') ?? context.options.city
  // Never the city one happens to stand in: this is not undone by a second command.
  if (named === undefined) throw usageError('which city? name it: svcctl city unregister NAME')
  using limit = context.within()
  const client = await context.client()
  const cityName = await resolveCity(client, context.io, named, limit.signal)
  await context.confirm(`Unregister city ${cityName}? It stops; its directory stays as it is.`, input.on('yes'))
  using answerLimit = context.within()
  const { body, text } = await client.call('unregister-city', {
    params: { cityName },
    idempotencyKey: input.text('idempotencyKey'),
    signal: answerLimit.signal,
  })
  return settle(context, input, 'city.unregister', body, text)
}

function setSuspended(suspended: boolean) {
  return async (context: Context, input: Input): Promise<number> => {
    using limit = context.within()
    const cityName = await context.needCity(input.text('city_name'), limit.signal)
    const client = await context.client()
    const { body, text } = await client.call('patch-city', {
      params: { cityName },
      body: { suspended },
      signal: limit.signal,
    })
    await context.print.item({ item: body, columns: CITY_COLUMNS, name, json: text })
    return EXIT.ok
  }
}

const city = {
  name: '[city_name]',
  description: 'Name or path; the city in scope where absent.',
  complete: 'city',
} as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['city', 'list'],
    operations: ['list-cities'],
    examples: [
      { line: 'svcctl city list', does: 'all cities and their states' },
      { line: 'svcctl city list -o name', does: 'their names, for scripts' },
    ],
    isFleet: true,
    run: list,
  },
  {
    path: ['city', 'get'],
    operations: ['get-city'],
    arguments: [city],
    examples: [{ line: 'svcctl city get alpha', does: 'one city; of one that does not run, what is known of it' }],
    run: get,
  },
  {
    path: ['city', 'create'],
    operations: ['create-city'],
    arguments: [{ name: '<dir>', description: 'Directory to make it in, relative to here.', complete: 'file' }],
    flags: [
      { flags: '--name <name>', description: 'Name of the city; that of the directory where absent.' },
      { flags: '--provider <provider>' },
      { flags: '--start-command <command>' },
      { flags: '--bootstrap-profile <profile>', description: 'Kept for the host that runs it.', choices: PROFILES },
      ...waitFlags,
      keyFlag,
    ],
    examples: [
      { line: 'svcctl city create ./demo', does: 'create a city and, in a terminal, wait until it runs' },
      { line: 'svcctl city create /srv/alpha --provider claude --no-wait -o json', does: 'in a script' },
    ],
    run: create,
  },
  {
    path: ['city', 'adopt'],
    operations: ['adopt-city'],
    arguments: [{ name: '<path>', description: 'Directory of an existing city, relative to here.', complete: 'file' }],
    flags: [{ flags: '--name <name>', description: 'Name to register it under.' }, ...waitFlags, keyFlag],
    examples: [{ line: 'svcctl city adopt ~/cities/alpha', does: 'register a city that is on disk already' }],
    run: adopt,
  },
  {
    path: ['city', 'start'],
    operations: ['start-city'],
    arguments: [city],
    flags: [...waitFlags, keyFlag],
    examples: [{ line: 'svcctl city start alpha --wait', does: 'start it, end when it runs' }],
    run: start,
  },
  {
    path: ['city', 'stop'],
    operations: ['stop-city'],
    arguments: [city],
    flags: [{ flags: '--timeout <duration>' }, { flags: '--force' }],
    examples: [
      { line: 'svcctl city stop alpha', does: 'stop it cleanly' },
      { line: 'svcctl city stop alpha --force', does: 'kill what runs in it' },
    ],
    run: stop,
  },
  {
    path: ['city', 'restart'],
    operations: ['restart-city'],
    arguments: [city],
    flags: [...waitFlags, keyFlag],
    examples: [{ line: 'svcctl city restart alpha', does: 'stop and start it' }],
    run: restart,
  },
  {
    path: ['city', 'unregister'],
    operations: ['unregister-city'],
    arguments: [{ name: '[city_name]', description: 'Name or path.', complete: 'city' }],
    flags: [yesFlag, ...waitFlags, keyFlag],
    examples: [{ line: 'svcctl city unregister alpha --yes', does: 'the supervisor forgets it; its files stay' }],
    run: unregister,
  },
  {
    path: ['city', 'suspend'],
    operations: ['patch-city'],
    summary: 'Suspend a city: none of its agents is started',
    arguments: [city],
    examples: [{ line: 'svcctl city suspend alpha', does: 'keep it, but let nothing run' }],
    run: setSuspended(true),
  },
  {
    path: ['city', 'resume'],
    operations: ['patch-city'],
    summary: 'Resume a suspended city',
    arguments: [city],
    examples: [{ line: 'svcctl city resume alpha', does: 'let its agents run again' }],
    run: setSuspended(false),
  },
  {
    path: ['city', 'status'],
    operations: ['get-city-status'],
    arguments: [city],
    examples: [{ line: 'svcctl city status alpha', does: 'agents, work, mail and events in numbers' }],
    run: status,
  },
  {
    path: ['city', 'health'],
    operations: ['get-city-health'],
    arguments: [city],
    examples: [{ line: 'svcctl city health alpha', does: 'is it alive' }],
    run: health,
  },
]

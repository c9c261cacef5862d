/** `svcctl bridge …`: programs that carry messages between a city and a chat. They are loaded only when one is started. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Place } from '../../../bridges/library/listening.ts'
import type { BridgePlace } from '../../../bridges/run.ts'
import { backoffMs } from '../../../client/backoff.ts'
import { delay } from '../../../client/clock.ts'
import { cut } from '../../../contract/base/text.ts'
import type { CommandSpec, FlagSpec, Input } from '../../base/command.ts'
import type { Context } from '../../base/context.ts'
import { EXIT, Failure, toFailure, usageError } from '../../base/failure.ts'

/** Each is a variable, or a secret of the service that the bridge is. */
const PASSWORD = { variable: 'SVC_BRIDGE_PASSWORD', key: 'password' } as const
const SECRET = { variable: 'SVC_BRIDGE_SECRET', key: 'secret' } as const
const STYLES = ['github', 'slack', 'standard']
const TLS_PORT = 6697
const PLAIN_PORT = 6667

const stateFlag: FlagSpec = {
  flags: '--state-root <dir>',
  description:
    'Where it keeps its secret and what it has done (default: SVC_SERVICE_STATE_ROOT, else bridges/CITY/ACCOUNT in the home of svcctl).',
  complete: 'file',
}

/** Runs one until the process is asked to end, which is a good end. */
async function run(
  context: Context,
  input: Input,
  account: { readonly provider: string; readonly name: string },
  start: (place: BridgePlace) => Promise<void>,
): Promise<number> {
  const { io } = context
  const { Log, reasonOf } = await import('../../../bridges/library/log.ts')
  const { Unusable } = await import('../../../bridges/library/world.ts')
  const log = new Log(io.clock, (line) => void io.stderr.write(line).catch(() => undefined))
  const client = await context.steadyClient((reason) => log.warn('no supervisor yet', { reason }))
  const city = await cityOf(context, (reason) => log.warn('no supervisor yet', { reason }))
  try {
    await start({
      client,
      city,
      stateRoot: stateRootOf(context, input, city, account),
      world: { clock: io.clock, random: io.random, newKey: io.newKey, log },
      ending: io.signal,
    })
  } catch (error) {
    if (!(error instanceof Unusable)) {
      if (!io.signal.aborted) log.error('cannot go on', { reason: reasonOf(error) })
      throw error
    }
    throw new Failure(EXIT.failure, error.message, { hint: error.hint, cause: error })
  }
  return EXIT.ok
}

/** One that is named needs nobody; to know which is in a directory, a supervisor that is between two lives is waited for. */
async function cityOf(context: Context, tell: (reason: string) => void): Promise<string> {
  const { io } = context
  for (let failures = 0; ; failures += 1) {
    try {
      using limit = context.within()
      return await context.needCity(undefined, limit.signal)
    } catch (error) {
      const failure = toFailure(error)
      if (io.signal.aborted || failure.exitCode !== EXIT.unavailable) throw error
      tell(failure.message)
      await delay(io.clock, backoffMs(failures, io.random()), io.signal)
    }
  }
}

function stateRootOf(
  { io: { env, cwd, home } }: Context,
  input: Input,
  city: string,
  { provider, name }: { readonly provider: string; readonly name: string },
): string {
  const given = input.text('stateRoot') ?? (env['SVC_SERVICE_STATE_ROOT'] || undefined)
  if (given !== undefined) return resolve(cwd, given)
  const plain = `${provider}-${name}`.replaceAll(/[^A-Za-z0-9._-]/g, '_')
  // Names that differ only in what no file can be called must not share a directory.
  const mark = cut(createHash('sha256').update(`${provider} ${name}`).digest('hex'), 8)
  return join(resolve(cwd, env['SVC_HOME'] || join(home, '.svc')), 'bridges', city, `${plain}-${mark}`)
}

function placeOf(
  flag: string,
  text: string,
  defaultPort: number | undefined,
): { readonly host: string; readonly port: number } {
  const [, v6, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = v6 ?? plain
  const port = digits === undefined ? defaultPort : Number(digits)
  if (host === undefined || port === undefined || port > 65_535)
    throw usageError(`invalid ${flag} "${text}": expected HOST:PORT`)
  return { host, port }
}

/** Where the service that it is listens; undefined where it is none. */
function servicePlace({ io: { env } }: Context): Place | undefined {
  const { SVC_SERVICE_NAME: service, SVC_SERVICE_SOCKET: socketPath, HOST: host = '127.0.0.1', PORT: port } = env
  if (socketPath) return { socketPath }
  return service && port ? { host, port: Number(port) } : undefined
}

/** Undefined where there is none; what an editor or `echo` adds at the end is none of it. */
async function secretOf(
  { io: { env } }: Context,
  { variable, key }: { readonly variable: string; readonly key: string },
): Promise<string | undefined> {
  const directory = env['SVC_SERVICE_SECRETS_DIR']
  if (env[variable] || !directory) return env[variable] || undefined
  try {
    return (await readFile(join(directory, key), 'utf8')).replace(/\r?\n$/, '') || undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw usageError(`the secret ${key} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const needed = (input: Input, flag: string, name: string): string => {
  const value = input.text(name)
  if (value === undefined || value === '') throw usageError(`${flag} is missing`)
  return value
}

async function irc(context: Context, input: Input): Promise<number> {
  const { isChannelName, isPerson } = await import('../../../bridges/irc/text.ts')
  const tls = input.choice('tls') !== false
  const { host, port } = placeOf('--server', needed(input, '--server', 'server'), tls ? TLS_PORT : PLAIN_PORT)
  const nick = needed(input, '--nick', 'nick')
  if (!isPerson(nick)) throw usageError(`invalid --nick "${nick}"`)
  const channels = input.texts('channel')
  if (channels.length === 0) throw usageError('--channel is missing')
  for (const channel of channels)
    if (!isChannelName(channel))
      throw usageError(`invalid --channel "${channel}"`, "in a shell it needs quotes: --channel '#ops'")
  const password = await secretOf(context, PASSWORD)
  const saslUser = input.text('saslUser')
  if (saslUser !== undefined && password === undefined)
    throw usageError(`--sasl-user needs ${PASSWORD.variable}`, `of a service: its secret ${PASSWORD.key}`)
  const account = input.text('account') ?? host
  const login = { place: { host, port, tls }, nick, password, saslUser }
  return run(context, input, { provider: 'irc', name: account }, async (place) => {
    const { runIrc } = await import('../../../bridges/run.ts')
    await runIrc({ ...place, health: servicePlace(context) }, { account, login, channels })
  })
}

async function webhook(context: Context, input: Input): Promise<number> {
  const style = STYLES.find((one) => one === input.text('style'))
  if (style !== 'github' && style !== 'slack' && style !== 'standard')
    throw usageError('--style is missing', `one of ${STYLES.join(', ')}`)
  const said = input.text('listen')
  const listen = said === undefined ? servicePlace(context) : placeOf('--listen', said, undefined)
  if (listen === undefined) throw usageError('--listen is missing')
  const secret = await secretOf(context, SECRET)
  if (secret === undefined)
    throw usageError(
      `${SECRET.variable} is missing`,
      `it is the secret with which the sender signs; of a service: its secret ${SECRET.key}`,
    )
  const { secretFault } = await import('../../../bridges/webhook/signatures.ts')
  const fault = secretFault(style, secret)
  if (fault !== undefined) throw usageError(`invalid ${SECRET.variable}: ${fault}`)
  const account = input.text('account') ?? style
  return run(context, input, { provider: style, name: account }, async (place) => {
    const { runWebhook } = await import('../../../bridges/run.ts')
    await runWebhook(place, { style, account, listen, secret })
  })
}

const accountFlag = (otherwise: string): FlagSpec => ({
  flags: '--account <name>',
  description: `What the adapter is called in the city (default: ${otherwise}).`,
})

export const commands: readonly CommandSpec[] = [
  {
    path: ['bridge', 'irc'],
    operations: ['register-adapter', 'claim-deliveries', 'ack-delivery', 'fail-delivery', 'receive-inbound'],
    summary: 'Carry messages between the city and channels of IRC',
    description: `Goes on until it is stopped; what it did is told on stderr, one JSON object a line. The password is in ${PASSWORD.variable}, or the secret \`${PASSWORD.key}\` of the service that it is: of the account with --sasl-user, else of the server. Lines that begin with \`NAME:\` call NAME. Where the server has echo-message, labeled-response and a history, everything is said exactly once, whatever is killed; elsewhere a line that was on its way may come twice.`,
    flags: [
      { flags: '--server <host:port>', description: `Server (default port: ${TLS_PORT}, without TLS ${PLAIN_PORT}).` },
      { flags: '--nick <nick>', description: 'What it is called there.' },
      { flags: '--channel <channel>', description: 'Channel that it joins; repeatable.', repeatable: true },
      accountFlag('the host of the server'),
      { flags: '--no-tls', description: 'Without TLS.' },
      { flags: '--sasl-user <user>', description: 'Log in to this account (SASL PLAIN).' },
      stateFlag,
    ],
    examples: [
      {
        line: "SVC_BRIDGE_PASSWORD=… svcctl bridge irc --server irc.libera.chat:6697 --nick bay-svc --channel '#bay' --sasl-user bay-svc",
        does: 'in a channel, with an account',
      },
      {
        line: "svcctl bridge irc --server 127.0.0.1:6667 --no-tls --nick svc --channel '#ops' --account ops",
        does: 'on this machine',
      },
    ],
    run: irc,
  },
  {
    path: ['bridge', 'webhook'],
    operations: ['register-adapter', 'claim-deliveries', 'fail-delivery', 'receive-inbound'],
    summary: 'Bring signed webhooks in as messages',
    description: `Listens until it is stopped. Only what is signed with ${SECRET.variable}, or the secret \`${SECRET.key}\` of the service that it is, is taken: GitHub (X-Hub-Signature-256), Slack (v0, Events API) or Standard Webhooks. What is answered with 202 is on disk. GET /health answers 200.`,
    flags: [
      {
        flags: '--listen <host:port>',
        description: 'Where it listens; port 0: any that is free (default: where the service listens that it is).',
      },
      { flags: '--style <style>', description: 'Who signs, and how.', choices: STYLES },
      accountFlag('the style'),
      stateFlag,
    ],
    examples: [
      {
        line: 'SVC_BRIDGE_SECRET=… svcctl bridge webhook --listen 127.0.0.1:9010 --style github',
        does: 'what happens in repositories',
      },
    ],
    run: webhook,
  },
]

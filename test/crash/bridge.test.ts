/**
 * From a channel to an agent at a terminal and back, while the bridge and the supervisor are killed at the moments at which
 * something could be lost or said twice.
 */
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'
import { BridgeProcess } from '../support/bridge-process.ts'
import { call, type Fields, listAll } from '../support/crash-client.ts'
import { eventually } from '../support/http.ts'
import { IrcPerson } from '../support/irc-person.ts'
import { type IrcWorld, ircWorlds, versionOf } from '../support/irc-worlds.ts'
import { run } from '../support/running.ts'
import { newSessionCity } from '../support/session-api.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const AGENT = resolve(import.meta.dirname, '../support/chatting-agent.ts')
const REST_MS = 60_000
const CHANNEL = '#ops'
const BASE = '/v0/city/alpha'

const files = (home: string) => `
[providers.chatty]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(AGENT)}, ${JSON.stringify(home)}]
prompt_mode = "none"
delivery = "line"
[[agent]]
name = "mayor"
provider = "chatty"
[[named_session]]
template = "mayor"
mode = "on_demand"
`

interface Death {
  readonly question: string
  /** As the server has the question, the transcript has it, or the server has the answer and has told nobody. */
  readonly at: 'never' | 'heard' | 'kept' | 'said'
  readonly who: readonly ('bridge' | 'supervisor')[]
}

const BOTH = ['bridge', 'supervisor'] as const
const DEATHS: Readonly<Record<string, readonly Death[]>> = {
  'our server, which replays': [
    { question: 'zero', at: 'never', who: [] },
    { question: 'one', at: 'heard', who: ['bridge'] },
    { question: 'two', at: 'said', who: ['bridge'] },
    { question: 'three', at: 'said', who: ['supervisor'] },
    { question: 'four', at: 'heard', who: BOTH },
    { question: 'five', at: 'said', who: BOTH },
  ],
  'our server, which is asked': [
    { question: 'one', at: 'heard', who: ['bridge'] },
    { question: 'two', at: 'said', who: ['bridge'] },
  ],
  InspIRCd: [
    { question: 'one', at: 'heard', who: ['bridge'] },
    { question: 'two', at: 'said', who: BOTH },
  ],
  // What is said to nobody is lost there, and what was on its way may come twice: it is killed in between.
  ngircd: [{ question: 'one', at: 'kept', who: BOTH }],
  'our plain server': [{ question: 'one', at: 'kept', who: BOTH }],
}

/** What the transcript has; nothing while the city starts. */
async function said(url: string): Promise<readonly Fields[]> {
  try {
    const [transcript] = await listAll(url, `${BASE}/transcripts`)
    if (transcript === undefined) return []
    return await listAll(url, `${BASE}/transcripts/${String(transcript['transcript_id'])}/entries`)
  } catch {
    return []
  }
}

/** All of it, once none of it is on its way any more. */
async function settled(url: string): Promise<readonly Fields[] | undefined> {
  const entries = await said(url)
  const isOpen = ({ kind, delivery_status: status }: Fields) => kind === 'outbound' && status !== 'delivered'
  return entries.length === 0 || entries.some(isOpen) ? undefined : entries
}

/** Resolves in the very moment, after `die` was called in it. */
async function strike(
  at: Death['at'],
  question: string,
  world: IrcWorld,
  ana: IrcPerson,
  url: string,
  die: () => void,
) {
  const text = at === 'said' ? `answer to ${question}` : questionOf(question)
  const struck = Promise.withResolvers<void>()
  const strikes = (isIt: boolean) => {
    if (!isIt) return
    die()
    struck.resolve()
  }
  if (world.server !== undefined && at !== 'kept') world.server.onSaid = (said) => strikes(said.text === text)
  else if (at === 'said') ana.onLine = (line) => strikes(line.endsWith(`:${text}`))
  ana.say(CHANNEL, questionOf(question))
  if (world.server === undefined && at === 'heard') strikes(true)
  if (at === 'kept') {
    await eventually(
      'the question is in the transcript',
      async () => (await said(url)).some((one) => one['text'] === text) || undefined,
    )
    strikes(true)
  }
  await struck.promise
}

const questionOf = (question: string): string => `mayor: question ${question}`

const { kinds, missing } = ircWorlds()

test('which IRC servers there are', (t) => {
  for (const kind of kinds) t.diagnostic(`ran on: ${kind.name} (${versionOf(kind)})`)
  for (const name of missing) t.diagnostic(`not installed: ${name}`)
})

suite('questions and answers come once each, whoever is killed', { concurrency: 2 }, () => {
  // A plain one of others says the same of plain ones.
  const plain = kinds.some(({ name }) => name === 'ngircd') ? 'our plain server' : ''
  for (const kind of kinds.filter(({ name }) => name !== plain)) {
    test(`on ${kind.name}`, { timeout: 240_000 }, async () => {
      const deaths = DEATHS[kind.name] ?? []
      using directory = temporaryDirectory()
      await using world = await kind.start(directory.path)
      await using first = await run()
      const { home } = first.server
      await newSessionCity(first, 'alpha', files(home))
      let server: RunningSupervisor = first.server
      using ana = await IrcPerson.join(world.port, 'ana', CHANNEL)
      if (world.keepsPast !== undefined) ana.send(world.keepsPast(CHANNEL))
      const words = ['irc', '--server', `127.0.0.1:${world.port}`, '--no-tls', '--nick', 'svc', '--channel', CHANNEL]
      const startBridge = () => new BridgeProcess(home, [...words, '--account', 'test', '--city', 'alpha'])
      let bridge = startBridge()
      try {
        await bridge.says('in the channel')
        const conversation = { provider: 'irc', account_id: 'test', conversation_id: CHANNEL, kind: 'room' }
        const bound = await call(server.url, 'POST', `${BASE}/participants/bindings`, {
          body: { conversation, agent_name: 'mayor' },
        })
        assert.equal(bound.status, 201, JSON.stringify(bound.body))
        for (const { question, at, who } of deaths) {
          const victims = [
            ...(who.includes('bridge') ? [bridge.child] : []),
            ...(who.includes('supervisor') ? [server.child] : []),
          ]
          const die = () => {
            for (const victim of victims) victim.kill('SIGKILL')
          }
          if (at === 'never') ana.say(CHANNEL, questionOf(question))
          else await strike(at, question, world, ana, server.url, die)
          if (who.includes('bridge')) await bridge.kill('SIGKILL')
          if (who.includes('supervisor')) {
            await server.kill('SIGKILL')
            server = await startSupervisor({ home })
          }
          if (who.includes('bridge')) bridge = startBridge()
          await eventually(
            `the answer to ${question} is in the channel: ${bridge.logged}`,
            () => ana.heard('svc', CHANNEL).find((text) => text === `answer to ${question}`),
            REST_MS,
          ).catch(async (error: unknown) => {
            const state = await listAll(server.url, `${BASE}/adapters/irc/test/deliveries`).catch(String)
            assert.fail(`${String(error)}\n${bridge.logged}\n${JSON.stringify(state)}`)
          })
        }
        const all = await eventually('everything is settled', () => settled(server.url), REST_MS)
        const expected = deaths.flatMap(({ question }) => [questionOf(question), `answer to ${question}`])
        assert.deepEqual(all.map(({ text }) => String(text)).toSorted(), expected.toSorted())
        assert.deepEqual(
          ana.heard('svc', CHANNEL),
          deaths.map(({ question }) => `answer to ${question}`),
        )
        assert.equal(await bridge.kill('SIGTERM'), 0, 'asked to end, it ends well')
      } finally {
        await bridge.kill('SIGKILL')
        await server.kill('SIGKILL')
      }
    })
  }
})

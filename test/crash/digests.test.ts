/**
 * Supervisors die at any moment while agents are told of mail and chat: every message is told, no reminder is typed twice,
 * and only what nobody knows of is told again.
 *
 *   SVC_SEED=123 n26 --test test/crash/digests.test.ts     the same chances again
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { ACP_PROVIDER } from '../support/acp-run.ts'
import { type Fields, listAll, tryCall } from '../support/crash-client.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { run } from '../support/running.ts'
import { newSessionCity } from '../support/session-api.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const ROUNDS = process.env['SVC_SOAK'] === '1' ? 40 : 4
const REST_MS = 60_000
const AGENTS = ['paper', 'wire'] as const

/** Both write down what they are told: one on a terminal by the line, one that speaks a protocol. */
const files = (directory: string) => `
[providers.paper]
command = "/bin/bash"
args = ["-c", "printf '> '; while read -r line; do printf '> '; printf '%s\\\\n' \\"$line\\" >> ${directory}/paper; done"]
prompt_mode = "none"
delivery = "line"
[providers.wire]
${ACP_PROVIDER}
[providers.wire.env]
SVC_TEST_ACP_HISTORY = "${directory}/wire"
${AGENTS.map(
  (name) => `
[[agent]]
name = "${name}"
provider = "${name}"
session = "${name === 'wire' ? 'acp' : 'subprocess'}"
[[named_session]]
template = "${name}"
mode = "on_demand"
`,
).join('')}`

test('agents are told of all their mail and of their chat, and of nothing twice, whenever the supervisor is killed', {
  timeout: 300_000,
}, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await run()
  const city = await newSessionCity(first, 'alpha', files(first.work))
  await city.done('POST', '/adapters', { provider: 'irc', account_id: 'libera', transport: 'pull' })
  for (const agent of AGENTS)
    await city.done('POST', '/participants/bindings', {
      conversation: { provider: 'irc', account_id: 'libera', ...roomOf(agent) },
      agent_name: agent,
    })
  const place = new Place(first.server, first.work)
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(AGENTS.flatMap((name) => [place.mail(name, round), place.chat(name, round)]))
      // The first one is what starts them.
      await pause(random.between(0, round === 0 ? 2_000 : 80))
      await place.strike()
    }
    const sessions = await place.rests()
    for (const name of AGENTS) {
      const session = sessions.find(({ alias }) => alias === name) ?? assert.fail(`${name} is not there`)
      const reminders = await place.reminders(name)
      t.diagnostic(
        `${name}: ${reminders.length} reminders, ${reminders.filter(isUnknown).length} of which nobody knows`,
      )
      for (const word of WORDS) checkWord(word, place.told(name, word), reminders, Number(session['generation']))
    }
  } finally {
    await place.strike({ again: false })
  }
})

const WORDS = Array.from({ length: ROUNDS }, (_, n) => [`mail${n}.`, `chat${n}.`]).flat()
const roomOf = (agent: string) => ({ conversation_id: `#${agent}`, kind: 'room' })
const isUnknown = ({ error_code: code }: Fields): boolean => code === 'delivery_uncertain'

/** As often as it is recorded, and no more but for what nobody knows of; in one conversation once. */
function checkWord(word: string, count: number, reminders: readonly Fields[], generation: number): void {
  const telling = reminders.filter(({ text }) => String(text).includes(word))
  const delivered = telling.filter(({ state }) => state === 'delivered').length
  const maybe = telling.filter(isUnknown).length
  assert.ok(
    count >= delivered && count <= delivered + maybe,
    `${word}: ${count} times, ${delivered} and ${maybe} unknown`,
  )
  assert.ok(delivered <= 1 || generation > 1, `${word} was announced ${delivered} times in one conversation`)
}

class Place {
  #server: RunningSupervisor
  readonly #home: string
  readonly #work: string

  constructor(server: RunningSupervisor, work: string) {
    this.#server = server
    this.#home = server.home
    this.#work = work
  }

  async strike({ again = true } = {}): Promise<void> {
    await this.#server.kill('SIGKILL')
    if (again) this.#server = await startSupervisor({ home: this.#home })
  }

  mail(to: string, n: number): Promise<void> {
    return this.#taken('/mail', { to, subject: `mail${n}.`, notify: true }, `${to}-${n}`)
  }

  /** The same message again is the same message. */
  chat(to: string, n: number): Promise<void> {
    const actor = { id: 'ada', display_name: 'Ada' }
    const message = { provider_message_id: `m-${n}`, conversation: roomOf(to), actor, text: `chat${n}.` }
    return this.#taken('/adapters/irc/libera/inbound', { message })
  }

  async #taken(path: string, body: object, key?: string): Promise<void> {
    await eventually(
      `${path} takes ${JSON.stringify(body)}`,
      async () => {
        const options = { body, ...(key === undefined ? {} : { key }) }
        const answer = await tryCall(this.#server.url, 'POST', `/v0/city/alpha${path}`, options)
        return answer !== undefined && answer.status < 300 ? true : undefined
      },
      REST_MS,
    )
  }

  reminders(agent: string): Promise<readonly Fields[]> {
    return listAll(this.#server.url, `/v0/city/alpha/sessions/${agent}/deliveries`)
  }

  /** What an agent has written down of what it was told; of who speaks a protocol its own words are there too. */
  #record(name: string): string {
    const file = join(this.#work, name)
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
    return lines.filter((line) => !line.includes('"role":"agent"')).join('\n')
  }

  told(name: string, word: string): number {
    return this.#record(name).split(word).length - 1
  }

  /** Of much mail at once the last is only counted. */
  #isToldOfAll(name: string): boolean {
    const counted = [...this.#record(name).matchAll(/(\d+) more (?:is|are) not shown/g)].map(([, count]) =>
      Number(count),
    )
    const words = WORDS.filter((word) => this.told(name, word) > 0)
    return words.length + counted.reduce((sum, count) => sum + count, 0) >= WORDS.length
  }

  /** Everybody was told of everything, and nothing waits. */
  rests(): Promise<readonly Fields[]> {
    return eventually(
      'everybody was told of everything',
      async () => {
        const answer = await tryCall(this.#server.url, 'GET', '/v0/city/alpha/sessions')
        if (answer?.status !== 200 || !Array.isArray(answer.body['items'])) return undefined
        const open: readonly Fields[] = answer.body['items']
        const isQuiet = open.length === AGENTS.length && open.every(({ queued }) => queued === 0)
        return isQuiet && AGENTS.every((name) => this.#isToldOfAll(name)) ? open : undefined
      },
      REST_MS,
    ).catch(async (error: unknown) => {
      const state = await Promise.all(AGENTS.map((name) => this.reminders(name).catch(String)))
      return assert.fail(`${String(error)}\n${JSON.stringify(state, undefined, 1)}`)
    })
  }
}

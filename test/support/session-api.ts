/** A running city for tests of its sessions and agents, over HTTP: real programs, real processes. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DeliveryInfo, PendingInteraction, SessionResponse } from '../../src/contract/sessions/session-model.ts'
import type {
  OutputTurn,
  SessionTranscriptResponse,
  TranscriptFormat,
} from '../../src/contract/sessions/session-transcript.ts'
import {
  createSession,
  getSession,
  getSessionPending,
  getSessionTranscript,
  listSessionDeliveries,
  type SessionCreateRequest,
  sendSessionMessage,
  submitSession,
} from '../../src/contract/sessions/sessions.ts'
import { ACP_PROVIDER } from './acp-run.ts'
import { City } from './city.ts'
import { asMap, at } from './document.ts'
import { eventually } from './http.ts'
import { newCity, outcome, type Running } from './running.ts'

/**
 * Programs that tests talk to: `bash` on a terminal; `talker`, our own agent behind ACP; `piped`, without a terminal;
 * `modal`, with options; `absent`, which is not there. Processes get little time to end: nobody has work to save.
 */
const PROGRAMS = `[session]
provider = "subprocess"
[daemon]
shutdown_timeout = "300ms"
[providers.bash]
base = "builtin:shell"
command = "bash"
args = ["--norc", "--noprofile"]
[providers.bash.env]
PS1 = "ready> "
[providers.talker]
${ACP_PROVIDER}
[providers.piped]
command = "cat"
io = "pipes"
prompt_mode = "omit"
[providers.absent]
command = "/nonexistent/program"
prompt_mode = "omit"
[providers.modal]
base = "provider:bash"
[[providers.modal.options_schema]]
key = "permission_mode"
type = "select"
default = "ask"
choices = [{ value = "ask", flag_args = [] }, { value = "never", flag_args = ["-r"] }]
[[providers.modal.options_schema]]
key = "colour"
type = "select"
default = ""
choices = [{ value = "", flag_args = [] }, { value = "red", flag_args = ["-o", "noclobber"] }]
`

export interface SessionEvent {
  readonly seq: number
  readonly type: string
  readonly subject: string
  readonly message: string
  readonly payload: { readonly [key: string]: unknown }
}

type Created = Partial<SessionCreateRequest>

export class SessionApi extends City {
  // --- The city ----------------------------------------------------------------------------------------------------

  /**
   * Makes `city.toml` hold the programs and `more`, and other files what is given; loads them. `daemon`: lines of that
   * table.
   */
  async configure(more = '', files: Readonly<Record<string, string>> = {}, daemon = ''): Promise<void> {
    const programs = PROGRAMS.replace('[daemon]\n', `[daemon]\n${daemon}`)
    const toml = `[workspace]\nprovider = "bash"\n${programs}${more}`
    for (const [path, text] of Object.entries({ 'city.toml': toml, ...files })) this.write(path, text)
    const reload = await outcome(this.api, String((await this.done('POST', '/config/reload')).request_id))
    assert.equal(reload.status, 'succeeded', JSON.stringify(reload))
  }

  async head(): Promise<number> {
    return Number((await this.send('GET', '/events?limit=1')).headers['x-svc-index'])
  }

  /** What happened after `seq`, oldest first; of one session, or of all. */
  async events(types: string, { subject, after = 0 }: { readonly subject?: string; readonly after?: number } = {}) {
    const query = types
      .split(' ')
      .map((type) => `type=${type}`)
      .join('&')
    const { items } = await this.done('GET', `/events?${query}&order=asc&limit=1000&after_seq=${after}`)
    assert.ok(Array.isArray(items))
    const events = items.map(
      (item): SessionEvent => ({
        seq: Number(at(item, 'seq')),
        type: String(at(item, 'type')),
        subject: String(at(item, 'subject')),
        message: String(asMap(item)['message'] ?? ''),
        payload: asMap(at(item, 'payload')),
      }),
    )
    return events.filter((event) => subject === undefined || event.subject === subject)
  }

  /** The same, once there are so many: what is seen of a session already may be told a moment later. */
  told(types: string, count: number, of: { readonly subject?: string; readonly after?: number } = {}) {
    return eventually(`${count} events ${types}`, async () => {
      const events = await this.events(types, of)
      return events.length >= count ? events : undefined
    })
  }

  // --- Sessions ----------------------------------------------------------------------------------------------------

  /** Accepted; answers with the ids. */
  async accept(body: Created = {}): Promise<{ readonly id: string; readonly requestId: string }> {
    const accepted = await this.api.ask(createSession, `${this.base}/sessions`, {
      body: { kind: 'provider', name: 'bash', runtime: 'subprocess', ...body },
    })
    return { id: accepted.session_id, requestId: accepted.request_id }
  }

  /** A session whose program takes commands: bash on a terminal, unless `body` says otherwise. */
  async start(body: Created = {}): Promise<string> {
    const { id, requestId } = await this.accept(body)
    const request = await outcome(this.api, requestId)
    assert.equal(request.status, 'succeeded', JSON.stringify(request))
    return id
  }

  /** Our own agent, behind ACP. */
  startTalker = (body: Created = {}): Promise<string> => this.start({ name: 'talker', runtime: 'acp', ...body })

  get = (id: string): Promise<SessionResponse> => this.api.ask(getSession, `${this.base}${sessionPath(id)}`)

  until(id: string, what: string, holds: (session: SessionResponse) => boolean): Promise<SessionResponse> {
    let last: SessionResponse | undefined
    return eventually(`${id} ${what}`, async () => {
      // One that the files want may not have been made yet.
      if ((await this.send('GET', sessionPath(id))).status === 404) return undefined
      last = await this.get(id)
      return holds(last) ? last : undefined
    }).catch((error: unknown) => assert.fail(`${String(error)}: ${JSON.stringify(last)}`))
  }

  is = (id: string, state: SessionResponse['state']): Promise<SessionResponse> =>
    this.until(id, `is ${state}`, (session) => session.state === state)

  /** Says something; resolves when the request has ended well. */
  async message(id: string, message: string): Promise<void> {
    const path = `${this.base}${sessionPath(id)}/messages`
    const accepted = await this.api.ask(sendSessionMessage, path, { body: { message } })
    const request = await outcome(this.api, accepted.request_id)
    assert.equal(request.status, 'succeeded', JSON.stringify(request))
  }

  submit(id: string, message: string, intent: 'default' | 'follow_up' | 'interrupt_now') {
    return this.api.ask(submitSession, `${this.base}${sessionPath(id)}/submit`, { body: { message, intent } })
  }

  /** The token that its process has, as the process itself tells it: a shell. */
  async tokenOf(id: string): Promise<string> {
    const file = join(this.dir, `${id}-${(await this.get(id)).generation}`)
    await this.message(id, `printf %s "$SVC_TOKEN" > ${file}.new; mv ${file}.new ${file}`)
    return eventually(`${id} writes its token`, () => (existsSync(file) ? readFileSync(file, 'utf8') : undefined))
  }

  async deliveries(id: string): Promise<readonly DeliveryInfo[]> {
    const { items } = await this.api.ask(listSessionDeliveries, `${this.base}${sessionPath(id)}/deliveries?limit=1000`)
    return items.toReversed()
  }

  async delivered(id: string, deliveryId: string): Promise<void> {
    await eventually(`${deliveryId} is delivered`, async () =>
      (await this.deliveries(id)).some((one) => one.id === deliveryId && one.state === 'delivered') ? true : undefined,
    )
  }

  async pending(id: string): Promise<PendingInteraction | undefined> {
    return (await this.api.ask(getSessionPending, `${this.base}${sessionPath(id)}/pending`)).pending
  }

  /** Makes our agent ask for a permission; resolves when the question is open. */
  async ask(id: string, tools = 'knife'): Promise<PendingInteraction> {
    await this.message(id, `ask ${tools}`)
    return eventually(`${id} asks`, () => this.pending(id))
  }

  transcript(id: string, query = '', format: TranscriptFormat = 'conversation'): Promise<SessionTranscriptResponse> {
    const path = `${this.base}${sessionPath(id)}/transcript?format=${format}${query}`
    return this.api.ask(getSessionTranscript, path)
  }

  async turns(id: string, query = '&limit=1000'): Promise<readonly OutputTurn[]> {
    return (await this.transcript(id, query)).turns ?? []
  }

  /** A carriage return at the beginning of a piece takes back the line before it. */
  async text(id: string): Promise<string> {
    const text = (await this.turns(id)).map(({ text }) => text).join('')
    const lines = text.split('\n').map((line) => line.slice(line.lastIndexOf('\r') + 1))
    return lines.join('\n')
  }

  /**
   * Waits until the transcript holds this, and answers with all of it. What was typed is in there too: a program is waited
   * for by what only it says.
   */
  said(id: string, text: string | RegExp): Promise<string> {
    return eventually(`${id} said ${text}`, async () => {
      const all = await this.text(id)
      return (typeof text === 'string' ? all.includes(text) : text.test(all)) ? all : undefined
    })
  }

  async close(id: string): Promise<void> {
    await this.done('POST', `${sessionPath(id)}/close`)
  }

  /** Closes and forgets it. */
  async forget(id: string): Promise<void> {
    await this.done('POST', `${sessionPath(id)}/close?delete=true`)
  }

  /** Pid of the process that hosts the session, for tests that stop it in its tracks. */
  hostOf(id: string): number {
    const runs = join('.svc', 'runtime', 'sessions', id)
    const generations = readdirSync(join(this.dir, runs)).map(Number)
    const host: unknown = JSON.parse(this.read(join(runs, String(Math.max(...generations)), 'host.json')))
    return Number(at(host, 'pid'))
  }
}

export const sessionPath = (id: string): string => `/sessions/${encodeURIComponent(id)}`

/** A city of its own with the programs in its files. */
export async function newSessionCity({ api, work }: Running, name: string, more = ''): Promise<SessionApi> {
  const city = new SessionApi(api, name, await newCity(api, work, name))
  await city.configure(more)
  return city
}

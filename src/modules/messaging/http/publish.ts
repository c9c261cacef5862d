/** Handler of what is said in chats from here. */
import { MAX_WAIT_MS } from '../../../contract/base/paging.ts'
import { cut } from '../../../contract/base/text.ts'
import type { PublishRequest } from '../../../contract/messaging/transcripts.ts'
import { ok } from '../../../kernel/call.ts'
import type { Caller } from '../../../kernel/caller.ts'
import { fingerprintOf, type IdempotencyClaim } from '../../../kernel/idempotency.ts'
import { durationMs, invalidField, Problem, problem } from '../../../kernel/problem.ts'
import type { Address } from '../../../messaging/address.ts'
import type { Speaker } from '../publish/ports.ts'
import type { MessagingCity, TranscriptHandlers } from './city.ts'
import { selfOf } from './reading.ts'

const DEFAULT_PUBLISH_WAIT_MS = 5_000

export const publishHandlers: Pick<TranscriptHandlers, 'publish-transcript-entry'> = {
  'publish-transcript-entry': async ({ city, params, query, body, caller, actor, claim, signal }) => {
    const transcript = city.transcripts.need(params.transcriptId)
    const key = body.idempotency_key
    const scope = `POST /v0/city/${city.name}/transcripts/${transcript.id}/entries`
    const inBody: IdempotencyClaim | undefined =
      key === undefined ? undefined : { scope, key, fingerprint: fingerprintOf(body) }
    return ok(
      await city.publisher.publish({
        transcript,
        request: body,
        speaker: speakerOf(city, caller, body),
        operator: caller.kind === 'token' ? caller.name : 'operator',
        actor,
        claim: claim === undefined ? inBody : { ...claim, scope },
        waitMs: waitOf(query.wait),
        signal,
      }),
    )
  },
}

function waitOf(text: string | undefined): number {
  const ms = text === undefined ? DEFAULT_PUBLISH_WAIT_MS : durationMs('query.wait', text)
  if (ms > MAX_WAIT_MS) throw invalidField('query.wait', 'must be at most 2m', text)
  return ms
}

/** A session speaks for nobody else. */
function speakerOf(city: MessagingCity, caller: Caller, body: PublishRequest): Speaker | undefined {
  const { session_id: session, agent_name: agent } = body
  if (session !== undefined && agent !== undefined)
    throw invalidField('body.agent_name', 'stands beside session_id: name one of them')
  const self = caller.kind === 'agent' ? city.addresses().ofSession(caller.session) : undefined
  const at = session === undefined ? 'body.agent_name' : 'body.session_id'
  const named = session ?? agent
  const meant = named === undefined ? self : sessionMeant(city, named, at)
  if (meant === undefined) return undefined
  if (self !== undefined && selfOf(city, caller) !== undefined && meant.mailbox !== self.mailbox)
    throw problem(
      'session-forbidden',
      `${at}: this token is that of ${self.display}, who cannot speak as ${meant.display}`,
    )
  return { mailbox: meant.mailbox, display: meant.display, session_id: meant.session_id ?? '' }
}

function sessionMeant(city: MessagingCity, word: string, at: string): Address {
  const meant = resolved(city, word)
  if (meant.mailbox === 'human')
    throw invalidField(at, 'is no session; whoever names none speaks as the operator', word)
  return meant
}

function resolved(city: MessagingCity, word: string): Address {
  try {
    return city.addresses().resolve(word)
  } catch (error) {
    if (error instanceof Problem && error.code === 'recipient-not-found')
      throw problem('session-not-found', `session not found: ${cut(word, 80)}`)
    throw error
  }
}

/** Answers on their way to an agent: what became of them, also where somebody else was faster. */
import type { Client } from '../../client/client.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { Question, Reply } from './choices.ts'

export interface Asked {
  readonly city: string
  readonly session: string
  readonly question: Question
}

/** `gone`: it is no longer asked. `refused`: it is still asked, and has no such answer. */
export type Outcome = 'answered' | 'gone' | 'refused'

const GONE: readonly string[] = ['no-pending', 'invalid-interaction', 'session-not-found']

/** Only for the question that was seen. */
export async function sendAnswer(client: Client, asked: Asked, reply: Reply, signal: AbortSignal): Promise<Outcome> {
  const { city: cityName, session: id, question } = asked
  const params = { cityName, id }
  try {
    await client.call('respond-session', { params, body: { ...reply, request_id: question.request_id }, signal })
    return 'answered'
  } catch (error) {
    if (!(error instanceof ApiProblem) || !GONE.includes(error.code)) throw error
    // The server says the same of a question that is gone and of one that has no such answer.
    return (await openQuestion(client, params, signal))?.request_id === question.request_id ? 'refused' : 'gone'
  }
}

/** What the session waits for, if anything. */
export async function openQuestion(
  client: Client,
  params: { readonly cityName: string; readonly id: string },
  signal: AbortSignal,
): Promise<Question | undefined> {
  try {
    return (await client.call('get-session-pending', { params, signal })).body.pending
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return undefined
    throw error
  }
}

/** Transcripts for people: what was said, and what is said while they look. */

import type { Client } from '../../client/client.ts'
import { follow } from '../../client/follow.ts'
import { ApiProblem, isRecord } from '../../client/problems.ts'
import type { PendingInteraction } from '../../contract/sessions/session-model.ts'
import type { OutputTurn } from '../../contract/sessions/session-transcript.ts'
import type { Context } from '../base/context.ts'
import { isRegistered } from '../base/discovery.ts'
import { jsonLine } from '../base/output.ts'
import { TurnText } from './turn-text.ts'

/** A page of a transcript: turns, or a JSON text a line in the formats that programs read. */
export async function printTranscript(
  context: Context,
  { turns, messages, structured_messages: structured }: Transcript,
): Promise<void> {
  const text = new TurnText(false)
  const said = (turns ?? []).map((turn) => text.add(turn)).join('')
  await context.print.raw(`${said}${text.breakLine()}`)
  await context.print.lines([...(messages ?? []), ...(structured ?? [])].map(jsonLine))
}

interface Transcript {
  readonly turns?: readonly OutputTurn[]
  readonly messages?: readonly unknown[]
  readonly structured_messages?: readonly unknown[]
}

export interface LiveOptions {
  readonly operation: 'stream-session' | 'stream-agent-output'
  readonly params: { readonly cityName: string; readonly id?: string }
  readonly query: object
  readonly signal: AbortSignal
  /** Where lines are typed in between. */
  readonly text?: TurnText
  /** Takes the question that is open, and that none is: who can answer it here shows it in another way. */
  readonly onQuestion?: (question: PendingInteraction | undefined) => Promise<void>
}

/** Text on its way to a terminal or a pipe. */
export const liveText = ({ io }: Context): TurnText => new TurnText(io.stdout.isTerminal)

/** Prints a stream of turns until it ends; what waits for an answer is said on stderr. */
export async function printLive(context: Context, client: Client, options: LiveOptions): Promise<void> {
  const { operation, text = liveText(context), onQuestion, ...where } = options
  const { print, io } = context
  // In a terminal both streams share the line.
  const note = async (sentence: string): Promise<void> => {
    if (io.stdout.isTerminal && !context.options.quiet) await print.raw(text.breakLine())
    await context.note(sentence)
  }
  const frames = follow(client, operation, {
    ...where,
    onRetry: ({ reason, delayMs }) => void note(`${reason}; again in ${Math.round(delayMs / 100) / 10} s`),
    mayReturn: async (problem) => {
      using limit = context.within()
      return isOfCity(problem) && (await isRegistered(client, where.params.cityName, limit.signal))
    },
  })
  let followed = false
  let asked: unknown
  try {
    for await (const { event, data } of frames) {
      followed = true
      const said = parseFrame(data)
      if (!print.isForPeople && print.format !== 'name')
        await print.records([`{"event":${JSON.stringify(event)},"data":${data}}`])
      else await print.raw(shownOf(event, said, text))
      // Told again after every reconnection, said once.
      if (event === 'pending' && said['request_id'] !== asked)
        await (onQuestion?.(questionOf(said)) ?? note(pendingText(said, where.params.id)))
      if (event === 'pending_cleared') await onQuestion?.(undefined)
      if (event.startsWith('pending')) asked = event === 'pending' ? said['request_id'] : undefined
      if (event !== 'ended') continue
      await note(`the session ended: ${String(said['state'])} (${String(said['reason'])})`)
      if (operation === 'stream-session') return
    }
  } catch (error) {
    // Its stream ends with it; that this is why shows when it is asked for again.
    if (!followed || !(error instanceof ApiProblem) || error.code !== 'agent-not-found') throw error
    await note('the agent is gone')
  } finally {
    if (context.print.isForPeople) await print.raw(text.breakLine())
  }
}

/** It is not running, which passes; a session or an agent that is gone does not come back. */
const isOfCity = ({ code }: ApiProblem): boolean => code === 'city-not-found'

type Json = Readonly<Record<string, unknown>>

function parseFrame(data: string): Json {
  const value: unknown = JSON.parse(data)
  return isRecord(value) ? value : {}
}

function shownOf(event: string, said: Json, text: TurnText): string {
  if (event === 'turn')
    return listOf(said['turns'])
      .filter(isTurn)
      .map((turn) => text.add(turn))
      .join('')
  if (event === 'activity') return said['activity'] === 'idle' ? text.pause() : ''
  if (event === 'message' || event === 'structured')
    return listOf(said['messages'] ?? said['structured_messages'])
      .map((one) => `${jsonLine(one)}\n`)
      .join('')
  return ''
}

const ROLES: readonly unknown[] = [
  'user',
  'assistant',
  'system',
  'result',
  'output',
] satisfies readonly OutputTurn['role'][]

const isTurn = (value: unknown): value is OutputTurn =>
  isRecord(value) &&
  typeof value['id'] === 'string' &&
  typeof value['text'] === 'string' &&
  ROLES.includes(value['role'])

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** A frame as the question that it is, as far as it is one. */
function questionOf(said: Json): PendingInteraction {
  const { request_id: id, kind, prompt, options, option_ids: ids, metadata } = said
  const texts = (value: unknown) => listOf(value).map(String)
  return {
    request_id: String(id),
    kind: kind === 'question' ? kind : 'approval',
    options: texts(options),
    option_ids: texts(ids),
    ...(typeof prompt === 'string' ? { prompt } : {}),
    ...(isRecord(metadata)
      ? { metadata: Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, String(value)])) }
      : {}),
  }
}

/** `session`: the one that is followed, where it is one. */
function pendingText(said: Json, session: string | undefined): string {
  const options = listOf(said['options'])
  const choice = options.length === 0 ? '' : ` [${options.map(String).join(' | ')}]`
  const how = session === undefined ? '' : `; answer with: svcctl session respond ${session} <answer>`
  return `waits for an answer: ${String(said['prompt'] ?? said['kind'])}${choice}${how}`
}

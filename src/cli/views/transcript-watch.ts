/** A conversation of a chat as it goes on: its last entries, then what is said and what becomes of it. */
import { follow } from '../../client/follow.ts'
import { type ApiProblem, isRecord } from '../../client/problems.ts'
import type { TranscriptEntry } from '../../contract/messaging/entries.ts'
import type { Context } from '../base/context.ts'
import { isRegistered } from '../base/discovery.ts'
import { EXIT } from '../base/failure.ts'
import type { Call } from '../framework/declaration.ts'
import { entryLines } from './transcript-views.ts'

/** Of what was said before, where nobody says from where on. */
const LAST = 10

/** Until it is stopped. */
export async function watchTranscript(call: Call<'stream-transcript'>): Promise<number> {
  const { context, client, cityName, said } = call
  const params = { cityName, transcriptId: String(said.transcriptId) }
  const after = said.after_sequence ?? (await printLast(call, params))
  const frames = follow(client, 'stream-transcript', {
    params,
    query: { after_sequence: after },
    signal: context.io.reading(),
    onRetry: ({ reason, delayMs }) => void context.note(`${reason}; again in ${Math.round(delayMs / 100) / 10} s`),
    mayReturn: async (problem) => {
      using limit = context.within()
      return isOfCity(problem) && (await isRegistered(client, cityName, limit.signal))
    },
  })
  for await (const { event, data } of frames) await printFrame(context, event, data)
  return EXIT.ok
}

/** It is not running, which passes. */
const isOfCity = ({ code }: ApiProblem): boolean => code === 'city-not-found'

/** Where the stream goes on. */
async function printLast(
  { context, client }: Call<'stream-transcript'>,
  params: { readonly cityName: string; readonly transcriptId: string },
): Promise<string> {
  using limit = context.within()
  const query = { order: 'desc' as const, limit: LAST }
  const { body } = await client.call('list-transcript-entries', { params, query, signal: limit.signal })
  const entries = body.items.toReversed()
  for (const entry of entries) await printEntry(context, entry)
  return String(entries.at(-1)?.sequence ?? 0)
}

async function printFrame(context: Context, event: string, data: string): Promise<void> {
  if (!context.print.isForPeople && context.print.format !== 'name')
    return context.print.records([`{"event":${JSON.stringify(event)},"data":${data}}`])
  if (event === 'entry') return context.print.lines([entryLines(JSON.parse(data))])
  const said: unknown = JSON.parse(data)
  if (event === 'delivery' && isRecord(said))
    await context.print.lines([`${String(said['sequence']).padStart(4)}  is ${String(said['status'])}`])
}

function printEntry(context: Context, entry: TranscriptEntry): Promise<void> {
  return printFrame(context, 'entry', JSON.stringify(entry))
}

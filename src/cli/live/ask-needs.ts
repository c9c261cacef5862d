/** `svcctl needs` in a terminal: what waits, one after the other, answered by number. */

import type { Client } from '../../client/client.ts'
import type { Context } from '../base/context.ts'
import type { Terminal } from '../base/io.ts'
import { NEED, type Need, needsInScope } from '../views/needs.ts'
import { type Outcome, sendAnswer } from './answering.ts'
import { type Reply, replyTo } from './choices.ts'
import { askLine } from './prompt.ts'
import { outcomeText, wholeQuestion } from './question-text.ts'

type Step = 'next' | 'leave'

/** Until nothing waits, or whoever is asked leaves. */
export async function askNeeds(context: Context, terminal: Terminal): Promise<void> {
  const skipped = new Set<string>()
  for (;;) {
    const needs = await lookUp(context)
    await context.print.list({ items: needs.map((need, at) => ({ need, number: at + 1 })), ...NUMBERED, json: '' })
    if (needs.length === 0) return context.print.lines(['nothing waits for you'])
    const fresh = needs.findIndex((need) => !skipped.has(keyOf(need)))
    if (fresh < 0 && skipped.size > 0) skipped.clear()
    const need = await which(context, terminal, needs, Math.max(fresh, 0))
    if (need === undefined) return
    if ((await askOne(context, terminal, need, skipped)) === 'leave') return
  }
}

const NUMBERED = {
  columns: [
    { header: '#', value: ({ number }: Numbered) => number },
    ...NEED.columns.map((column) => ({ ...column, value: ({ need }: Numbered) => column.value(need) })),
  ],
  name: ({ need }: Numbered) => NEED.name(need),
}
interface Numbered {
  readonly need: Need
  readonly number: number
}

const keyOf = ({ city, session_id, request_id }: Need): string => `${city} ${session_id} ${request_id}`

async function lookUp(context: Context): Promise<readonly Need[]> {
  using limit = context.within()
  return (await needsInScope(context, limit.signal)).items
}

async function which(
  context: Context,
  terminal: Terminal,
  needs: readonly Need[],
  first: number,
): Promise<Need | undefined> {
  const range = needs.length === 1 ? '' : ` 1-${needs.length},`
  for (;;) {
    const word = await askLine(context.io, terminal, `Which?${range} Enter for ${first + 1}, q leaves: `)
    if (word === undefined || word.trim() === 'q') return undefined
    const need = word.trim() === '' ? needs[first] : needs[Number(word) - 1]
    if (need !== undefined) return need
    await context.print.lines([`there is no ${word}`])
  }
}

async function askOne(context: Context, terminal: Terminal, need: Need, skipped: Set<string>): Promise<Step> {
  await context.print.lines(['', ...wholeQuestion(need, context.io.clock.now())])
  for (;;) {
    const word = (await askLine(context.io, terminal, 'Answer, s skips, q leaves: '))?.trim()
    if (word === undefined || word === 'q') return 'leave'
    if (word === 's') {
      skipped.add(keyOf(need))
      return 'next'
    }
    const reply = replyTo(need, word, { seesNumbers: true })
    if ('wrong' in reply) {
      if (word !== '') await context.print.lines([reply.wrong])
      continue
    }
    const outcome = await send(context, await context.client(), need, reply)
    await context.print.lines([outcomeText(outcome, need), ''])
    if (outcome !== 'refused') return 'next'
  }
}

async function send(context: Context, client: Client, need: Need, reply: Reply): Promise<Outcome> {
  using limit = context.within()
  return await sendAnswer(client, { city: need.city, session: need.session_id, question: need }, reply, limit.signal)
}

/** `svcctl needs` in a terminal: what waits, one after the other, answered by number. */

import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import type { Need } from '../../contract/needs.ts'
import type { Context } from '../base/context.ts'
import type { Terminal } from '../base/io.ts'
import { relativeTime } from '../base/output.ts'
import { NEED, type NeedQuery, needsInScope } from '../views/needs.ts'
import { printableLines } from '../views/turn-text.ts'
import { actOn } from './act-on-need.ts'
import { openQuestion, sendAnswer } from './answering.ts'
import { type Question, replyTo } from './choices.ts'
import { askLine } from './prompt.ts'
import { outcomeText, questionLines } from './question-text.ts'

type Step = 'next' | 'leave'

interface Asking {
  readonly context: Context
  readonly terminal: Terminal
  readonly client: Client
}

/** Until nothing waits, or whoever is asked leaves. */
export async function askNeeds(context: Context, terminal: Terminal, query: NeedQuery): Promise<void> {
  const asking = { context, terminal, client: await context.client() }
  const skipped = new Set<string>()
  let answered: string | undefined
  for (;;) {
    const needs = await lookUp(context, query, answered)
    await context.print.list({ items: needs.map((need, at) => ({ need, number: at + 1 })), ...NUMBERED, json: '' })
    if (needs.length === 0) return context.print.lines(['nothing waits for you'])
    const fresh = needs.findIndex(({ id }) => !skipped.has(id))
    if (fresh < 0 && skipped.size > 0) skipped.clear()
    const need = await which(asking, needs, Math.max(fresh, 0))
    if (need === undefined) return
    if ((await askOne(asking, need, skipped)) === 'leave') return
    answered = skipped.has(need.id) ? undefined : need.id
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

/** The list follows an answer within a moment: the one that was just answered is not shown once more. */
const CLEARED_WITHIN_MS = 2_000
const LOOK_MS = 50

async function lookUp(context: Context, query: NeedQuery, answered: string | undefined): Promise<readonly Need[]> {
  using limit = context.within()
  const { clock } = context.io
  const until = clock.now() + CLEARED_WITHIN_MS
  for (;;) {
    const needs = await needsInScope(context, { ...query, signal: limit.signal })
    if (!needs.some(({ id }) => id === answered) || clock.now() >= until) return needs
    await delay(clock, LOOK_MS, limit.signal)
  }
}

async function which({ context, terminal }: Asking, needs: readonly Need[], first: number): Promise<Need | undefined> {
  const range = needs.length === 1 ? '' : ` 1-${needs.length},`
  for (;;) {
    const word = await askLine(context.io, terminal, `Which?${range} Enter for ${first + 1}, q leaves: `)
    if (word === undefined || word.trim() === 'q') return undefined
    const need = word.trim() === '' ? needs[first] : needs[Number(word) - 1]
    if (need !== undefined) return need
    await context.print.lines([`there is no ${word}`])
  }
}

async function askOne(asking: Asking, need: Need, skipped: Set<string>): Promise<Step> {
  const { context, client } = asking
  const isQuestion = need.kind === 'approval' || need.kind === 'question'
  const params = { cityName: need.city, id: need.subject.id }
  const question = isQuestion ? await withLimit(context, (signal) => openQuestion(client, params, signal)) : undefined
  if (isQuestion && question === undefined) {
    await context.print.lines([outcomeText('gone', { name: need.subject.name, question: undefined }), ''])
    return 'next'
  }
  await context.print.lines(['', ...introduction(need, question, context.io.clock.now())])
  const answer = (word: string) =>
    question === undefined ? byOperation(asking, need, word) : byReply(asking, need, { question, word })
  return await askUntil(asking, { need, skipped, answer })
}

interface Answering {
  readonly need: Need
  readonly skipped: Set<string>
  /** True where the need is dealt with. */
  readonly answer: (word: string) => Promise<boolean>
}

async function askUntil({ context, terminal }: Asking, { need, skipped, answer }: Answering): Promise<Step> {
  for (;;) {
    const word = (await askLine(context.io, terminal, 'Answer, s skips, q leaves: '))?.trim()
    if (word === undefined || word === 'q') return 'leave'
    if (word === 's') {
      skipped.add(need.id)
      return 'next'
    }
    if (word !== '' && (await answer(word))) return 'next'
  }
}

/** All of it: who needs what since when, and the choices with their numbers. */
function introduction(need: Need, question: Question | undefined, now: number): readonly string[] {
  const { city, subject, title, since, detail, content, operations, kind } = need
  const what = kind === 'approval' ? 'asks for approval' : 'asks'
  const head = question === undefined ? title : `${subject.name} ${what}`
  const body =
    question === undefined
      ? [
          ...[detail, content].flatMap((text) =>
            text === undefined ? [] : text.split('\n').map((line) => `  ${line}`),
          ),
          ...operations.map(({ label, command }, at) => `  ${at + 1}) ${label}: ${command}`),
        ]
      : questionLines(question)
  return [`${city}: ${head}, ${relativeTime(since, now)}`, ...body].map(printableLines)
}

async function byReply(
  { context, client }: Asking,
  { city, subject }: Need,
  { question, word }: { readonly question: Question; readonly word: string },
): Promise<boolean> {
  const reply = replyTo(question, word, { seesNumbers: true })
  if ('wrong' in reply) {
    await context.print.lines([reply.wrong])
    return false
  }
  const asked = { city, session: subject.id, question }
  const outcome = await withLimit(context, (signal) => sendAnswer(client, asked, reply, signal))
  await context.print.lines([outcomeText(outcome, { name: subject.name, question }), ''])
  return outcome !== 'refused'
}

async function byOperation({ context, client }: Asking, need: Need, word: string): Promise<boolean> {
  const { operations } = need
  const chosen =
    operations[Number(word) - 1] ?? operations.find(({ label }) => label.toLowerCase() === word.toLowerCase())
  if (chosen === undefined) {
    const names = operations.map(({ label }, at) => `${at + 1} ${label}`).join(', ')
    await context.print.lines([`there is no choice "${word}": ${names}`])
    return false
  }
  const isDone = await withLimit(context, (signal) => actOn({ client, city: need.city, signal }, chosen))
  await context.print.lines([isDone ? `done: ${chosen.command}` : `type: ${chosen.command}`, ''])
  return isDone
}

async function withLimit<T>(context: Context, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  using limit = context.within()
  return await work(limit.signal)
}

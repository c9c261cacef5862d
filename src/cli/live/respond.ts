/** `svcctl session respond`: an answer by number, name or id; in a terminal it can be asked for. */
import type { Reply as Answered } from '../../client/client.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import type { Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, Failure, usageError } from '../base/failure.ts'
import { bodyOf, type Fields } from '../framework/fields.ts'
import { type InCity, inCity } from '../framework/in-city.ts'
import { actionOf, possible, type Question, type Reply, replyTo, takesText } from './choices.ts'
import { askLine } from './prompt.ts'
import { questionLines } from './question-text.ts'

const paramsOf = ({ cityName, input }: InCity) => ({ cityName, id: input.required('session') })

/** What the command line answers, to the question that is open; what is not said is asked for. */
export async function answerFields(context: Context, input: Input): Promise<Fields> {
  const { body } = await inCity(context, input, (city) =>
    city.client.call('get-session-pending', { params: paramsOf(city), ...city.options }),
  )
  const { pending: question } = body
  const [text, request] = [input.text('text'), input.text('request')]
  const said = text === undefined ? {} : { text }
  if (question === undefined || (request !== undefined && request !== question.request_id)) {
    const named = request === undefined ? {} : { request_id: request }
    return { ...unseen(input), ...said, ...named }
  }
  return { ...(await replyOf(context, input, question)), ...said, request_id: question.request_id }
}

/** Nothing to choose from: the server says what is wrong with that. */
function unseen(input: Input): Fields {
  const word = input.text('choice')
  if (word === undefined)
    throw new Failure(EXIT.conflict, `session ${input.required('session')} does not ask that, or asks nothing`)
  const action = actionOf(word)
  return action === undefined ? { action: 'option', option_id: word } : { action }
}

async function replyOf(context: Context, input: Input, question: Question): Promise<Reply> {
  const word = input.text('choice')
  if (word !== undefined) return understood(replyTo(question, word, { seesNumbers: false }))
  if (input.text('text') !== undefined && takesText(question)) return { action: 'approve' }
  const { terminal } = context.io
  if (terminal === undefined || !context.print.isForPeople)
    throw usageError('which choice is missing', possible(question))
  await context.print.lines(questionLines(question))
  const said = (await askLine(context.io, terminal, 'Answer: '))?.trim()
  if (said === undefined || said === '') throw new Failure(EXIT.failure, 'not answered')
  return understood(replyTo(question, said, { seesNumbers: true }))
}

function understood(reply: Reply | { readonly wrong: string }): Reply {
  if ('wrong' in reply) throw usageError(reply.wrong)
  return reply
}

/** Sends it; a question that has no such answer names those that it has. */
export async function respondTo(city: InCity, fields: Fields): Promise<Answered<SessionResponse>> {
  const params = paramsOf(city)
  try {
    return await city.client.call('respond-session', { params, body: bodyOf<Reply>(fields), ...city.options })
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== 'no-pending') throw error
    const { body } = await city.client.call('get-session-pending', { params, ...city.options })
    const { pending: question } = body
    if (question === undefined || question.request_id !== fields['request_id']) throw error
    throw usageError(`the agent offers no such answer: ${possible(question)}`)
  }
}

/** How the APIs of models are spoken: what a harness asks, in one shape, and an answer in the dialect that it asked in. */
import type { ServerResponse } from 'node:http'
import type { ModelReply, ModelRequest } from './model-server.ts'

/** What every answer costs, in tokens. */
const SPENT = { input: 11, output: 7 } as const

interface Dialect {
  readonly parse: (body: unknown) => ModelRequest
  readonly answer: (response: ServerResponse, reply: ModelReply, streamed: boolean) => void
}

/** By the path of the request. */
export function dialectOf(path: string): Dialect {
  if (/:(?:stream)?[gG]enerateContent/.test(path)) return gemini
  if (/\/messages(?:\?|$)/.test(path)) return anthropic
  if (/\/responses(?:\?|$)/.test(path)) return responses
  return chat
}

// ---- OpenAI, chat completions ---------------------------------------------------------------------------------------

const chat: Dialect = {
  parse(body) {
    const { messages, tools } = fields(body)
    return {
      messages: list(messages).map((message) => ({ role: String(message['role']), content: message['content'] })),
      tools: list(tools).map((tool) => String(fields(tool['function'])['name'])),
    }
  },
  answer(response, reply) {
    const send = frames(response)
    const id = newId('chatcmpl')
    const chunk = (delta: object, finish: string | null, more: object = {}) => {
      const choices = [{ index: 0, delta, finish_reason: finish }]
      send({ id, object: 'chat.completion.chunk', created: 1, model: 'scripted', choices, ...more })
    }
    chunk({ role: 'assistant', content: '' }, null)
    if ('say' in reply) for (const content of words(reply.say)) chunk({ content }, null)
    else {
      const call = { name: reply.call, arguments: JSON.stringify(reply.arguments) }
      chunk({ tool_calls: [{ index: 0, id: newId(`call_${reply.call}`), type: 'function', function: call }] }, null)
    }
    const { input, output } = SPENT
    chunk({}, 'say' in reply ? 'stop' : 'tool_calls', {
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    })
    response.end('data: [DONE]\n\n')
  },
}

// ---- OpenAI, responses ----------------------------------------------------------------------------------------------

const responses: Dialect = {
  parse(body) {
    const { input, tools } = fields(body)
    return {
      messages: list(input).map((item) =>
        item['type'] === 'function_call_output'
          ? { role: 'tool', content: item['output'] }
          : { role: String(item['role'] ?? 'assistant'), content: item['content'] },
      ),
      tools: list(tools).map((tool) => String(tool['name'])),
    }
  },
  answer(response, reply) {
    const send = frames(response)
    const [id, itemId] = [newId('resp'), newId('item')]
    const { input, output } = SPENT
    const item =
      'say' in reply
        ? { type: 'message', id: itemId, role: 'assistant', content: [{ type: 'output_text', text: reply.say }] }
        : {
            type: 'function_call',
            id: itemId,
            call_id: newId(`call_${reply.call}`),
            name: reply.call,
            arguments: JSON.stringify(reply.arguments),
          }
    send({ type: 'response.created', response: { id } }, 'response.created')
    send({ type: 'response.output_item.added', output_index: 0, item }, 'response.output_item.added')
    if ('say' in reply)
      for (const delta of words(reply.say))
        send({ type: 'response.output_text.delta', item_id: itemId, delta }, 'response.output_text.delta')
    send({ type: 'response.output_item.done', output_index: 0, item }, 'response.output_item.done')
    const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output }
    send(
      { type: 'response.completed', response: { id, status: 'completed', output: [item], usage } },
      'response.completed',
    )
    response.end()
  },
}

// ---- Anthropic, messages --------------------------------------------------------------------------------------------

const anthropic: Dialect = {
  parse(body) {
    const { messages, tools } = fields(body)
    return {
      messages: list(messages).map((message) => {
        const parts = list(message['content'])
        const result = parts.find(({ type }) => type === 'tool_result')
        return result === undefined
          ? { role: String(message['role']), content: message['content'] }
          : { role: 'tool', content: textOf(result['content']) }
      }),
      tools: list(tools).map((tool) => String(tool['name'])),
    }
  },
  answer(response, reply) {
    const send = frames(response)
    const tell = (type: string, more: object) => send({ type, ...more }, type)
    const message = { id: newId('msg'), type: 'message', role: 'assistant', model: 'scripted', content: [] }
    tell('message_start', { message: { ...message, usage: { input_tokens: SPENT.input, output_tokens: 1 } } })
    const block =
      'say' in reply
        ? { type: 'text', text: '' }
        : { type: 'tool_use', id: newId(`call_${reply.call}`), name: reply.call, input: {} }
    tell('content_block_start', { index: 0, content_block: block })
    const deltas =
      'say' in reply
        ? words(reply.say).map((text) => ({ type: 'text_delta', text }))
        : [{ type: 'input_json_delta', partial_json: JSON.stringify(reply.arguments) }]
    for (const delta of deltas) tell('content_block_delta', { index: 0, delta })
    tell('content_block_stop', { index: 0 })
    const stop = 'say' in reply ? 'end_turn' : 'tool_use'
    tell('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: SPENT.output } })
    tell('message_stop', {})
    response.end()
  },
}

// ---- Gemini ---------------------------------------------------------------------------------------------------------

const gemini: Dialect = {
  parse(body) {
    const { contents, tools } = fields(body)
    return {
      messages: list(contents).map(({ role, parts }) => {
        const result = list(parts).find((part) => part['functionResponse'] !== undefined)
        // What a person says after an interruption stands beside what came of the call.
        const saysMore = list(parts).some(({ text }) => typeof text === 'string')
        if (result === undefined || saysMore) return { role: String(role), content: parts }
        return { role: 'tool', content: JSON.stringify(fields(result['functionResponse'])['response']) }
      }),
      tools: list(tools).flatMap((tool) => list(tool['functionDeclarations']).map(({ name }) => String(name))),
    }
  },
  answer(response, reply, streamed) {
    const { input, output } = SPENT
    const part =
      'say' in reply
        ? { text: reply.say }
        : { functionCall: { name: reply.call, args: reply.arguments, id: newId(`call_${reply.call}`) } }
    const answer = {
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output },
      modelVersion: 'scripted',
    }
    if (streamed) {
      frames(response)(answer)
      response.end()
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer))
  },
}

// ---- Shared ---------------------------------------------------------------------------------------------------------

function frames(response: ServerResponse): (data: object, event?: string) => void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  return (data, event) =>
    response.write(`${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`)
}

/** No id is given twice, over restarts neither: a harness takes messages with the same id for parts of one. */
let ids = 0
const newId = (kind: string) => `${kind}_${++ids}`

const words = (text: string) => text.split(/(?<= )/)
const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : list(content)
        .map(({ text }) => String(text ?? ''))
        .join('')
const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {}
const list = (value: unknown) => (Array.isArray(value) ? value.map(fields) : [])

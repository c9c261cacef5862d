/**
 * A model that says what a test tells it to: the streamed chat completions of the OpenAI API, on loopback. Each request
 * takes the next reply of the script; a request for which there is none gets `otherwise`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const { createServer } = process.getBuiltinModule('node:http')

export type ModelReply =
  | { readonly say: string }
  | { readonly call: string; readonly arguments: Readonly<Record<string, unknown>> }

export interface ModelRequest {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools: readonly string[]
}

export interface ModelServer extends AsyncDisposable {
  /** For a harness's `baseURL`. */
  readonly url: string
  readonly requests: readonly ModelRequest[]
}

/** `script` decides by what was asked: harnesses also ask for titles and summaries. */
export async function startModelServer(script: (request: ModelRequest) => ModelReply): Promise<ModelServer> {
  const requests: ModelRequest[] = []
  const server = createServer((request, response) => {
    void readJson(request).then((body) => {
      const asked = parseRequest(body)
      requests.push(asked)
      stream(response, script(asked))
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

function parseRequest(body: unknown): ModelRequest {
  const { messages, tools } = fields(body)
  return {
    messages: list(messages).map((message) => ({ role: String(message['role']), content: message['content'] })),
    tools: list(tools).map((tool) => String(fields(tool['function'])['name'])),
  }
}

function stream(response: ServerResponse, reply: ModelReply): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (delta: object, finish: string | null, more: object = {}) => {
    const choices = [{ index: 0, delta, finish_reason: finish }]
    const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices, ...more }
    response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  send({ role: 'assistant', content: '' }, null)
  if ('say' in reply) for (const word of reply.say.split(/(?<= )/)) send({ content: word }, null)
  else {
    const call = { name: reply.call, arguments: JSON.stringify(reply.arguments) }
    send({ tool_calls: [{ index: 0, id: `call_${reply.call}`, type: 'function', function: call }] }, null)
  }
  send({}, 'say' in reply ? 'stop' : 'tool_calls', {
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  })
  response.end('data: [DONE]\n\n')
}

const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? { ...value } : {}
const list = (value: unknown) => (Array.isArray(value) ? value.map(fields) : [])

/**
 * A model that says what a test tells it to, on loopback, in the dialects that harnesses speak: chat completions and
 * responses of OpenAI, messages of Anthropic, contents of Gemini; by the path that is asked for.
 */
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dialectOf } from './model-dialects.ts'

const { createServer } = process.getBuiltinModule('node:http')

export type ModelReply =
  | { readonly say: string }
  | { readonly call: string; readonly arguments: Readonly<Record<string, unknown>> }

/** `role` is `tool` for what came of a call. */
export interface ModelRequest {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools: readonly string[]
}

export interface ModelServer extends AsyncDisposable {
  /** For a harness's `baseURL`. */
  readonly url: string
  /** For those that add `/v1` by themselves. */
  readonly origin: string
  readonly requests: readonly ModelRequest[]
}

/** `script` decides by what was asked: harnesses also ask for titles and summaries. A promise is a model that thinks. */
export async function startModelServer(
  script: (request: ModelRequest) => ModelReply | Promise<ModelReply>,
): Promise<ModelServer> {
  const requests: ModelRequest[] = []
  const server = createServer((request, response) => {
    void readJson(request).then(async (body) => {
      const path = request.url ?? '/'
      // A count of tokens is answered by nothing that any harness needs.
      if (request.method !== 'POST' || path.includes('count')) {
        response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"not here"}}')
        return
      }
      const dialect = dialectOf(path)
      const asked = dialect.parse(body)
      requests.push(asked)
      const reply = await script(asked)
      if (!response.destroyed) dialect.answer(response, reply, !path.includes(':generateContent'))
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    origin: `http://127.0.0.1:${port}`,
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
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    return {}
  }
}

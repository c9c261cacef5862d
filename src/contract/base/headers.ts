/** Every header of the API, declared once; operations refer to them by name. */
import Type from 'typebox'

export const REQUEST_HEADERS = {
  'X-SVC-Request': {
    required: true,
    schema: Type.String({ minLength: 1 }),
    description: 'Any non-empty value; required on every mutation. A page of another origin cannot set it (spec §5).',
  },
  'Idempotency-Key': {
    required: false,
    schema: Type.String({ minLength: 1, maxLength: 255 }),
    description: 'Same key and body within 24 h: the first answer again, nothing done twice.',
  },
  'If-Match': {
    required: false,
    schema: Type.String({ minLength: 1 }),
    description: 'ETag of the version that the edit is based on; anything else answers 412.',
  },
  'Last-Event-ID': {
    required: false,
    schema: Type.String(),
    description: 'The `id:` of the last frame received; the stream goes on after it. Beats the query parameter.',
  },
} as const

export const RESPONSE_HEADERS = {
  'X-SVC-Request-Id': {
    schema: Type.String({ minLength: 1 }),
    description: 'Opaque id of this request, also in the server log. On every response.',
  },
  'X-SVC-Index': {
    schema: Type.String({ pattern: '^[0-9]+$' }),
    description: "Head of the city's event log, taken before the read.",
  },
  ETag: { schema: Type.String(), description: "Hash of the item's stored definition, quoted." },
  'SVC-Session-State': { schema: Type.String(), description: 'State of the session when the stream was opened.' },
  'SVC-Session-Status': {
    schema: Type.Literal('stopped'),
    description: '`stopped` where no process ran when the stream was opened.',
  },
  'SVC-Agent-Status': {
    schema: Type.Literal('stopped'),
    description: '`stopped` where the agent did not run: what follows is its transcript.',
  },
  'Retry-After': { schema: Type.Integer({ minimum: 0 }), description: 'Seconds to wait before another try.' },
  'WWW-Authenticate': { schema: Type.String(), description: 'How to authenticate: `Bearer`.' },
  Allow: { schema: Type.String(), description: 'Methods that the path takes.' },
} as const

export type RequestHeader = keyof typeof REQUEST_HEADERS
export type ResponseHeader = keyof typeof RESPONSE_HEADERS

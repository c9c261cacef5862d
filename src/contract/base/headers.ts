/** Every header of the API, declared once; operations refer to them by name. */
import { integer, literal, string } from './schema.ts'

export const REQUEST_HEADERS = {
  'X-SVC-Request': {
    required: true,
    schema: string({ minLength: 1 }),
    description: 'Any non-empty value; required on every mutation. A page of another origin cannot set it (spec §5).',
  },
  'Idempotency-Key': {
    required: false,
    schema: string({ minLength: 1, maxLength: 255 }),
    description: 'Same key and body within 24 h: the first answer again, nothing done twice.',
  },
  'If-Match': {
    required: false,
    schema: string({ minLength: 1 }),
    description: 'ETag of the version that the edit is based on; anything else answers 412.',
  },
  'If-None-Match': {
    required: false,
    schema: string(),
    description:
      'ETag of the version that the client has; where it is still this one the answer is 304, without a body.',
  },
  'Last-Event-ID': {
    required: false,
    schema: string(),
    description: 'The `id:` of the last frame received; the stream goes on after it. Beats the query parameter.',
  },
  'webhook-id': {
    required: false,
    schema: string({ minLength: 1, maxLength: 256 }),
    description:
      'Of a signed request (Standard Webhooks): its id. The same again within 24 h is answered as the first time, and does nothing.',
  },
  'webhook-timestamp': {
    required: false,
    schema: string({ minLength: 1, maxLength: 16 }),
    description: 'Of a signed request: when it was signed, in seconds since 1970; at most five minutes off.',
  },
  'webhook-signature': {
    required: false,
    schema: string({ minLength: 1, maxLength: 4096 }),
    description:
      'Of a signed request: `v1,<base64>`, of id, time and the bytes of the body; several with blanks between.',
  },
} as const

export const RESPONSE_HEADERS = {
  'X-SVC-Request-Id': {
    schema: string({ minLength: 1 }),
    description:
      'Opaque id of this request, on every response. The server log has it for refused requests (at most ten a second of a code) and for mutations that no record of their own tells of; at level `debug` for every request.',
  },
  'X-SVC-Index': {
    schema: string({ pattern: '^[0-9]+$' }),
    description: "Head of the city's event log, taken before the read.",
  },
  ETag: {
    schema: string(),
    description:
      "Hash of the item's stored definition, or of the document, quoted; for `If-Match` and `If-None-Match`.",
  },
  'X-SVC-Config-Rejected': {
    schema: string(),
    description: 'The change is written and waits: the first of the errors that keep the files from being in force.',
  },
  'SVC-Session-State': { schema: string(), description: 'State of the session when the stream was opened.' },
  'SVC-Session-Status': {
    schema: literal('stopped'),
    description: '`stopped` where no process ran when the stream was opened.',
  },
  'SVC-Agent-Status': {
    schema: literal('stopped'),
    description: '`stopped` where the agent did not run: what follows is its transcript.',
  },
  'Content-Disposition': { schema: string(), description: 'To be saved, and under which name.' },
  'Retry-After': { schema: integer({ minimum: 0 }), description: 'Seconds to wait before another try.' },
  'WWW-Authenticate': { schema: string(), description: 'How to authenticate: `Bearer`.' },
  Allow: { schema: string(), description: 'Methods that the path takes.' },
} as const

export type RequestHeader = keyof typeof REQUEST_HEADERS
export type ResponseHeader = keyof typeof RESPONSE_HEADERS

/** The contract's own documents, served beside what they describe (spec §1, sheet 02 §7). */

import { family } from './base/family.ts'
import { JsonObject } from './base/names.ts'
import { string } from './base/schema.ts'

const documents = family(
  { name: 'Documents', about: 'This contract, for machines and for people.' },
  '',
  { asset: string({ minLength: 1, examples: ['start.js'], description: 'Name of the file.' }) },
  { replyHeaders: ['ETag'] },
)

export const documentOperations = [
  documents.get('get-openapi', '/openapi.json', {
    summary: 'This contract: OpenAPI 3.1',
    description: 'As the server that answers speaks it.',
    replies: { 200: JsonObject },
  }),
  documents.get('get-event-schema', '/events.json', {
    summary: 'JSON Schema of one line of `svcctl events`',
    description: 'References into `/openapi.json`, its sibling.',
    replies: { 200: JsonObject },
  }),
  documents.get('get-city-schema', '/city.schema.json', {
    summary: 'JSON Schema of `city.toml`',
    description: 'For editors: every key with its meaning, its values and its default.',
    replies: { 200: JsonObject },
  }),
  documents.get('get-agent-schema', '/agent.schema.json', {
    summary: 'JSON Schema of `agents/<name>/agent.toml`',
    description: 'For editors: every key with its meaning, its values and its default.',
    replies: { 200: JsonObject },
  }),
  documents.get('get-formula-schema', '/formula.schema.json', {
    summary: 'JSON Schema of `formulas/<name>.toml`',
    description: 'For editors: every key with its meaning, its values and its default.',
    replies: { 200: JsonObject },
  }),
  documents.get('get-order-schema', '/order.schema.json', {
    summary: 'JSON Schema of `orders/<name>.toml`',
    description: 'For editors: every key with its meaning, its values and its default.',
    replies: { 200: JsonObject },
  }),
  documents.get('get-docs', '/docs', {
    summary: 'This contract as a page for people',
    description: 'Swagger UI, made from `/openapi.json`.',
    replies: { 200: string() },
    mediaType: 'text/html',
  }),
  documents.get('get-docs-asset', '/docs/{asset}', {
    summary: 'A file that the page needs',
    description: 'Served from the package; nothing is fetched from elsewhere.',
    replies: { 200: string() },
    // Scripts and a style sheet, each with a type of its own.
    mediaType: '*/*',
    problems: ['route-not-found'],
  }),
] as const

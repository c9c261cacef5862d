/** The contract's own documents, served beside what they describe (spec §1, sheet 02 §7). */

import { JsonObject } from './base/names.ts'
import { operation } from './base/operation.ts'
import { object, string } from './base/schema.ts'

const family = 'Documents'

export const getOpenapi = operation({
  id: 'get-openapi',
  method: 'GET',
  path: '/openapi.json',
  family,
  summary: 'This contract: OpenAPI 3.1',
  description: 'As the server that answers speaks it.',
  replies: { 200: JsonObject },
  problems: [],
})

export const getEventSchema = operation({
  id: 'get-event-schema',
  method: 'GET',
  path: '/events.json',
  family,
  summary: 'JSON Schema of one line of `svcctl events`',
  description: 'References into `/openapi.json`, its sibling.',
  replies: { 200: JsonObject },
  problems: [],
})

export const getDocs = operation({
  id: 'get-docs',
  method: 'GET',
  path: '/docs',
  family,
  summary: 'This contract as a page for people',
  description: 'Swagger UI, made from `/openapi.json`.',
  replies: { 200: string() },
  mediaType: 'text/html',
  problems: [],
})

export const getDocsAsset = operation({
  id: 'get-docs-asset',
  method: 'GET',
  path: '/docs/{asset}',
  family,
  summary: 'A file that the page needs',
  description: 'Served from the package; nothing is fetched from elsewhere.',
  params: object({
    asset: string({ minLength: 1, examples: ['start.js'], description: 'Name of the file.' }),
  }),
  replies: { 200: string() },
  // Scripts and a style sheet, each with a type of its own.
  mediaType: '*/*',
  problems: ['route-not-found'],
})

export const documentOperations = [getOpenapi, getEventSchema, getDocs, getDocsAsset] as const

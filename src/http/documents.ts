/** Handlers of the contract's own documents. */
import { createHash } from 'node:crypto'
import { documentOperations } from '../contract/documents.ts'
import { defineHandlers, RawBody, type Reply } from '../kernel/call.ts'
import { defineFamily } from '../kernel/family.ts'
import { problem } from '../kernel/problem.ts'
import { docsAsset, docsPage, documentText, type ShippedDocument } from './docs.ts'
import { JSON_TYPE } from './replies.ts'

/**
 * The page runs nothing but its own files, talks to nobody but this server, and stands in no frame: it sends mutations
 * for whoever clicks, and a page around it could lead the clicks. Frames of older browsers know only the other header.
 */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; font-src 'self' data:; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
}

const bodies = new Map<string, Reply<RawBody>>()

/** A document that does not change while the process runs: read, hashed and packed once. */
function unchanging(name: string, make: () => RawBody, headers: Readonly<Record<string, string>> = {}): Reply<RawBody> {
  const known = bodies.get(name)
  if (known !== undefined) return known
  const body = make()
  // Weak: packed and as it is are two texts of one document.
  const etag = `W/"${createHash('sha256').update(body.bytes).digest('base64url')}"`
  const reply = { status: 200, body, headers: { ...headers, ETag: etag } }
  bodies.set(name, reply)
  return reply
}

const shipped = (name: ShippedDocument) => unchanging(name, () => new RawBody(documentText(name), JSON_TYPE))

const handlers = () =>
  defineHandlers<typeof documentOperations>({
    'get-openapi': () => shipped('openapi.json'),
    'get-event-schema': () => shipped('events.json'),
    'get-city-schema': () => shipped('city.schema.json'),
    'get-agent-schema': () => shipped('agent.schema.json'),
    'get-formula-schema': () => shipped('formula.schema.json'),
    'get-order-schema': () => shipped('order.schema.json'),

    'get-docs': () => unchanging('docs', () => new RawBody(docsPage(), 'text/html; charset=utf-8'), PAGE_HEADERS),

    'get-docs-asset': ({ params }) => {
      const found = docsAsset(params.asset)
      if (found === undefined) throw problem('route-not-found', `no such file: ${params.asset}`)
      return unchanging(`docs/${params.asset}`, () => new RawBody(found.body, found.type))
    },
  })

export const documents = defineFamily({ operations: documentOperations, handlers })

// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit
import type { OperationId } from '../contract/index.ts'
import type { Route } from './client.ts'

/** Where each operation lives, without the weight of its schemas. */
export const ROUTES: Readonly<Record<OperationId, Route>> = {
  'list-cities': { id: 'list-cities', method: 'GET', path: '/v0/cities' },
  'adopt-city': { id: 'adopt-city', method: 'POST', path: '/v0/cities', headers: ['Idempotency-Key'] },
  'create-city': { id: 'create-city', method: 'POST', path: '/v0/city', headers: ['Idempotency-Key'] },
  'get-city': { id: 'get-city', method: 'GET', path: '/v0/city/{cityName}' },
  'patch-city': { id: 'patch-city', method: 'PATCH', path: '/v0/city/{cityName}' },
  'get-city-status': { id: 'get-city-status', method: 'GET', path: '/v0/city/{cityName}/status' },
  'get-city-health': { id: 'get-city-health', method: 'GET', path: '/v0/city/{cityName}/health' },
  'start-city': { id: 'start-city', method: 'POST', path: '/v0/city/{cityName}/start', headers: ['Idempotency-Key'] },
  'stop-city': { id: 'stop-city', method: 'POST', path: '/v0/city/{cityName}/stop' },
  'restart-city': { id: 'restart-city', method: 'POST', path: '/v0/city/{cityName}/restart', headers: ['Idempotency-Key'] },
  'unregister-city': { id: 'unregister-city', method: 'POST', path: '/v0/city/{cityName}/unregister', headers: ['Idempotency-Key'] },
  'get-health': { id: 'get-health', method: 'GET', path: '/health' },
  'get-readiness': { id: 'get-readiness', method: 'GET', path: '/v0/readiness' },
  'get-provider-readiness': { id: 'get-provider-readiness', method: 'GET', path: '/v0/provider-readiness' },
  'get-city-readiness': { id: 'get-city-readiness', method: 'GET', path: '/v0/city/{cityName}/readiness' },
  'get-city-provider-readiness': { id: 'get-city-provider-readiness', method: 'GET', path: '/v0/city/{cityName}/provider-readiness' },
  'get-metrics': { id: 'get-metrics', method: 'GET', path: '/metrics', mediaType: 'text/plain' },
  'list-events': { id: 'list-events', method: 'GET', path: '/v0/events' },
  'stream-events': { id: 'stream-events', method: 'GET', path: '/v0/events/stream' },
  'list-city-events': { id: 'list-city-events', method: 'GET', path: '/v0/city/{cityName}/events' },
  'emit-event': { id: 'emit-event', method: 'POST', path: '/v0/city/{cityName}/events', headers: ['Idempotency-Key'] },
  'stream-city-events': { id: 'stream-city-events', method: 'GET', path: '/v0/city/{cityName}/events/stream' },
  'list-requests': { id: 'list-requests', method: 'GET', path: '/v0/requests' },
  'get-request': { id: 'get-request', method: 'GET', path: '/v0/requests/{request_id}' },
  'get-openapi': { id: 'get-openapi', method: 'GET', path: '/openapi.json' },
  'get-event-schema': { id: 'get-event-schema', method: 'GET', path: '/events.json' },
  'get-docs': { id: 'get-docs', method: 'GET', path: '/docs', mediaType: 'text/html' },
  'get-docs-asset': { id: 'get-docs-asset', method: 'GET', path: '/docs/{asset}', mediaType: '*/*' },
}

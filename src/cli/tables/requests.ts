// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit
import type { Table } from '../framework/table.ts'

export const REQUESTS: Table<'list-requests' | 'get-request'> = {
  'list-requests': {"method":"GET","summary":"List accepted requests","description":"Newest first, over the supervisor and every city it can read.","fields":{"operation":{"at":"query","kind":"text","choices":["city.create","city.unregister","city.start","city.restart","config.reload","pack.add","pack.install","pack.upgrade","rig.create","bead.delete","session.create","session.message","session.submit"],"says":"What was asked for."},"status":{"at":"query","kind":"text","choices":["accepted","running","succeeded","failed"],"says":"How far it is."},"city":{"at":"query","kind":"text","says":"Requests about this city."}},"paged":true,"lists":true},
  'get-request': {"method":"GET","summary":"Outcome of an accepted request","description":"For a client that lost its stream. Found also after its city was unregistered.","fields":{"request_id":{"at":"params","kind":"text","required":true,"says":"As in the 202."}}},
}

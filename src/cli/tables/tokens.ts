// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit
import type { Table } from '../framework/table.ts'

export const TOKENS: Table<'list-tokens' | 'create-token' | 'delete-token'> = {
  'list-tokens': {"method":"GET","summary":"List tokens","description":"By name; secrets are nowhere. Tokens of sessions and that of `endpoint.json` are not among them.","fields":{},"lists":true},
  'create-token': {"method":"POST","summary":"Make a token","description":"The answer shows its secret, and nothing else ever does. Where the answer was lost, delete the token and make another.","fields":{"name":{"at":"body","kind":"text","required":true,"says":"What it is for: letters, digits, `.`, `_`, `@`, `+` and `-`. One token has it."},"role":{"at":"body","kind":"text","required":true,"choices":["admin","viewer"],"says":"`viewer` may only read."},"city":{"at":"body","kind":"text","says":"The only city that it is for; without one it is for all."}}},
  'delete-token': {"method":"DELETE","summary":"Revoke a token","description":"From the next request on; streams that were opened with it end.","fields":{"id":{"at":"params","kind":"text","required":true,"says":"Id or name."}}},
}

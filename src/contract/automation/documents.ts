/** Files of formulas and orders: what both have, and the files of orders (decisions 105, 115, 118). */
import { family } from '../base/family.ts'
import { ConfigIssue } from '../base/issue.ts'
import { CityNameParam } from '../base/names.ts'
import { array, boolean, choice, component, literal, object, optional, type Static, string } from '../base/schema.ts'

export const TOML_TYPE = 'application/toml'

/** In paths anything can stand; a file is only written under a name that fits. */
export const documentName = (example: string) =>
  string({ minLength: 1, maxLength: 255, description: 'Name: that of its file, without `.toml`.', examples: [example] })

/** Which of several layers is meant. */
export const RigQuery = {
  rig: optional(string({ minLength: 1, maxLength: 64, description: 'As the layers of this rig have it.' })),
}

/** Where a file stands, weakest first. */
export const DocumentPlace = {
  name: string(),
  rig: optional(string({ description: 'Rig that it is of; absent: the city.' })),
  layer: choice(['pack', 'city', 'rig'], { description: 'What its file belongs to.' }),
  pack: optional(string({ description: 'Import that brings it.' })),
  untrusted_pack: optional(
    string({ description: 'The same, where nobody has trusted it yet: nothing of it is started.' }),
  ),
  file: string({ description: 'Relative to the city; `<pack>/<path>` in a pack.' }),
  revision: string({ description: 'SHA-256 of the file: its ETag.' }),
  valid: boolean(),
  issues: array(ConfigIssue, { description: 'All that is wrong with it; nothing where it is valid.' }),
}

export const DocumentCheck = component('DocumentCheck', {
  valid: boolean(),
  file: string({ description: 'What issues call the file: where it would be.' }),
  issues: array(ConfigIssue),
})
export type DocumentCheck = Static<typeof DocumentCheck>

export const DocumentCheckRequest = component('DocumentCheckRequest', {
  source: string({ maxLength: 1_000_000, description: 'The whole file.' }),
  name: optional(
    string({ minLength: 1, maxLength: 255, description: 'What the file would be called; as it says where absent.' }),
  ),
  ...RigQuery,
})

export const DeletedDocument = component('DeletedDocument', {
  status: literal('deleted'),
  name: string(),
  rig: optional(string()),
  file: string(),
})

export const DocumentChangedPayload = component('DocumentChangedPayload', {
  name: string(),
  rig: optional(string({ description: 'Rig that it is of; absent: the city.' })),
  change: choice(['added', 'changed', 'removed'], {
    description: '`changed`: its file, or one that it is made of, says something else.',
  }),
})

const WRITES =
  'Written to the file of the city, or with `rig` to the `formulas_dir` of the rig, as one transaction that survives a crash.'

/** How a file is written, whatever it holds; `what` with its article. */
export const putFile = (what: string, example: string) =>
  ({
    description: `${WRITES} Answers 201 for a new file; with \`If-Match\` 412 for one that is not there. A file that is not valid is refused. The name of ${what} that only a pack brings takes \`shadow=true\`: the file of the city is used instead of that of the pack.`,
    query: object({
      ...RigQuery,
      shadow: optional(boolean({ description: 'It may take the place of what a pack brings.' })),
    }),
    bodyType: TOML_TYPE,
    body: string({ description: 'The whole file: TOML in UTF-8, at most 256 KiB.', examples: [example] }),
    headers: ['If-Match'],
    problems: ['rig-not-found', 'invalid-config', 'pack-derived', 'conflict-config'],
  }) as const

/** How a file is read that may be none that is taken. */
export const READ_FILE = {
  description: 'Byte for byte, also where it is not valid.',
  replies: { 200: string() },
  mediaType: TOML_TYPE,
  replyHeaders: ['ETag'],
  problems: ['conflict-config'],
} as const

/** How a file is looked at that is not there yet. */
export const CHECK_FILE = {
  description: 'Writes nothing. Answers 200 either way; all that is wrong is named at once.',
  body: DocumentCheckRequest,
  replies: { 200: DocumentCheck },
  problems: ['rig-not-found'],
} as const

export const StoredOrder = component('StoredOrder', {
  ...DocumentPlace,
  text: string({ description: 'As it is written.' }),
})
export type StoredOrder = Static<typeof StoredOrder>

const orders = family(
  { name: 'Orders', about: 'What a city does by itself, and when.' },
  '/v0/city/{cityName}/orders',
  { cityName: CityNameParam, name: documentName('nightly-triage') },
  {},
)
const order = orders.at('/{name}', { query: object(RigQuery), problems: ['order-not-found', 'rig-not-found'] })

const EXAMPLE = '[order]\nexec = "npm test"\ntrigger = "cron"\nschedule = "30 6 * * *"\n'

export const getOrderSource = order.get('get-order-source', '/source', {
  summary: 'Read the file of an order',
  ...READ_FILE,
})

/** Operations on the files of orders; what orders do is declared beside (`orders.ts`). */
export const orderDocumentOperations = [
  getOrderSource,
  orders.post('validate-order', '/validate', {
    summary: 'Check the file of an order',
    ...CHECK_FILE,
  }),
  orders.put('put-order', '/{name}', {
    summary: 'Create or replace the file of an order',
    ...putFile('an order', EXAMPLE),
    replies: { 200: StoredOrder, 201: StoredOrder },
    replyHeaders: ['ETag', 'X-SVC-Config-Rejected'],
    emits: ['order.changed', 'config.reloaded'],
  }),
  order.delete('delete-order', '', {
    summary: 'Delete the file of an order',
    description: 'Where a pack brings one of the same name, that is used from then on.',
    headers: ['If-Match'],
    replies: { 200: DeletedDocument },
    replyHeaders: ['X-SVC-Config-Rejected'],
    problems: ['pack-derived', 'conflict-config'],
    emits: ['order.changed', 'config.reloaded'],
  }),
] as const

// What the contract has, the command line has: every operation a command, every field a flag or an argument.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Operation } from '../contract/base/operation.ts'
import { OPERATIONS } from '../contract/index.ts'
import type { CommandSpec } from './base/command.ts'
import { argumentName, fieldName, snakeCase } from './base/command.ts'
import { SAID_OTHERWISE } from './generate-tables.ts'
import { NOUNS } from './nouns.ts'

const all = await Promise.all(
  Object.entries(NOUNS).map(async ([noun, { load }]) => (await load()).commands.filter(({ path }) => path[0] === noun)),
)
const commands: readonly CommandSpec[] = all.flat()

/** Operations that no command calls, and what does instead. */
const WITHOUT_COMMAND: Readonly<Record<string, string>> = {
  'get-openapi': '`schema` prints it without a server',
  'get-event-schema': '`schema` prints it without a server',
  'get-city-schema': '`schema` prints it without a server',
  'get-agent-schema': '`schema` prints it without a server',
  'get-formula-schema': '`schema` prints it without a server',
  'get-order-schema': '`schema` prints it without a server',
  'get-metrics': 'scrapers ask it; svcctl api GET /metrics',
  'get-docs': 'browsers ask it',
  'get-docs-asset': 'browsers ask it',
  'list-config-files': '`config get --raw` lists them; svcctl api',
  'get-wait': '`session waits` lists them; svcctl api',
  'put-agent-patch': '`patch put agent` names it in the path',
  'put-rig-patch': '`patch put rig` names it in the path',
  'put-provider-patch': '`patch put provider` names it in the path',
}
/** Fields of operations that commands call besides their own. */
const SAID_BY_CODE: Readonly<Record<string, string>> = {
  'stream-session.attended': 'attach says it',
  'type-into-session.seq': 'attach counts',
  'type-into-session.text': 'attach sends bytes',
  'type-into-session.data': 'attach sends what is typed',
  'resize-session-terminal.cols': 'those of the terminal that one attaches from',
  'resize-session-terminal.rows': 'those of the terminal that one attaches from',
  'list-needs.city': '--city',
  'list-needs.limit': 'all are listed',
  'list-city-needs.severity': '`needs --all` lists both; status and top those to act on',
  'list-city-needs.kind': 'a flag of `needs`',
  'list-city-needs.snoozed': 'a flag of `needs`',
  'list-city-needs.limit': 'all are listed',
  'submit-session.intent': 'a flag of `session submit`',
  'archive-mail.id': 'the inbox archives the message that is selected',
  'get-order-run.run_id': 'a word of `order history`',
  'put-config-file.text': '`config edit` reads it from the editor',
  'put-config-file.dry_run': '`config edit` tries first',
}

const fieldsOf = ({ params, query, body, bodyStream }: Operation): readonly string[] =>
  [params, query, bodyStream === undefined ? body : undefined].flatMap((schema) => {
    const properties = schema?.['properties']
    return typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  })

/** Fields that the words of a command say, or leave out for a reason. */
function knows({ flags = [], arguments: operands = [], leaves }: CommandSpec): ReadonlySet<string> {
  const said = [...flags.map(fieldName), ...operands.map(({ name, field }) => field ?? argumentName(name))]
  return new Set([...said, ...said.map(snakeCase), ...(leaves?.keys() ?? [])])
}

suite('the command line has what the contract has', () => {
  test('every operation has a command, or says who calls it', () => {
    const called = new Set<string>(commands.flatMap(({ operations }) => operations))
    const missing = OPERATIONS.filter(({ id, twin }) => twin === undefined && !called.has(id)).map(({ id }) => id)
    assert.deepEqual(missing.toSorted(), Object.keys(WITHOUT_COMMAND).toSorted())
  })

  for (const operation of OPERATIONS.filter(({ twin }) => twin === undefined)) {
    const callers = commands.filter(({ operations }) => operations.some((id) => id === operation.id))
    if (callers.length === 0) continue
    test(`every field of ${operation.id} can be said`, () => {
      const known = callers.map(knows)
      const unsaid = fieldsOf(operation).filter(
        (field) =>
          !Object.hasOwn(SAID_OTHERWISE, field) &&
          !Object.hasOwn(SAID_BY_CODE, `${operation.id}.${field}`) &&
          !known.some((words) => words.has(field)),
      )
      assert.deepEqual(unsaid, [], `by ${callers.map(({ path }) => path.join(' ')).join(', ')}`)
    })
  }
})

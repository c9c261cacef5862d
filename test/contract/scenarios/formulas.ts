/** Formulas, and the files of orders: each success and each refusal of its own. What they do is in test/e2e/formulas. */
import { TOML_TYPE } from '../../../src/contract/automation/documents.ts'
import type { OperationId } from '../../../src/contract/index.ts'
import { simpleFormula, simpleOrder } from '../../support/document-city.ts'
import type { Answer } from '../../support/http.ts'
import { type EditedCity, onEditedCity, STALE } from './edited-city.ts'
import type { Scenario } from './scenario.ts'

const on = onEditedCity('formulas', '[[rigs]]\nname = "bare"\npath = "bare"\n')

const PACK = {
  'pack.toml': '[pack]\nname = "own"\nschema = 2\n[imports.review]\nsource = "./review"\n',
  'review/pack.toml': '[pack]\nname = "review"\nschema = 2\n',
  'review/formulas/packed.toml': simpleFormula('packed'),
  'review/orders/packed.toml': simpleOrder(),
}
const RIG = '[[rigs]]\nname = "bare"\npath = "bare"\n'

const get = (city: EditedCity, path: string): Promise<Answer> => city.api.get(`${city.base}${path}`)
const put = (city: EditedCity, path: string, text: string, headers: Record<string, string> = {}): Promise<Answer> =>
  city.api.call('PUT', `${city.base}${path}`, { bytes: text, headers: { 'content-type': TOML_TYPE, ...headers } })
const drop = (city: EditedCity, path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  city.api.call('DELETE', `${city.base}${path}`, { headers })

/** What formulas and orders have in common. */
function filesOf(kind: 'formula' | 'order', text: string): readonly Scenario[] {
  const path = `/${kind}s/tidy`
  const id = (verb: string, more = ''): OperationId => `${verb}-${kind}${more}` as OperationId
  const missing = `${kind}-not-found` as const
  const written = async (city: EditedCity) => put(city, path, text)
  const unreadable = (city: EditedCity) => city.say(RIG, { [`${kind}s/binary.toml`]: 'x' })
  return [
    on(id('put'), 201, async (city) => {
      await drop(city, path)
      return written(city)
    }),
    on(id('put'), 200, async (city) => {
      await written(city)
      return put(city, path, `${text}# more\n`)
    }),
    on(id('put'), 'invalid-config', (city) => put(city, path, 'nonsense = 1\n')),
    on(id('put'), 'precondition-failed', (city) => put(city, path, text, STALE)),
    on(id('put'), 'rig-not-found', (city) => put(city, `${path}?rig=nowhere`, text)),
    on(id('put'), 'conflict-config', (city) => put(city, `${path}?rig=bare`, text)),
    on(id('put'), 'pack-derived', async (city) => {
      await city.say(RIG, PACK)
      return put(city, `/${kind}s/packed`, text.replaceAll('tidy', 'packed'))
    }),
    on(id('get', '-source'), 200, async (city) => {
      await written(city)
      return get(city, `${path}/source`)
    }),
    on(id('get', '-source'), missing, (city) => get(city, `/${kind}s/none/source`)),
    on(id('get', '-source'), 'rig-not-found', (city) => get(city, `${path}/source?rig=nowhere`)),
    on(id('get', '-source'), 'conflict-config', async (city) => {
      await unreadable(city)
      city.write(`${kind}s/binary.toml`, Buffer.from([0xff]))
      await city.say(RIG)
      return get(city, `/${kind}s/binary/source`)
    }),
    on(id('validate'), 200, (city) => city.send('POST', `/${kind}s/validate`, { source: text })),
    on(id('validate'), 'rig-not-found', (city) =>
      city.send('POST', `/${kind}s/validate`, { source: text, rig: 'nowhere' }),
    ),
    on(id('delete'), 200, async (city) => {
      await written(city)
      return drop(city, path)
    }),
    on(id('delete'), missing, (city) => drop(city, `/${kind}s/none`)),
    on(id('delete'), 'rig-not-found', (city) => drop(city, `${path}?rig=nowhere`)),
    on(id('delete'), 'precondition-failed', async (city) => {
      await written(city)
      return drop(city, path, STALE)
    }),
    on(id('delete'), 'conflict-config', (city) => drop(city, `${path}?rig=bare`)),
    on(id('delete'), 'pack-derived', async (city) => {
      await city.say(RIG, PACK)
      return drop(city, `/${kind}s/packed`)
    }),
  ]
}

export const formulaScenarios: readonly Scenario[] = [
  ...filesOf('formula', simpleFormula('tidy')),
  ...filesOf('order', simpleOrder()),
  on('list-formulas', 200, (city) => get(city, '/formulas?rig=bare')),
  on('list-formulas', 'rig-not-found', (city) => get(city, '/formulas?rig=nowhere')),
  on('list-formulas', 'invalid-cursor', (city) => get(city, '/formulas?cursor=v1:x')),
  on('get-formula', 200, async (city) => {
    await put(city, '/formulas/tidy', simpleFormula('tidy'))
    return get(city, '/formulas/tidy')
  }),
  on('get-formula', 'formula-not-found', (city) => get(city, '/formulas/none')),
  on('get-formula', 'rig-not-found', (city) => get(city, '/formulas/tidy?rig=nowhere')),
  on('delete-formula', 'still-referenced', async (city) => {
    await put(city, '/formulas/base', simpleFormula('base'))
    await put(city, '/formulas/child', 'formula = "child"\nextends = ["base"]\n')
    return drop(city, '/formulas/base')
  }),
  on('preview-formula', 200, async (city) => {
    await put(city, '/formulas/tidy', simpleFormula('tidy'))
    return city.send('POST', '/formulas/tidy/preview')
  }),
  on('preview-formula', 'formula-not-found', (city) => city.send('POST', '/formulas/none/preview', {})),
  on('preview-formula', 'rig-not-found', (city) => city.send('POST', '/formulas/tidy/preview', { rig: 'nowhere' })),
  on('preview-formula', 'bead-not-found', async (city) => {
    await put(city, '/formulas/tidy', simpleFormula('tidy'))
    return city.send('POST', '/formulas/tidy/preview', { bead: 'no-1' })
  }),
  on('preview-formula', 'formula-invalid', async (city) => {
    await city.say(RIG, { 'formulas/broken.toml': 'formula = 1\n' })
    return city.send('POST', '/formulas/broken/preview', {})
  }),
]

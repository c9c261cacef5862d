/** Patches: each success and each refusal of its own. What they do to files is in test/e2e/patches.test.ts. */
import assert from 'node:assert/strict'
import type { OperationId } from '../../../src/contract/index.ts'
import { patchOperations } from '../../../src/contract/patches.ts'
import { type EditedCity, onEditedCity, STALE } from './edited-city.ts'
import type { Scenario } from './scenario.ts'

const START = `[[rigs]]
name = "shop"
path = "shop"
[[rigs]]
name = "barn"
path = "barn"
[[agent]]
name = "lead"
provider = "shell"
[[agent]]
name = "mason"
dir = "shop"
provider = "shell"
`
const on = onEditedCity('patches', START)

function id(text: string): OperationId {
  const known = patchOperations.find((operation) => operation.id === text)
  assert.ok(known, text)
  return known.id
}

interface Family {
  readonly noun: 'agent' | 'rig' | 'provider'
  readonly suffix: '' | '-qualified'
  readonly item: string
  readonly absent: string
  /** Names the target of `item`, in a body and in a file. */
  readonly keys: Readonly<Record<string, string>>
  readonly absentKeys: Readonly<Record<string, string>>
  readonly table: string
  readonly field: Readonly<Record<string, unknown>>
  /** Fits the schema, and leads to a configuration that is not valid. */
  readonly bad: Readonly<Record<string, unknown>>
  /** What `city.toml` says where a patch cannot be taken away, and the line of the patch that mends it. */
  readonly broken: string
  readonly mend: string
}

const FAMILIES: readonly Family[] = [
  {
    noun: 'agent',
    suffix: '',
    item: 'agents/lead',
    absent: 'agents/none',
    keys: { name: 'lead' },
    absentKeys: { name: 'none' },
    table: 'agent',
    field: { nudge: 'go on' },
    bad: { provider: 'nobody' },
    broken: START.replace('name = "lead"\nprovider = "shell"', 'name = "lead"\nprovider = "nobody"'),
    mend: 'provider = "shell"',
  },
  {
    noun: 'agent',
    suffix: '-qualified',
    item: 'agents/shop/mason',
    absent: 'agents/shop/none',
    keys: { dir: 'shop', name: 'mason' },
    absentKeys: { dir: 'shop', name: 'none' },
    table: 'agent',
    field: { nudge: 'go on' },
    bad: { provider: 'nobody' },
    broken: START.replace('dir = "shop"\nprovider = "shell"', 'dir = "shop"\nprovider = "nobody"'),
    mend: 'provider = "shell"',
  },
  {
    noun: 'agent',
    suffix: '',
    item: 'agents/shop%2Fmason',
    absent: 'agents/shop%2Fnone',
    keys: { dir: 'shop', name: 'mason' },
    absentKeys: { dir: 'shop', name: 'none' },
    table: 'agent',
    field: { nudge: 'go on' },
    bad: { provider: 'nobody' },
    broken: START.replace('dir = "shop"\nprovider = "shell"', 'dir = "shop"\nprovider = "nobody"'),
    mend: 'provider = "shell"',
  },
  {
    noun: 'rig',
    suffix: '',
    item: 'rigs/shop',
    absent: 'rigs/none',
    keys: { name: 'shop' },
    absentKeys: { name: 'none' },
    table: 'rigs',
    field: { default_branch: 'main' },
    bad: { default_sling_target: 'nobody' },
    broken: START.replace('path = "shop"', 'path = "shop"\nprefix = "one"').replace(
      'path = "barn"',
      'path = "barn"\nprefix = "one"',
    ),
    mend: 'prefix = "two"',
  },
  {
    noun: 'provider',
    suffix: '',
    item: 'providers/shell',
    absent: 'providers/none',
    keys: { name: 'shell' },
    absentKeys: { name: 'none' },
    table: 'providers',
    field: { display_name: 'Mine' },
    bad: { base: 'provider:nobody' },
    broken: `${START}[providers.other]\ncommand = "cat"\nprompt_mode = "flag"\n`,
    mend: 'prompt_flag = "-p"',
  },
]

const keysText = (keys: Family['keys']) =>
  Object.entries(keys)
    .map(([key, value]) => `${key} = "${value}"\n`)
    .join('')
const patched = async (city: EditedCity, { item, field }: Family) => {
  await city.send('PUT', `/patches/${item}`, field)
  return city
}
const spoilt = (city: EditedCity) => {
  city.spoil()
  return city
}

function itemScenarios(family: Family): Scenario[] {
  const { noun, suffix, item, absent, table, field, bad, broken, mend } = family
  // Of a provider the patch that mends is of another one.
  const [mended, mendedKeys] = noun === 'provider' ? ['providers/other', { name: 'other' }] : [item, family.keys]
  return [
    on(id(`get-${noun}-patch${suffix}`), 200, async (city) =>
      (await patched(city, family)).send('GET', `/patches/${item}`),
    ),
    on(id(`get-${noun}-patch${suffix}`), 'patch-not-found', (city) => city.send('GET', `/patches/${item}`)),
    on(id(`replace-${noun}-patch${suffix}`), 201, (city) => city.send('PUT', `/patches/${item}`, field)),
    on(id(`replace-${noun}-patch${suffix}`), 200, async (city) =>
      (await patched(city, family)).send('PUT', `/patches/${item}`, field),
    ),
    on(id(`replace-${noun}-patch${suffix}`), 'invalid-config', (city) => city.send('PUT', `/patches/${absent}`, field)),
    on(id(`replace-${noun}-patch${suffix}`), 'precondition-failed', (city) =>
      city.send('PUT', `/patches/${item}`, field, STALE),
    ),
    on(id(`replace-${noun}-patch${suffix}`), 'conflict-config', (city) =>
      spoilt(city).send('PUT', `/patches/${item}`, field),
    ),
    on(id(`merge-${noun}-patch${suffix}`), 200, async (city) =>
      (await patched(city, family)).send('PATCH', `/patches/${item}`, field),
    ),
    on(id(`merge-${noun}-patch${suffix}`), 'patch-not-found', (city) => city.send('PATCH', `/patches/${item}`, field)),
    on(id(`merge-${noun}-patch${suffix}`), 'invalid-config', async (city) =>
      (await patched(city, family)).send('PATCH', `/patches/${item}`, bad),
    ),
    on(id(`merge-${noun}-patch${suffix}`), 'precondition-failed', async (city) =>
      (await patched(city, family)).send('PATCH', `/patches/${item}`, field, STALE),
    ),
    on(id(`merge-${noun}-patch${suffix}`), 'conflict-config', async (city) =>
      spoilt(await patched(city, family)).send('PATCH', `/patches/${item}`, field),
    ),
    on(id(`delete-${noun}-patch${suffix}`), 200, async (city) =>
      (await patched(city, family)).send('DELETE', `/patches/${item}`),
    ),
    on(id(`delete-${noun}-patch${suffix}`), 'patch-not-found', (city) => city.send('DELETE', `/patches/${item}`)),
    on(id(`delete-${noun}-patch${suffix}`), 'invalid-config', async (city) => {
      await city.say(`${broken}[[patches.${table}]]\n${keysText(mendedKeys)}${mend}\n`)
      return city.send('DELETE', `/patches/${mended}`)
    }),
    on(id(`delete-${noun}-patch${suffix}`), 'precondition-failed', async (city) =>
      (await patched(city, family)).send('DELETE', `/patches/${item}`, undefined, STALE),
    ),
    on(id(`delete-${noun}-patch${suffix}`), 'conflict-config', async (city) =>
      spoilt(await patched(city, family)).send('DELETE', `/patches/${item}`),
    ),
  ]
}

function listScenarios({ noun, keys, absentKeys, field }: Family): Scenario[] {
  const path = `/patches/${noun}s`
  return [
    on(`list-${noun}-patches`, 200, (city) => city.send('GET', path)),
    on(`put-${noun}-patch`, 201, (city) => city.send('PUT', path, { ...keys, ...field })),
    on(`put-${noun}-patch`, 200, async (city) => {
      await city.send('PUT', path, { ...keys, ...field })
      return city.send('PUT', path, { ...keys, ...field })
    }),
    on(`put-${noun}-patch`, 'invalid-config', (city) => city.send('PUT', path, { ...absentKeys, ...field })),
    on(`put-${noun}-patch`, 'precondition-failed', (city) => city.send('PUT', path, { ...keys, ...field }, STALE)),
    on(`put-${noun}-patch`, 'conflict-config', (city) => spoilt(city).send('PUT', path, { ...keys, ...field })),
  ]
}

export const patchScenarios: readonly Scenario[] = [
  ...FAMILIES.flatMap(itemScenarios),
  ...FAMILIES.filter(({ suffix }) => suffix === '').flatMap(listScenarios),
]

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MASK } from '../contract/base/merge-patch.ts'
import { Provider, SETTINGS } from '../contract/config-schema.ts'
import { masked, maskedCopy, unmasked } from './mask.ts'

const STORED = {
  command: 'x',
  env: { KEY: 'secret', FROM: '$OUTER' },
  options_schema: [{ key: 'mode', choices: [{ value: 'a', env: { TOKEN: 'deep' } }, { value: 'b' }] }],
}

test('secrets are masked wherever the schema has them, also in choices and overrides', () => {
  const shown = maskedCopy(STORED, Provider)
  assert.deepEqual(shown.env, { KEY: MASK, FROM: '$OUTER' })
  assert.doesNotMatch(JSON.stringify(shown), /deep|secret/)
  const orders = { overrides: [{ name: 'sweep', env: { TOKEN: 'deep' } }] }
  assert.doesNotMatch(JSON.stringify(masked(orders, SETTINGS.orders)), /deep/)
})

test('a masked value stands for the stored one at the same place, and only where there is one', () => {
  assert.deepEqual(unmasked(STORED, maskedCopy(STORED, Provider), Provider), STORED)
  assert.throws(() => unmasked(STORED, { env: { OTHER: MASK } }, Provider), /body\.env\.OTHER/)
  const added = {
    options_schema: [...STORED.options_schema, { key: 'new', choices: [{ value: 'a', env: { A: MASK } }] }],
  }
  assert.throws(() => unmasked(STORED, added, Provider), /body\.options_schema\[1\]\.choices\[0\]\.env\.A/)
  assert.deepEqual(unmasked({}, { command: 'y' }, Provider), { command: 'y' })
})

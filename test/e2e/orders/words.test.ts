/** What people read of orders and formulas in a terminal. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { cli } from '../../support/cli.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { OrderedCity } from '../../support/ordered-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

const TIDY = `title = "Tidy {{ part }}"
description = """
Leaves a shelf as it should be.

Twice, if it has to be."""
timeout = "2h"
[vars]
rounds = 2
[vars.part]
required = true
[[steps]]
id = "work"
title = "Tidy {{ part }}"
`

let supervisor: RunningSupervisor
let molecules: MoleculeCity
before(async () => {
  supervisor = await startSupervisor()
  molecules = await MoleculeCity.start(supervisor, 'alpha', { tidy: TIDY })
})
after(async () => {
  molecules.city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

const svcctl = async (...words: readonly string[]): Promise<string> => {
  const { out, err, code } = await cli(words, { env: { SVC_API: supervisor.url, SVC_CITY: 'alpha' } })
  assert.equal(code, 0, err)
  return out
}
/** Rows of one thing, as a program reads them: names and values. */
const rowsOf = (out: string): readonly (readonly [string, string])[] =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [name = '', ...value] = line.split('\t')
      return [name, value.join('\t')]
    })

test('an order is told once from how it is to where its file is', { timeout: 60_000 }, async () => {
  const orders = new OrderedCity(molecules.city)
  const lines = ['description = "Each night"', 'trigger = "cron"', 'schedule = "0 3 * * *"', 'formula = "tidy"']
  await orders.save('nightly', ...lines, '[order.vars]', 'part = "shelf"', 'rounds = 3')
  const out = await svcctl('order', 'get', 'nightly')
  const rows = new Map(rowsOf(out))
  assert.equal(rows.size, rowsOf(out).length, 'no row is there twice')
  assert.deepEqual(
    ['description', 'schedule', 'action', 'does', 'vars', 'file'].map((name) => rows.get(name)),
    ['Each night', '0 3 * * *', 'formula', 'tidy', 'part=shelf, rounds=3', 'orders/nightly.toml'],
  )
})

test('a list of formulas says what each is for; one is told with the types of its variables', {
  timeout: 60_000,
}, async () => {
  const list = await svcctl('formula', 'list')
  assert.match(list, /tidy\t.*\tLeaves a shelf as it should be\.\n/)
  assert.ok(!list.includes('{{'), 'no templates')
  assert.match(await svcctl('formula', 'list', '-o', 'wide'), /Tidy \{\{ part \}\}/)
  const rows = new Map(rowsOf(await svcctl('formula', 'get', 'tidy')))
  assert.match(rows.get('vars') ?? '', /part\* string/)
  assert.match(rows.get('vars') ?? '', /rounds int = 2/)
  assert.equal(rows.get('timeout'), '2h')
})

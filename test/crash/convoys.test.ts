/** `kill -9` between the close of the last member and the close of its convoy: the convoy is closed after the next start. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import BetterSqlite3 from 'better-sqlite3'
import { createBead } from '../../src/contract/beads.ts'
import { createConvoy } from '../../src/contract/convoys.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { eventually } from '../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const CONVOYS = 20
const MAX_ROUNDS = 20

test('a convoy is closed once, also where the supervisor dies right after its last member was closed', {
  timeout: 120_000,
}, async (t) => {
  await using first = await startSupervisor()
  let server: RunningSupervisor = first
  let city = await createCity(server, 'alpha')
  const convoys: string[] = []
  let caught = 0
  try {
    for (let round = 0; caught === 0 && round < MAX_ROUNDS; round++) {
      const members = await prepare(city, convoys)
      const closes = members.map((id) => city.post(`/beads/${id}/close`))
      await Promise.any(closes)
      await server.kill('SIGKILL')
      await Promise.allSettled(closes)
      city.api.close()
      caught = complete(city.dir).length
      t.diagnostic(`round ${round}: ${caught} convoys were complete and open when the supervisor died`)
      server = await startSupervisor({ home: first.home })
      city = await cityAgain(server, 'alpha')
      await eventually('complete convoys are closed', async () => {
        const { body } = await city.get('/convoys?limit=1000')
        const items = at(body, 'items')
        assert.ok(Array.isArray(items))
        return items.every((item) => at(item, 'progress', 'closed') === 0) ? true : undefined
      })
    }
    assert.ok(caught > 0, 'no kill came between a member and its convoy')
    const said = (await city.events('convoy.closed')).map(({ payload }) => String(payload['convoy_id']))
    assert.equal(new Set(said).size, said.length, 'each is closed once')
    const { body } = await city.get('/convoys?limit=1000')
    const items = at(body, 'items')
    assert.ok(Array.isArray(items))
    const open = items.map((item) => String(at(item, 'id')))
    assert.deepEqual([...said, ...open].sort(), convoys.sort(), 'each is closed or open')
  } finally {
    city.api.close()
    await server.kill('SIGKILL')
  }
})

/** Convoys of one bead each; answers with the beads. */
async function prepare(city: ConfigCity, convoys: string[]): Promise<readonly string[]> {
  return Promise.all(
    Array.from({ length: CONVOYS }, async () => {
      const { id } = await city.api.ask(createBead, `${city.base}/beads`, { body: { title: 'work' } })
      const body = { title: 'batch', items: [id] }
      convoys.push((await city.api.ask(createConvoy, `${city.base}/convoys`, { body })).id)
      return id
    }),
  )
}

/** The file itself, while nobody has it open. */
function complete(dir: string): readonly string[] {
  const db = new BetterSqlite3(join(dir, '.svc', 'city.db'))
  try {
    const sql = `SELECT c.id FROM convoys AS c JOIN beads AS b ON b.id = c.id WHERE b.status = 'open' AND c.closed = c.total`
    return db.prepare(sql).pluck().all().map(String)
  } finally {
    db.close()
  }
}

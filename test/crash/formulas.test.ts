/** Files of formulas over deaths of the supervisor: what was acknowledged is there, whole, and told of once. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { cityAgain, createCity } from '../support/config-city.ts'
import { formulaOf, putFormula, simpleFormula } from '../support/document-city.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const ROUNDS = 6

const titleOf = (text: string): number => Number(/title = "Version (\d+)"/.exec(text)?.[1] ?? Number.NaN)

test('kill -9 while formulas are written loses nothing that was acknowledged, and tears nothing', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await startSupervisor()
  const started: RunningSupervisor[] = []
  let supervisor: RunningSupervisor = first
  let city = await createCity(first, 'torn')
  let acknowledged = 0
  let sent = 0
  for (let round = 0; round < ROUNDS; round++) {
    const writing = city
    let isOver = false
    const loop = (async () => {
      while (!isOver) {
        sent++
        const version = sent
        const answer = await putFormula(writing, 'torn', simpleFormula('torn', `Version ${version}`)).catch(
          () => undefined,
        )
        if (answer === undefined) return
        assert.ok(answer.status < 300, answer.text)
        acknowledged = version
      }
    })()
    const wanted = acknowledged + 1 + random.between(0, 3)
    await eventually('some are written', async () => acknowledged >= wanted || undefined)
    // Not a wait: the moment of the death within a write.
    await pause(random.between(0, 15))
    await supervisor.kill('SIGKILL')
    isOver = true
    await loop
    supervisor = await startSupervisor({ home: first.home })
    started.push(supervisor)
    city = await cityAgain(supervisor, 'torn')
    const where = `round ${round}, acknowledged ${acknowledged}, sent ${sent}`
    const text = city.read('formulas/torn.toml')
    const version = titleOf(text)
    assert.equal(text, simpleFormula('torn', `Version ${version}`), where)
    assert.ok(version === acknowledged || version === sent, `${where}: ${version}`)
    assert.equal((await city.get('/formulas/torn/source')).text, text, where)
    assert.equal((await formulaOf(city, 'torn')).graph.nodes[0]?.title, `Version ${version}`)
    const left = readdirSync(join(city.dir, 'formulas')).filter((name) => name !== 'torn.toml' && name !== 'README.md')
    assert.deepEqual(left, [], `${where}: nothing is left beside it`)
    acknowledged = version
    // What comes after a version that nobody was told of is another one: each state is told of once.
    const told = (await city.events('formula.changed')).length
    assert.ok(told >= 1 && told <= sent, `${where}: told ${told}`)
    const reloads = (await city.events('config.reloaded')).length
    assert.equal(told, reloads, `${where}: one event of the formula for each of the configuration`)
  }
  t.diagnostic(`${acknowledged} versions in ${ROUNDS} rounds`)
  for (const one of started) await one.kill('SIGTERM')
})

test('what was changed while nothing ran is told of at the next start, once', async () => {
  await using first = await startSupervisor()
  const city = await createCity(first, 'asleep')
  for (const name of ['changed', 'gone', 'same'])
    assert.equal((await putFormula(city, name, simpleFormula(name))).status, 201)
  await first.kill('SIGTERM')
  city.write('formulas/changed.toml', simpleFormula('changed', 'Otherwise'))
  city.remove('formulas/gone.toml')
  city.write('formulas/new.toml', simpleFormula('new'))
  const changes = async (of: typeof city) =>
    (await of.events('formula.changed'))
      .slice(3)
      .map(({ actor, payload }) => [actor, payload['change'], payload['name']])
  await using second = await startSupervisor({ home: first.home })
  const expected = [
    ['supervisor', 'changed', 'changed'],
    ['supervisor', 'removed', 'gone'],
    ['supervisor', 'added', 'new'],
  ]
  assert.deepEqual(await changes(await cityAgain(second, 'asleep')), expected)
  await second.kill('SIGTERM')
  await using third = await startSupervisor({ home: first.home })
  assert.deepEqual(await changes(await cityAgain(third, 'asleep')), expected)
})

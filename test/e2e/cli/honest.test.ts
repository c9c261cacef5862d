// What is not running is said, and which of several reasons it is; what is counted is counted alike everywhere.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AskingCity } from '../../support/asking-city.ts'
import { eventually } from '../../support/http.ts'

let city: AskingCity
before(async () => {
  city = await AskingCity.start()
})
after(() => city[Symbol.asyncDispose]())

suite('a city that does not answer', { timeout: 120_000 }, () => {
  test('that there is none is said, with those that there are', async () => {
    const { err, code } = await city.run('bead', 'list', '--city', 'alhpa')
    assert.equal(code, 3)
    assert.match(err, /there is no city alhpa\nhint: the cities are: alpha/)
  })

  test('that it is stopped is said, with how to start it; city get shows it', async () => {
    await city.does('city', 'stop', 'alpha')
    const { err, code } = await city.run('session', 'list')
    assert.equal(code, 3)
    assert.match(err, /city alpha is stopped\nhint: start it with: svcctl city start alpha/)
    assert.match(await city.does('city', 'get', 'alpha'), /^name\talpha\nstatus\tstopped\n/)
    const json = JSON.parse(await city.does('city', 'get', 'alpha', '-o', 'json'))
    assert.deepEqual([json.name, json.status, json.running], ['alpha', 'stopped', false])
    assert.equal((await city.run('city', 'get', 'nowhere')).code, 3)
    await city.does('city', 'start', 'alpha', '--wait')
    await city.does('session', 'list')
  })
})

test('a transcript of what has ended says that it has', { timeout: 60_000 }, async () => {
  const id = await city.create('mortal')
  assert.doesNotMatch((await city.run('session', 'logs', id)).err, /does not run/)
  await city.does('session', 'close', id)
  const { err, code } = await city.run('session', 'logs', id)
  assert.equal(code, 0)
  assert.match(err, /the session does not run: closed, /)
})

test('agents are counted alike by status and list, and instances are told from agents', {
  timeout: 60_000,
}, async () => {
  const agent = ['agent', 'create', 'pair', '--provider', 'scripted']
  await city.does(...agent, '--set', 'max_active_sessions=3', '--set', 'session=acp')
  for (const alias of ['left', 'right'])
    await city.does('session', 'create', 'pair', '--alias', alias, '--runtime', 'acp', '--wait')
  await eventually('status counts them', async () => {
    const rows = (await city.does('agent', 'list')).trimEnd().split('\n')
    const [names, kinds, states] = [0, 1, 2].map((at) => rows.map((row) => row.split('\t')[at] ?? ''))
    const agents = rows.filter((_, at) => kinds?.[at] === 'agent')
    const running = agents.filter((row) => !/^(stopped|suspended|quarantined)$/.test(row.split('\t')[2] ?? ''))
    assert.equal(kinds?.filter((kind) => kind === 'instance of pair').length, 2, `${names} ${states}`)
    const status = await city.does('status')
    return status.includes(`agents\t${running.length} of ${agents.length} defined run`) || undefined
  })
  for (const alias of ['left', 'right']) await city.does('session', 'close', alias)
  assert.match((await city.run('agent', 'logs', 'pair')).err, /the agent does not run: stopped/)
})

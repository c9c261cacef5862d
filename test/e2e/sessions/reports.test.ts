// What harnesses tell by their hooks, and what they ask: over HTTP, with a program that runs the hooks it was given.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { at } from '../../support/document.ts'
import { fresh } from '../../support/fresh.ts'
import { PUPPET, Puppet, writePuppet } from '../../support/hooked-harness.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { cityIs, type Running, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'

const RULES = `[agents]
permissions = [
  { tool = "shell", match = "git status*", action = "allow" },
  { tool = "shell", match = "rm *", action = "deny" },
]
`

async function puppetCity(running: Running, name: string, more = ''): Promise<SessionApi> {
  const city = await newSessionCity(running, name, more)
  writePuppet(city)
  // What a hook had no time to tell is heard with every tick.
  await city.configure(`${PUPPET}${more}`, {}, 'patrol_interval = "1s"\n')
  return city
}

async function startPuppet(city: SessionApi): Promise<{ readonly id: string; readonly puppet: Puppet }> {
  const id = await city.start({ name: 'puppet' })
  return { id, puppet: new Puppet(city, id) }
}

const allowed = {
  said: { hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } } },
}
const outcomes = async (city: SessionApi, id: string, count: number) =>
  (await city.told('session.pending session.pending_cleared', count, { subject: id })).map(({ type, payload }) =>
    type === 'session.pending' ? 'asked' : payload['outcome'],
  )

let running: Running
before(async () => {
  running = await run()
})
after(() => running[Symbol.asyncDispose]())

test('a harness tells by its hooks when its turn begins and ends, and its key is there once something was said', async () => {
  const city = await puppetCity(running, fresh('city'))
  const { id, puppet } = await startPuppet(city)
  const settings = join(city.dir, '.svc/runtime/sessions', id, '1/hooks-settings.json')
  assert.equal(statSync(settings).mode & 0o777, 0o600)
  const key = /--session-id (\S+)/.exec(await puppet.started(1))?.[1] ?? ''

  await city.done('POST', `/sessions/${id}/suspend`)
  await city.done('POST', `/sessions/${id}/wake`)
  await city.until(id, 'runs again', ({ state, generation }) => state === 'active' && generation === 2)
  assert.ok(!(await puppet.started(2)).includes('--resume'), 'a conversation in which nothing was said is none')

  const second = /--session-id (\S+)/.exec(await puppet.started(2))?.[1] ?? ''
  assert.notEqual(second, key)
  await puppet.do('tell UserPromptSubmit')
  const busy = await city.until(id, 'is in its turn', ({ activity }) => activity === 'in-turn')
  assert.equal(busy.activity_source, 'report')
  await puppet.do('tell Stop')
  await city.until(id, 'is idle', ({ activity, activity_source: by }) => activity === 'idle' && by === 'report')

  await city.done('POST', `/sessions/${id}/suspend`)
  await city.done('POST', `/sessions/${id}/wake`)
  await city.until(id, 'runs once more', ({ state, generation }) => state === 'active' && generation === 3)
  assert.match(await puppet.started(3), new RegExp(`--resume ${second}`))
})

test('what a hook could not tell in time is heard while its run goes on, and at its end', async () => {
  const city = await puppetCity(running, fresh('city'))
  const { id, puppet } = await startPuppet(city)
  const placeOf = (generation: number) => join(city.dir, '.svc/runtime/sessions', id, String(generation))
  const place = placeOf(1)
  // Whole at once: a tick may look at any moment.
  const leave = (generation: number, more: object) => {
    const report = { generation, at: new Date().toISOString(), ...more }
    writeFileSync(join(placeOf(generation), 'left'), `${JSON.stringify(report)}\n`)
    renameSync(join(placeOf(generation), 'left'), join(placeOf(generation), 'missed-reports'))
  }
  leave(1, { activity: 'in-turn' })
  const busy = await city.until(id, 'is in its turn', ({ activity }) => activity === 'in-turn')
  assert.equal(busy.activity_source, 'report')
  assert.ok(!readdirSync(place).some((name) => name.startsWith('missed')), 'and heard once')

  leave(1, { resume_key: 'key-of-one' })
  await city.done('POST', `/sessions/${id}/kill`)
  const { pid } = await city.until(id, 'runs again', ({ state, generation }) => state === 'active' && generation === 2)
  assert.match(await puppet.started(2), /--resume key-of-one/)
  leave(2, { resume_key: 'key-of-two' })
  process.kill(Number(pid), 'SIGKILL')
  await city.until(id, 'runs once more', ({ state, generation }) => state === 'active' && generation === 3)
  assert.match(await puppet.started(3), /--resume key-of-two/)
})

test('a tool waits for whoever is asked: approved, refused, dismissed, and nobody', async () => {
  const city = await puppetCity(running, fresh('city'))
  const { id, puppet } = await startPuppet(city)
  const respond = (action: string, more: object = {}) =>
    city.done('POST', `/sessions/${id}/respond`, { action, ...more })

  await puppet.do('ask a make install')
  const pending = await eventually('it asks', () => city.pending(id))
  assert.equal(pending.prompt, 'Bash: make install')
  assert.deepEqual(pending.options, ['Allow', 'Deny'])
  assert.equal((await city.get(id)).activity, 'in-turn', 'who asks is never idle')
  const refused = await city.send('POST', `/sessions/${id}/submit`, { message: 'hello' })
  assert.equal(refused.status, 409, refused.text)
  await respond('approve', { request_id: pending.request_id })
  assert.deepEqual(await puppet.verdict('a'), allowed)
  assert.equal(await city.pending(id), undefined)

  await puppet.do('ask b make')
  await eventually('it asks', () => city.pending(id))
  await respond('deny', { text: 'not today' })
  assert.equal(at(await puppet.verdict('b'), 'said', 'hookSpecificOutput', 'decision', 'message'), 'not today')

  await puppet.do('ask c make')
  await eventually('it asks', () => city.pending(id))
  await puppet.do('ask d make clean')
  await respond('approve')
  await eventually('the second waited for the first', async () =>
    (await city.pending(id))?.prompt === 'Bash: make clean' ? true : undefined,
  )
  await respond('option', { option_id: 'deny', text: 'use the other target' })
  assert.deepEqual(await puppet.verdict('c'), allowed)
  const last = at(await puppet.verdict('d'), 'said', 'hookSpecificOutput', 'decision')
  assert.deepEqual([at(last, 'behavior'), at(last, 'message')], ['deny', 'use the other target'])

  const nobody = await city.done('POST', `/sessions/${id}/permission`, { tool: 'Bash', timeout: '300ms' })
  assert.deepEqual([nobody.decision, nobody.by], ['none', 'timeout'])
  assert.equal(await city.pending(id), undefined)
  assert.deepEqual(await outcomes(city, id, 10), [
    ...['asked', 'answered', 'asked', 'answered', 'asked', 'answered', 'asked', 'answered', 'asked', 'gone'],
  ])
  const decided = await city.told('session.permission', 4, { subject: id })
  assert.deepEqual(
    decided.map(({ payload }) => [payload['decision'], payload['by'], payload['asked']]),
    [
      ['allow', 'api', true],
      ['deny', 'api', true],
      ['allow', 'api', true],
      ['deny', 'api', true],
    ],
  )
})

test('a command of a megabyte of the letters of a rule holds nobody up, and is asked about', async () => {
  const rules = '[[agents.permissions]]\ntool = "shell"\nmatch = "*rm *-rf *~*"\naction = "allow"\n'
  const city = await puppetCity(running, fresh('city'), rules)
  const { id } = await startPuppet(city)
  for (const command of ['rm -rf '.repeat(131_072), `rm -rf ~${'x'.repeat(70_000)}`]) {
    const asking = city.send('POST', `/sessions/${id}/permission`, {
      tool: 'Bash',
      input: { command },
      timeout: '1s',
    })
    const began = performance.now()
    assert.equal((await running.api.get('/health')).status, 200)
    const waited = performance.now() - began
    const answer = await asking
    assert.ok(waited < 2_000, `/health waited ${waited} ms for a match that took minutes by backtracking`)
    assert.deepEqual([at(answer.body, 'decision'), at(answer.body, 'by')], ['none', 'timeout'], answer.text)
  }
})

test('rules decide what a hook asks, before anybody is asked', async () => {
  const city = await puppetCity(running, fresh('city'), RULES)
  const { id, puppet } = await startPuppet(city)
  await puppet.do('ask a git status --short')
  assert.deepEqual(await puppet.verdict('a'), allowed)
  await puppet.do('ask b ls; rm -rf x')
  assert.equal(
    at(await puppet.verdict('b'), 'said', 'hookSpecificOutput', 'decision', 'message'),
    'refused by permissions[1] of the city',
  )
  await puppet.do('ask c git status; make')
  const pending = await eventually('it asks', () => city.pending(id))
  assert.equal(pending.prompt, 'Bash: git status; make')
  const decided = await city.told('session.permission', 2, { subject: id })
  assert.deepEqual(
    decided.map(({ payload }) => [payload['decision'], payload['by'], payload['asked'], payload['subject']]),
    [
      ['allow', 'permissions[0] of the city', false, 'git status --short'],
      ['deny', 'permissions[1] of the city', false, 'ls; rm -rf x'],
    ],
  )
})

test('rules answer what an agent asks over its protocol, and nobody hears of it', async () => {
  const city = await puppetCity(running, fresh('city'), RULES)
  const id = await city.startTalker()
  await city.message(id, 'run git status')
  await city.said(id, 'permission: once')
  await city.message(id, 'run rm -rf x')
  await city.said(id, 'permission: no')
  await city.message(id, 'run make')
  await eventually('it asks', () => city.pending(id))
  await city.done('POST', `/sessions/${id}/respond`, { action: 'approve' })
  assert.deepEqual(await outcomes(city, id, 2), ['asked', 'answered'])
  const decided = await city.told('session.permission', 3, { subject: id })
  assert.deepEqual(
    decided.map(({ payload }) => [payload['decision'], payload['by'], payload['asked'], payload['subject']]),
    [
      ['allow', 'permissions[0] of the city', false, 'git status'],
      ['deny', 'permissions[1] of the city', false, 'rm -rf x'],
      ['allow', 'api', true, 'make'],
    ],
  )
})

test('a question goes with the hook that asked it, and with the process', async () => {
  const city = await puppetCity(running, fresh('city'))
  const { id, puppet } = await startPuppet(city)
  await puppet.do('ask a make')
  await eventually('it asks', () => city.pending(id))
  await puppet.killHook('a')
  await eventually('nobody is asked any more', async () => ((await city.pending(id)) === undefined ? true : undefined))
  await puppet.do('ask b make')
  await eventually('it asks', () => city.pending(id))
  await city.done('POST', `/sessions/${id}/kill`)
  await eventually('nobody is asked any more', async () => ((await city.pending(id)) === undefined ? true : undefined))
  assert.deepEqual(await outcomes(city, id, 4), ['asked', 'gone', 'asked', 'gone'])
})

test('what a hook of an ended run tells changes nothing', async () => {
  const city = await puppetCity(running, fresh('city'))
  const { id } = await startPuppet(city)
  await city.done('POST', `/sessions/${id}/kill`)
  await city.until(id, 'runs again', ({ state, generation }) => state === 'active' && generation === 2)
  const late = [
    { generation: 1, activity: 'in-turn' },
    { instance_token: 'f'.repeat(32), activity: 'in-turn', resume_key: 'late', title: 'late' },
  ]
  for (const body of late) {
    const answer = await city.send('POST', `/sessions/${id}/report`, body)
    assert.equal(answer.status, 409, answer.text)
    assert.equal(at(answer.body, 'code'), 'session-conflict')
  }
  const now = await city.get(id)
  assert.notEqual(now.activity, 'in-turn')
  assert.notEqual(now.title, 'late')
})

test('a title of the harness counts where nobody has named the session; an older report changes nothing', async () => {
  const city = await puppetCity(running, fresh('city'))
  const { id } = await startPuppet(city)
  const report = (body: object) => city.done('POST', `/sessions/${id}/report`, body)
  assert.equal((await report({ title: 'Avatars', model: 'm1' })).title, 'Avatars')
  await city.done('PATCH', `/sessions/${id}`, { title: 'Mine' })
  assert.equal((await report({ title: 'Theirs' })).title, 'Mine')
  const at = (ms: number) => new Date(Date.now() + ms).toISOString()
  await report({ activity: 'in-turn', at: at(0) })
  await report({ activity: 'idle', at: at(-60_000) })
  assert.equal((await city.get(id)).activity, 'in-turn')
  const events = await city.events('session.updated', { subject: id })
  const before = events.length
  await report({ title: 'Theirs', model: 'm1' })
  assert.equal((await city.events('session.updated', { subject: id })).length, before, 'the same again is no event')
})

test('a hook waits on over the end of its supervisor, is asked about once again and told once', async () => {
  await using first = await run()
  const city = await puppetCity(first, 'alpha')
  const { id, puppet } = await startPuppet(city)
  await puppet.do('ask a make')
  const asked = await eventually('it asks', () => city.pending(id))
  await first.server.kill('SIGKILL')
  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  const again = new SessionApi(second.api, 'alpha', city.dir)
  const pending = await eventually('it asks again', () => again.pending(id))
  assert.equal(pending.request_id, asked.request_id)
  await again.done('POST', `/sessions/${id}/respond`, { action: 'approve' })
  assert.deepEqual(await puppet.verdict('a'), allowed)
  assert.deepEqual(await outcomes(again, id, 3), ['asked', 'asked', 'answered'])
  await again.done('POST', '/stop')
})

test('what was told while nobody listened is heard when the supervisor is back', async () => {
  await using first = await run()
  const city = await puppetCity(first, 'alpha')
  const { id, puppet } = await startPuppet(city)
  await puppet.do('tell UserPromptSubmit')
  await city.until(id, 'is in its turn', ({ activity }) => activity === 'in-turn')
  await first.server.kill('SIGKILL')
  await puppet.do('tell Stop')
  const missed = join(city.dir, '.svc/runtime/sessions', id, '1/missed-reports')
  assert.equal(readFileSync(missed, 'utf8').trim().split('\n').length, 1)
  assert.equal(statSync(missed).mode & 0o777, 0o600)
  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  const again = new SessionApi(second.api, 'alpha', city.dir)
  await again.until(id, 'is idle', ({ activity, activity_source: by }) => activity === 'idle' && by === 'report')
  assert.ok(!existsSync(missed))
  await again.done('POST', '/stop')
  assert.ok(readdirSync(city.dir).length > 0)
})

test('what was allowed for one call of a tool is not allowed for another one under the same id', async () => {
  const city = await newSessionCity(running, fresh('city'))
  const id = await city.start()
  const path = `/sessions/${id}/permission`
  const asks = (command: string, timeout: string) =>
    city.send('POST', path, { tool: 'Bash', input: { command }, request_id: 'r1', timeout })
  const first = asks('ls', '1m')
  await eventually('it asks', () => city.pending(id))
  assertProblem(await asks('rm -rf build', '1m'), 'session-conflict')
  await city.done('POST', `/sessions/${id}/respond`, { action: 'approve', request_id: 'r1' })
  assert.equal(at((await first).body, 'decision'), 'allow')
  assert.equal(at((await asks('ls', '1ms')).body, 'decision'), 'allow')
  assert.equal(at((await asks('rm -rf build', '1ms')).body, 'decision'), 'none')
})

test('a program that reads lines is believed that it works and that it asks', async () => {
  const city = await newSessionCity(running, fresh('city'))
  const id = await city.start()
  const report = (body: object) => city.done('POST', `/sessions/${id}/report`, body)
  const answer = (body: object) => city.send('POST', `/sessions/${id}/respond`, body)
  await city.until(id, 'rests', ({ activity }) => activity === 'idle')

  const { activity, activity_source: by } = await report({ activity: 'in-turn' })
  assert.deepEqual([activity, by], ['in-turn', 'report'])
  const { id: delivery } = await city.done('POST', `/sessions/${id}/nudge`, { message: 'echo later' })
  await eventually('it waits', async () => (await city.deliveries(id)).find(({ waits_for: what }) => what === 'turn'))
  await report({ activity: 'idle' })
  await eventually('it is told', async () =>
    (await city.deliveries(id)).find(({ id: one, state }) => one === delivery && state === 'delivered'),
  )
  await city.until(id, 'rests', ({ activity }) => activity === 'idle')

  await report({ pending: { kind: 'question', prompt: 'Which?', options: ['red', 'blue'] } })
  const asked = await city.pending(id)
  assert.deepEqual([asked?.prompt, asked?.options], ['Which?', ['red', 'blue']])
  assert.equal((await city.events('session.pending', { subject: id })).length, 1, 'its event is there with the answer')
  assertProblem(await city.send('POST', `/sessions/${id}/messages`, { message: 'true' }), 'pending-interaction')
  assertProblem(await answer({ action: 'option', option_id: 'red' }), 'invalid-interaction')
  assert.equal((await answer({ action: 'cancel' })).status, 200)
  assert.equal(await city.pending(id), undefined)
  const [over] = await city.events('session.pending_cleared', { subject: id })
  assert.equal(over?.payload['outcome'], 'dismissed')

  await report({ pending: { kind: 'question' } })
  await city.done('POST', `/sessions/${id}/stop`)
  assert.equal(await city.pending(id), undefined, 'an interrupt ends what it asked')
})

test('who has answered finds what came of it among the events', async () => {
  const city = await newSessionCity(running, fresh('city'))
  const id = await city.start()
  for (const round of Array.from({ length: 10 }, (_, index) => index + 1)) {
    const asking = city.done('POST', `/sessions/${id}/permission`, { tool: `Tool${round}`, timeout: '1m' })
    const asked = await eventually('it asks', () => city.pending(id))
    await city.done('POST', `/sessions/${id}/respond`, { action: 'approve', request_id: asked.request_id })
    for (const type of ['session.permission', 'session.pending_cleared'])
      assert.equal((await city.events(type, { subject: id })).length, round, `${type} ${round}`)
    await asking
  }
})

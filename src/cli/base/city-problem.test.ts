// The server says the same of every city that does not answer; the command line says which it is.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cliHere } from '../../../test/support/cli.ts'
import { answerJson, answerProblem, scriptedServer } from '../../../test/support/cli-server.ts'

const city = (name: string, status: string, more: object = {}) => ({
  ...{
    name,
    uid: name,
    path: `/${name}`,
    running: status === 'running',
    status,
    host: 'h',
    observed_at: '2026-05-01T10:00:00Z',
  },
  ...more,
})
const CITIES = [
  city('down', 'stopped'),
  city('broken', 'init_failed', { error: 'disk full' }),
  city('slow', 'adopting_sessions'),
  city('going', 'stopping'),
  city('up', 'running'),
]

for (const [name, said] of [
  ['down', 'error: city down is stopped\nhint: start it with: svcctl city start down\n'],
  [
    'broken',
    'error: city broken could not start: disk full\nhint: mend that (svcctl config and svcctl pack work meanwhile), then: svcctl city start broken\n',
  ],
  [
    'slow',
    'error: city slow does not run yet: adopting_sessions\nhint: see when it does with: svcctl city list --watch\n',
  ],
  ['going', 'error: city going is stopping\nhint: once it has stopped, start it with: svcctl city start going\n'],
  ['up', 'error: city up has just started\nhint: try it again\n'],
  ['none', 'error: there is no city none\nhint: the cities are: down, broken, slow, going, up\n'],
] as const)
  test(`what a city is that does not answer: ${name}`, async () => {
    await using server = await scriptedServer((request, response) => {
      if (request.url.startsWith('/v0/cities'))
        return answerJson(response, 200, { items: CITIES, total: CITIES.length })
      answerProblem(response, 404, 'city-not-found', `not_found: city not found or not running: ${name}`)
    })
    const { err, code } = await cliHere(['bead', 'list', '-c', name], { env: { SVC_API: server.url } })
    assert.equal(code, 3)
    assert.equal(err.replace(/^request id: .*\n/m, ''), said)
  })

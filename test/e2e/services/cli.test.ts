/** Services on the command line: what a person types, what is shown, and how it ends. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { stopCity } from '../../../src/contract/cities.ts'
import { cli } from '../../support/cli.ts'
import { at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, type Running, run, runAgain, succeeds } from '../../support/running.ts'
import { declaration, newServiceCity, type ServiceCity } from '../../support/service-city.ts'

suite('services on the command line', { timeout: 120_000 }, () => {
  let running: Running
  let city: ServiceCity
  before(async () => {
    running = await run()
    city = await newServiceCity(running, 'alpha', declaration(), declaration({ name: 'bad', command: ['/no/such'] }))
    await city.is('ready')
    await city.is('degraded', 'bad')
  })
  after(() => running[Symbol.asyncDispose]())

  const does = (
    words: readonly string[],
    options: { readonly input?: string | Uint8Array; readonly signal?: AbortSignal } = {},
  ) => cli(['service', ...words, '--city', 'alpha'], { ...options, env: { SVC_HOME: running.server.home } })

  /** `logs -f` of it: what it has shown so far, and its end once somebody has had enough. */
  function follow(name: string) {
    const enough = new AbortController()
    let seen = ''
    const done = cli(['service', 'logs', name, '-f', '--city', 'alpha'], {
      env: { SVC_HOME: running.server.home },
      signal: enough.signal,
      onOut: (text) => {
        seen += text
      },
    })
    return {
      seen: () => seen,
      async leave(): Promise<number> {
        enough.abort()
        return (await done).code
      },
    }
  }

  test('the list says what works and why something does not', async () => {
    const { out } = await does(['list', '-o', 'template={{ service_name }} {{ state }} {{ message }}'])
    assert.match(out, /^bad degraded .*there is no program \/no\/such\npage ready/)
    const all = await cli(['service', 'list', '-A', '-o', 'name'], { env: { SVC_HOME: running.server.home } })
    assert.match(all.out, /bad\n.*page/)
  })

  test('one that does not become ready is a failure of its own, with where to look', async () => {
    const { code, err } = await does(['restart', 'bad'])
    assert.equal(code, 9)
    assert.match(err, /bad is degraded: .*there is no program[\s\S]*svcctl service logs bad/)
    assert.equal((await does(['restart', 'page'])).code, 0)
    assert.equal((await does(['get', 'none'])).code, 3)
  })

  test('suspended and resumed; what is suspended cannot be restarted', async () => {
    assert.equal((await does(['suspend', 'page'])).code, 0)
    assert.equal((await does(['restart', 'page'])).code, 5)
    assert.match((await does(['resume', 'page'])).out, /ready/)
  })

  test('a secret comes from stdin, is listed by its name, and is in no argument', async () => {
    assert.equal((await does(['secret', 'set', 'page', 'password'], { input: 'correct-horse\n' })).code, 0)
    assert.equal((await does(['secret', 'list', 'page', '-o', 'name'])).out, 'password\n')
    const { code, err } = await does(['secret', 'set', 'page', 'password'], { input: '' })
    assert.equal(code, 2, err)
    const binary = await does(['secret', 'set', 'page', 'password'], { input: Buffer.from('c0ffee', 'hex') })
    assert.equal(binary.code, 2, binary.err)
    assert.equal((await does(['secret', 'set', 'page', 'password', 'argument'])).code, 2)
    assert.equal((await does(['secret', 'delete', 'page', 'password'])).code, 0)
    assert.equal((await does(['secret', 'delete', 'page', 'password'])).code, 3)
  })

  test('its log is shown, and followed until somebody has enough', async () => {
    const { pid } = await city.is('ready')
    await eventually('it has written', async () => ((await city.get()).log_size > 0 ? true : undefined))
    assert.match((await does(['logs', 'page'])).out, new RegExp(`life ${pid}\n$`))
    const followed = follow('page')
    await eventually('what was there is shown', () => (followed.seen().includes(`life ${pid}`) ? true : undefined))
    await fetch(`${running.api.url}${city.base}/svc/page/say?text=more`)
    await eventually('what comes is shown', () => (followed.seen().includes('more') ? true : undefined))
    for (const piece of ['in', 'pieces']) {
      await fetch(`${running.api.url}${city.base}/svc/page/say?text=${piece}&end=`)
      await eventually('a piece is shown', () => (followed.seen().endsWith(piece) ? true : undefined))
    }
    assert.ok(followed.seen().endsWith('inpieces'))
    assert.equal(await followed.leave(), 130)
  })

  test('names are completed', async () => {
    const { out } = await cli(['__complete', '--', 'service', 'restart', '--city', 'alpha', ''], {
      env: { SVC_HOME: running.server.home },
    })
    assert.match(out, /^bad\tdegraded\npage\tready/)
  })

  test('who follows a log sees what comes once its server, or its city, is there again', async () => {
    const command = ['sh', '-c', 'echo life; exec sleep 1000']
    await city.declare(declaration({ name: 'silent', command }))
    const followed = follow('silent')
    await eventually('it is followed', () => (followed.seen() === 'life\n' ? true : undefined))
    await running.server.kill('SIGKILL')
    await using next = await runAgain(running.server.home)
    await cityIs(next.api, 'alpha', 'running')
    // There is nothing to wait for once the city stops.
    const waiting = next.api.get(`${city.base}/services/silent/log?offset=5&wait=2m`)
    await next.api.ask(stopCity, `${city.base}/stop`)
    assert.equal((await waiting).status, 404)
    await succeeds(next.api, { request_id: String(at((await next.api.post(`${city.base}/start`)).body, 'request_id')) })
    await eventually('the next life is shown', () => (followed.seen() === 'life\nlife\n' ? true : undefined))
    assert.equal(await followed.leave(), 130)
  })
})

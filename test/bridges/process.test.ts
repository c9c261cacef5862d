/** Bridges as processes: how they get in, what they say where they cannot, and what a kill leaves. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { BridgeProcess } from '../support/bridge-process.ts'
import { makeAuthority } from '../support/certificates.ts'
import { listAll } from '../support/crash-client.ts'
import { eventually } from '../support/http.ts'
import { IrcServer, type IrcServerOptions } from '../support/irc-server.ts'
import { newCity, type Running, run } from '../support/running.ts'
import { startSupervisor } from '../support/supervisor.ts'
import { temporaryDirectory } from '../support/temporary.ts'

/** Nobody is there: what a bridge does with its chat does not wait for a supervisor. */
const NOWHERE = ['--api', 'http://127.0.0.1:1', '--city', 'alpha']

suite('getting in to IRC', () => {
  const directory = temporaryDirectory()
  after(() => directory[Symbol.dispose]())

  const start = (server: IrcServer, words: readonly string[] = [], env: Readonly<Record<string, string>> = {}) =>
    new BridgeProcess(
      directory.path,
      ['irc', '--server', `127.0.0.1:${server.port}`, '--nick', 'svc', '--channel', '#ops', ...NOWHERE, ...words],
      env,
    )
  let number = 0
  const stateRoot = () => {
    number += 1
    return ['--state-root', `${directory.path}/state-${number}`]
  }
  const plain = () => ['--no-tls', ...stateRoot()]

  async function getsIn(
    options: IrcServerOptions,
    words: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<string> {
    await using server = await IrcServer.start(options)
    await using bridge = start(server, words, env)
    await Promise.race([bridge.says('in the channel'), bridge.ended, bridge.says('cannot connect')])
    return bridge.logged
  }

  test('with TLS, by a certificate that is trusted and no other', async () => {
    const authority = makeAuthority(directory.path, 'irc')
    const tls = authority.issue('IP:127.0.0.1')
    assert.match(
      await getsIn({ modern: true, tls }, stateRoot(), { NODE_EXTRA_CA_CERTS: authority.file }),
      /in the channel/,
    )
    assert.match(
      await getsIn({ modern: true, tls }, stateRoot(), {}),
      /cannot connect.*(self-signed|unable to verify|issuer)/,
    )
  })

  test('with the password of the server, or of an account', async () => {
    const right = { SVC_BRIDGE_PASSWORD: 'right' }
    const wrong = { SVC_BRIDGE_PASSWORD: 'wrong' }
    const accounts = { bay: 'right' }
    const sasl = () => [...plain(), '--sasl-user', 'bay']
    assert.match(await getsIn({ password: 'right' }, plain(), right), /in the channel/)
    assert.match(
      await getsIn({ password: 'right' }, plain(), wrong),
      /error: the server does not let us in: the password is wrong/,
    )
    assert.match(await getsIn({ modern: true, accounts }, sasl(), right), /in the channel/)
    assert.match(await getsIn({ modern: true, accounts }, sasl(), wrong), /error: the server does not take the account/)
  })

  test('the password is nowhere in what it tells', async () => {
    const told = await getsIn({ password: 'a very secret word' }, plain(), {
      SVC_BRIDGE_PASSWORD: 'a very secret word',
    })
    assert.doesNotMatch(told, /very secret/)
  })

  test('lines that are too long, or make no sense, are survived', async () => {
    await using server = await IrcServer.start({ modern: true })
    await using bridge = start(server, plain())
    await bridge.says('in the channel')
    server.sendRaw('svc', `@${'a;'.repeat(3_000)} :x PRIVMSG`)
    server.sendRaw('svc', 'BATCH')
    server.sendRaw('svc', ':svc KICK')
    server.sendRaw('svc', 'x'.repeat(40_000))
    await eventually('it is back', () => (bridge.logged.split('"msg":"in the channel"').length > 2 ? true : undefined))
  })

  test('without the package it says what to do', async () => {
    const hook = `import { registerHooks } from 'node:module'; registerHooks({ resolve(name, context, next) { if (name === 'irc-framework') throw Object.assign(new Error('no'), { code: 'ERR_MODULE_NOT_FOUND' }); return next(name, context) } })`
    await using server = await IrcServer.start()
    await using bridge = start(server, plain(), {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`,
    })
    assert.equal(await bridge.ended, 1)
    assert.match(bridge.logged, /needs the package irc-framework.*\nhint: .*npm install/)
  })

  test('a second one of the same state is refused', async () => {
    await using server = await IrcServer.start()
    const words = plain()
    await using first = start(server, words)
    await first.says('in the channel')
    await using second = start(server, words)
    assert.equal(await second.ended, 1)
    assert.match(second.logged, /another bridge uses the state root/)
  })
})

suite('with a supervisor', () => {
  let first: Running
  before(async () => {
    first = await run()
    await newCity(first.api, first.work, 'alpha')
  })
  after(() => first[Symbol.asyncDispose]())
  const BASE = '/v0/city/alpha'
  const SECRET = 'it is a secret'
  const env = { SVC_BRIDGE_SECRET: SECRET }
  const words = ['webhook', '--listen', '127.0.0.1:0', '--style', 'github', '--account', 'acme', '--city', 'alpha']

  async function post(bridge: BridgeProcess, number: number): Promise<number> {
    await bridge.says('listening')
    const [, port] = /"msg":"listening".*"at":"127\.0\.0\.1:(\d+)"/.exec(bridge.logged) ?? []
    const body = JSON.stringify({
      action: 'opened',
      sender: { login: 'ana' },
      repository: { full_name: 'o/r' },
      issue: { number, title: 'It breaks' },
    })
    const signature = createHmac('sha256', SECRET).update(body).digest('hex')
    const headers = {
      'x-github-event': 'issues',
      'x-github-delivery': `id-${number}`,
      'x-hub-signature-256': `sha256=${signature}`,
    }
    return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers })).status
  }

  test('webhooks that were answered are there once, whoever is killed', {
    timeout: 120_000,
  }, async () => {
    let server = first.server
    let bridge = new BridgeProcess(server.home, words, env)
    try {
      await bridge.says('registered')
      assert.equal(await post(bridge, 1), 202)
      await server.kill('SIGKILL')
      // The supervisor is away: it is kept all the same.
      assert.equal(await post(bridge, 2), 202)
      assert.equal(await post(bridge, 3), 202)
      await bridge.kill('SIGKILL')
      // What is left of the supervisor says where it was: that it is there no more keeps nothing out.
      bridge = new BridgeProcess(server.home, words, env)
      assert.equal(await post(bridge, 3), 200)
      server = await startSupervisor({ home: server.home })
      assert.equal(await post(bridge, 2), 200)
      assert.equal(await post(bridge, 4), 202)
      const texts = await eventually('all are there', async () => {
        const [transcript] = await listAll(server.url, `${BASE}/transcripts`).catch(() => [])
        if (transcript === undefined) return undefined
        const entries = await listAll(server.url, `${BASE}/transcripts/${String(transcript['transcript_id'])}/entries`)
        return entries.length >= 4 ? entries.map(({ text }) => text) : undefined
      })
      assert.deepEqual(
        texts,
        [1, 2, 3, 4].map((number) => `ana opened issue #${number} in o/r: It breaks`),
      )
      assert.equal(await bridge.kill('SIGTERM'), 0)
    } finally {
      await bridge.kill('SIGKILL')
      await server.kill('SIGKILL')
    }
  })
})

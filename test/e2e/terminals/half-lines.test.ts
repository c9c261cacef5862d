/** What a person has typed and not entered, and the messages that wait for it: over HTTP, with real programs. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { SKINS } from '../../support/dialog-skins.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi, sessionPath } from '../../support/session-api.ts'
import { openTerminal } from '../../support/terminal-stream.ts'

const AGENT = join(import.meta.dirname, '../../support/dialog-agent.ts')
const LEFT_MS = 30_000

async function typed(city: SessionApi, id: string, seq: number, text: string): Promise<void> {
  const body = { viewer: 'me', seq, text }
  const answer = await city.send('POST', `${sessionPath(id)}/terminal/input`, body)
  assert.equal(answer.status, 200, answer.text)
}

const say = async (city: SessionApi, id: string, message: string, intent: 'default' | 'follow_up'): Promise<string> =>
  (await city.submit(id, message, intent)).delivery_id ?? assert.fail('it is no delivery')

async function waits(city: SessionApi, id: string, deliveryId: string, why: string | undefined): Promise<void> {
  await eventually(`${deliveryId} waits for ${why}`, async () => {
    const found = (await city.deliveries(id)).find((one) => one.id === deliveryId)
    assert.ok(found?.state === 'queued' || found?.state === 'delivering', JSON.stringify(found))
    return found.waits_for === why ? true : undefined
  })
}

// Each waits on its own server, and works little.
suite('half lines', { concurrency: 3 }, () => {
  test('who answers a question by a key at the terminal holds back no message', { timeout: 120_000 }, async () => {
    await using running = await run()
    const city = await newSessionCity(running, 'alpha')
    const skin = SKINS.find(({ dialogs }) => dialogs.some(({ digits }) => digits === true)) ?? assert.fail()
    const asked = skin.dialogs.findIndex(({ digits }) => digits === true)
    const harmless = skin.dialogs[asked]?.harmful === 0 ? 2 : 1
    const program = join(city.dir, 'bin', skin.program)
    const script = `#!/bin/sh\nexec '${process.execPath}' '${AGENT}' "$@"\n`
    city.write(`bin/${skin.program}`, script, 0o755)
    await city.configure(`[providers.drawn]
command = ${JSON.stringify(program)}
args = [${JSON.stringify(skin.program)}]
prompt_mode = "none"
delivery = "tui"
${skin.prompt === undefined ? '' : `ready_prompt_prefix = ${JSON.stringify(skin.prompt)}`}
`)
    const id = await city.start({ name: 'drawn' })
    await city.message(id, `dialog ${asked}`)
    await city.until(id, 'asks', ({ activity }) => activity === 'in-turn')
    await eventually('what it asks is known', () => city.pending(id))
    const later = await say(city, id, 'and then this', 'follow_up')
    await waits(city, id, later, 'answer')
    await typed(city, id, 1, String(harmless))
    await city.delivered(id, later)
    await eventually('it was heard', () => (city.read('heard').includes('and then this') ? true : undefined))
  })

  test('a half line whose writer is gone delays a message for half a minute, also over a kill of the supervisor', {
    timeout: 180_000,
  }, async () => {
    await using running = await run()
    const city = await newSessionCity(running, 'alpha')
    const id = await city.start()
    let saidAt: number
    let delivery: string
    {
      await using terminal = await openTerminal(city, id)
      await typed(city, id, 1, "echo ha''lf ")
      await terminal.shows(/echo ha''lf/)
      delivery = await say(city, id, "echo wh''ole", 'default')
      await waits(city, id, delivery, 'person')
      saidAt = Date.now()
      await running.server.kill('SIGKILL')
    }
    await using again = await runAgain(running.server.home)
    const back = new SessionApi(again.api, city.name, city.dir)
    await back.until(id, 'runs', ({ running: runs }) => runs)
    await waits(back, id, delivery, 'person')
    await eventually(
      'it is delivered',
      async () => ((await back.deliveries(id)).some(({ state }) => state === 'delivered') ? true : undefined),
      LEFT_MS * 2,
    )
    assert.ok(Date.now() - saidAt >= LEFT_MS, 'its writer had the time to come back')
    await eventually('the whole of it was run, and nothing of the half line', async () => {
      const { lines } = await back.done('GET', `${sessionPath(id)}/screen`)
      assert.ok(Array.isArray(lines) && !lines.includes('half'), JSON.stringify(lines))
      return lines.includes('whole') ? true : undefined
    })
    const { items } = Object(await back.done('GET', `${sessionPath(id)}/deliveries`))
    assert.equal(items[0].waits_for, undefined)
    again.api.close()
  })

  test('a queued message says what it waits for', { timeout: 120_000 }, async () => {
    await using running = await run()
    const city = await newSessionCity(running, 'alpha')
    const id = await city.start()
    await city.message(id, "sh -c 'until [ -e go ]; do sleep 0.05; done'")
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    const next = await say(city, id, 'echo next', 'follow_up')
    await waits(city, id, next, 'turn')
    city.write('go', '')
    await city.delivered(id, next)
    const listed = await city.send('GET', `${sessionPath(id)}/deliveries?state=delivered`)
    assert.doesNotMatch(listed.text, /waits_for/)
    assertProblem(await city.send('GET', `${sessionPath('nobody')}/deliveries`), 'session-not-found')
  })
})

// No message, key or nudge ever answers a dialog: programs that draw what the harnesses draw, each with an option that
// leaves a mark when it is chosen.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { IDLE_QUIET_MS, UNKNOWN_QUIET_MS } from '../../../src/runtimes/terminal/decisions.ts'
import { type Dialog, SKINS, type Skin } from '../../support/dialog-skins.ts'
import { eventually } from '../../support/http.ts'
import { SessionCity } from '../../support/session-city.ts'

const AGENT = join(import.meta.dirname, '../../support/dialog-agent.ts')
const soon = () => AbortSignal.timeout(15_000)

/** A session whose program has the harness' name and draws its screens. */
async function start(skin: Skin) {
  const city = new SessionCity({
    providers: {
      drawn: {
        command: `./bin/${skin.program}`,
        args: [skin.program],
        prompt_mode: 'none',
        delivery: 'tui',
        ready_delay_ms: 500,
        ...(skin.prompt === undefined ? {} : { ready_prompt_prefix: skin.prompt }),
      },
    },
  })
  const program = join(city.path, 'bin', skin.program)
  mkdirSync(join(city.path, 'bin'))
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${AGENT}' "$@"\n`)
  chmodSync(program, 0o755)
  await city.start()
  const { id } = await city.create({ template: 'drawn' })
  await city.is(id, 'active')
  return { city, id, quietMs: 500 + (skin.prompt === undefined ? UNKNOWN_QUIET_MS : IDLE_QUIET_MS) }
}

type Place = Awaited<ReturnType<typeof start>>

const linesOf = ({ city }: Place, name: string): readonly string[] => {
  const path = join(city.path, name)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
}

/** Half a redraw may be taken for another question first. */
const asked = (place: Place, dialog?: Dialog) =>
  eventually('it is announced what it asks', () => {
    const pending = place.city.sessions.live(place.id)?.pending
    return dialog === undefined || pending?.options.some((option) => isHarmless(option, dialog)) ? pending : undefined
  })

const isHarmless = ({ label }: { readonly label: string }, { options }: Dialog) =>
  label.toLowerCase().startsWith((options.at(-1) ?? '').toLowerCase())

/** All that others say meanwhile waits; the harmless option is chosen by an answer, and then all of it arrives. */
async function answerAmid(place: Place, dialog: Dialog, round: string): Promise<void> {
  const { city, id } = place
  const pending = await asked(place, dialog)
  assert.ok(pending.options.length >= dialog.options.length, JSON.stringify(pending.options))
  const one = await city.say(id, `${round} 1 y`, { intent: 'follow_up' })
  const two = await city.say(id, `${round} 2 n`, { intent: 'follow_up' })
  await eventually('it was looked at again', () => (seenLater(place) ? true : undefined))
  assert.deepEqual([city.delivery(id, one.id).state, city.delivery(id, two.id).state], ['queued', 'queued'])
  assert.equal(city.sessions.live(id)?.activity, 'in-turn')
  const harmless = dialog.options.at(-1) ?? ''
  const option = pending.options.find((one) => isHarmless(one, dialog))
  assert.ok(option !== undefined, JSON.stringify(pending.options))
  assert.equal(
    await city.sessions.answer(id, pending.requestId, { action: 'option', optionId: option.id }, soon()),
    true,
  )
  await eventually('the answer was taken', () => (linesOf(place, 'chosen').at(-1) === harmless ? true : undefined))
  await city.delivered(id, two.id)
  await eventually('both were heard', () => (linesOf(place, 'heard').includes(`${round} 2 n`) ? true : undefined))
  assert.deepEqual(linesOf(place, 'heard').slice(-2), [`${round} 1 y`, `${round} 2 n`])
}

/** A person looks at the terminal, and nothing moves for longer than a screen has to be quiet. */
function seenLater({ city, id, quietMs }: Place): boolean {
  const live = city.sessions.live(id)
  return live?.pendingSince !== undefined && Date.now() - live.pendingSince > quietMs
}

/** What it asks, one after the other, in two sessions: each question is waited out, and they can be at once. */
const halves = ({ dialogs }: Skin): readonly (readonly number[])[] => {
  const numbers = [...dialogs.keys()]
  const middle = Math.ceil(numbers.length / 2)
  return [numbers.slice(0, middle), numbers.slice(middle)]
}

// They wait far more than they work.
describe('no message answers a dialog', { concurrency: 19 }, () => {
  for (const skin of SKINS)
    for (const numbers of halves(skin))
      test(`of ${skin.program}, whatever it asks (${numbers.join(', ')})`, { timeout: 240_000 }, async () => {
        const place = await start(skin)
        const { city, id } = place
        await using _ = city
        for (const number of numbers) {
          await city.delivered(id, (await city.say(id, `dialog ${number}`)).id)
          await answerAmid(place, skin.dialogs[number] ?? assert.fail(), `round ${number}`)
        }
        assert.equal(linesOf(place, 'chosen').length, numbers.length)
        assert.equal(existsSync(join(city.path, 'mark')), false, 'nothing was approved')
      })

  for (const skin of SKINS)
    test(`that ${skin.program} opens while the message is typed`, { timeout: 240_000 }, async () => {
      const place = await start(skin)
      const { city, id } = place
      await using _ = city
      const dialog = skin.dialogs[0] ?? assert.fail()
      await city.delivered(id, (await city.say(id, 'dialog 0 at paste')).id)
      const late = await city.say(id, 'came late 1 y')
      await asked(place)
      assert.notEqual(city.delivery(id, late.id).state, 'delivered')
      await answerAmid(place, dialog, 'after it')
      assert.equal(city.delivery(id, late.id).state, 'delivered')
      assert.deepEqual(linesOf(place, 'heard'), ['came late 1 y', 'after it 1 y', 'after it 2 n'])
      assert.equal(existsSync(join(city.path, 'mark')), false, 'nothing was approved')
    })

  test('an urgent message dismisses it by the key that cancels, and is heard', { timeout: 120_000 }, async () => {
    const place = await start(SKINS[1] ?? assert.fail())
    const { city, id } = place
    await using _ = city
    await city.delivered(id, (await city.say(id, 'dialog 0')).id)
    await asked(place)
    const now = await city.say(id, 'listen', { intent: 'interrupt_now' })
    await city.delivered(id, now.id)
    await eventually('it was heard', () => (linesOf(place, 'heard').includes('listen') ? true : undefined))
    assert.deepEqual(linesOf(place, 'chosen'), ['cancelled'])
    assert.equal(existsSync(join(city.path, 'mark')), false, 'nothing was approved')
  })
})

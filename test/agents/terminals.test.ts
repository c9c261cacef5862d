/** Real harnesses on terminals, behind our whole API; only their models are a script. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { suite, test } from 'node:test'
import { aider } from '../support/harnesses/aider.ts'
import { claude } from '../support/harnesses/claude.ts'
import { codex } from '../support/harnesses/codex.ts'
import { gemini } from '../support/harnesses/gemini.ts'
import { qwen } from '../support/harnesses/qwen.ts'
import type { RealHarness } from '../support/harnesses/setup.ts'
import { Stage } from '../support/harnesses/stage.ts'

for (const harness of [aider, claude, codex, gemini, qwen]) {
  const program = process.env[`SVC_TEST_${harness.name.toUpperCase()}`]
  const skip = program === undefined && `${harness.name} is not installed: npm run test:agents`
  suite(`${harness.name} ${harness.version} on a terminal`, { skip, timeout: 600_000 }, () =>
    told(harness, program ?? ''),
  )
}

function told(harness: RealHarness, program: string): void {
  test('a turn; a tool that asks, and is approved over the API; another that is denied', async () => {
    await using stage = await Stage.open(harness, program)
    const id = await stage.session()
    await stage.says(id, 'how are you?')
    await stage.told(id, 'how are you?')
    await stage.idle(id)

    await stage.says(id, 'please write it')
    const asked = await stage.asks(id)
    assert.equal(existsSync(stage.file), false)
    await stage.respond(id, 'deny', asked)
    await stage.idle(id)
    assert.equal(existsSync(stage.file), false)

    await stage.says(id, 'now do write it')
    await stage.respond(id, 'approve', await stage.asks(id))
    assert.equal((await stage.writes(id)).trim(), 'hello from the model')
    await stage.idle(id)
    assert.deepEqual(stage.tracesInHome(), [])
  })

  test('a message does not answer what it asks', async () => {
    await using stage = await Stage.open(harness, program)
    const id = await stage.session()
    await stage.says(id, 'please write it')
    const asked = await stage.asks(id)
    const { status } = await stage.city.send('POST', `/sessions/${id}/messages`, { message: 'yes, go on' })
    assert.equal(status, 409)
    assert.equal(await stage.asks(id), asked)
    assert.equal(existsSync(stage.file), false)
  })

  test('while its model thinks it is at work, and what is said meanwhile waits', async () => {
    await using stage = await Stage.open(harness, program)
    const id = await stage.session()
    await stage.says(id, 'think about it')
    await stage.told(id, 'think about it')
    await stage.busy(id)
    await stage.says(id, 'and then?')
    await stage.busy(id)
    assert.ok(!stage.requests.some((one) => JSON.stringify(one.messages).includes('and then?')))
    stage.thought()
    await stage.told(id, 'and then?')
    await stage.idle(id)
  })

  if (!harness.resumes)
    test('it begins anew after the kill of everything, and hears', async () => {
      await using stage = await Stage.open(harness, program)
      const id = await stage.session()
      await stage.says(id, 'the word is heliotrope')
      await stage.told(id, 'heliotrope')
      await stage.idle(id)
      await stage.killEverything()
      await stage.city.send('POST', `/sessions/${id}/wake`)
      await stage.idle(id)
      await stage.says(id, 'do you remember?')
      await stage.told(id, 'do you remember?')
      await stage.idle(id)
      const last = stage.requests.findLast((one) => JSON.stringify(one.messages).includes('do you remember?'))
      assert.doesNotMatch(JSON.stringify(last?.messages), /heliotrope/)
      assert.equal((await stage.city.get(id)).generation, 2)
    })

  if (harness.resumes)
    test('it goes on with its conversation after the kill of everything', async () => {
      await using stage = await Stage.open(harness, program)
      const id = await stage.session()
      await stage.says(id, 'the word is heliotrope')
      await stage.told(id, 'heliotrope')
      await stage.idle(id)
      await stage.kept(id, 'heliotrope', stage.plain)
      await stage.named(id)
      await stage.killEverything()
      await stage.city.send('POST', `/sessions/${id}/wake`)
      await stage.idle(id)
      await stage.says(id, 'do you remember?')
      await stage.told(id, 'do you remember?', 'heliotrope')
    })

  if (harness.counts)
    test('what its turns have used is counted', async () => {
      await using stage = await Stage.open(harness, program)
      const id = await stage.session()
      await stage.says(id, 'how are you?')
      await stage.told(id, 'how are you?')
      await stage.used(id)
    })
}

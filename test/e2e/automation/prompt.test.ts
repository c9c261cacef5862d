// What the built-in worker is told: commands that there are, and how a step of a formula is taken and reported.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { newCity, run } from '../../support/running.ts'

/** Every `svcctl …` of a text that stands in backticks. */
const commandsIn = (text: string): readonly string[] =>
  [...text.matchAll(/`svcctl ([^`]+)`/g)].map(([, words = '']) => words)

/** What the command line takes, by its words. */
function known(): ReadonlyMap<string, ReadonlySet<string>> {
  const all: unknown = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../../commands.json'), 'utf8'))
  assert.ok(Array.isArray(all))
  return new Map(
    all.map((command: unknown) => {
      const flags = at(command, 'flags')
      assert.ok(Array.isArray(flags))
      const words = flags.flatMap((flag: unknown) => at(flag, 'words'))
      return [String(at(command, 'command')).replace('svcctl ', ''), new Set(words.map(String))]
    }),
  )
}

test('an agent of a new city is told how it takes a step, reports it and learns why the last attempt failed', async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  const { body } = await running.api.get('/v0/city/alpha/agents/core.worker/prompt')
  const text = String(asMap(body).text)
  for (const said of [
    /svcctl bead hook --claim/,
    /svcctl bead close <id> --reason/,
    /--outcome fail/,
    /--result \w+=\w+/,
    /--failure-class hard/,
    /why the last (?:one|attempt) failed/,
  ])
    assert.match(text, said)
  const commands = known()
  const told = commandsIn(text)
  assert.ok(told.length > 5, text)
  for (const command of told) {
    const name = /^[a-z]+(?: [a-z]+)+/.exec(command)?.[0] ?? command
    const flags = commands.get(name)
    assert.ok(flags !== undefined, `there is no command svcctl ${name}`)
    for (const [flag] of command.replaceAll(/"[^"]*"/g, '').matchAll(/--[a-z-]+/g))
      assert.ok(flags.has(flag), `svcctl ${name} has no ${flag}`)
  }
})

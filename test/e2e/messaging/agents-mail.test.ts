// Two agents on terminals, shell scripts both, and a person write to each other with `svcctl mail`; the supervisor is
// killed in between.
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { cliHere } from '../../support/cli.ts'
import { asMap } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, type Running, run, runAgain } from '../../support/running.ts'
import { newSessionCity } from '../../support/session-api.ts'

const ENTRY = resolve(import.meta.dirname, '../../../tools/svcctl.mjs')
const QUESTIONS = 3

/** What both have in common: a reminder, whatever it says, makes them look; a server that is away is waited for. */
const LOOKS = `#!/bin/bash
svcctl() { until '${process.execPath}' '${ENTRY}' "$@" -q; do sleep 0.2; done; }
while IFS= read -r _; do
  for id in $(svcctl mail list -o name); do
    from=$(svcctl mail get "$id" -o jsonpath={.from})
    body=$(svcctl mail get "$id" -o jsonpath={.body})
    handle
    svcctl mail read "$id" > /dev/null
  done
done
`
/** Passes questions on to eva, and her answers to people. */
const BEN = LOOKS.replace(
  '\nwhile',
  `
handle() {
  case $from in
    human) svcctl mail send eva -s Question -b "$body" --idempotency-key "ask-$id" > /dev/null ;;
    eva) svcctl mail send human -s Answer -b "$body" --idempotency-key "tell-$id" > /dev/null ;;
  esac
}
while`,
)
const EVA = LOOKS.replace(
  '\nwhile',
  `
handle() { svcctl mail reply "$id" -b "$body Blue." --idempotency-key "answer-$id" > /dev/null; }
while`,
)
const PROVIDERS = ['ben', 'eva'].map(
  (name) => `[providers.${name}]
command = "bash"
args = ["${name}.sh"]
prompt_mode = "none"
delivery = "line"
`,
)

async function mail(server: Running, ...words: readonly string[]) {
  const env = { SVC_HOME: server.server.home, SVC_CITY: 'alpha' }
  const { out, err, code } = await cliHere(['mail', ...words, '-o', 'json', '-q'], { env, cwd: server.work })
  assert.equal(code, 0, `${words.join(' ')}: ${err}`)
  return asMap(JSON.parse(out))
}

/** Texts of messages, oldest first. */
async function texts(server: Running, ...words: readonly string[]): Promise<readonly string[]> {
  const { items } = await mail(server, 'list', '--status', 'all', '--limit', '100', ...words)
  assert.ok(Array.isArray(items))
  return items.map(({ body }) => String(body)).toReversed()
}

test('agents on terminals and a person write to each other, each message once, over kills of the supervisor', {
  timeout: 180_000,
}, async () => {
  await using first = await run()
  const city = await newSessionCity(first, 'alpha', PROVIDERS.join(''))
  city.write('ben.sh', BEN, 0o755)
  city.write('eva.sh', EVA, 0o755)
  for (const alias of ['ben', 'eva']) await city.start({ name: alias, alias })
  await mail(first, 'send', 'ben', '-s', 'Hello', '-b', 'Question 0?')
  await eventually('the first answer is there', async () => (await texts(first)).length === 1 || undefined)

  let server: Running | undefined
  const { home } = first.server
  await first.server.kill('SIGKILL')
  for (let number = 1; number < QUESTIONS; number += 1) {
    await server?.[Symbol.asyncDispose]()
    server = await runAgain(home)
    await cityIs(server.api, 'alpha', 'running')
    await mail(server, 'send', 'ben', '-s', 'Hello', '-b', `Question ${number}?`)
    // While they are at it, each time a bit later in what they do.
    const now = server
    await eventually(
      'somebody has begun',
      async () =>
        (await texts(now, '--agent', number % 2 === 0 ? 'eva' : 'ben')).some((text) => text.includes(` ${number}?`)) ||
        undefined,
    )
    await server.server.kill('SIGKILL')
  }
  await server?.[Symbol.asyncDispose]()
  await using last = await runAgain(home)
  await cityIs(last.api, 'alpha', 'running')
  const answers = await eventually('every question is answered', async () => {
    const found = await texts(last)
    return found.length >= QUESTIONS ? found : undefined
  })
  const expected = Array.from({ length: QUESTIONS }, (_, number) => `Question ${number}? Blue.`)
  assert.deepEqual(answers.toSorted(), expected)
  assert.deepEqual(
    (await texts(last, '--agent', 'eva')).toSorted(),
    expected.map((text) => text.replace(' Blue.', '')),
  )
  assert.equal((await texts(last, '--agent', 'ben')).length, 2 * QUESTIONS)
})

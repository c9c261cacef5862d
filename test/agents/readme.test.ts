/** The README's way to a coding agent, word for word: the harness is the real one, only its model is a script. */
import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { Reader } from '../support/guide.ts'
import { startModelServer } from '../support/model-server.ts'
import { OPENCODE, opencodeEnvironment, writer } from '../support/opencode.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const skip = OPENCODE === undefined && 'run by `npm run test:agents`'

test('what the README says of coding agents is what one sees', { skip, timeout: 300_000 }, async (t) => {
  using place = temporaryDirectory()
  await using model = await startModelServer(writer('hello.txt'))
  // Its program is found where the reader's is.
  const { PATH: _path, HOME: _home, ...env } = opencodeEnvironment(place.path, model.url)
  await using reader = await Reader.start({ only: 'opencode', env, path: [dirname(OPENCODE ?? '')] })
  const { ran } = await reader.follow('README.md')
  for (const line of ran) t.diagnostic(line)
  assert.ok(ran.length > 5, ran.join('\n'))
})

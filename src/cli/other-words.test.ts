// Words of other programs lead to commands that there are.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cliHere } from '../../test/support/cli.ts'
import { namedCommands } from './base/other-words.ts'
import { NOUNS } from './nouns.ts'

test('words of other programs: every command that is named exists', async () => {
  for (const line of namedCommands().filter((text) => text.startsWith('svcctl '))) {
    const words = line.split(' ').slice(1)
    const named = words.filter((word) => /^[a-z-]+$/.test(word) && !word.startsWith('-')).slice(0, 2)
    if (named.length === 0 || named[0] === 'serve') continue
    const [noun = ''] = named
    assert.ok(Object.hasOwn(NOUNS, noun), line)
    const { commands } = await (NOUNS[noun]?.load() ?? assert.fail(line))
    const isKnown = commands.some(({ path }) => named.every((word, at) => path[at] === word))
    assert.ok(isKnown, `${line}: there is no such command`)
  }
})

test('words of other programs: an unknown command names the one that does the same here', async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['logs'], /unknown command 'logs'\nhint: that is here: svcctl session logs NAME/],
    [['ps'], /that is here: svcctl session list/],
    [['prime'], /that is here: svcctl agent prompt NAME/],
    [['session', 'peek'], /that is here: svcctl session screen NAME/],
    [['rig', 'add'], /that is here: svcctl rig create NAME DIR/],
    [['bd'], /that is here: svcctl bead$/m],
  ]
  for (const [words, hint] of cases) {
    const { err, code } = await cliHere(words)
    assert.match(err, hint)
    assert.equal(code, 2)
  }
})

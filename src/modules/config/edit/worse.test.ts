import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConfigIssue } from '../../../files/issues.ts'
import { addedIssues } from './worse.ts'

const at = (place: string, key: string, message: string): ConfigIssue => {
  const [file = '', line = '1', column = '1'] = place.split(':')
  return { file, line: Number(line), column: Number(column), key, message }
}
const WRONG = at('city.toml:3:12', 'agent[0].provider', 'there is no provider `codx`')
const SYNTAX = at('city.toml:2:1', '', 'not valid TOML: a value is missing')

interface Case {
  readonly name: string
  readonly before: readonly ConfigIssue[]
  readonly after: readonly ConfigIssue[]
  readonly added: readonly ConfigIssue[]
  readonly edited?: readonly string[]
}
const typo = at('city.toml:9:1', 'daemon.max_restart', 'unknown key `max_restart`')
const elsewhere = at('agents/a/agent.toml:1:1', 'providr', 'unknown key `providr`')
const CASES: readonly Case[] = [
  { name: 'nothing was wrong, nothing is', before: [], after: [], added: [] },
  { name: 'nothing was wrong, something is', before: [], after: [WRONG], added: [WRONG] },
  { name: 'all is mended', before: [WRONG, typo], after: [], added: [] },
  { name: 'one of two is mended', before: [WRONG, typo], after: [typo], added: [] },
  { name: 'the same stays', before: [WRONG], after: [WRONG], added: [] },
  {
    name: 'lines have moved',
    before: [WRONG],
    after: [at('city.toml:30:2', 'agent[0].provider', 'there is no provider `codx`')],
    added: [],
  },
  {
    name: 'the element is another one of its list now',
    before: [WRONG],
    after: [at('city.toml:3:12', 'agent[4].provider', 'there is no provider `codx`')],
    added: [],
  },
  {
    name: 'it is wrong in another way of the same kind',
    before: [WRONG],
    after: [at('city.toml:3:12', 'agent[0].provider', 'there is no provider `clod`')],
    added: [],
  },
  {
    name: 'it is wrong for another reason',
    before: [WRONG],
    after: [at('city.toml:3:12', 'agent[0].provider', 'must be text, not 1')],
    added: [at('city.toml:3:12', 'agent[0].provider', 'must be text, not 1')],
  },
  {
    name: 'a place in the message has moved',
    before: [at('city.toml:9:1', 'agent', 'there is a second `a`: the first is at city.toml:3')],
    after: [at('city.toml:8:1', 'agent', 'there is a second `a`: the first is at city.toml:2')],
    added: [],
  },
  {
    name: 'it is there once more',
    before: [WRONG],
    after: [WRONG, at('city.toml:8:12', 'agent[1].provider', 'there is no provider `codx`')],
    added: [at('city.toml:8:12', 'agent[1].provider', 'there is no provider `codx`')],
  },
  {
    name: 'the same in another file',
    before: [typo],
    after: [{ ...typo, file: 'more.toml' }],
    added: [{ ...typo, file: 'more.toml' }],
  },
  { name: 'one mended, one made', before: [WRONG], after: [typo], added: [typo] },
  {
    name: 'the text is broken in another place',
    before: [SYNTAX],
    after: [{ ...SYNTAX, line: 7, message: 'not valid TOML: x' }],
    added: [],
  },
  { name: 'a readable file is broken', before: [WRONG], after: [SYNTAX], added: [SYNTAX] },
  { name: 'what broken text hid shows', before: [SYNTAX], after: [WRONG, typo], added: [], edited: ['city.toml'] },
  {
    name: 'what broken text hid elsewhere shows',
    before: [SYNTAX],
    after: [elsewhere],
    added: [],
    edited: ['city.toml'],
  },
  {
    name: 'an edited file beside the broken one was checked, and is wrong now',
    before: [SYNTAX],
    after: [SYNTAX, elsewhere],
    added: [elsewhere],
    edited: ['agents/a/agent.toml'],
  },
  {
    name: 'one broken file for another',
    before: [SYNTAX],
    after: [{ ...SYNTAX, file: 'agents/a/agent.toml' }],
    added: [{ ...SYNTAX, file: 'agents/a/agent.toml' }],
    edited: ['city.toml', 'agents/a/agent.toml'],
  },
]

for (const { name, before, after, added, edited = [] } of CASES) {
  test(`no worse: ${name}`, () => assert.deepEqual(addedIssues(before, after, new Set(edited)), added))
}

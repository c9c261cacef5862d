import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VIEW } from '../../../../test/support/session-city.ts'
import { type NewSession, newSession } from './new-session.ts'

const titleOf = (draft: Partial<NewSession>): string =>
  newSession(
    's-0123456789abcdef',
    { kind: 'provider', template: 'shell', origin: 'manual', cause: 'explicit', ...draft },
    { config: VIEW, now: 0, render: (text) => text },
  ).title

const TITLES: readonly (readonly [string, Partial<NewSession>, string])[] = [
  ['what the caller says', { title: 'Mine', message: 'hello', alias: 'sh' }, 'Mine'],
  [
    'else the first line of the first message',
    { message: '\n  fix the tests \nand more', alias: 'sh' },
    'fix the tests',
  ],
  ['cut to 80 characters, and never inside one', { message: '🙂'.repeat(100) }, '🙂'.repeat(80)],
  ['else its alias', { message: ' \n', alias: 'sh' }, 'sh'],
  ['else the name that its city gave it', { owner: 'worker-2', pool: 'worker' }, 'worker-2'],
  ['else its template', {}, 'shell'],
]

for (const [name, draft, expected] of TITLES)
  test(`the title of a session: ${name}`, () => assert.equal(titleOf(draft), expected))

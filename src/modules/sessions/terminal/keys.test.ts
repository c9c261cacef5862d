// Names of keys are the bytes that a terminal sends for them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesOf } from './keys.ts'

const KEYS: Readonly<Record<string, string | undefined>> = {
  Enter: '\r',
  Escape: '\u001b',
  Tab: '\t',
  'S-Tab': '\u001b[Z',
  BTab: '\u001b[Z',
  BSpace: '\u007f',
  Space: ' ',
  'C-Space': '\u0000',
  Up: '\u001b[A',
  'C-Left': '\u001b[1;5D',
  'M-S-Down': '\u001b[1;4B',
  Delete: '\u001b[3~',
  'S-F5': '\u001b[15;2~',
  F1: '\u001bOP',
  'C-c': '\u0003',
  'C-[': '\u001b',
  'C-]': '\u001d',
  'C-?': '\u007f',
  'M-x': '\u001bx',
  'C-M-a': '\u001b\u0001',
  'M-Enter': '\u001b\r',
  '1': '1',
  é: 'é',
  漢: '漢',
  'enter it': undefined,
  F13: undefined,
  enter: undefined,
  'S-F13': undefined,
  'C-': undefined,
  'C-é': undefined,
  'C-ab': undefined,
  'a\u0003': undefined,
  toString: undefined,
}

for (const [key, bytes] of Object.entries(KEYS))
  test(`${JSON.stringify(key)} is ${bytes === undefined ? 'no key' : JSON.stringify(bytes)}`, () => {
    assert.equal(bytesOf(key, false), bytes)
  })

test('cursor keys are those that the program has asked for', () => {
  assert.equal(bytesOf('Up', true), '\u001bOA')
  assert.equal(bytesOf('S-Up', true), '\u001b[1;2A')
})

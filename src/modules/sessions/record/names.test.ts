import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { Problem } from '../../../kernel/problem.ts'
import { checkAlias, runtimeName } from './names.ts'

test('runtime names can be turned back, and only hold what every runtime takes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (identity) => {
      const name = runtimeName(identity)
      assert.match(name, /^[A-Za-z0-9_-]*$/)
      assert.equal(identityOfRuntimeName(name), identity)
    }),
  )
  assert.equal(runtimeName('shop/pack.worker-1'), 'shop_2fpack_2eworker-1')
})

for (const alias of ['helper', 'a.b', 'team/one', 'A_1-x'])
  test(`${alias} is a handle`, () => assert.equal(checkAlias(alias, 'body.alias'), alias))

for (const alias of ['', 'a b', '/a', 'a//b', '..', 'a/./b', 'human', 's-x', 's-0123456789abcdef', 'x'.repeat(65)])
  test(`"${alias}" is none`, () => {
    assert.throws(
      () => checkAlias(alias, 'body.alias'),
      (error) => error instanceof Problem && error.code === 'validation-failed',
    )
  })

/** What a runtime name was made from. */
function identityOfRuntimeName(name: string): string {
  const bytes: number[] = []
  for (let at = 0; at < name.length; at++) {
    const hex = name[at] === '_' ? /^[0-9a-f]{2}/.exec(name.slice(at + 1))?.[0] : undefined
    if (hex === undefined) {
      bytes.push(...Buffer.from(name.charAt(at), 'utf8'))
      continue
    }
    bytes.push(Number.parseInt(hex, 16))
    at += 2
  }
  return Buffer.from(bytes).toString('utf8')
}

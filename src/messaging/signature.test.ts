import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { codePoint } from '../../test/support/code-point.ts'
import { fc } from '../../test/support/random.ts'
import { createSecret, type SignatureHeader, secretKey, sign, verify } from './signature.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const NOW = Date.now()

type Signed = Readonly<Record<SignatureHeader, string>>
const under = (headers: Partial<Signed>) => (name: SignatureHeader) => headers[name]
const isValid = (secrets: readonly string[], headers: Partial<Signed>, body: string, now = NOW) =>
  verify(secrets, under(headers), body, now).valid

test('the vector of the standard comes out byte for byte', () => {
  const body = '{"test": 2432232314}'
  const signed = sign([SECRET], 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330_000, body)
  assert.deepEqual(signed, {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('what is signed here is verified by the package, and the other way round', () => {
  const anyBody = fc.oneof(
    fc.json(),
    fc.string({ unit: codePoint }).map((text) => text.toWellFormed()),
  )
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 24, maxLength: 64 }),
      fc.stringMatching(/^[!-~]{1,80}$/),
      anyBody,
      (bytes, id, body) => {
        const secret = `whsec_${Buffer.from(bytes).toString('base64')}`
        const theirs = new Webhook(secret)
        const json = JSON.stringify(body)
        theirs.verify(json, { ...sign([secret], id, NOW, json) })
        const headers: Signed = {
          'webhook-id': id,
          'webhook-timestamp': `${Math.floor(NOW / 1000)}`,
          'webhook-signature': theirs.sign(id, new Date(NOW), json),
        }
        assert.deepEqual(verify([secret], under(headers), json, NOW), { valid: true, id })
      },
    ),
  )
})

test('one signature of several and one secret of several is enough, as while a secret is changed', () => {
  const [old, next, other] = [createSecret(), createSecret(), createSecret()]
  const signed = sign([old, next], 'dl-1', NOW, 'body')
  assert.equal(signed['webhook-signature'].split(' ').length, 2)
  assert.ok(isValid([old], signed, 'body'))
  assert.ok(isValid([other, next], signed, 'body'))
  assert.ok(!isValid([other], signed, 'body'))
  new Webhook(next).verify(JSON.stringify({}), { ...sign([old, next], 'dl-1', NOW, '{}') })
})

test('whoever changes id, time, body or signature, or waits too long, proves nothing', () => {
  const signed = sign([SECRET], 'dl-1', NOW, 'body')
  const seconds = Number(signed['webhook-timestamp'])
  const cases: readonly [string, Partial<Signed>, string, number][] = [
    ['another body', signed, 'bodY', NOW],
    ['another id', { ...signed, 'webhook-id': 'dl-2' }, 'body', NOW],
    ['another time', { ...signed, 'webhook-timestamp': `${seconds + 1}` }, 'body', NOW],
    ['no id', { ...signed, 'webhook-id': '' }, 'body', NOW],
    ['no time', { ...signed, 'webhook-timestamp': 'now' }, 'body', NOW],
    ['no signature', { ...signed, 'webhook-signature': '' }, 'body', NOW],
    [
      'another version',
      { ...signed, 'webhook-signature': signed['webhook-signature'].replace('v1,', 'v2,') },
      'body',
      NOW,
    ],
    ['half a signature', { ...signed, 'webhook-signature': signed['webhook-signature'].slice(0, -20) }, 'body', NOW],
    ['five minutes late', signed, 'body', (seconds + 301) * 1000],
    ['five minutes early', signed, 'body', (seconds - 301) * 1000],
    ['nothing at all', {}, 'body', NOW],
  ]
  for (const [name, headers, body, now] of cases) assert.ok(!isValid([SECRET], headers, body, now), name)
  for (const skew of [-299, 0, 299]) assert.ok(isValid([SECRET], signed, 'body', (seconds + skew) * 1000), `${skew}`)
  assert.ok(!isValid([], signed, 'body'))
})

test('a secret is whsec_ and the base64 of 24 to 64 bytes', () => {
  const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
  for (const bytes of [24, 32, 64]) assert.equal(secretKey(of(bytes))?.length, bytes)
  for (const wrong of [
    of(23),
    of(65),
    'whsec_',
    of(32).slice('whsec_'.length),
    `${of(32)}*`,
    `whsec_ ${of(32).slice(6)}`,
  ])
    assert.equal(secretKey(wrong), undefined, wrong)
  assert.notEqual(createSecret(), createSecret())
})

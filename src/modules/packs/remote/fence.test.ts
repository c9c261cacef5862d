import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseSource, type RemoteSource } from '../../../files/pack-source.ts'
import { addressKind, BlockedHost, createFence, UnknownHost } from './fence.ts'

const remote = (text: string): RemoteSource => {
  const source = parseSource(text)
  assert.ok(source.kind === 'git')
  return source
}
const { signal } = new AbortController()

const KINDS: readonly (readonly [address: string, kind: string | undefined])[] = [
  ['127.0.0.1', 'loopback'],
  ['127.255.255.254', 'loopback'],
  ['0.0.0.0', 'unspecified'],
  ['0.1.2.3', 'unspecified'],
  ['10.0.0.1', 'private'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['192.168.1.1', 'private'],
  ['100.64.0.1', 'private'],
  ['169.254.1.1', 'link-local'],
  ['169.254.169.254', 'metadata'],
  ['100.100.100.200', 'metadata'],
  ['224.0.0.1', 'multicast'],
  ['255.255.255.255', 'reserved'],
  ['198.18.0.1', 'reserved'],
  ['203.0.113.9', 'reserved'],
  ['::1', 'loopback'],
  ['::', 'unspecified'],
  ['fe80::1', 'link-local'],
  ['fe80::1%eth0', 'link-local'],
  ['fc00::1', 'unique-local'],
  ['fdff::1', 'unique-local'],
  ['fd00:ec2::254', 'metadata'],
  ['ff02::1', 'multicast'],
  ['fec0::1', 'private'],
  ['2001:db8::1', 'reserved'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['::ffff:7f00:1', 'loopback'],
  ['::ffff:a9fe:a9fe', 'metadata'],
  ['::127.0.0.1', 'loopback'],
  ['::ffff:0:10.0.0.1', 'private'],
  ['64:ff9b::127.0.0.1', 'loopback'],
  ['64:ff9b::a00:1', 'private'],
  ['2002:7f00:1::', 'loopback'],
  ['2002:c0a8:101::1', 'private'],
  ['::7f00:1', 'loopback'],
  ['64:ff9b:1::1', 'reserved'],
  ['2001::1', 'reserved'],
  ['3fff::1', 'reserved'],
  ['0177.0.0.1', 'malformed'],
  ['0x7f.1', 'malformed'],
  ['nonsense', 'malformed'],
  ['1.2.3', 'malformed'],
  ['1.1.1.1', undefined],
  ['172.32.0.1', undefined],
  ['11.0.0.1', undefined],
  ['100.128.0.1', undefined],
  ['2606:4700::1111', undefined],
  ['64:ff9b::808:808', undefined],
  ['::ffff:8.8.8.8', undefined],
]
describe('every address is what it stands for', () => {
  for (const [address, kind] of KINDS)
    test(`${address} is ${kind ?? 'public'}`, () => assert.equal(addressKind(address), kind))
})

test('a name with one address that is not public is blocked, whatever the others are', async () => {
  const fence = createFence([], async () => ['1.1.1.1', '10.0.0.7'])
  assert.equal(fence.refusal(remote('https://git.example.org/x')), undefined)
  await assert.rejects(fence.vet(remote('https://git.example.org/x'), signal), BlockedHost)
})

test('the addresses that were looked at are the ones to use', async () => {
  const answers = [['1.1.1.1', '2606:4700::1111'], ['127.0.0.1']]
  const fence = createFence([], async () => answers.shift() ?? [])
  assert.deepEqual(await fence.vet(remote('https://git.example.org/x'), signal), ['1.1.1.1', '2606:4700::1111'])
})

test('a name without an address is unknown, not allowed', async () => {
  await assert.rejects(createFence([], async () => []).vet(remote('https://git.example.org/x'), signal), UnknownHost)
  const failing = createFence([], async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })))
  await assert.rejects(failing.vet(remote('https://git.example.org/x'), signal), UnknownHost)
})

test('the fence is lifted for the hosts that the settings name, with or without a port, and no other', async () => {
  const fence = createFence(['127.0.0.1:8080', 'Git.Internal', '[::1]:9000'], async () => ['10.0.0.7'])
  assert.equal(fence.refusal(remote('http://127.0.0.1:8080/x')), undefined)
  assert.match(fence.refusal(remote('http://127.0.0.1:8081/x')) ?? '', /loopback/)
  assert.equal(fence.refusal(remote('http://[::1]:9000/x')), undefined)
  assert.deepEqual(await fence.vet(remote('https://git.internal/x'), signal), ['10.0.0.7'])
  await assert.rejects(fence.vet(remote('https://other.internal/x'), signal), BlockedHost)
})

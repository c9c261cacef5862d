import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nameOf, parseSource, SourceError } from './pack-source.ts'

const NORMAL: readonly (readonly [written: string, normal: string])[] = [
  ['https://git.example.org/teams/packs.git//review', 'https://git.example.org/teams/packs.git//review'],
  ['HTTPS://Git.Example.ORG:443/teams/packs.git/', 'https://git.example.org/teams/packs.git'],
  ['http://git.example.org:8080/p', 'http://git.example.org:8080/p'],
  ['http://git.example.org:443/p', 'http://git.example.org:443/p'],
  ['github.com/o/r', 'https://github.com/o/r'],
  ['https://github.com/o/r.git', 'https://github.com/o/r'],
  ['https://github.com/o/r/tree/main/packs/review', 'https://github.com/o/r//packs/review'],
  ['https://github.com/o/r/tree/v1.2', 'https://github.com/o/r'],
  ['github.com/o/r//packs/review/', 'https://github.com/o/r//packs/review'],
  ['ssh://git@git.example.org/o/r.git//sub', 'ssh://git@git.example.org/o/r.git//sub'],
  ['ssh://git.example.org:2222/o/r', 'ssh://git@git.example.org:2222/o/r'],
  ['git@git.example.org:o/r.git//sub', 'git@git.example.org:o/r.git//sub'],
  ['git@git.example.org:/srv/r.git', 'git@git.example.org:/srv/r.git'],
]
describe('one source has one spelling', () => {
  for (const [written, normal] of NORMAL) {
    test(`${written} is ${normal}`, () => {
      const source = parseSource(written)
      assert.equal(source.source, normal)
      assert.deepEqual(parseSource(normal), source, 'the normal form means the same')
    })
  }
})

test('repository, directory, host and port are told apart', () => {
  const source = parseSource('ssh://git@git.example.org:2222/o/r.git//packs/x')
  assert.deepEqual(source, {
    kind: 'git',
    source: 'ssh://git@git.example.org:2222/o/r.git//packs/x',
    repository: 'ssh://git@git.example.org:2222/o/r.git',
    transport: 'ssh',
    host: 'git.example.org',
    port: 2222,
    path: 'o/r.git',
    subpath: 'packs/x',
  })
})

test('addresses in any spelling are recognised as what they are', () => {
  for (const written of [
    'http://2130706433/x',
    'http://0x7f000001/x',
    'http://0177.0.0.1/x',
    'http://127.1/x',
    'ssh://git@2130706433/x',
    'git@127.1:x',
  ]) {
    const source = parseSource(written)
    assert.ok(source.kind === 'git' && source.host === '127.0.0.1', written)
  }
})

const REFUSED: readonly (readonly [written: string, reason: SourceError['reason']])[] = [
  ['https://me:pw@example.org/x', 'user_info'],
  ['https://pw@example.org/x', 'user_info'],
  ['ssh://root@example.org/x', 'user_info'],
  ['ssh://git:pw@example.org/x', 'user_info'],
  ['pw@example.org:x', 'user_info'],
  ['https://a@b@example.org/x', 'user_info'],
  ['file:///etc', 'file'],
  ['FILE:/etc', 'file'],
  ['https://example.org/x#main', 'fragment'],
  ['./packs/x#main', 'fragment'],
  ['https://example.org/x?token=1', 'invalid'],
  ['https://example.org/a/../b', 'invalid'],
  ['https://example.org/a/%2e%2e/b', 'invalid'],
  ['https://example.org/x//../y', 'invalid'],
  ['https://example.org/x//.git', 'invalid'],
  ['https://example.org', 'invalid'],
  ['https:///x', 'invalid'],
  ['https://exa mple.org/x', 'invalid'],
  ['https://example.org:99999/x', 'invalid'],
  ['ext::sh -c id', 'invalid'],
  ['git://example.org/x', 'invalid'],
  ['/etc', 'invalid'],
  ['~/x', 'invalid'],
  ['', 'invalid'],
  ['//', 'invalid'],
  ['git@example.org:', 'invalid'],
  ['ssh://-oProxyCommand=id/x', 'invalid'],
  ['ssh://git@-oProxyCommand=id/x', 'invalid'],
  ['git@-oProxyCommand=id:x', 'invalid'],
  ['https://-x.example.org/x', 'invalid'],
  ['https://example.org/-x', 'invalid'],
]
describe('what no source may be is refused without repeating it', () => {
  for (const [written, reason] of REFUSED) {
    test(JSON.stringify(written), () => {
      assert.throws(
        () => parseSource(written),
        (error) => {
          assert.ok(error instanceof SourceError)
          assert.equal(error.reason, reason)
          assert.ok(!error.message.includes('pw'))
          return true
        },
      )
    })
  }
})

test('a name is suggested by the last part of the source', () => {
  assert.equal(nameOf(parseSource('https://example.org/teams/Review.Pack.git')), 'review-pack')
  assert.equal(nameOf(parseSource('github.com/o/r//packs/lint')), 'lint')
  assert.equal(nameOf(parseSource('./packs/mine/')), 'mine')
  assert.equal(nameOf(parseSource('builtin:core')), 'core')
  assert.equal(nameOf(parseSource('./..')), undefined)
})

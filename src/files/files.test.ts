import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { diskFiles, overlayFiles } from './files.ts'
import { FileRefused, openRegular, readInside, readRegularLater, TEXT_BYTES } from './read.ts'
import { contentHash, measureTree, TreeRefused } from './tree.ts'

const disk = diskFiles()
const noPause = async (): Promise<void> => {}

function city() {
  const directory = temporaryDirectory()
  const root = join(directory.path, 'city')
  mkdirSync(root)
  return {
    root,
    outside: directory.path,
    at: (path: string) => join(root, path),
    write(path: string, text: string) {
      mkdirSync(join(root, path, '..'), { recursive: true })
      writeFileSync(join(root, path), text)
    },
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  }
}

test('whatever stands where a file is wanted, reading it ends at once and says why it is not read', async () => {
  using place = city()
  execFileSync('mkfifo', [place.at('pipe')])
  mkdirSync(place.at('directory'))
  symlinkSync('/dev/zero', place.at('zeros'))
  symlinkSync('pipe', place.at('to-pipe'))
  writeFileSync(join(place.outside, 'secret'), 'secret')
  symlinkSync('../secret', place.at('secret'))
  place.write('large', '')
  truncateSync(place.at('large'), TEXT_BYTES + 1)
  const reasons = {
    pipe: /no regular file/,
    'to-pipe': /no regular file/,
    directory: /is a directory/,
    zeros: /leads out of/,
    secret: /leads out of/,
    large: /larger than 1 MiB/,
  }
  for (const [name, reason] of Object.entries(reasons)) {
    const refused = (error: unknown) => error instanceof FileRefused && reason.test(error.message)
    assert.throws(() => readInside(place.at(name), place.root), refused, name)
  }
  for (const name of ['pipe', 'to-pipe', 'zeros', 'directory']) {
    await assert.rejects(readRegularLater(place.at(name)), FileRefused, name)
    await assert.rejects(openRegular(place.at(name)), FileRefused, name)
  }
  symlinkSync('circle', place.at('circle'))
  for (const name of ['circle', 'missing', 'directory/missing', 'large/below', 'nul\0'])
    assert.equal(readInside(place.at(name), place.root), undefined, name)
  place.write('just', 'x'.repeat(TEXT_BYTES))
  assert.equal(readInside(place.at('just'), place.root)?.length, TEXT_BYTES)
})

test('a file is read through links as long as they stay inside', () => {
  using place = city()
  place.write('real/file', 'text')
  symlinkSync('real', place.at('linked'))
  symlinkSync(place.root, join(place.outside, 'city-by-another-name'))
  const other = join(place.outside, 'city-by-another-name')
  assert.equal(readInside(join(other, 'linked/file'), other)?.toString(), 'text')
  assert.equal(readInside(place.at('linked/file'), other)?.toString(), 'text')
})

test('a tree has the same hash, whether or not an edit of other files lies over it', () => {
  using place = city()
  place.write('assets/one', '1')
  place.write('assets/deep/two', '2')
  symlinkSync('.', place.at('assets/circle'))
  symlinkSync('/', place.at('assets/everything'))
  symlinkSync('one', place.at('assets/also-one'))
  execFileSync('mkfifo', [place.at('assets/pipe')])
  const assets = place.at('assets')
  const hash = contentHash(disk, assets, place.root)
  for (const edits of [[], [[place.at('city.toml'), 'x']], [[place.at('assets/one'), '1']]] as const)
    assert.equal(contentHash(overlayFiles(disk, new Map(edits)), assets, place.root), hash)
  const changed = overlayFiles(disk, new Map([[place.at('assets/one'), '3']]))
  assert.notEqual(contentHash(changed, assets, place.root), hash)
})

test('a tree that is too much is refused, and the place in it is named', async () => {
  using place = city()
  place.write('large/deep/file', '')
  truncateSync(place.at('large/deep/file'), 17 * 1024 * 1024)
  const names = (path: string) => (error: unknown) => error instanceof TreeRefused && error.path === path
  assert.throws(() => contentHash(disk, place.at('large'), place.root), names('deep/file'))
  await assert.rejects(measureTree(place.at('large'), noPause), names('deep/file'))
  const deep = Array.from({ length: 900 }, () => 'd').join('/')
  mkdirSync(place.at(`nested/${deep}`), { recursive: true })
  assert.throws(() => contentHash(disk, place.at('nested'), place.root), /more than 64 levels/)
  mkdirSync(place.at('many'))
  for (let n = 0; n < 10_001; n++) mkdirSync(place.at(`many/${n}`))
  assert.throws(() => contentHash(disk, place.at('many'), place.root), /more than 10000 entries/)
  symlinkSync('/', place.at('all'))
  assert.throws(() => contentHash(disk, place.at('all'), place.root), /leads out of/)
})

test('the hash of a checkout sees what was slipped in, also links and executable bits, and gives way to others', async () => {
  using place = city()
  for (let n = 0; n < 40; n++) place.write(`pack/${n}`, 'x'.repeat(1_000_000))
  let pauses = 0
  const { hash } = await measureTree(place.at('pack'), async () => {
    pauses++
  })
  assert.ok(pauses > 0)
  assert.match(hash, /^sha256:[0-9a-f]{64}$/)
  symlinkSync('/etc/passwd', place.at('pack/link'))
  const { hash: linked } = await measureTree(place.at('pack'), noPause)
  assert.notEqual(linked, hash)
  execFileSync('chmod', ['+x', place.at('pack/1')])
  assert.notEqual((await measureTree(place.at('pack'), noPause)).hash, linked)
})

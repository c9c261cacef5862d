/** What the README and the guides show is what one sees who types it. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { suite, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parseOrder } from '../../src/automation/order.ts'
import { readPlainToml } from '../../src/files/toml.ts'
import { CREDENTIAL_KEYS } from '../../src/modules/packs/remote/credentials.ts'
import { resolveSettings } from '../../src/supervisor/settings.ts'
import { compiled } from '../support/automation/documents.ts'
import { Comparison, partsOf, Reader } from '../support/guide.ts'
import { IrcServer } from '../support/irc-server.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const root = resolve(import.meta.dirname, '../..')
const GUIDES = ['README.md', ...globSync('docs/guide/*.md', { cwd: root }).sort()]

/** Main flows: people, agents, hooks and commands find their tokens by themselves. */
const WITH_TOKENS = ['docs/guide/first-hour.md', 'docs/guide/agents.md', 'docs/guide/orders.md']

suite('examples', { concurrency: 2 }, () => {
  for (const guide of GUIDES) {
    test(`the examples of ${guide} do what it says`, { timeout: 500_000 }, async (t) => {
      const hasSome = partsOf(readFileSync(join(root, guide), 'utf8')).some(
        (part) => part.kind === 'first' || part.fence.language === 'console',
      )
      if (!hasSome) return
      await using irc = /\/(?:chat|services)\.md$/.test(guide)
        ? await IrcServer.start({ modern: true, history: 'join' })
        : undefined
      await using reader = await Reader.start(
        irc === undefined
          ? {}
          : { places: { '127.0.0.1:6667': `127.0.0.1:${irc.port}`, '127.0.0.1/6667': `127.0.0.1/${irc.port}` } },
      )
      const { ran, skipped } = await reader.follow(guide)
      t.diagnostic(`${guide}: ${ran.length} run, ${skipped.length} skipped`)
      for (const line of skipped) t.diagnostic(line)
    })
  }

  for (const guide of WITH_TOKENS)
    test(`the examples of ${guide} do the same where the API asks for tokens`, { timeout: 500_000 }, async () => {
      await using reader = await Reader.start({ env: { SVC_AUTH: 'true' } })
      const { ran } = await reader.follow(guide)
      assert.ok(ran.length > 0)
    })
})

test('every link between our documents leads somewhere', () => {
  const pages = [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...globSync('docs/**/*.md', { cwd: root }),
  ]
  const broken = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/```[\s\S]*?```/g, '')
    return [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(join(root, dirname(page), target)))
      .map((target) => `${page}: ${target}`)
  })
  assert.deepEqual(broken, [])
})

test('what is to go on goes on, though its terminal is closed before it has left that', async () => {
  await using reader = await Reader.start({})
  const guide = join(reader.home, 'guide.md')
  const examples = ['(until [ -e open ]; do sleep 0.1; done; exec setsid touch left) &', 'touch open', 'ls left\nleft']
  const marks = ['', '', '<!-- run: wait -->\n']
  writeFileSync(guide, examples.map((one, at) => `${marks[at]}\`\`\`console\n$ ${one}\n\`\`\`\n`).join(''))
  assert.equal((await reader.follow(relative(root, guide))).ran.length, examples.length)
})

suite('comparing', () => {
  test('ids, times and widths may differ, words may not', () => {
    const comparison = new Comparison()
    const shown = ['ID      TITLE          AGE', 'de-dpg  Fix the login  5s ago']
    assert.ok(comparison.matches(shown, 'ID     TITLE           AGE\nde-x1   Fix the login   2m ago\n') === false)
    assert.ok(comparison.matches(shown, 'ID     TITLE           AGE\nde-x1y   Fix the login   2m ago\n'))
    assert.equal(comparison.actual('svcctl bead get de-dpg'), 'svcctl bead get de-x1y')
    assert.ok(!comparison.matches(['de-dpg'], 'de-zzz'))
    assert.ok(!comparison.matches(['Fix the login'], 'Fix the logout'))
  })

  test('dots stand for anything', () => {
    const comparison = new Comparison()
    assert.ok(comparison.matches(['a', '…', 'z'], 'a\nb\nc\nz'))
    assert.ok(comparison.matches(['a … z'], 'a b c z'))
    assert.ok(!comparison.matches(['a', '…', 'z'], 'a\nb'))
  })
})

test('files that the guides show are files that are taken', () => {
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true })
  const validators = ['city', 'agent'].map((kind) =>
    ajv.compile(JSON.parse(readFileSync(join(root, `${kind}.schema.json`), 'utf8'))),
  )
  const refused = GUIDES.flatMap((guide) =>
    partsOf(readFileSync(join(root, guide), 'utf8')).flatMap((part) => {
      if (part.kind === 'first' || part.fence.language !== 'toml' || part.fence.mark.endsWith(' wrong')) return []
      const text = part.fence.lines.join('\n')
      const isTaken =
        validators.some((validate) => validate(readPlainToml(text))) ||
        isFormula(text) ||
        isOrder(text) ||
        isOfServer(text) ||
        isOfGit(text)
      return isTaken ? [] : [`${guide}:${part.fence.line}`]
    }),
  )
  assert.deepEqual(refused, [])
})

function isFormula(text: string): boolean {
  const { formula } = readPlainToml(text)
  if (typeof formula !== 'string') return false
  using place = temporaryDirectory()
  writeFileSync(join(place.path, `${formula}.toml`), text)
  return compiled(formula, place.path).issues.length === 0
}

function isOrder(text: string): boolean {
  const file = { text, file: 'shown.toml', dir: root }
  return readPlainToml(text)['order'] !== undefined && parseOrder('shown', file).issues.length === 0
}

/** `credentials.toml` */
function isOfGit(text: string): boolean {
  const { credential, ...others } = readPlainToml(text)
  const entries = Array.isArray(credential) ? credential : []
  const keys = entries.flatMap((entry) => Object.keys(Object(entry)))
  return entries.length > 0 && keys.every((key) => CREDENTIAL_KEYS.includes(key)) && Object.keys(others).length === 0
}

function isOfServer(text: string): boolean {
  using place = temporaryDirectory()
  writeFileSync(join(place.path, 'supervisor.toml'), text)
  try {
    return resolveSettings({ home: place.path }, {}, place.path, place.path).home === place.path
  } catch {
    return false
  }
}

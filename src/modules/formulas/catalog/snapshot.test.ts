/** What the files of a city come to: layers, scopes, and what need not be compiled again. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { effortOf } from '../../../../test/support/effort.ts'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import type { DocumentHome } from '../../../files/documents.ts'
import { diskFiles } from '../../../files/files.ts'
import { Snapshot } from './snapshot.ts'
import type { DocumentLayout } from './sources.ts'

const simple = (name: string, title = 'Do it', more = '') =>
  `formula = "${name}"\n${more}[[steps]]\nid = "work"\ntitle = "${title}"\n`
const order = (more = '') => `[order]\nexec = "true"\ntrigger = "manual"\n${more}`

function homeIn(
  dir: string,
  more: Partial<DocumentHome> & Pick<DocumentHome, 'layer' | 'rig'>,
  at: string,
): DocumentHome {
  const of = (name: string) => join(dir, at, name)
  return {
    trusted: true,
    root: dir,
    formulas: of('formulas'),
    orders: of('orders'),
    fragments: of('template-fragments'),
    ...more,
  }
}

/** A city with a pack of its own, one of the rig `web`, one that nobody has trusted, and the rig’s own files. */
function world(files: Readonly<Record<string, string>>) {
  const directory = temporaryDirectory()
  const { path: dir } = directory
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  for (const [path, text] of Object.entries(files)) put(path, text)
  const layout: DocumentLayout = {
    homes: [
      homeIn(dir, { layer: 'pack', rig: '', pack: 'core' }, 'core'),
      homeIn(dir, { layer: 'pack', rig: '', pack: 'foreign', trusted: false }, 'foreign'),
      homeIn(dir, { layer: 'city', rig: '' }, '.'),
      homeIn(dir, { layer: 'pack', rig: 'web', pack: 'webs' }, 'webs'),
      homeIn(dir, { layer: 'rig', rig: 'web' }, 'rig'),
      homeIn(dir, { layer: 'pack', rig: 'shop', pack: 'webs' }, 'webs'),
    ],
    rigs: ['web', 'shop'],
    display: (path) => relative(dir, path),
  }
  const look = (before?: Snapshot) => new Snapshot(layout, diskFiles(), before)
  return {
    put,
    remove: (path: string) => rmSync(join(dir, path)),
    look,
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  }
}

test('the highest layer wins with its whole file, and an untrusted pack never does', () => {
  using city = world({
    'core/formulas/a.toml': simple('a', 'Core'),
    'foreign/formulas/a.toml': simple('a', 'Foreign'),
    'foreign/formulas/only.toml': simple('only'),
    'formulas/a.toml': simple('a', 'City'),
    'webs/formulas/a.toml': simple('a', 'Webs'),
    'rig/formulas/a.toml': simple('a', 'Rig'),
  })
  const now = city.look()
  const title = (rig?: string) => now.formula('a', rig)?.plan?.steps[0]?.title
  assert.deepEqual([title(), title('web'), title('shop')], ['City', 'Rig', 'Webs'])
  assert.deepEqual(now.compiled('a', 'web')?.shadows, [
    'core/formulas/a.toml',
    'formulas/a.toml',
    'webs/formulas/a.toml',
  ])
  const held = now.formula('only')
  assert.deepEqual([held?.plan, held?.untrusted, held?.issues.length], [undefined, 'foreign', 1])
  assert.equal(now.formula('a', 'nowhere'), undefined)
})

test('a formula of the city is one of the rig where the rig has what it is made of', () => {
  using city = world({
    'formulas/child.toml': 'formula = "child"\nextends = ["base"]\n',
    'formulas/base.toml': simple('base', 'City'),
    'formulas/apart.toml': simple('apart', "{% render 'words' %}"),
    'template-fragments/words.template.md': 'city',
    'rig/formulas/base.toml': simple('base', 'Rig'),
    'rig/template-fragments/words.template.md': 'rig',
  })
  const now = city.look()
  const child = (rig?: string) => now.formula('child', rig)
  assert.deepEqual([child('web')?.plan?.steps[0]?.title, child('web')?.rig], ['Rig', 'web'])
  assert.equal(child('shop'), child(), 'the very same')
  assert.equal(child('web')?.layer, 'city', 'its file is that of the city')
  assert.equal(now.formula('apart', 'web')?.plan?.fragments['words'], 'rig')
  assert.notEqual(now.formula('apart', 'web')?.hash, now.formula('apart')?.hash)
})

test('what is made of the same files is not compiled again, and what is not, is', () => {
  using city = world({
    'formulas/base.toml': simple('base'),
    'formulas/child.toml': 'formula = "child"\nextends = ["base"]\n',
    'formulas/other.toml': simple('other'),
    'formulas/lost.toml': 'formula = "lost"\nextends = ["missing"]\n',
  })
  const first = city.look()
  const all = ['base', 'child', 'other', 'lost']
  const before = all.map((name) => first.formula(name))
  city.put('formulas/base.toml', simple('base', 'Otherwise'))
  const second = city.look(first)
  const same = all.map((name, index) => second.formula(name) === before[index])
  assert.deepEqual(same, [false, false, true, true])
  city.put('formulas/missing.toml', simple('missing'))
  const third = city.look(second)
  assert.ok(third.formula('lost')?.plan !== undefined, 'what it looked for is there now')
  assert.equal(third.formula('other'), second.formula('other'))
  city.remove('formulas/missing.toml')
  assert.equal(city.look(third).formula('lost')?.plan, undefined)
})

test('orders are for the city or for each rig that imports them, as they say', () => {
  using city = world({
    'core/orders/both.toml': order(),
    'orders/wrong.toml': order('scope = "rig"\n'),
    'orders/taken.toml': order(),
    'webs/orders/both.toml': order(),
    'webs/orders/once.toml': order('scope = "city"\n'),
    'webs/orders/taken.toml': order('scope = "city"\n'),
    'rig/orders/own.toml': order(),
    'foreign/orders/held.toml': order(),
    'orders/broken.toml': '[order\n',
    'orders/_notes.toml': 'nothing',
    'orders/lost.toml': '[order]\nformula = "nothing"\ntrigger = "manual"\n',
  })
  const now = city.look()
  assert.deepEqual(
    now.orders().map(({ name, rig, file, issues }) => [name, rig, file, issues.length]),
    [
      ['both', undefined, 'core/orders/both.toml', 0],
      ['both', 'shop', 'webs/orders/both.toml', 0],
      ['both', 'web', 'webs/orders/both.toml', 0],
      ['broken', undefined, 'orders/broken.toml', 1],
      ['held', undefined, 'foreign/orders/held.toml', 1],
      ['lost', undefined, 'orders/lost.toml', 1],
      ['once', undefined, 'webs/orders/once.toml', 0],
      ['own', 'web', 'rig/orders/own.toml', 0],
      ['taken', undefined, 'orders/taken.toml', 0],
      ['wrong', undefined, 'orders/wrong.toml', 1],
    ],
  )
})

test('a thousand formulas are read and compiled in seconds, and one that changes costs little', () => {
  const files = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, index) => [
      `formulas/f${index}.toml`,
      simple(`f${index}`, `Step {{ city.name }} ${index}`),
    ]),
  )
  using city = world(files)
  const first = city.look()
  assert.equal(first.everyFormula().length, 1_000)
  first.stamps()
  city.put('formulas/f7.toml', simple('f7', 'Otherwise'))
  const { result: stamps, ms } = effortOf(() => city.look(first).stamps())
  assert.equal([...first.stamps()].filter(([key, stamp]) => stamps.get(key) !== stamp).length, 1)
  assert.ok(ms < 5_000, `${ms} ms`)
})

test('an order gives its formula what that takes, as far as it is known before it runs', () => {
  using city = world({
    'formulas/release.toml': simple('release', 'Do it', '[vars]\nrounds = 1\n[vars.tag]\npattern = "v[0-9]+"\n'),
    'formulas/base.toml': 'formula = "base"\n',
  })
  const issues = (text: string) =>
    city
      .look()
      .check('order', 'nightly', `[order]\ntrigger = "manual"\n${text}`)
      .issues.map(({ line, key, message, hint }) => [line, key, message, hint])
  const vars = (text: string) => issues(`formula = "release"\n[order.vars]\n${text}`)
  assert.deepEqual(issues('formula = "base"\n'), [
    [3, 'order.formula', 'the formula `base` has no steps: it can be extended, and not started', undefined],
  ])
  assert.deepEqual(vars('rouns = 2\ntag = "1"\n'), [
    [5, 'order.vars.rouns', 'there is no variable `rouns`', 'did you mean `rounds`?'],
    [6, 'order.vars.tag', '`"1"` does not match `v[0-9]+`', undefined],
  ])
  assert.deepEqual(vars('rounds = "two"\n'), [[5, 'order.vars.rounds', '`two` is not a whole number', undefined]])
  assert.deepEqual(vars('rounds = "2"\ntag = "{{ event.payload.tag }}"\n'), [])
  assert.deepEqual(issues('formula = "release"\nbead = "{{ event.subject }}"\n[order.vars]\nother = 1\n'), [])
})

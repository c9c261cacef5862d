import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { diskFiles } from './files.ts'
import { type Asked, type FoundPack, type ImportLink, ImportWalk } from './imports.ts'

const asked = (name: string, source: string): Asked => ({ name, source, version: '' })

/** Walks packs that import what `packs` says, all in one city. */
function walked(packs: Readonly<Record<string, readonly Asked[]>>, entries: readonly Asked[]) {
  const dir = mkdtempSync(join(tmpdir(), 'svc-imports-'))
  const looks: string[] = []
  const links: ImportLink<Asked, FoundPack>[] = []
  try {
    for (const name of Object.keys(packs)) {
      mkdirSync(join(dir, name))
      writeFileSync(join(dir, name, 'pack.toml'), '')
    }
    const walk = new ImportWalk<Asked, FoundPack>({ dir, root: dir, label: '' }, diskFiles(), {
      locate: (source) => {
        looks.push(source.source)
        return { kind: 'absent', message: 'not fetched' }
      },
      read: (place) => {
        looks.push(place.label)
        return packs[place.label] === undefined ? 'missing' : { ...place, bytes: 0 }
      },
      importsOf: (pack) => packs[pack.label] ?? [],
      linked: (link) => links.push(link),
    })
    walk.follow(entries)
  } finally {
    rmSync(dir, { recursive: true })
  }
  const shown = links.map(({ way, to, obstacle }) => `${way.join('.')} → ${obstacle?.kind ?? to?.label}`)
  return { looks, shown }
}

test('a pack that several import is looked up once, and each import of it is told', () => {
  const { looks, shown } = walked(
    { a: [asked('c', '../c'), asked('far', 'https://example.org/x.git')], b: [asked('c', '../c')], c: [] },
    [asked('a', './a'), asked('b', './b'), asked('far', 'https://example.org/x.git')],
  )
  assert.deepEqual(looks, ['a', 'c', 'https://example.org/x.git', 'b'])
  assert.deepEqual(shown, ['a → a', 'a.c → c', 'a.far → absent', 'b → b', 'b.c → c', 'far → absent'])
})

test('an import that leads nowhere is told with its reason, and the walk goes on behind it', () => {
  const { shown } = walked({ a: [asked('back', '../a'), asked('out', '../../etc')], b: [] }, [
    asked('odd', 'file:///x'),
    asked('gone', './gone'),
    asked('a', './a'),
    asked('b', './b'),
  ])
  assert.deepEqual(shown, ['odd → source', 'gone → missing', 'a → a', 'a.back → circle', 'a.out → outside', 'b → b'])
})

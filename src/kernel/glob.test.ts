import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effortOf } from '../../test/support/effort.ts'
import { fc } from '../../test/support/random.ts'
import { type GlobKind, globMatches } from './glob.ts'

/** The same glob as an expression that backtracks: right, and slow. */
function expression(pattern: string, kind: GlobKind): RegExp {
  const one = kind === 'path' ? '[^/]' : '[^]'
  const source = pattern
    .replace(/\*{2,}/g, '**')
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((part) => {
      if (part === '**/') return kind === 'path' ? '(?:[^]*/)?' : '[^]*/'
      if (part === '**') return '[^]*'
      if (part === '*') return `${one}*`
      return part === '?' ? one : part.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
    })
    .join('')
  return new RegExp(`^${source}$`)
}

const pieces = (...units: string[]) => fc.array(fc.constantFrom(...units), { maxLength: 9 }).map((all) => all.join(''))

test('glob: matches what the expression of the same glob matches', () => {
  fc.assert(
    fc.property(
      pieces('a', 'b', '/', '*', '**', '**/', '?', '.'),
      pieces('a', 'b', '/', '.', '\n', 'ab'),
      fc.constantFrom<GlobKind>('text', 'path'),
      (pattern, text, kind) => {
        assert.equal(globMatches(pattern, text, kind), expression(pattern, kind).test(text), `${kind} ${pattern}`)
      },
    ),
    { numRuns: 5_000 },
  )
})

test('glob: in a path one star stops at a slash, two do not', () => {
  assert.ok(globMatches('src/**/*.ts', 'src/a/b/c.ts', 'path'))
  assert.ok(globMatches('src/**/*.ts', 'src/c.ts', 'path'))
  assert.ok(!globMatches('src/*.ts', 'src/a/c.ts', 'path'))
  assert.ok(!globMatches('src/?.ts', 'src//.ts', 'path'))
})

test('glob: a megabyte of the letters of the pattern itself costs no more than length × pattern', () => {
  const patterns = ['*git*push*--force*', '*rm *-rf *~*', '*a*a*a*a*a*a*b', '**/a**/a**/b']
  for (const pattern of patterns) {
    const letters = pattern.replaceAll('*', '')
    const text = letters.slice(0, -1).repeat(Math.ceil(1_000_000 / letters.length))
    const { result, ms } = effortOf(() => globMatches(pattern, `${text}#`, 'path'))
    assert.equal(result, false)
    assert.ok(ms < 1_000, `${pattern} took ${ms} ms`)
  }
})

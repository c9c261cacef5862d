// Keeps the house in order: who may import whom under src, where time, chance and the environment may be touched, how
// paths are looked at, and where tests have their chance from.
//
// The first rule makes promises checkable ("the command line is a client and nothing else"); the second lets tests own
// the clock and the ids. Both are data, below. A line that must break one says so itself: `// allowed: <reason>`.
// Of tests only the last is asked. Run by `npm run check` and by test/contract/imports.test.ts.
import { globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'

/** Layer (a folder of src, or its entry file) → the layers, or single files, it may import. Type-only imports count. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  contract: [],
  client: ['contract'],
  // Programs beside the supervisor that carry messages: clients, and the signatures of webhooks.
  bridges: ['client', 'contract', 'messaging/signature.ts'],
  // Hooks of harnesses are read by the tables of those; texts of strangers are the same here and where they are typed.
  cli: ['client', 'contract', 'harnesses', 'bridges', 'messaging/hostile-text.ts'],
  dashboard: ['client', 'contract'],
  kernel: ['contract'],
  files: ['kernel', 'contract'],
  harnesses: ['contract'],
  // Formulas and orders as files: their grammar, their plans, the language of their templates.
  automation: ['files', 'kernel', 'contract'],
  // What mail, chat and sessions have in common: addresses, digests, text of strangers, signatures.
  messaging: ['kernel', 'contract'],
  runtimes: ['harnesses', 'kernel', 'messaging/hostile-text.ts', 'contract'],
  // The port that the three runtimes implement, not the runtimes.
  modules: [
    'automation',
    'messaging',
    'files',
    'kernel',
    'contract',
    'harnesses',
    'runtimes/process/runtime.ts',
    'runtimes/process/answers.ts',
    'runtimes/process/asked-tool.ts',
    'runtimes/acp/transcript.ts',
    'runtimes/terminal/unfinished.ts',
  ],
  http: ['kernel', 'contract'],
  supervisor: [
    'modules',
    'automation',
    'messaging',
    'files',
    'harnesses',
    'http',
    'runtimes',
    'kernel',
    'client',
    'contract',
  ],
  'start.ts': ['cli', 'supervisor'],
  'main.ts': ['start.ts'],
}

/** Layers that must also load in a browser, and the packages they may use there. */
const BROWSER_SAFE: Record<string, readonly string[]> = {
  contract: [],
  client: ['eventsource-parser'],
}

/** In these layers each folder is on its own: what it needs of a neighbour is handed to it. */
const NO_NEIGHBOURS = ['modules']

const IMPORTS = /\b(?:from|import)\s*\(?\s*(['"])(.*?)\1/g

/** By `import` every export of it is read, and one of them (WebSocket) loads all of undici: a fifth of a supervisor's start. */
const HTTP_BY_IMPORT = /\bimport\s+(?!type\b)[^'"]*\bfrom\s*(['"])node:http\1/g

const AMBIENT = [
  { what: 'Date.now()', pattern: /\bDate\.now\b/g },
  { what: 'new Date() without an argument', pattern: /\bnew Date\b(?!\s*\(\s*[^\s)])/g },
  { what: 'randomUUID and randomBytes', pattern: /\brandom(?:UUID|Bytes)\b/g },
  { what: 'Math.random', pattern: /\bMath\.random\b/g },
  { what: 'setTimeout, setInterval and setImmediate', pattern: /(?<![\w.])set(?:Timeout|Interval|Immediate)\b/g },
  { what: 'process.env', pattern: /\bprocess\s*\.\s*env\b/g },
]
/** It reads as "does not throw", and throws for a link loop, a directory that is not ours to see, a name too long. */
const THROWING_LOOK = /\bthrowIfNoEntry\b/g

/** One seed for all that tests draw. */
const CHANCE_HOME = 'test/support/random.ts'
const TESTS = ['src/**/*.test.ts', 'test/**/*.ts', 'tools/*.ts', 'bench/**/*.ts']
const AMBIENT_HOMES = ['src/kernel/', 'src/cli/', 'src/start.ts', 'src/supervisor/serve.ts']

interface Source {
  readonly file: string
  readonly text: string
}

/** Every breach under `root`/src, as `file:line: sentence`. */
export function violations(root: string): string[] {
  const sources = globSync('src/**/*.{ts,tsx}', { cwd: root })
    .filter((file) => !/\.test\.tsx?$/.test(file))
    .sort()
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }))
  return [...sources.flatMap(({ file, text }) => fileViolations(file, text)), ...circles(sources), ...chances(root)]
}

/** Tests that draw from elsewhere than the one seed: what fails would not come again. */
function chances(root: string): string[] {
  return globSync(TESTS, { cwd: root })
    .filter((file) => file !== CHANCE_HOME)
    .sort()
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8')
      const imports = blank(text, ['comment', 'regex', 'template']).matchAll(IMPORTS)
      const drawn = [
        ...[...imports].filter(([, , specifier]) => specifier === 'fast-check'),
        ...blank(text, ['comment', 'regex', 'string']).matchAll(/\bMath\.random\b/g),
      ]
      return drawn.map(({ index }) => `${file}:${lineAt(text, index)}: chance comes from ${CHANCE_HOME}, with its seed`)
    })
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

function fileViolations(file: string, text: string): string[] {
  const lines = text.split('\n')
  const found: { line: number; rule: string }[] = []
  const note = (offset: number, rule: string | undefined) => {
    const line = lineAt(text, offset)
    if (rule !== undefined && !/\/\/ allowed: \S/.test(lines[line - 1] ?? '')) found.push({ line, rule })
  }
  const code = blank(text, ['comment', 'regex', 'template'])
  for (const match of code.matchAll(IMPORTS)) note(match.index, importRule(file, match[2] ?? ''))
  for (const match of code.matchAll(HTTP_BY_IMPORT))
    note(match.index, "node:http is not imported, but for types: process.getBuiltinModule('node:http')")
  for (const match of code.matchAll(/\bimport\s*\(\s*(?!\s|['"])/g))
    note(match.index, 'a computed import cannot be checked: name the file')
  const bare = blank(text, ['comment', 'regex', 'string'])
  for (const match of bare.matchAll(THROWING_LOOK))
    note(match.index, 'throwIfNoEntry: look at a path with src/kernel/look.ts, which throws for nothing')
  if (!AMBIENT_HOMES.some((home) => file.startsWith(home))) {
    for (const { what, pattern } of AMBIENT) {
      for (const match of bare.matchAll(pattern))
        note(match.index, `${what}: only in ${AMBIENT_HOMES.join(', ')}; elsewhere take it as an argument`)
    }
  }
  return found.sort((a, b) => a.line - b.line).map(({ line, rule }) => `${file}:${line}: ${rule}`)
}

/** One import of a file in another folder; a folder is the files that stand in it, without those below. */
interface Step {
  readonly from: string
  readonly to: string
  readonly at: string
}

/** Of folders that import each other in a circle, however long: every import on it. */
function circles(sources: readonly Source[]): string[] {
  const steps = sources.flatMap(stepsOf)
  const reached = new Map<string, ReadonlySet<string>>()
  const reach = (folder: string) => reached.get(folder) ?? remember(folder)
  const remember = (folder: string) => {
    const found = new Set<string>()
    const open = [folder]
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const { from, to } of steps) {
        if (from !== at || found.has(to)) continue
        found.add(to)
        open.push(to)
      }
    }
    reached.set(folder, found)
    return found
  }
  return steps
    .filter(({ from, to }) => reach(to).has(from))
    .map(({ from, to, at }) => `${at}: ${from} imports ${to}, which leads back to it: folders import in no circle`)
}

function stepsOf({ file, text }: Source): Step[] {
  const from = dirname(file)
  const code = blank(text, ['comment', 'regex', 'template'])
  return [...code.matchAll(IMPORTS)].flatMap((match) => {
    const specifier = match[2] ?? ''
    const to = dirname(relative('.', resolve(from, specifier)))
    const line = lineAt(text, match.index)
    return specifier.startsWith('.') && to !== from ? [{ from, to, at: `${file}:${line}` }] : []
  })
}

/** The rule that `file` breaks by importing `specifier`, if any. */
function importRule(file: string, specifier: string): string | undefined {
  const from = layerOf(file)
  const allowed = MAY_IMPORT[from]
  if (allowed === undefined) return `src/${from} has no row in the table of tools/check-imports.ts`
  if (!specifier.startsWith('.')) return packageRule(from, specifier)
  const target = relative('.', resolve(dirname(file), specifier))
  if (!target.startsWith('src/')) return `src imports nothing outside src, but here ${target}`
  if (/\.test\.tsx?$/.test(target)) return `code does not import tests, but here ${target}`
  const to = layerOf(target)
  if (to !== from)
    return allowed.includes(to) || allowed.includes(target.slice('src/'.length))
      ? undefined
      : `${from} may import ${listed(allowed)}, not ${to} (${target})`
  if (!NO_NEIGHBOURS.includes(from) || familyOf(file) === familyOf(target)) return undefined
  return `${from}/${familyOf(file)} may not import ${from}/${familyOf(target)}: state what it needs as a type and have it passed in`
}

function packageRule(from: string, specifier: string): string | undefined {
  const allowed = BROWSER_SAFE[from]
  if (allowed === undefined) return undefined
  if (isBuiltin(specifier)) return `${from} also runs in a browser: no ${specifier}`
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  const packages = allowed.length === 0 ? 'no packages' : `${allowed.join(', ')} among packages`
  return allowed.includes(name) ? undefined : `${from} may use ${packages}, not ${name}`
}

const layerOf = (file: string) => file.split('/')[1] ?? ''
const familyOf = (file: string) => file.split('/')[2] ?? ''
const listed = (names: readonly string[]) => (names.length === 0 ? 'nothing of ours' : names.join(', '))

type Token = 'comment' | 'string' | 'template' | 'regex'

// Enough of the language to tell code from text. A template is one token up to the next backtick: one nested in another
// comes out in pieces, which at worst shows a rule more text than it needs to see.
const TOKENS =
  /(?<comment>\/\/.*|\/\*[\s\S]*?\*\/)|(?<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|(?<template>`(?:\\[\s\S]|[^`\\])*`)|(?<regex>(?<=(?:[(,=:[!&|?{};>]|\breturn)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/)/g

/** `text` with tokens of the given kinds turned to blanks; offsets and lines stay where they are. */
function blank(text: string, kinds: readonly Token[]): string {
  return text.replace(TOKENS, (...match) => {
    const token: string = match[0]
    const groups: Partial<Record<Token, string>> = match.at(-1)
    return kinds.some((kind) => groups[kind] !== undefined) ? token.replace(/[^\n]/g, ' ') : token
  })
}

if (import.meta.main) {
  const found = violations(resolve(import.meta.dirname, '..'))
  for (const line of found) console.error(line)
  process.exitCode = found.length === 0 ? 0 : 1
}

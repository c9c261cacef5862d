/**
 * Files that git ignores: nothing in git has them, so a worktree that is removed takes them along for good.
 *
 * I1  An ignored file is somebody's work unless it can be made again: it is where tools put what they make, or the
 *     configuration of the city says so.
 * I2  What cannot be read, and more than can be looked at, counts as work.
 */
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readRegular } from '../../files/read.ts'
import { globMatches } from '../../kernel/glob.ts'
import { lookAtEntry } from '../../kernel/look.ts'

/** Names of directories and files that tools make again by themselves, wherever they are. */
const MADE_AGAIN: ReadonlySet<string> = new Set([
  ...['node_modules', 'bower_components', 'jspm_packages', '.pnpm-store', '.yarn', '.npm'],
  ...['__pycache__', '.venv', 'venv', '.tox', '.nox', '.pytest_cache', '.mypy_cache', '.ruff_cache', '.hypothesis'],
  ...['.eggs', '.ipynb_checkpoints', '.coverage', '.nyc_output', '.eslintcache', '.stylelintcache', '.prettiercache'],
  ...['.cache', '.parcel-cache', '.next', '.nuxt', '.svelte-kit', '.astro', '.turbo', '.vite', '.angular', '.nx'],
  ...['.gradle', '.kotlin', '.bundle', '.terraform', '.dart_tool', '.build', '.zig-cache', '.stack-work', '.elixir_ls'],
  ...['DerivedData', 'Pods', '.DS_Store', 'Thumbs.db', 'desktop.ini'],
])
const MADE_AGAIN_FILES = ['*.pyc', '*.pyo', '*.class', '*.o', '*.obj', '*.tsbuildinfo', '*.swp', '*~'] as const

/** Directories of results: only beside the file of the tool that makes them, since people call theirs so too. */
const RESULTS: ReadonlySet<string> = new Set(['build', 'dist', 'out', 'target', 'coverage', '_build', 'deps', 'vendor'])
const RECIPES = [
  ...['package.json', 'pyproject.toml', 'setup.py', 'setup.cfg', 'Cargo.toml', 'go.mod', 'pom.xml', 'build.gradle'],
  ...['build.gradle.kts', 'CMakeLists.txt', 'meson.build', 'mix.exs', 'composer.json', 'Gemfile', 'build.zig'],
] as const

/** https://bford.info/cachedir/: cargo, pytest and others mark what they make so. */
const CACHE_TAG = 'CACHEDIR.TAG'
const CACHE_SIGNATURE = 'Signature: 8a477f597d28d172789f06886806bc55'

/** So many files are looked at one by one; a directory with more counts as one. */
const MAX_FILES = 2_000

/** The files among what `git status --ignored` names that nobody can make again; a directory that is too large by itself. */
export function keptOfIgnored(root: string, named: readonly string[], disposable: readonly string[]): string[] {
  const found: string[] = []
  for (const path of named) collect({ root, disposable, found }, path.replace(/\/$/, ''))
  return found
}

interface Looking {
  readonly root: string
  readonly disposable: readonly string[]
  readonly found: string[]
}

function collect(looking: Looking, path: string): void {
  const { root, disposable, found } = looking
  if (found.length >= MAX_FILES || isMadeAgain(root, path) || isDisposable(path, disposable)) return
  if (lookAtEntry(join(root, path)).is !== 'directory') {
    found.push(path)
    return
  }
  let names: readonly string[]
  try {
    names = readdirSync(join(root, path))
  } catch {
    found.push(path)
    return
  }
  for (const name of names) collect(looking, join(path, name))
}

function isMadeAgain(root: string, path: string): boolean {
  const name = basename(path)
  if (MADE_AGAIN.has(name) || MADE_AGAIN_FILES.some((pattern) => globMatches(pattern, name))) return true
  const beside = join(root, dirname(path))
  if (RESULTS.has(name) && RECIPES.some((recipe) => existsSync(join(beside, recipe)))) return true
  return isTagged(join(root, path, CACHE_TAG))
}

function isTagged(tag: string): boolean {
  try {
    return readRegular(tag)?.toString('latin1').startsWith(CACHE_SIGNATURE) === true
  } catch {
    return false
  }
}

/** As in `.gitignore`: a pattern without a slash is a name at any depth, one with a slash begins at the top. */
function isDisposable(path: string, patterns: readonly string[]): boolean {
  return patterns.some((written) => {
    const pattern = written.replace(/^\//, '').replace(/\/$/, '')
    const isPath = written.replace(/\/$/, '').includes('/')
    return isPath ? globMatches(pattern, path, 'path') : globMatches(pattern, basename(path), 'path')
  })
}

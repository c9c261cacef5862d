/** What is refused about a pack before the 202: everything that can be told without the network. */
import { join, relative } from 'node:path'
import { cut } from '../../contract/base/text.ts'
import { PACK_NAME_PATTERN, type PackAddRequest, RESERVED_PACK_NAMES } from '../../contract/packs.ts'
import { nameOf, type PackSource, SourceError, sourceOrError } from '../../files/pack-source.ts'
import { parseConstraint, VersionError } from '../../files/pack-version.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import type { PackCity } from './city/city.ts'
import { isPack, readRoot } from './city/city-files.ts'
import { type RootImports, type Scope, scopeOf } from './city/imports.ts'
import type { Fence } from './remote/fence.ts'

export interface AdmissionDeps {
  readonly fence: Fence
  readonly builtins: ReadonlyMap<string, string>
}

/** What the job of an add works with; kept in the ledger. */
export interface AddInput {
  readonly name: string
  readonly scope: Scope
  readonly source: string
  readonly version: string
  /** What it brings may be started. */
  readonly trust: boolean
}

/** What the job of an add gets; refuses what can be told to be wrong without the network. */
export function prepareAdd({ fence, builtins }: AdmissionDeps, city: PackCity, body: PackAddRequest): AddInput {
  const source = readSource(body.source)
  const version = body.version ?? ''
  if (source.kind === 'git') {
    const refused = fence.refusal(source)
    if (refused !== undefined) throw invalidField('body.source', refused)
  } else if (version !== '')
    throw invalidField('body.version', `a ${source.kind === 'local' ? 'local' : 'built-in'} pack has no version`)
  readVersion(version)
  const name = body.name ?? nameOf(source)
  if (name === undefined || !new RegExp(PACK_NAME_PATTERN).test(name))
    throw invalidField('body.name', 'cannot be told from the source: give one')
  if (RESERVED_PACK_NAMES.some((reserved) => reserved === name))
    throw invalidField('body.name', `\`${name}\` is reserved`, name)
  if (source.kind === 'builtin' && !builtins.has(source.name))
    throw invalidField('body.source', `there is no built-in pack \`${cut(source.name, 64)}\``)
  if (source.kind === 'local') refuseMissing(city.dir, source.path)
  return {
    name,
    scope: toScope(body.scope, readRoot(city.dir)),
    source: source.source,
    version,
    trust: body.trust === true,
  }
}

/** Refuses a name that something is imported under. */
export function refuseTaken(city: PackCity, { name, scope }: AddInput): void {
  if (!readRoot(city.dir).entries.some((entry) => entry.name === name && entry.scope === scope)) return
  throw problem('pack-exists', `${scope === 'city' ? 'the city' : scope} imports something as ${name} already`)
}

/** Refuses names that nothing is imported under. */
export function refuseUnknown(city: PackCity, names: readonly string[] | undefined): void {
  if (names === undefined) return
  const known = new Set(readRoot(city.dir).entries.map(({ name }) => name))
  const unknown = names.filter((name) => !known.has(name))
  if (unknown.length === 0) return
  throw problem('pack-not-found', `there is no import ${unknown.join(', ')}`, {
    errors: unknown.map((name) => ({ location: 'body.names', message: 'is not imported', value: name })),
  })
}

function refuseMissing(city: string, path: string): void {
  const inside = !relative(city, join(city, path)).startsWith('..')
  if (!inside) throw invalidField('body.source', 'a local pack must be inside the city')
  if (!isPack(join(city, path))) throw invalidField('body.source', 'there is no `pack.toml` at that path of the city')
}

function readSource(text: string): PackSource {
  const source = sourceOrError(text)
  // Without the value: it may hold a password.
  if (source instanceof SourceError) throw invalidField('body.source', source.message)
  return source
}

function readVersion(text: string): void {
  try {
    parseConstraint(text)
  } catch (error) {
    if (error instanceof VersionError) throw invalidField('body.version', error.message)
    throw error
  }
}

function toScope(text: string | undefined, root: RootImports): Scope {
  const scope = scopeOf(text ?? 'city')
  if (scope.startsWith('rig:') && !root.rigs.includes(scope.slice('rig:'.length)))
    throw invalidField('body.scope', 'there is no such rig', scope)
  return scope
}

/** Versions of packs: what `version` may say, and which tag it means. */
import type { SemVer } from 'semver'
import Range from 'semver/classes/range.js'
import compare from 'semver/functions/compare.js'
import parse from 'semver/functions/parse.js'
import { cut } from '../contract/base/text.ts'

/** What an import asks for. */
export type Constraint =
  | { readonly kind: 'any' }
  | { readonly kind: 'commit'; readonly commit: string }
  | { readonly kind: 'range'; readonly text: string; readonly range: Range }

/** A tag that is a version. */
export interface Tagged {
  readonly tag: string
  readonly version: SemVer
  readonly commit: string
}

export class VersionError extends Error {}

const COMPARATOR = /^(\^|~|>=|<=|>|<|=)?\s*v?(\d{1,9}(?:\.\d{1,9}){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$/
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/** Reads comma-joined constraints `^ ~ >= <= > <` or an exact version, or `sha:<commit>`; empty is any. */
export function parseConstraint(text: string): Constraint {
  const trimmed = text.trim()
  if (trimmed === '') return { kind: 'any' }
  if (trimmed.startsWith('sha:')) {
    const commit = trimmed.slice(4).toLowerCase()
    if (!COMMIT.test(commit)) throw new VersionError('`sha:` takes a whole commit id of 40 hexadecimal digits')
    return { kind: 'commit', commit }
  }
  const parts = trimmed.split(',').map((part) => comparator(part.trim()))
  return { kind: 'range', text: trimmed, range: new Range(parts.join(' ')) }
}

function comparator(text: string): string {
  const [, operator, version] = COMPARATOR.exec(text) ?? []
  if (version === undefined)
    throw new VersionError('a version is `^1.4`, `~1.4`, `>=1.2,<2`, an exact one, or `sha:<commit>`')
  // An exact `1.4` is the tag 1.4, which is 1.4.0: not every 1.4.x.
  const whole = operator === undefined || operator === '=' ? padded(version) : version
  if (parse(padded(version)) === null) throw new VersionError(`not a version: ${cut(version, 60)}`)
  return `${operator === '=' ? '' : (operator ?? '')}${whole}`
}

/** `1.4-rc.1` → `1.4.0-rc.1`: tags may leave the patch out. */
function padded(version: string): string {
  const [, numbers, rest] = /^([\d.]+)(.*)$/s.exec(version) ?? []
  const parts = (numbers ?? '').split('.')
  while (parts.length < 3) parts.push('0')
  return parts.join('.') + (rest ?? '')
}

/** The version of a tag `[v]X.Y[.Z][-pre]`; undefined for any other tag. */
export function tagVersion(tag: string): SemVer | undefined {
  const [, text] = /^v?(\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.+-]+)?)$/.exec(tag) ?? []
  return text === undefined ? undefined : (parse(padded(text)) ?? undefined)
}

/** Whether a pin satisfies a constraint. A pin without a version is a commit somebody asked for by name. */
export function satisfies(pin: { readonly version: string; readonly commit: string }, constraint: Constraint): boolean {
  if (constraint.kind === 'any') return true
  if (constraint.kind === 'commit') return pin.commit === constraint.commit
  const version = tagVersion(pin.version)
  return version !== undefined && constraint.range.test(version)
}

/** Highest tag that satisfies all; without constraints a release goes before any pre-release. */
export function highest(tags: readonly Tagged[], constraints: readonly Constraint[]): Tagged | undefined {
  const fit = tags.filter(({ version, commit }) =>
    constraints.every((one) =>
      one.kind === 'any' ? true : one.kind === 'commit' ? one.commit === commit : one.range.test(version),
    ),
  )
  const ranged = constraints.some(({ kind }) => kind === 'range')
  const releases = fit.filter(({ version }) => version.prerelease.length === 0)
  const pool = ranged || releases.length === 0 ? fit : releases
  return [...pool].sort((a, b) => compare(b.version, a.version) || (a.tag < b.tag ? -1 : 1))[0]
}

/** What `add` writes for a tag: stays within its compatible releases. */
export function caretOf({ version }: Tagged): string {
  return version.prerelease.length > 0 ? `^${version.version}` : `^${version.major}.${version.minor}`
}

/** Why this svcctl is none for a pack with that `requires_svc`; undefined where it is. */
export function unfitSvc(requires: string, version: string): string | undefined {
  const range = rangeOf(requires)
  if (range === undefined) return '`requires_svc` is a version of svcctl: `>=1.2`, `^1.4`, `>=1.2,<2`'
  return range.test(version) ? undefined : `needs svcctl ${requires}, and this is ${version}`
}

function rangeOf(text: string): Range | undefined {
  try {
    const constraint = parseConstraint(text)
    return constraint.kind === 'range' ? new Range(constraint.range.raw, { includePrerelease: true }) : undefined
  } catch (error) {
    if (error instanceof VersionError) return undefined
    throw error
  }
}

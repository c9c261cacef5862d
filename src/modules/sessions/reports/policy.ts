/**
 * Rules about tools (`permissions`, decision 226): whether one may be used, before anybody is asked. Pure.
 *
 * P1  The first rule that holds decides; where none does, somebody is asked. An agent's own rules come before the city's.
 * P2  `allow` holds only where everything that would be done is covered: of a command with a `match`, that it is one
 *     simple command; of files, every path, as it is written and as it really is.
 * P3  `deny` and `ask` hold where any part is covered: one command of a line, one of the paths.
 * P4  A command that is not known, as one that is too long, is let through by no `match`; where one might refuse it,
 *     somebody is asked.
 */
import { isAbsolute, join, normalize, relative } from 'node:path'
import type { PermissionRule } from '../../../contract/config-schema.ts'
import { type Glob, glob, globMatches } from '../../../kernel/glob.ts'
import type { AskedTool } from '../../../runtimes/process/asked-tool.ts'

export type Rule = Readonly<PermissionRule>

export interface RuleSet {
  /** Whose rules they are, for whoever reads the answer. */
  readonly of: string
  readonly rules: readonly Rule[]
}

export interface RuleVerdict {
  readonly action: Rule['action']
  /** Which rule: `permissions[2] of worker`. */
  readonly by: string
}

export interface Place {
  readonly workDir: string
  /** Where a path really leads, links followed; of one that is not there, of what is above it. */
  readonly real: (path: string) => string
}

export function verdictOf(sets: readonly RuleSet[], tool: AskedTool, place: Place): RuleVerdict | undefined {
  for (const { of, rules } of sets)
    for (const [index, rule] of rules.entries())
      if (holds(rule, tool, place)) return { action: actionFor(rule, tool), by: `permissions[${index}] of ${of}` }
  return undefined
}

const isUnknown = ({ kind, command }: AskedTool): boolean => kind === 'shell' && command === undefined

/** P4. */
const actionFor = ({ action, match }: Rule, tool: AskedTool): Rule['action'] =>
  match !== undefined && isUnknown(tool) ? 'ask' : action

function holds({ tool: named, match, action }: Rule, tool: AskedTool, place: Place): boolean {
  if (!globMatches(named.toLowerCase(), tool.name.toLowerCase()) && named.toLowerCase() !== tool.kind) return false
  if (match === undefined) return true
  if (isUnknown(tool)) return action !== 'allow'
  if (tool.command !== undefined) return commandHolds(match, tool.command, action)
  if (tool.paths.length > 0) return pathsHold(match, tool.paths, action, place)
  return tool.url !== undefined && globMatches(match, tool.url)
}

// ---- commands -------------------------------------------------------------------------------------------------------

/**
 * Whatever makes more of a line than one command with its words: control characters and line breaks, separators and
 * pipes, redirections, substitutions and variables, groups and braces, escapes, history, comments. A `#` or `~` inside a
 * word is none.
 */
const COMPOUND = /[\p{Cc};&|<>`$(){}\\!]|(?:^|\s)#/u
const SEPARATORS = /[\n\r;&|(){}`]+|\$\(/
/** `NAME=value` in front of a command. */
const ASSIGNMENTS = /^(?:[A-Za-z_]\w*=\S*\s+)+/

/** Nobody reads so much before they let it pass: it is asked about. */
const MAX_ALLOWED = 65_536

function commandHolds(match: string, command: string, action: Rule['action']): boolean {
  const pattern = glob(match)
  const whole = command.trim()
  if (action === 'allow') return command.length <= MAX_ALLOWED && !COMPOUND.test(whole) && pattern.matches(whole)
  const parts = whole.split(SEPARATORS).map((part) => part.trim().replace(ASSIGNMENTS, ''))
  return [whole, ...parts].some((part) => part !== '' && pattern.matches(part))
}

// ---- files ----------------------------------------------------------------------------------------------------------

function pathsHold(match: string, paths: readonly string[], action: Rule['action'], place: Place): boolean {
  const pattern = glob(match, 'path')
  const covered = (path: string): boolean => spellings(path, place.workDir).some((one) => pattern.matches(one))
  const written = (path: string) => normalize(isAbsolute(path) ? path : join(place.workDir, path))
  const both = paths.map((path) => [written(path), place.real(written(path))] as const)
  if (action === 'allow')
    return both.every(([as, really]) => covered(as) && (really === as || coveredReally(really, pattern, place)))
  return both.some(([as, really]) => covered(as) || covered(really))
}

/** The work directory may itself be reached by a link. */
function coveredReally(path: string, pattern: Glob, { workDir, real }: Place): boolean {
  return [...spellings(path, workDir), ...spellings(path, real(workDir))].some((one) => pattern.matches(one))
}

/** A path as a rule may name it: from the root, and from the work directory where it is inside. */
function spellings(path: string, workDir: string): readonly string[] {
  const below = relative(workDir, path)
  const inside = below !== '..' && !below.startsWith('../') && !isAbsolute(below)
  return inside ? [path, below] : [path]
}

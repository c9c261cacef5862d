/**
 * A command as data: its words, its arguments and flags, its examples, what it does. Parsing, help, completion and error
 * texts derive from it (style R16).
 */
import type { OperationId } from '../../contract/index.ts'
import type { Context } from './context.ts'

/** Values that completion can look up. */
export type Completed =
  | 'adapter'
  | 'agent'
  | 'bead'
  | 'binding'
  | 'city'
  | 'closed-bead'
  | 'config-file'
  | 'config-key'
  | 'convoy'
  | 'event-type'
  | 'field'
  | 'file'
  | 'formula'
  | 'group'
  | 'mailbox'
  | 'message'
  | 'molecule'
  | 'none'
  | 'output'
  | 'pack'
  | 'provider'
  | 'provider-base'
  | 'request'
  | 'rig'
  | 'service'
  | 'session'
  | 'token'
  | 'transcript'
  | 'worktree'

export interface FlagSpec {
  /** As commander writes it: `-n, --name <name>`. */
  readonly flags: string
  readonly description?: string
  readonly choices?: readonly string[]
  readonly repeatable?: boolean
  readonly complete?: Completed
  /** Field of the body or the query that it says; its name in snake case where absent. */
  readonly field?: string
  /** Understood, and not worth a line of help. */
  readonly hidden?: true
}

export interface ArgumentSpec {
  /** `<required>`, `[optional]`, `[several...]`. */
  readonly name: string
  readonly description?: string
  readonly choices?: readonly string[]
  readonly complete?: Completed
  /** Field of the body, the query or the path that it says; its own name where absent. */
  readonly field?: string
}

export interface Example {
  readonly line: string
  readonly does: string
}

export interface CommandSpec {
  /** One to three words. */
  readonly path: readonly [string, ...string[]]
  /** What it calls, most important first; the help is made from the first. */
  readonly operations: readonly OperationId[]
  readonly summary?: string
  readonly description?: string
  readonly arguments?: readonly ArgumentSpec[]
  readonly flags?: readonly FlagSpec[]
  /** Fields of its operation that it does not have, and why. */
  readonly leaves?: ReadonlyMap<string, string>
  /** With `-A` it asks all cities. */
  readonly isFleet?: boolean
  /** With `--watch` it is done again whenever something happens. */
  readonly isWatched?: boolean
  readonly examples: readonly Example[]
  /** Stands before its error messages, which are then text for people, whatever the output is (spec §6). */
  readonly errorPrefix?: string
  /** Returns the exit code; throws `Failure` and what the client throws. */
  readonly run: (context: Context, input: Input) => Promise<number>
}

/** What a command module exports. */
export interface CommandModule {
  readonly commands: readonly CommandSpec[]
}

/** Parsed flags and arguments, read by name and kind. */
export class Input {
  readonly #values: ReadonlyMap<string, unknown>

  /** Flags by their camel-case name, arguments by theirs. */
  constructor(values: Iterable<readonly [string, unknown]>) {
    this.#values = new Map(values)
  }

  text(name: string): string | undefined {
    const value = this.#values.get(name)
    return typeof value === 'string' ? value : undefined
  }

  /** True where the command line says it. */
  has(name: string): boolean {
    const value = this.#values.get(name)
    return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0)
  }

  /** A required argument. */
  required(name: string): string {
    const value = this.text(name)
    if (value === undefined) throw new TypeError(`command has no argument ${name}`)
    return value
  }

  texts(name: string): readonly string[] {
    const value = this.#values.get(name)
    return Array.isArray(value) ? value.map(String) : []
  }

  on(name: string): boolean {
    return this.#values.get(name) === true
  }

  /** True, false, or undefined where neither `--x` nor `--no-x` was given. */
  choice(name: string): boolean | undefined {
    const value = this.#values.get(name)
    return typeof value === 'boolean' ? value : undefined
  }
}

/** Every command takes these, in any position. */
export const GLOBAL_FLAGS: readonly FlagSpec[] = [
  { flags: '--api <url>', description: 'Server (default: SVC_API, else the running supervisor).' },
  { flags: '--token <token>', description: 'Token (default: SVC_TOKEN, else that of the running supervisor).' },
  {
    flags: '-c, --city <city>',
    description: 'City, by name or path (default: SVC_CITY, else that of the working directory).',
    complete: 'city',
  },
  { flags: '-A, --all-cities', description: 'All cities that run, also inside the directory of one.' },
  {
    flags: '-o, --output <format>',
    description: 'How to print: table, wide, json, jsonl, yaml, name, jsonpath=PATH or template=TEXT.',
    complete: 'output',
  },
  { flags: '--json', description: 'Same as -o json.' },
  {
    flags: '--sort <fields>',
    description: 'Order of what a list shows: fields or columns, with commas between; -FIELD from the greatest.',
    complete: 'field',
  },
  {
    flags: '--columns <fields>',
    description:
      'What a table shows: columns, or any field by its path (git.branch); +FIELD adds to what it shows anyway.',
    complete: 'field',
  },
  { flags: '--no-color', description: 'No colours; so does NO_COLOR.' },
  { flags: '-q, --quiet', description: 'No progress and no notes on stderr.' },
  { flags: '--debug', description: 'Tell stderr about every request.' },
]

export const keyFlag: FlagSpec = {
  flags: '--idempotency-key <key>',
  description: 'Same key and body within 24 h: done once, answered the same (default: a new one).',
}

/** Of commands that ask before they do it (`asking`). */
export const yesFlag: FlagSpec = { flags: '-y, --yes', description: 'Do not ask.' }

export const watchFlag: FlagSpec = { flags: '-w, --watch', description: 'Go on until stopped, and show every change.' }

/** camel case of a long flag: `--after-cursor <c>` → `afterCursor`. */
export function flagName(flags: string): string {
  const long = /--(?:no-)?([a-z][a-z-]*)/.exec(flags)?.[1] ?? ''
  return long.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** The field that a flag says: `--created-before <time>` → `created_before`. */
export const fieldName = ({ flags, field }: FlagSpec): string => field ?? snakeCase(flagName(flags))

/** `createdBefore` → `created_before`. */
export const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Spellings of a flag: `['-c', '--city']`. */
export const flagWords = (flags: string): readonly string[] => flags.match(/--?[a-zA-Z][a-zA-Z-]*/g) ?? []

export const takesValue = (flags: string): boolean => flags.includes('<')

/** `<dir>` → `dir`, `[items...]` → `items`. */
export const argumentName = (name: string): string => name.replaceAll(/[<>[\].]/g, '')

/** Checks the texts of formulas and orders when they are loaded: their form, the names that they read, their fragments. */
import { type IssueList, nearestHint } from '../files/issues.ts'
import type { ScalarNode } from '../files/toml.ts'
import { hasMarks } from './language.ts'
import {
  type Findings,
  type FragmentUse,
  findInExpression,
  findInTemplate,
  type Read,
  type TextProblem,
} from './reads.ts'
import type { PlacedText } from './source.ts'
import { placeInText } from './text-place.ts'

/** What a text may read. */
export interface Names {
  /** Variables, names of items, and the reserved names that are there. */
  readonly names: ReadonlySet<string>
  readonly steps: ReadableSteps
}

export interface ReadableSteps {
  /** `readable`, or the sentence that says why not; undefined where there is no such step. */
  readonly get: (id: string) => string | undefined
  readonly keys: () => Iterable<string>
}

/** Where fragments are looked up. */
export interface Fragments {
  readonly fragment: (name: string) => string | undefined
  readonly fragmentNames: () => Iterable<string>
}

/** Fields of what is no variable. Those of a map are free. */
export const NAME_FIELDS: Readonly<Record<string, readonly string[]>> = {
  bead: ['id', 'title', 'description', 'priority', 'metadata', 'members'],
  molecule: ['id', 'title', 'formula', 'target', 'bead_id', 'created_at'],
  city: ['name', 'path'],
  rig: ['name', 'path'],
  previous: ['outcome', 'output', 'assignee', 'commit', 'bead_id', 'failure_reason'],
}
export const STEP_FIELDS = [
  'outcome',
  'output',
  'assignee',
  'commit',
  'branch',
  'work_dir',
  'bead_id',
  'failure_reason',
] as const

export class TextChecker {
  readonly #issues: IssueList
  readonly #fragments: Fragments
  readonly #found = new Map<string, Findings>()
  /** Texts of the fragments that came up, and those that they use. */
  readonly #used = new Map<string, string>()

  constructor(issues: IssueList, fragments: Fragments) {
    this.#issues = issues
    this.#fragments = fragments
  }

  get usedFragments(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#used].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  template(placed: PlacedText, names: Names): void {
    if (!hasMarks(placed.text)) return
    const findings = findInTemplate(placed.text)
    this.#report(placed, findings.problems)
    this.#report(placed, readProblems(findings.reads, names))
    for (const use of findings.uses)
      this.#report(placed, this.#fragmentProblems(use, names, { path: [], seen: new Set() }))
  }

  /** `from` is where the expression begins in the text. */
  expression(placed: PlacedText, names: Names, from = 0, to = placed.text.length): void {
    const findings = findInExpression(placed.text.slice(from, to))
    const problems = [...findings.problems, ...readProblems(findings.reads, names)]
    this.#report(
      placed,
      problems.map((problem) => ({ ...problem, offset: problem.offset + from })),
    )
  }

  #report({ node, key, source }: PlacedText, problems: readonly TextProblem[]): void {
    for (const { offset, message, hint } of problems)
      this.#issues.error(placeInText(source.text, node.at, offset), key, message, hint)
  }

  /** What is wrong with a fragment where it is used, at that place: the same text may do well elsewhere. */
  #fragmentProblems({ name, passed, offset }: FragmentUse, names: Names, way: Way): TextProblem[] {
    const text = this.#fragments.fragment(name)
    if (text === undefined) {
      const hint = nearestHint(name, this.#fragments.fragmentNames())
      return [{ offset, message: `there is no fragment \`${name}\``, hint: hint ?? FRAGMENT_FILES }]
    }
    if (way.path.includes(name)) {
      const circle = [...way.path.slice(way.path.indexOf(name)), name].join(' → ')
      return [{ offset, message: `the fragment \`${name}\` renders itself: ${circle}` }]
    }
    // Fragments that render each other twice would be looked at without end.
    const id = JSON.stringify([name, ...passed])
    if (way.seen.has(id)) return []
    way.seen.add(id)
    this.#used.set(name, text)
    const findings = this.#findings(name, text)
    const inner = { ...names, names: new Set([...names.names, ...passed]) }
    const reads = findings.reads.filter(({ path: [root] }) => !passed.includes(String(root)))
    const here = [...findings.problems, ...readProblems(reads, inner)].map((problem) => ({
      ...problem,
      offset,
      message: `in the fragment \`${name}\`, line ${lineAt(text, problem.offset)}: ${problem.message}`,
    }))
    // What it was passed is its own: fragments that it renders see it only where it passes it on.
    const further = { path: [...way.path, name], seen: way.seen }
    return [...here, ...findings.uses.flatMap((use) => this.#fragmentProblems({ ...use, offset }, names, further))]
  }

  #findings(name: string, text: string): Findings {
    const known = this.#found.get(name)
    if (known !== undefined) return known
    const findings = findInTemplate(text)
    this.#found.set(name, findings)
    return findings
  }
}

/** A text that stands in a file. */
export function placed(node: ScalarNode, key: string, source: PlacedText['source']): PlacedText {
  return { text: String(node.value), node, key, source }
}

/** Fragments on the way to one, outermost first, and all that one use has led to. */
interface Way {
  readonly path: readonly string[]
  readonly seen: Set<string>
}

const FRAGMENT_FILES = 'fragments are files `template-fragments/<name>.template.md`'

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

const readProblems = (reads: readonly Read[], names: Names): TextProblem[] =>
  reads.flatMap((read) => {
    const problem = readProblem(read, names)
    return problem === undefined ? [] : [{ offset: read.offset, ...problem }]
  })

const EVENT_NAMES: readonly string[] = ['event', 'events']
const BY_VARS = 'an order hands it on in its `vars`: `vars = { id = "{{ event.payload.id }}" }`'

type Problem = Omit<TextProblem, 'offset'>

function readProblem({ path, text }: Read, names: Names): Problem | undefined {
  const [root, field] = path
  if (typeof root !== 'string') return { message: 'a name stands as it is: not in brackets' }
  if (root === 'steps') return stepProblem(path, text, names)
  if (!names.names.has(root) && EVENT_NAMES.includes(root))
    return { message: `there is no \`${root}\` here`, hint: BY_VARS }
  if (!names.names.has(root)) return unknown(`there is no \`${root}\` here`, root, [...names.names, 'steps'])
  const fields = Object.hasOwn(NAME_FIELDS, root) ? NAME_FIELDS[root] : undefined
  if (fields === undefined || path.length === 1) return undefined
  if (typeof field === 'string' && fields.includes(field)) return undefined
  if (typeof field !== 'string') return { message: `the fields of \`${root}\` are read by their names` }
  return unknown(`\`${root}\` has no \`${field}\``, field, fields)
}

function stepProblem([, id, field, ...rest]: Read['path'], text: string, { steps }: Names): Problem | undefined {
  // Who renders looks for the steps that a text names, and looks for this.
  const isPlain =
    typeof id === 'string' && [`steps.${id}`, `steps.${id}.`, `steps.${id}[`].some((one) => begins(text, one))
  if (!isPlain) return { message: 'a step is read by its id: `steps.<id>`' }
  const readable = steps.get(id)
  if (readable === undefined) return unknown(`there is no step \`${id}\` here`, id, steps.keys())
  if (readable !== 'readable') return { message: readable }
  if (field === undefined && rest.length === 0) return undefined
  if (typeof field !== 'string') return { message: `the fields of \`steps.${id}\` are read by their names` }
  if (STEP_FIELDS.some((one) => one === field)) return undefined
  return unknown(`\`steps.${id}\` has no \`${field}\``, field, STEP_FIELDS, 'what it reported is in `output`')
}

/** Whether it is the whole text, or its beginning up to where a name ends. */
const begins = (text: string, part: string): boolean => text === part || (/[.[]$/.test(part) && text.startsWith(part))

function unknown(message: string, name: string, known: Iterable<string>, otherwise?: string): Problem {
  const hint = nearestHint(name, known) ?? otherwise
  return hint === undefined ? { message } : { message, hint }
}

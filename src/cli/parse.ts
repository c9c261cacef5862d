/** Words of the command line → the command they name and its parsed input; commander does the parsing. */
import { Argument, Command, CommanderError, Help, Option } from 'commander'
import { cut } from '../contract/base/text.ts'
import {
  type ArgumentSpec,
  argumentName,
  type CommandSpec,
  type FlagSpec,
  flagName,
  flagWords,
  GLOBAL_FLAGS,
  Input,
  takesValue,
} from './base/command.ts'
import { usageError } from './base/failure.ts'
import { knownElsewhere } from './base/other-words.ts'
import { NOUNS, SERVE_SUMMARY } from './nouns.ts'

/** What the words ask for: a command with its input, or a text to print. */
export type Parsed =
  | { readonly kind: 'run'; readonly command: CommandSpec; readonly input: Input }
  | { readonly kind: 'help'; readonly text: string }

/** `columns` is the width of the help. */
export async function parseWords(words: readonly string[], columns: number): Promise<Parsed> {
  const asked = withoutHelp(words)
  const nounAt = findWord(asked, new Set(Object.keys(NOUNS)), GLOBAL_FLAGS)
  const noun = nounAt === undefined ? undefined : asked[nounAt]
  const found = noun === undefined || !Object.hasOwn(NOUNS, noun) ? undefined : NOUNS[noun]
  if (noun === undefined || nounAt === undefined || found === undefined) return parseGroup(rootGroup(columns), asked)
  const { commands } = await found.load()
  const ofNoun = commands.filter((command) => command.path[0] === noun)
  return parseBelow([noun], ofNoun, asked.toSpliced(nounAt, 1), columns)
}

/** `path` is the words so far, `commands` those that begin with them, `words` what is left. */
function parseBelow(
  path: readonly string[],
  commands: readonly CommandSpec[],
  words: readonly string[],
  columns: number,
): Parsed {
  const depth = path.length
  const leaf = commands.find((command) => command.path.length === depth)
  const next = new Set(commands.flatMap((command) => command.path[depth] ?? []))
  // A command may have commands below it: `needs`, and `needs snooze`.
  if (leaf !== undefined && !words.some((word) => next.has(word))) return parseLeaf(leaf, words, columns)
  const at = findWord(words, next, [...GLOBAL_FLAGS, ...commands.flatMap((command) => command.flags ?? [])])
  const word = at === undefined ? undefined : meant(words[at] ?? '', next)
  if (at === undefined || word === undefined) return parseGroup(commandGroup(path, commands, columns), words)
  const below = commands.filter((command) => command.path[depth] === word)
  return parseBelow([...path, word], below, words.toSpliced(at, 1), columns)
}

/** What other programs call things. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  ls: ['list'],
  rm: ['delete', 'remove', 'unregister'],
  show: ['get'],
}

/** The word, or the one that it stands for. */
export const meant = (word: string, known: ReadonlySet<string>): string | undefined =>
  [word, ...(ALIASES[word] ?? [])].find((one) => known.has(one))

/**
 * Position of the first word that is no flag and no flag's value. Of a flag that is not known yet, the next word is taken
 * for its value unless it is one of `wanted`.
 */
function findWord(
  words: readonly string[],
  wanted: ReadonlySet<string>,
  flags: readonly FlagSpec[],
): number | undefined {
  const valued = new Set(flags.filter((flag) => takesValue(flag.flags)).flatMap((flag) => flagWords(flag.flags)))
  const known = new Set(flags.flatMap((flag) => flagWords(flag.flags)))
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? ''
    if (word === '--') return at + 1 < words.length ? at + 1 : undefined
    if (!word.startsWith('-') || word === '-') return at
    const next = words[at + 1]
    const unknownValue =
      !known.has(word) && word.startsWith('--') && !word.includes('=') && !isHelp(word) && next !== undefined
    if (valued.has(word) || (unknownValue && !next.startsWith('-') && meant(next, wanted) === undefined)) at += 1
  }
  return undefined
}

const isHelp = (word: string): boolean => word === '--help' || word === '--version'

/** The program itself, or a noun: it has sub-commands only, so all it can do is explain itself. */
function rootGroup(columns: number): Command {
  const root = quietCommand('svcctl', columns)
    .usage('COMMAND [options]')
    .description('Cities of coding agents, their work and their events; a client of the supervisor’s HTTP API.')
  root.command('serve').description(SERVE_SUMMARY)
  for (const [noun, { summary }] of Object.entries(NOUNS)) root.command(noun).description(summary)
  addFlags(root, GLOBAL_FLAGS, 'Global options:')
  root.addHelpText(
    'after',
    examplesText([
      { line: 'svcctl serve', does: 'run the supervisor' },
      { line: 'svcctl city create ./demo', does: 'create a city and wait until it runs' },
      { line: 'svcctl events --follow', does: 'follow all events' },
      { line: 'svcctl help city create', does: 'everything about a command' },
      { line: 'svcctl help output', does: 'formats, order and columns; help exit-codes for scripts' },
    ]),
  )
  return root
}

/** In the help of a group; each command has its own. */
const MOST_EXAMPLES = 8

/** Words that only lead to commands: a noun, or a noun and a verb. */
function commandGroup(path: readonly string[], commands: readonly CommandSpec[], columns: number): Command {
  const [noun = '', ...verbs] = path
  const group = quietCommand(`svcctl ${path.join(' ')}`, columns)
    .usage('COMMAND [options]')
    .description(verbs.length === 0 ? (NOUNS[noun]?.summary ?? '') : '')
  for (const { word, summary } of nextWords(path.length, commands)) group.command(word).description(summary)
  group.addHelpText(
    'after',
    examplesText(commands.flatMap(({ examples }) => examples.slice(0, 1)).slice(0, MOST_EXAMPLES)),
  )
  return group
}

/** What may follow where commands share their first `depth` words; a word that leads to several names them. */
export function nextWords(
  depth: number,
  commands: readonly CommandSpec[],
): readonly { readonly word: string; readonly summary: string }[] {
  const byWord = Map.groupBy(commands, (command) => command.path[depth] ?? '')
  return [...byWord].map(([word, below]) => {
    const leaf = below.find((command) => command.path.length === depth + 1)
    return { word, summary: leaf === undefined ? below.map(({ path }) => path[depth + 1]).join(', ') : summaryOf(leaf) }
  })
}

/** Ends in help, or in the error of an unknown or missing sub-command. */
function parseGroup(group: Command, given: readonly string[]): Parsed {
  const words = withoutGlobals(given)
  const asked = words.filter((word) => word !== '--help' && word !== '-h')
  const wantsHelp = words.length === 0 || asked.length < words.length
  if (wantsHelp && asked.every((word) => word.startsWith('-'))) return { kind: 'help', text: helpText(group) }
  // Without the wish for help, which commander would grant before it looks at the word that nobody knows.
  const outcome = tryParse(group, asked)
  if (outcome instanceof CommanderError) throw commanderFailure(outcome, group)
  throw usageError('a command is missing', `see: ${group.name()} --help`)
}

/** What every command understands may stand before one that is missing, too. */
function withoutGlobals(words: readonly string[]): string[] {
  const valued = new Set(GLOBAL_FLAGS.filter(({ flags }) => takesValue(flags)).flatMap(({ flags }) => flagWords(flags)))
  const known = new Set(GLOBAL_FLAGS.flatMap(({ flags }) => flagWords(flags)))
  const left: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? ''
    const [name = ''] = word.split('=', 1)
    if (valued.has(word) && at + 1 < words.length) at += 1
    else if (valued.has(word) || !(known.has(name) || isGlued(word, valued))) left.push(word)
  }
  return left
}

/** `-cdemo` */
const isGlued = (word: string, valued: ReadonlySet<string>): boolean =>
  /^-[a-zA-Z]./.test(word) && valued.has(cut(word, 2))

function parseLeaf(spec: CommandSpec, words: readonly string[], columns: number): Parsed {
  const command = leafCommand(spec, columns)
  const values: (readonly [string, unknown])[] = []
  command.action(() => {
    for (const [name, value] of Object.entries(command.opts())) values.push([name, value])
    values.push(...operandsOf(spec.arguments ?? [], command))
  })
  const outcome = tryParse(command, words)
  if (outcome?.code === 'commander.helpDisplayed') return { kind: 'help', text: helpText(command) }
  if (outcome !== undefined) throw commanderFailure(outcome, command)
  const input = new Input(values)
  if (input.on('allCities') && !input.has('city') && spec.isFleet !== true)
    throw usageError('--all-cities is for lists', 'name the city with --city')
  return { kind: 'run', command: spec, input }
}

/** `help bead close` and `bead help close` are `bead close --help`. */
function withoutHelp(words: readonly string[]): string[] {
  const [first = '', second] = words
  if (first === 'help') return [...words.slice(second === 'help' ? 2 : 1), '--help']
  return second === 'help' && !first.startsWith('-') ? [first, ...words.slice(2), '--help'] : [...words]
}

/** Several words in the midst of others: all but those that the others need. */
const isSplit = (operands: readonly ArgumentSpec[]): boolean =>
  operands.slice(0, -1).some(({ name }) => name.includes('...'))

function operandsOf(operands: readonly ArgumentSpec[], command: Command): readonly (readonly [string, unknown])[] {
  if (!isSplit(operands)) return operands.map(({ name }, at) => [argumentName(name), command.processedArgs[at]])
  const words = command.args
  const lacking = operands[words.length]
  const [several, ...others] = operands
  if (several === undefined || words.length < others.length + (several.name.startsWith('<') ? 1 : 0))
    throw usageError(`missing required argument '${argumentName((lacking ?? operands[0])?.name ?? '')}'`)
  const count = words.length - others.length
  return [
    [argumentName(several.name), words.slice(0, count)],
    ...others.map(({ name }, at) => [argumentName(name), words[count + at]] as const),
  ]
}

/** The command in commander's terms; also what completion reads. */
function leafCommand(spec: CommandSpec, columns: number): Command {
  const command = quietCommand(`svcctl ${spec.path.join(' ')}`, columns).description(descriptionOf(spec))
  addOperands(command, spec)
  addFlags(command, spec.flags ?? [], 'Options:')
  addFlags(command, globalFlagsOf(spec), 'Global options:')
  const calls =
    spec.operations.length === 0
      ? ''
      : `\n${new Help().boxWrap(`Operations: ${spec.operations.join(', ')} (svcctl schema openapi)`, helpWidth(columns))}\n`
  command.addHelpText('after', `${examplesText(spec.examples)}${calls}`)
  return command
}

function addOperands(command: Command, spec: CommandSpec): void {
  const operands = (spec.arguments ?? []).map(({ name, description, choices }) => {
    const operand = new Argument(name, description ?? '')
    return choices === undefined
      ? operand
      : operand.choices([...choices]).argParser(oneOf(`<${argumentName(name)}>`, choices))
  })
  if (!isSplit(spec.arguments ?? [])) {
    for (const operand of operands) command.addArgument(operand)
    return
  }
  // Commander knows several words only at the end.
  command.argument('[words...]').usage(`[options] ${spec.arguments?.map(({ name }) => name).join(' ')}`)
  command.configureHelp({ ...command.configureHelp(), visibleArguments: () => operands })
}

/** Understood by every command, so that a script need not know which of them ask or wait. */
const EVERYWHERE: readonly FlagSpec[] = [
  { flags: '-y, --yes', hidden: true },
  { flags: '--wait', hidden: true },
  { flags: '--no-wait', hidden: true },
]

/** What is there besides the flags of the command, which win. */
function globalFlagsOf(spec: CommandSpec): readonly FlagSpec[] {
  const own = new Set(spec.flags?.map(({ flags }) => flagName(flags)))
  const all = spec.isFleet === true ? GLOBAL_FLAGS : GLOBAL_FLAGS.map(hiddenCities)
  return [...all, ...EVERYWHERE].filter(({ flags }) => !own.has(flagName(flags)))
}

const hiddenCities = (flag: FlagSpec): FlagSpec =>
  flagName(flag.flags) === 'allCities' ? { ...flag, hidden: true } : flag

/** Of any help, where the output is so wide. */
export const helpWidth = (columns: number): number => Math.min(Math.max(columns, 60), 120)

function quietCommand(name: string, columns: number): Command {
  return new Command(name)
    .exitOverride()
    .helpCommand(false)
    .helpOption('-h, --help', 'Show this help.')
    .configureHelp(helpLayout(helpWidth(columns)))
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined, outputError: () => undefined })
}

/** Of the width, for flags: a longer one has its words below it, and takes no room from those of the others. */
const TERM_SHARE = 0.42

function helpLayout(width: number): Partial<Help> {
  const help = new Help()
  const widest = Math.floor(width * TERM_SHARE)
  return {
    helpWidth: width,
    showGlobalOptions: false,
    minWidthToWrap: 20,
    padWidth: (command, helper) => Math.min(help.padWidth(command, helper), widest),
    formatItem: (term, termWidth, description, helper) => {
      if (description === '' || helper.displayWidth(term) <= termWidth)
        return help.formatItem.call(helper, term, termWidth, description, helper)
      const below = help.formatItem.call(helper, '', termWidth, description, helper)
      return `  ${term}\n${below}`
    },
  }
}

function addFlags(command: Command, flags: readonly FlagSpec[], group: string): void {
  for (const flag of flags) {
    const option = new Option(flag.flags, flag.description ?? '').helpGroup(group)
    const said = flagWords(flag.flags).find((word) => word.startsWith('--')) ?? flag.flags
    if (flag.choices !== undefined) option.choices([...flag.choices]).argParser(oneOf(said, flag.choices))
    if (flag.hidden === true) option.hideHelp()
    if (flag.repeatable === true) option.argParser(oneMore(said, flag.choices))
    command.addOption(option)
  }
}

const oneOf =
  (said: string, choices: readonly string[]) =>
  (value: string): string => {
    if (choices.includes(value)) return value
    throw usageError(`invalid ${said} "${value}": expected ${choices.join(', ')}`)
  }

/** Parses a value of a flag that may be given several times. */
const oneMore =
  (said: string, choices: readonly string[] | undefined) =>
  (value: string, previous: readonly string[] | undefined): readonly string[] => [
    ...(previous ?? []),
    choices === undefined ? value : oneOf(said, choices)(value),
  ]

/** Those that the help knows. */
export const flagsOf = ({ flags = [] }: CommandSpec): readonly FlagSpec[] =>
  flags.filter(({ hidden }) => hidden !== true)

export const summaryOf = (spec: CommandSpec): string => spec.summary ?? ''

export const descriptionOf = (spec: CommandSpec): string =>
  spec.description === undefined ? `${summaryOf(spec)}.` : `${summaryOf(spec)}.\n\n${spec.description}`

function examplesText(examples: CommandSpec['examples']): string {
  return ['\nExamples:', ...examples.flatMap(({ line, does }) => [`  # ${does}`, `  ${line}`]), ''].join('\n')
}

function tryParse(command: Command, words: readonly string[]): CommanderError | undefined {
  try {
    command.parse([...words], { from: 'user' })
    return undefined
  } catch (error) {
    if (error instanceof CommanderError) return error
    throw error
  }
}

function helpText(command: Command): string {
  let text = ''
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
  })
  command.outputHelp()
  return text
}

/** commander's sentence, with what was probably meant as the hint. */
function commanderFailure(error: CommanderError, command: Command) {
  const [sentence = '', ...more] = error.message.replace(/^error: /, '').split('\n')
  const suggested = /\(Did you mean (.+)\?\)/.exec(more.join(' '))?.[1]
  const unknown = /^unknown (?:option|command) '(.+)'$/.exec(sentence)?.[1] ?? ''
  const elsewhere = knownElsewhere(command.name().replace(/^svcctl ?/, ''), unknown)
  if (elsewhere !== undefined) return usageError(sentence, `that is here: ${elsewhere}`)
  const meant = namesIn(command).filter((name) => unknown.length > 2 && name.startsWith(unknown))
  const likely = meant.length > 0 ? meant.join(', ') : isLike(suggested, unknown) ? suggested : undefined
  const takesText = sentence.startsWith('unknown option') && command.registeredArguments.length > 0
  if (takesText && (likely === undefined || /\s/.test(unknown)))
    return usageError(sentence, `a text that begins with a dash goes after --: ${command.name()} -- ${quoted(unknown)}`)
  return usageError(sentence, likely === undefined ? `see: ${command.name()} --help` : `did you mean ${likely}?`)
}

/** One word of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Words that may be typed behind it. */
const namesIn = ({ commands, options }: Command): readonly string[] => [
  ...commands.map((one) => one.name()),
  ...options.flatMap(({ long, hidden }) => (hidden || long === undefined ? [] : [long])),
]

/** commander finds `top` in `nope`: who mistypes a word seldom mistypes how it begins. */
const isLike = (suggested: string | undefined, unknown: string): boolean =>
  suggested?.replace(/^-+/, '')[0] === unknown.replace(/^-+/, '')[0]

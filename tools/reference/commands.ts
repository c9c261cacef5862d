/** The pages about the command line, and the data that its manuals are made of. */
import { type DescribedCommand, type DescribedFlag, type DescribedWord, globalFlags } from '../../src/cli/describe.ts'
import { NOUNS } from '../../src/cli/nouns.ts'
import { EXIT_CODES } from '../../src/contract/base/exit-codes.ts'
import { SERVE_HELP } from '../../src/supervisor/settings.ts'
import { anchor, codeList, page, table } from './markdown.ts'

/** First words with their commands, in the order of the help. */
export function commandsByNoun(commands: readonly DescribedCommand[]) {
  return Object.entries(NOUNS).map(([noun, { summary }]) => ({
    noun,
    summary,
    commands: commands.filter(({ command }) => command.split(' ')[1] === noun),
  }))
}

/** `svcctl bead list [options]`, with its arguments. */
export const usageOf = ({ command, arguments: operands }: DescribedCommand): string =>
  [command, ...operands.map(({ as }) => as), '[options]'].join(' ')

const INTRO =
  'Every command. `svcctl help COMMAND` prints the same, `man svcctl-bead` too where the package is installed; `svcctl schema command COMMAND` is for programs. ' +
  '[Exit codes](exit-codes.md) have a page of their own.'

export function commandsPage(commands: readonly DescribedCommand[]): string {
  const nouns = commandsByNoun(commands)
  const contents = [
    '- [serve](#svcctl-serve): Run the supervisor',
    ...nouns.map(({ noun, summary }) => `- [${noun}](${anchor(noun)}): ${summary}`),
  ]
  return page('Commands', INTRO, [
    contents.join('\n'),
    `## Options of every command\n\n${flagTable(globalFlags())}`,
    `## svcctl serve\n\n\`\`\`text\n${SERVE_HELP.trimEnd()}\n\`\`\``,
    ...nouns.map(({ noun, summary, commands: own }) =>
      [`## ${noun}`, `${summary}.`, ...own.map(commandSection)].join('\n\n'),
    ),
  ])
}

function commandSection(command: DescribedCommand): string {
  const { summary, description, arguments: operands, flags, examples, operations } = command
  return [
    `### ${command.command}`,
    `\`${usageOf(command)}\``,
    `${summary}.${description === '' ? '' : ` ${description.replaceAll(/\s*\n\s*/g, ' ')}`}`,
    ...(operands.length === 0 ? [] : [table(['Argument', 'Meaning'], operands.map(row))]),
    ...(flags.length === 0 ? [] : [flagTable(flags)]),
    examplesBlock(examples),
    ...(operations.length === 0 ? [] : [`Operations: ${codeList(operations)}.`]),
  ].join('\n\n')
}

const flagTable = (flags: readonly DescribedFlag[]): string => table(['Option', 'Meaning'], flags.map(row))

const row = (word: DescribedWord): readonly string[] => [`\`${word.as}\``, meaningOf(word)]

/** With the choices, and whether it may be given several times. */
export function meaningOf({ description, choices, ...word }: DescribedWord | DescribedFlag): string {
  const repeatable = 'repeatable' in word && word.repeatable
  return [
    description,
    ...(choices === undefined ? [] : [`One of ${codeList(choices)}.`]),
    ...(repeatable ? ['May be given several times.'] : []),
  ].join(' ')
}

function examplesBlock(examples: DescribedCommand['examples']): string {
  return ['```sh', ...examples.flatMap(({ line, does }) => [`# ${does}`, line]), '```'].join('\n')
}

export function exitCodesPage(): string {
  const rows = EXIT_CODES.map(({ code, name, meaning }) => [String(code), `\`${name}\``, meaning])
  const intro =
    'What `svcctl` says to scripts; `svcctl help exit-codes` prints the same. Of several ids those that can be done are done, each ' +
    'refusal is named, and the code is that of a refusal.'
  return page('Exit codes', intro, [table(['Code', 'Name', 'Means'], rows)])
}

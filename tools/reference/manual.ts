/** The manuals: `svcctl(1)`, one for each first word, and one for each file of the configuration. */
import { type DescribedCommand, type DescribedFlag, type DescribedWord, globalFlags } from '../../src/cli/describe.ts'
import { SERVE_SUMMARY } from '../../src/cli/nouns.ts'
import { EXIT_CODES } from '../../src/contract/base/exit-codes.ts'
import { SERVE_HELP } from '../../src/supervisor/settings.ts'
import { commandsByNoun, meaningOf, usageOf } from './commands.ts'
import { type DocumentedFile, type DocumentedKey, type DocumentedTable, documentedFiles } from './configuration.ts'
import { bold, line, manual, paragraph, section, subsection, tagged, verbatim } from './roff.ts'

/** Every manual by its path from the root. */
export function manuals(commands: readonly DescribedCommand[], version: string): ReadonlyMap<string, string> {
  const nouns = commandsByNoun(commands)
  const pages = [
    ['svcctl.1', overview(nouns, version)],
    ['svcctl-serve.1', serveManual(version)],
    ...nouns.map((noun) => [`svcctl-${noun.noun}.1`, nounManual(noun, version)]),
    ...documentedFiles().map((file) => [`${fileManualName(file)}.5`, fileManual(file, version)]),
  ]
  return new Map(pages.map(([name, text]): [string, string] => [`man/${name}`, text ?? '']))
}

type Noun = ReturnType<typeof commandsByNoun>[number]

const ENVIRONMENT: readonly (readonly [string, string])[] = [
  ['SVC_API', 'Address of the server; the running supervisor where it is not set.'],
  ['SVC_CITY', 'City, by name or path; that of the working directory where it is not set.'],
  ['SVC_TOKEN', 'Token; that of the running supervisor where it is not set.'],
  ['SVC_HOME', 'State directory of the supervisor: `~/.svc` where it is not set.'],
  ['EDITOR', 'Program that `svcctl config edit` opens.'],
  ['NO_COLOR', 'Set to anything: no colours.'],
]

function overview(nouns: readonly Noun[], version: string): string {
  const files = documentedFiles()
  return manual('svcctl', 1, version, 'cities of coding agents, their work and their events', [
    section('SYNOPSIS', `${bold('svcctl')} \\fICOMMAND\\fR [\\fIoptions\\fR]`),
    section(
      'DESCRIPTION',
      line(
        'A control plane for fleets of coding agents. `svcctl serve` is the supervisor; every other command is a client of its HTTP API.',
      ),
    ),
    section(
      'COMMANDS',
      tagged('serve', `${SERVE_SUMMARY}.`),
      ...nouns.map(({ noun, summary }) => tagged(noun, `${summary}.`)),
    ),
    section('OPTIONS', ...globalFlags().map(word)),
    section('ENVIRONMENT', ...ENVIRONMENT.map(([name, text]) => tagged(name, text))),
    section('EXIT STATUS', ...EXIT_CODES.map(({ code, meaning }) => tagged(String(code), meaning))),
    section('FILES', ...files.map(({ file, about }) => tagged(file, about))),
    seeAlso([
      'svcctl-serve(1)',
      ...nouns.map(({ noun }) => `svcctl-${noun}(1)`),
      ...files.map((file) => `${fileManualName(file)}(5)`),
    ]),
  ])
}

function serveManual(version: string): string {
  return manual('svcctl-serve', 1, version, SERVE_SUMMARY.toLowerCase(), [
    section('DESCRIPTION', line('What `svcctl serve --help` says:'), verbatim(SERVE_HELP.trimEnd().split('\n'))),
    seeAlso(['svcctl(1)', 'svcctl-supervisor.toml(5)']),
  ])
}

function nounManual({ noun, summary, commands }: Noun, version: string): string {
  return manual(`svcctl-${noun}`, 1, version, summary, [
    section('SYNOPSIS', commands.map((command) => bold(usageOf(command))).join('\n.br\n')),
    section('COMMANDS', ...commands.map(commandPart)),
    section('OPTIONS OF EVERY COMMAND', line('Listed in svcctl(1).')),
    seeAlso(['svcctl(1)']),
  ])
}

function commandPart(command: DescribedCommand): string {
  const { summary, description, arguments: operands, flags, examples } = command
  return subsection(
    usageOf(command),
    line(`${summary}. ${description}`),
    ...operands.map(word),
    ...flags.map(word),
    verbatim(examples.flatMap(({ line: typed, does }) => [`# ${does}`, typed])),
  )
}

const word = (one: DescribedWord | DescribedFlag): string => tagged(one.as, meaningOf(one))

/** `agents/<name>/agent.toml` → `svcctl-agent.toml`, `orders/<name>.toml` → `svcctl-order.toml`. */
const fileManualName = ({ file }: DocumentedFile): string =>
  `svcctl-${file
    .replace(/^(\w+)s\/<name>\.toml$/, '$1.toml')
    .split('/')
    .at(-1)}`

function fileManual(file: DocumentedFile, version: string): string {
  return manual(fileManualName(file), 5, version, `what stands in ${file.file}`, [
    section('DESCRIPTION', line(file.about)),
    section('TABLES', ...file.tables.map(tablePart)),
    seeAlso(['svcctl(1)', 'svcctl-config(1)']),
  ])
}

function tablePart({ title, places, words, keys }: DocumentedTable): string {
  const where = places.length > 1 ? [`Stands in ${places.join(', ')}.`] : []
  const [first, ...more] = [words, ...where].filter((text) => text !== '')
  return subsection(
    title.replaceAll('`', ''),
    ...(first === undefined ? [] : [line(first)]),
    ...more.map(paragraph),
    ...keys.map(keyPart),
  )
}

function keyPart({ name, kind, preset, words }: DocumentedKey): string {
  const value = preset === '' ? kind : preset === 'needed' ? `${kind}; needed` : `${kind}; default ${preset}`
  return tagged(name, `${words} (${value})`)
}

const seeAlso = (pages: readonly string[]): string => section('SEE ALSO', line(pages.join(', ')))

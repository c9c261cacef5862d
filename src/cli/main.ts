/** The command line: words in, exit code out (style R16). */
import { explainCity } from './base/city-problem.ts'
import type { CommandSpec } from './base/command.ts'
import { Context, globalOptions } from './base/context.ts'
import { EXIT, type ReportStyle, report } from './base/failure.ts'
import type { Io } from './base/io.ts'
import { saidAs } from './framework/field-words.ts'
import { TOPICS } from './help-topics.ts'
import { NOUNS } from './nouns.ts'
import { flagsOf, helpWidth, parseWords } from './parse.ts'
import type { OutputFormat } from './print/format.ts'
import { shellWord } from './print/shell-word.ts'

/** Runs one command; never throws. `argv` is without the program's name. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  // Its failures are text, whatever its output is (spec §6).
  const events = argv.find((word) => Object.hasOwn(NOUNS, word)) === 'events'
  let style: ReportStyle = { prefix: events ? 'svcctl events: ' : '', json: !events && asksForJson(argv) }
  let context: Context | undefined
  try {
    if (argv[0] === '__complete') return await complete(argv.slice(1), io)
    const topic = argv[0] === 'help' ? TOPICS[argv[1] ?? ''] : undefined
    if (topic !== undefined) {
      await io.stdout.write(topic(helpWidth(io.stdout.columns)))
      return EXIT.ok
    }
    const words = argv[0] === '--version' || argv[0] === '-V' ? ['version', ...argv.slice(1)] : argv
    const parsed = await parseWords(words, io.stdout.columns)
    if (parsed.kind === 'help') {
      await io.stdout.write(parsed.text)
      return EXIT.ok
    }
    const { command, input } = parsed
    const options = globalOptions(input)
    style = {
      prefix: command.errorPrefix ?? '',
      json: command.errorPrefix === undefined && isJson(options.format.kind),
      fieldNames: (location) => saidAs(location, command, input),
      again: (key) => (takesKey(command) ? sameCommand(argv, key) : undefined),
    }
    context = new Context(io, options, command.operations)
    await context.print.prepare()
    if (command.isWatched !== true || !input.on('watch')) return await command.run(context, input)
    const { watchCommand } = await import('./live/watch-command.ts')
    return await watchCommand(context, command, input)
  } catch (error) {
    return report(await explainCity(error, context), io, style)
  }
}

const KEY_FLAG = '--idempotency-key'
const takesKey = (command: CommandSpec): boolean => flagsOf(command).some(({ flags }) => flags.startsWith(KEY_FLAG))

function sameCommand(argv: readonly string[], key: string): string {
  const words = argv.some((word) => word.startsWith(KEY_FLAG)) ? argv : [...argv, KEY_FLAG, key]
  return ['svcctl', ...words].map(shellWord).join(' ')
}

const isJson = (format: OutputFormat): boolean => format === 'json' || format === 'jsonl'

// Before the words are parsed, for errors in the words themselves.
const asksForJson = (argv: readonly string[]): boolean =>
  argv.includes('--json') ||
  argv.some(
    (word, at) =>
      /^(-o|--output=)jsonl?$/.test(word) || (/^(-o|--output)$/.test(word) && /^jsonl?$/.test(argv[at + 1] ?? '')),
  )

/** Completion never fails and never says a word (sheet 08 §4.6). */
async function complete(words: readonly string[], io: Io): Promise<number> {
  const { completions } = await import('./complete.ts')
  const lines = await completions(words, io).catch(() => [])
  if (lines.length > 0) await io.stdout.write(`${lines.join('\n')}\n`)
  return EXIT.ok
}

/** What each command takes, as data: `commands.json`, the reference and the manuals are made of it. */
import { type CommandSpec, type FlagSpec, flagName, flagWords, GLOBAL_FLAGS, takesValue } from './base/command.ts'
import { NOUNS } from './nouns.ts'
import { descriptionOf, flagsOf, summaryOf } from './parse.ts'

export interface DescribedWord {
  /** As it is written: `<id>`, `-p, --priority <n>`. */
  readonly as: string
  readonly description: string
  readonly choices?: readonly string[]
}

export interface DescribedFlag extends DescribedWord {
  /** `['-p', '--priority']`. */
  readonly words: readonly string[]
  readonly takes_value: boolean
  readonly repeatable: boolean
}

export interface DescribedCommand {
  /** `svcctl bead create`. */
  readonly command: string
  readonly summary: string
  readonly description: string
  readonly arguments: readonly DescribedWord[]
  readonly flags: readonly DescribedFlag[]
  readonly examples: CommandSpec['examples']
  readonly operations: readonly string[]
}

/** Every command that the program has, in the order of its help; `serve` is none of them. */
export async function describedCommands(): Promise<readonly DescribedCommand[]> {
  const nouns = await Promise.all(
    Object.entries(NOUNS).map(async ([noun, { load }]) => {
      const { commands } = await load()
      return commands.filter(({ path }) => path[0] === noun)
    }),
  )
  return nouns.flat().map(describedCommand)
}

function describedCommand(spec: CommandSpec): DescribedCommand {
  return {
    command: `svcctl ${spec.path.join(' ')}`,
    summary: summaryOf(spec),
    description: descriptionOf(spec).replace(/^.*\n*/, ''),
    arguments: (spec.arguments ?? []).map(({ name, description = '', choices }) => ({
      as: name,
      description,
      ...(choices === undefined ? {} : { choices }),
    })),
    flags: flagsOfAll(spec),
    examples: spec.examples,
    operations: spec.operations,
  }
}

const isOfFleets = ({ flags }: FlagSpec): boolean => flagName(flags) === 'allCities'

/** Its own, and `-A` where it can be asked of all cities. */
function flagsOfAll(spec: CommandSpec): readonly DescribedFlag[] {
  const ofFleets = spec.isFleet === true ? GLOBAL_FLAGS.filter(isOfFleets) : []
  return [...flagsOf(spec), ...ofFleets].filter(({ hidden }) => hidden !== true).map(describedFlag)
}

/** What every command takes. */
export const globalFlags = (): readonly DescribedFlag[] =>
  GLOBAL_FLAGS.filter((flag) => !isOfFleets(flag)).map(describedFlag)

const describedFlag = ({ flags, description = '', choices, repeatable = false }: FlagSpec): DescribedFlag => ({
  as: flags,
  words: flagWords(flags),
  takes_value: takesValue(flags),
  repeatable,
  description,
  ...(choices === undefined ? {} : { choices }),
})

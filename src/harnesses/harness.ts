/**
 * What is known of a harness, as data: how it is started (its preset) and what its screens look like. One file a harness,
 * each fact with the version and the source that it was checked against. Nobody branches on a harness' name.
 *
 * Field names of presets are those of `[providers.<name>]` in `city.toml`, so that a configured provider overrides a preset
 * field by field. Texts of screens are compared with the case ignored, after boxes and odd spaces are taken off.
 */
import type { HarnessHooks } from './hooks.ts'

export interface Harness {
  readonly preset: ProviderPreset
  readonly screen: ScreenRules
  /** How a turn is interrupted on its terminal; absent: by one Ctrl-C. */
  readonly interrupt?: InterruptRules
  readonly usage?: UsageLog
  /** How it tells of itself; absent: it cannot, or only by changing files of a person. */
  readonly hooks?: HarnessHooks
  readonly sources: readonly Source[]
}

export interface InterruptRules {
  /** Escape for harnesses that end at Ctrl-C, or take it for "leave". */
  readonly key: 'ctrl-c' | 'escape'
  /** How often it is pressed; absent: once. */
  readonly presses?: number
  /** A message to which nothing was answered yet comes back into the input line. */
  readonly restores?: true
  /** The key ends the program where no turn runs. */
  readonly quitsWhenIdle?: true
}

export const BY_CTRL_C: InterruptRules = { key: 'ctrl-c' }
export const BY_ESCAPE: InterruptRules = { key: 'escape' }

/** What its facts were checked against. */
export interface Source {
  readonly version: string
  /** A page, or a package of a registry and what of it was looked at. */
  readonly where: string
}

/**
 * What the log of a harness says of the tokens of a turn, a JSON object per line; members are named by their path
 * (`message.usage.input_tokens`). How the log is found is the transcripts' business.
 */
export interface UsageLog {
  /** Lines without this text tell nothing of it. */
  readonly mark: string
  /** Members that have these values in a line that tells of a turn. */
  readonly where: Readonly<Record<string, string>>
  /** What names the turn; several lines may be about one, and the last of them counts. Absent: each line is a turn of its own. */
  readonly id?: string
  readonly model?: string
  /** How a model ends that is not told. */
  readonly unnamed?: readonly string[]
  /** Lines that name the model of the turns behind them. */
  readonly modelLine?: { readonly mark: string; readonly model: string }
  readonly at: string
  /** All that was read; they add up, and the first one is there. */
  readonly input: readonly [string, ...string[]]
  /** All that was generated; they add up. */
  readonly output: readonly string[]
  readonly cache_read?: string
  readonly cache_write?: string
  /** US dollars; 0 where it does not know. */
  readonly cost?: string
  /** Lines that say that the provider limits it: the member that has the words. */
  readonly limit?: { readonly mark: string; readonly text: string }
  /** What came from a cache is counted in `input` too. */
  readonly inputHasCache?: true
  /** It keeps one where it is told to alone: the variable and the flag that name the file. */
  readonly told?: { readonly variable: string; readonly flag: string }
}

export interface OptionChoice {
  readonly value: string
  readonly label: string
  /** Never leave the server: what the choice adds to the command line. */
  readonly flag_args: readonly string[]
  /** Other spellings to strip from `args` before `flag_args` are added. */
  readonly flag_aliases?: readonly (readonly string[])[]
  /** Variables that say it; those of the provider's `env` go before them. */
  readonly env?: Readonly<Record<string, string>>
  /** The mode of the agent protocol that says it. */
  readonly acp_mode?: string
}

export interface ProviderOption {
  readonly key: string
  readonly label: string
  readonly type: 'select'
  /** A choice's value; `''` passes no flag, so that the harness decides. */
  readonly default: string
  readonly choices: readonly OptionChoice[]
  /** Any text is a value, and `choices` are suggestions: the arguments that say it, `{value}` standing for it. */
  readonly free_args?: readonly string[]
  /** What is typed to a running agent to change it; `{value}` stands for the value. */
  readonly live_command?: string
}

export interface ProviderPreset {
  readonly display_name: string
  /** A program name; `$NAME` stands for a variable of the environment (see `presetCommand`). */
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** `omit`: nothing but callers' messages is ever typed or passed (decision 51). */
  readonly prompt_mode: 'arg' | 'flag' | 'none' | 'omit'
  readonly prompt_flag?: string
  /** How a message is typed: `line` = text and newline; `tui` = paste, pause, Enter, look whether it became busy. */
  readonly delivery: 'line' | 'tui'
  readonly ready_prompt_prefix?: string
  readonly ready_delay_ms?: number
  /** The prompt shows before keys are accepted: the prefix proves nothing, an echo must confirm readiness. */
  readonly ready_confirmation?: true
  readonly accept_startup_dialogs: boolean
  readonly resume_flag?: string
  /** `subcommand`: the words go before the key and all other arguments. */
  readonly resume_style?: 'flag' | 'subcommand'
  /** Passes a conversation id of ours on the first start; preferred to discovering the harness's own. */
  readonly session_id_flag?: string
  readonly supports_acp: boolean
  /** Replaces `command` over ACP. */
  readonly acp_command?: string
  /** It has files read and written by the client, over ACP; absent: it does. */
  readonly acp_files?: false
  /** Replaces `args` over ACP. */
  readonly acp_args?: readonly string[]
  readonly instructions_file: 'AGENTS.md' | 'CLAUDE.md'
  /** Permission modes are the option `permission_mode`. */
  readonly options_schema: readonly ProviderOption[]
}

/** What most presets have in common. */
export const COMMON = {
  args: [],
  env: {},
  delivery: 'tui',
  accept_startup_dialogs: true,
  supports_acp: false,
  instructions_file: 'AGENTS.md',
  options_schema: [],
} as const

export const choice = (value: string, flag_args: readonly string[], label = titled(value)): OptionChoice => ({
  value,
  label,
  flag_args,
})
export const unset = choice('', [], 'Default')
/** Of permissions: no flag, so that the harness's own files decide. */
export const OWN_DEFAULT = choice('default', [], 'Default of the harness')
export const flagged = (flag: string, values: readonly string[]) => values.map((value) => choice(value, [flag, value]))

export function select(key: string, fallback: string, choices: readonly OptionChoice[]): ProviderOption {
  return { key, label: titled(key), type: 'select', default: fallback, choices }
}

/** The first one is the default, and none that skips questions which the harness would ask may stand there. */
export const permissionModes = (modes: readonly [OptionChoice, ...OptionChoice[]]) =>
  select('permission_mode', modes[0].value, modes)
export const models = (flag: string, names: readonly string[], fallback = ''): ProviderOption => ({
  ...select('model', fallback, [unset, ...flagged(flag, names)]),
  free_args: [flag, '{value}'],
})

/** A menu that is shown before the first prompt; accepted only where the provider says so. */
export interface StartupDialog {
  readonly id: string
  /** All of these are on the screen. */
  readonly match: readonly string[]
  /** How the option begins that is chosen. */
  readonly choose: string
}

/** How a harness asks whether it may use a tool: a title, what it wants, a question, options. */
export interface ApprovalDialog {
  /** How the question begins. */
  readonly questions: readonly string[]
  /** Title of the dialog → name of the tool; other titles stand for themselves. */
  readonly tools: Readonly<Record<string, string>>
}

/**
 * Words with which a harness shows that it works, and where it draws them. The same words anywhere else are text of a
 * conversation, which anybody can write.
 */
export interface BusySign {
  readonly words: string
  /** Above or below the rows of the input line. */
  readonly where: 'above' | 'below'
  /** So many rows from it, blank ones and rules not counted. */
  readonly rows: number
  /** It draws the words faint. */
  readonly faint?: true
  /** A spinner or a clock is in the same row: the sign counts while that moves. */
  readonly moves?: true
}

/**
 * What is known of the screens of a harness. Menus with a cursor are seen without a rule, whoever draws them; what is here
 * says more about them, or is about what is no menu.
 */
export interface ScreenRules {
  /** Any of these: a turn is under way. */
  readonly busy: readonly BusySign[]
  /** How hints begin that stand in an empty input line and are not drawn faint. */
  readonly placeholders?: readonly string[]
  readonly startupDialogs: readonly StartupDialog[]
  readonly approval?: ApprovalDialog
}

export const KEY = {
  enter: '\r',
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  escape: '\u001b',
} as const

const BUSY_WORDS = [
  'esc to interrupt',
  'ctrl+c to interrupt',
  'esc to cancel)',
  '(esc to cancel, ',
  'esc interrupt',
] as const

/** Rows near an input line that may show progress: a plan of the agent may stand between the two. */
const NEAR_ROWS = 15

/** A line near the input line that has these words and moves. */
export const moving = (words: string, rows = NEAR_ROWS): readonly BusySign[] =>
  (['above', 'below'] as const).map((where) => ({ words, where, rows, moves: true }))

/** Wherever a harness draws its line of progress, something in it moves. */
export const MOVING_SIGNS: readonly BusySign[] = BUSY_WORDS.flatMap((words) => moving(words))

/** Of a program that nothing is known of. */
export const GENERIC_SCREEN: ScreenRules = { busy: MOVING_SIGNS, startupDialogs: [] }

function titled(key: string): string {
  const words = key.replaceAll(/[_-]/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

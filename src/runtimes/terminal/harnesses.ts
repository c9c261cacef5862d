/**
 * What the screens of known harnesses look like, as data. Nobody branches on a harness' name; one that is not here is
 * `GENERIC`. The texts are compared with the case ignored, after boxes and odd spaces are taken off.
 */

/** Shown before the first prompt; accepted only where the provider says so. */
export interface StartupDialog {
  readonly id: string
  /** All of these are on the screen. */
  readonly match: readonly string[]
  /** Pressed one after the other, with a pause. */
  readonly keys: readonly string[]
}

/** How a harness asks whether it may use a tool: a title, what it wants, a question, numbered options. */
export interface ApprovalDialog {
  /** How the question begins. */
  readonly questions: readonly string[]
  /** Title of the dialog → name of the tool; other titles stand for themselves. */
  readonly tools: Readonly<Record<string, string>>
  /** Leaves the dialog without an answer. */
  readonly cancelKey: string
}

export interface Harness {
  /** Any of these: a turn is under way. */
  readonly busy: readonly string[]
  readonly startupDialogs: readonly StartupDialog[]
  readonly approval?: ApprovalDialog
}

const ENTER = '\r'
const DOWN = '\u001b[B'
const ESCAPE = '\u001b'

const BUSY = ['esc to interrupt', 'ctrl+c to interrupt', 'esc to cancel)', 'esc interrupt'] as const

export const GENERIC: Harness = { busy: BUSY, startupDialogs: [] }

const CLAUDE: Harness = {
  busy: BUSY,
  startupDialogs: [
    { id: 'trust', match: ['do you trust the files in this folder', 'yes, proceed'], keys: [ENTER] },
    { id: 'trust', match: ['is this a project you created or one you trust', 'yes, i trust'], keys: [ENTER] },
    { id: 'bypass-permissions', match: ['bypass permissions mode', 'yes, i accept'], keys: [DOWN, ENTER] },
    { id: 'custom-api-key', match: ['detected a custom api key', 'do you want to use this api key'], keys: [ENTER] },
  ],
  approval: {
    questions: ['do you want to', 'would you like to'],
    tools: {
      'bash command': 'Bash',
      'edit file': 'Edit',
      'create file': 'Write',
      'write file': 'Write',
      'overwrite file': 'Write',
      'read file': 'Read',
      'read files': 'Read',
      'edit notebook': 'NotebookEdit',
      fetch: 'WebFetch',
      'web search': 'WebSearch',
    },
    cancelKey: ESCAPE,
  },
}

const CODEX: Harness = {
  busy: BUSY,
  startupDialogs: [
    { id: 'trust', match: ['do you trust the contents of this directory', 'yes, continue'], keys: [ENTER] },
    { id: 'trust', match: ['allow codex to work in this folder without asking for approval'], keys: [ENTER] },
    { id: 'update', match: ['update available', 'update now', 'skip'], keys: [DOWN, ENTER] },
  ],
}

const GEMINI: Harness = {
  busy: BUSY,
  startupDialogs: [{ id: 'trust', match: ['do you trust this folder', 'trust folder'], keys: [ENTER] }],
}

const CURSOR: Harness = {
  busy: BUSY,
  startupDialogs: [
    { id: 'trust', match: ['do you trust the contents of this directory', '[a] trust this workspace'], keys: ['a'] },
  ],
}

/** By the name of the program. */
const HARNESSES: Readonly<Record<string, Harness>> = {
  claude: CLAUDE,
  codex: CODEX,
  gemini: GEMINI,
  'cursor-agent': CURSOR,
}

/** `command` as it is run: a path, or a name. */
export function harnessOf(command: string): Harness {
  const program = command.split('/').at(-1) ?? ''
  return HARNESSES[program] ?? GENERIC
}

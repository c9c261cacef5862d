/** Terminals of sessions: followed, typed into, sized, read (decisions 221, 222, 236). */

import { Timestamp } from '../base/names.ts'
import { array, boolean, choice, component, integer, object, optional, type Static, string } from '../base/schema.ts'
import { HEARTBEAT } from '../base/streams.ts'
import { session } from './sessions.ts'

/** What one request may type. A paste that is longer goes in several. */
export const MAX_INPUT_BYTES = 65_536
const MAX_KEY_CHARACTERS = 4_096

const columns = integer({ minimum: 2, maximum: 1_000, description: 'Columns of the terminal.' })
const rows = integer({ minimum: 1, maximum: 500, description: 'Rows of the terminal.' })
const viewer = string({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'Who types or looks: a name of its own choice, new for every stream.',
  examples: ['laptop-1'],
})

export const TerminalCursor = component(
  'TerminalCursor',
  { row: integer({ minimum: 0 }), column: integer({ minimum: 0 }), visible: boolean() },
  { description: 'Counted from the upper left corner of the screen, from 0.' },
)

/** What every look at a screen says. */
const shown = {
  session_id: string(),
  cols: integer({ minimum: 1 }),
  rows: integer({ minimum: 1 }),
  cursor: TerminalCursor,
  title: optional(string({ description: 'As the program has set it.' })),
  alternate: boolean({ description: 'The program draws on a screen of its own: nothing scrolls away.' }),
}

export const SessionScreenBody = component('SessionScreenBody', {
  ...shown,
  lines: array(string(), { description: 'The rows of the screen, without what is empty at the end.' }),
  observed_at: Timestamp,
})
export type SessionScreenBody = Static<typeof SessionScreenBody>

export const TerminalScreenFrame = component(
  'TerminalScreenFrame',
  {
    ...shown,
    offset: integer({ minimum: 0, description: 'Bytes of output that are in it; `output` goes on here.' }),
    text: string({
      description:
        'Written to a terminal of this size, whatever it shows, it shows the screen: rows, colours, cursor, modes.',
    }),
  },
  { description: 'What the terminal shows; void is what was sent before.' },
)
export const TerminalOutputFrame = component('TerminalOutputFrame', {
  offset: integer({ minimum: 0, description: 'Of the first byte, since the program was started.' }),
  data: string({ description: 'Bytes as the program wrote them, in base64.' }),
})
export const TerminalResizedFrame = component('TerminalResizedFrame', {
  cols: integer({ minimum: 1 }),
  rows: integer({ minimum: 1 }),
})
export const TerminalEndedFrame = component('TerminalEndedFrame', {
  session_id: string(),
  state: string({ description: 'Of the session, now.' }),
  reason: string({ description: 'Why it ended, as far as it is known.' }),
  at: Timestamp,
})

export const TerminalInputRequest = component(
  'TerminalInputRequest',
  {
    viewer,
    seq: integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Counts what this viewer sends, from 1.',
    }),
    text: optional(string({ maxLength: MAX_INPUT_BYTES, description: 'What is typed, as text.' })),
    data: optional(
      string({
        maxLength: Math.ceil(MAX_INPUT_BYTES / 3) * 4,
        pattern: '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
        description: 'What is typed, as bytes in base64.',
      }),
    ),
  },
  { description: 'Either `text` or `data`, at most 64 KiB; what it is goes to the program as it is.' },
)
export const TerminalInputBody = component('TerminalInputBody', {
  viewer,
  seq: integer({ minimum: 1, description: 'The last that was typed of this viewer.' }),
  typed: boolean({ description: 'False: it had been typed before.' }),
})

export const TerminalSizeRequest = component('TerminalSizeRequest', {
  viewer: optional(viewer),
  cols: columns,
  rows,
})
export const TerminalSizeBody = component('TerminalSizeBody', {
  cols: integer({ minimum: 1, description: 'Columns that the terminal has now.' }),
  rows: integer({ minimum: 1, description: 'Rows that the terminal has now.' }),
})

export const SessionKeysRequest = component('SessionKeysRequest', {
  keys: array(string({ minLength: 1, maxLength: MAX_KEY_CHARACTERS }), {
    minItems: 1,
    maxItems: 100,
    description:
      'Names of keys (`Enter`, `Escape`, `Tab`, `Space`, `BSpace`, `Delete`, `Up`, `Down`, `Left`, `Right`, `Home`, `End`, `PageUp`, `PageDown`, `Insert`, `F1` to `F12`; with `C-`, `M-`, `S-` before them), or single characters. Text is typed by `terminal/input`.',
    examples: [['Down', 'Enter']],
  }),
  expect_screen: optional(
    string({
      minLength: 1,
      maxLength: MAX_KEY_CHARACTERS,
      description: 'Must stand on the screen, or nothing is typed; lines are compared without spaces at their ends.',
    }),
  ),
})
export const SessionKeysBody = component('SessionKeysBody', {
  session_id: string(),
  typed: integer({ minimum: 0, description: 'Bytes that the program was sent.' }),
})

const terminal = session.with({ problems: ['unsupported', 'session-conflict'] })

export const getSessionScreen = terminal.get('get-session-screen', '/screen', {
  summary: 'See the screen of a session',
  description: 'As it is now. 501 for sessions without a terminal, 409 where it does not run.',
  query: object({
    format: optional(
      choice(['text', 'ansi'], { default: 'text', description: '`ansi`: with escape sequences for colours.' }),
    ),
  }),
  replies: { 200: SessionScreenBody },
})

export const streamSessionTerminal = terminal.get('stream-session-terminal', '/terminal', {
  summary: 'Watch the terminal of a session',
  description:
    'Server-sent events: the screen, then what the program writes. Whoever falls behind, or resumes where the log ends no more, gets a `screen` again. While it is open, somebody attends the session.',
  query: object({
    viewer: optional(viewer),
    after_cursor: optional(string({ maxLength: 64, description: '`id:` of the last frame received.' })),
  }),
  headers: ['Last-Event-ID'],
  replies: {},
  frames: [
    {
      event: 'screen',
      data: TerminalScreenFrame,
      id: 'run and offset',
      description: 'First, and whenever what came before is void.',
    },
    { event: 'output', data: TerminalOutputFrame, id: 'run and offset', description: 'What the program wrote.' },
    {
      event: 'resized',
      data: TerminalResizedFrame,
      description: 'The terminal has another size; the screen follows.',
    },
    { event: 'ended', data: TerminalEndedFrame, description: 'The program has ended; nothing more comes.' },
    HEARTBEAT,
  ],
  problems: ['invalid-cursor'],
})

export const typeIntoSession = terminal.post('type-into-session', '/terminal/input', {
  summary: 'Type into the terminal of a session',
  description:
    'In the order of `seq`: what comes too early waits up to 2 s for what is missing, then 409. What was typed before is answered and not typed again, also after a restart of the supervisor: who got no answer sends the same again. A viewer begins at 1.',
  body: TerminalInputRequest,
  bodyLimit: 1_048_576,
  replies: { 200: TerminalInputBody },
  problems: ['gateway-timeout'],
})

export const resizeSessionTerminal = terminal.post('resize-session-terminal', '/terminal/size', {
  summary: 'Say how large a viewer of a terminal is',
  description:
    'The terminal takes the size of the viewer that typed last; until one has, of the last that said one. Without a `viewer` it is taken at once. The answer is the size that the terminal has.',
  body: TerminalSizeRequest,
  replies: { 200: TerminalSizeBody },
  problems: ['gateway-timeout'],
})

export const sendSessionKeys = terminal.post('send-session-keys', '/keys', {
  summary: 'Press keys in the terminal of a session',
  description: 'For programs and dialogs. Nothing is typed while a message is being typed: 409.',
  body: SessionKeysRequest,
  replies: { 200: SessionKeysBody },
  problems: ['screen-differs', 'gateway-timeout'],
})

export const terminalOperations = [
  getSessionScreen,
  streamSessionTerminal,
  typeIntoSession,
  resizeSessionTerminal,
  sendSessionKeys,
] as const

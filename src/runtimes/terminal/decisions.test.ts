import assert from 'node:assert/strict'
import { test } from 'node:test'
import { screenOf } from '../../harnesses/all.ts'
import { GENERIC_SCREEN as GENERIC } from '../../harnesses/harness.ts'
import { optionFor } from '../process/answers.ts'
import type { Answer } from '../process/runtime.ts'
import { activityOf, asksForKey, dialogOn, startupDialogOn } from './decisions.ts'
import { emptyPrompt, promptRow, type ScreenHints, unsentOn } from './input-line.ts'
import { plainRow } from './rows.ts'

const CLAUDE = screenOf('/usr/local/bin/claude')
const HINTS: ScreenHints = { rules: CLAUDE, prompt: '❯ ' }
const PLAIN = { inverse: false, background: 0, faint: false }
const screen = (text: string) => text.split('\n').map(plainRow)
const approvalOn = (rows: ReturnType<typeof screen>) => {
  const pending = dialogOn(rows, HINTS)?.pending
  return pending?.kind === 'approval' && pending.metadata['tool_name'] !== undefined ? pending : undefined
}

const PROMPT = screen(`
● Done. The tests pass.

────────────────────────────────────────────────────
❯\u00a0
────────────────────────────────────────────────────
  ? for shortcuts`)

const BOXED_PROMPT = screen(`
╭──────────────────────────────────────────────────╮
│ > Try "fix the build"                            │
╰──────────────────────────────────────────────────╯`)

const BUSY = screen(`
● Bash(npm test)
  ⎿  Running…

✻ Pondering… (12s · ↑ 1.2k tokens · esc to interrupt)

────────────────────────────────────────────────────
❯
────────────────────────────────────────────────────`)

const BASH = screen(`
● I remove the build directory first.

────────────────────────────────────────────────────
 Bash command

   rm -rf build
   Remove the build directory

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again for: rm -rf build
   3. No

 Esc to cancel · Tab to amend`)

const BOXED_BASH = screen(`
╭──────────────────────────────────────────────────╮
│ Bash command                                     │
│                                                  │
│   rm -rf build                                   │
│   Remove the build directory                     │
│                                                  │
│ Do you want to proceed?                          │
│ ❯ 1. Yes                                         │
│   2. Yes, and don't ask again for rm commands in │
│      /home/me/project                            │
│   3. No, and tell Claude what to do differently  │
│      (esc)                                       │
╰──────────────────────────────────────────────────╯`)

const EDIT = screen(`
────────────────────────────────────────────────────
 Edit file
 src/a.ts
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 1  const a = 1
 2 -const b = 2
 2 +const b = 3
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to make this edit to a.ts?
   1. Yes
 ❯ 2. Yes, allow all edits during this session (shift+tab)
   3. No`)

const TOOL = screen(`
────────────────────────────────────────────────────
 Tool use

   tracker - create_issue(title: "x") (MCP)

 Do you want to proceed?
 ❯ 1. Yes
   2. No`)

const ANSWERED = screen(`
 Do you want to proceed?
 ❯ 1. Yes
   2. No

● Bash(rm -rf build)
  ⎿  (No content)
● Removed.
● Now the tests.
● Bash(npm test)
  ⎿  42 passed
● All green.

────────────────────────────────────────────────────
❯`)

const QUESTION = screen(`
● Which of these do you want?
  1. Fix the bug
  2. Write a test
  3. Both

Do you want to hear more?
❯`)

const TRUST = screen(`
 Do you trust the files in this folder?

 /home/me/project

 Claude Code may read, write, or execute files contained in this directory.

 ❯ 1. Yes, proceed
   2. No, exit`)

const BYPASS = screen(`
 WARNING: Claude Code running in Bypass Permissions
 mode

 ❯ 1. No, exit
   2. Yes, I accept`)

test('a prompt is seen whatever frame is around it, and only at the start of a line', () => {
  const cases: [string, ReturnType<typeof screen>, string, boolean][] = [
    ['bare', PROMPT, '❯ ', true],
    ['boxed', BOXED_PROMPT, '> ', true],
    ['not there yet', screen('Loading…'), '❯ ', false],
    ['in the middle of a line', screen('a ❯ b'), '❯ ', false],
    ['another word that begins so', screen('❯❯ x'), '❯ ', false],
    ['no prefix at all', PROMPT, '', false],
    ['nothing', [], '❯ ', false],
  ]
  for (const [name, lines, prefix, expected] of cases) assert.equal(promptRow(lines, prefix) !== -1, expected, name)
})

test('an input line is empty with a hint in it, and is none with words in it', () => {
  const faint = (text: string, from: number) => ({
    ...plainRow(text),
    runs: [{ ...PLAIN, from, to: text.length, faint: true }],
  })
  const cursorAt = (text: string, cursor: number) => ({ ...plainRow(text), cursor })
  const cases: [string, ReturnType<typeof screen>, string, boolean][] = [
    ['bare', PROMPT, '❯ ', true],
    ['a hint that is known', BOXED_PROMPT, '> ', true],
    ['a hint that is faint', [faint('› Explain this', 2), plainRow(''), plainRow('  42% left')], '› ', true],
    ['a hint behind the cursor', [cursorAt('> Say something', 2)], '> ', true],
    ['words before the cursor', [cursorAt('> Say something', 15)], '> ', false],
    ['words', [plainRow('> Say something')], '> ', false],
    ['an option behind the cursor', [plainRow('Sure?'), cursorAt('> Yes', 2), plainRow('  No')], '> ', false],
    ['a prompt that was left behind', [...PROMPT, ...Array(13).fill(plainRow('more'))], '❯ ', false],
    ['one that was answered', screen('❯ fix it\n\n● Done.'), '❯ ', false],
  ]
  for (const [name, rows, prompt, expected] of cases)
    assert.equal(emptyPrompt(rows, { rules: CLAUDE, prompt }) !== undefined, expected, name)
})

test('an agent is idle only when it shows its prompt, says nothing of work and has been quiet', () => {
  const idle = { busy: false, prompt: true, asks: false, quietMs: 1_000 }
  assert.equal(activityOf(idle), 'idle')
  assert.equal(activityOf({ ...idle, quietMs: 999 }), 'unknown')
  assert.equal(activityOf({ ...idle, prompt: false }), 'unknown')
  assert.equal(activityOf({ ...idle, prompt: undefined }), 'unknown')
  assert.equal(activityOf({ ...idle, prompt: undefined, quietMs: 3_000 }), 'idle')
  assert.equal(activityOf({ ...idle, busy: true }), 'in-turn')
  assert.equal(activityOf({ ...idle, asks: true }), 'in-turn')
})

test('startup dialogs are known by their texts, also wrapped', () => {
  assert.equal(startupDialogOn(TRUST, HINTS)?.dialog.id, 'trust')
  assert.equal(startupDialogOn(BYPASS, HINTS)?.dialog.id, 'bypass-permissions')
  assert.equal(startupDialogOn(BASH, HINTS), undefined)
  assert.equal(startupDialogOn(TRUST, { rules: GENERIC, prompt: undefined }), undefined)
})

test('an approval dialog tells its tool, what it is asked for and what can be answered', () => {
  const cases: [string, ReturnType<typeof screen>, string, string, readonly (string | undefined)[]][] = [
    ['bash', BASH, 'Bash', 'rm -rf build\nRemove the build directory', ['allow_once', 'allow_always', 'reject_once']],
    [
      'boxed',
      BOXED_BASH,
      'Bash',
      'rm -rf build\nRemove the build directory',
      ['allow_once', 'allow_always', 'reject_once'],
    ],
    [
      'edit',
      EDIT,
      'Edit',
      'src/a.ts\n1  const a = 1\n2 -const b = 2\n2 +const b = 3',
      ['allow_once', 'allow_always', 'reject_once'],
    ],
    ['another tool', TOOL, 'Tool use', 'tracker - create_issue(title: "x") (MCP)', ['allow_once', 'reject_once']],
  ]
  for (const [name, lines, tool, input, kinds] of cases) {
    const found = approvalOn(lines)
    assert.ok(found, name)
    assert.equal(found.metadata['tool_name'], tool, name)
    assert.equal(found.metadata['input'], input, name)
    assert.deepEqual(
      found.options.map(({ kind }) => kind),
      kinds,
      name,
    )
    assert.deepEqual(
      found.options.map(({ id }) => id),
      kinds.map((_, index) => String(index + 1)),
      name,
    )
  }
})

test('an answer in several lines is one option', () => {
  const labels = approvalOn(BOXED_BASH)?.options.map(({ label }) => label)
  assert.deepEqual(labels, [
    'Yes',
    "Yes, and don't ask again for rm commands in /home/me/project",
    'No, and tell Claude what to do differently (esc)',
  ])
})

test('the same dialog has the same id wherever it is drawn, another input has another', () => {
  const id = approvalOn(BASH)?.requestId
  assert.match(id ?? '', /^[0-9a-f]{16}$/)
  assert.equal(approvalOn([plainRow('more'), plainRow('above'), ...BASH])?.requestId, id)
  assert.equal(approvalOn(BOXED_BASH)?.requestId, id)
  assert.notEqual(approvalOn(BASH.map(({ text }) => plainRow(text.replace('rm -rf build', 'rm -rf .'))))?.requestId, id)
})

test('lists, answered dialogs and startup dialogs are no approvals', () => {
  for (const lines of [ANSWERED, QUESTION, TRUST, BYPASS, PROMPT, BUSY, []]) assert.equal(approvalOn(lines), undefined)
})

test('an answer presses the option that means it, and no other', () => {
  const cases: [ReturnType<typeof screen>, Exclude<Answer, { action: 'cancel' }>, string | undefined][] = [
    [BASH, { action: 'approve' }, '1'],
    [BASH, { action: 'approve_always' }, '2'],
    [BASH, { action: 'deny' }, '3'],
    [BASH, { action: 'option', optionId: '2' }, '2'],
    [BASH, { action: 'option', optionId: '4' }, undefined],
    [TOOL, { action: 'deny' }, '2'],
    [TOOL, { action: 'approve_always' }, undefined],
  ]
  for (const [lines, answer, expected] of cases) {
    const found = approvalOn(lines) ?? assert.fail()
    assert.equal(found.options[optionFor(found, answer)]?.id, expected, JSON.stringify(answer))
  }
})

test('a message that stands in the input line was not sent; one in the history, a hint or a part of it was', () => {
  const long = 'please look at the tests that fail and mend them one by one'
  const cases: readonly [string, readonly string[], string, boolean][] = [
    ['it stands there', ['❯ hello there', '──────', '  ? for shortcuts'], 'hello there', true],
    ['in a frame', ['╭────╮', '│ > hello there   │', '╰────╯'], 'hello there', true],
    ['wrapped', [`❯ ${long.slice(0, 40)}`, `  ${long.slice(40)}`], long, true],
    ['a paste by another name', ['❯ [Pasted text #1 +12 lines]'], 'a\nb', true],
    ['it is history, the input is empty', ['❯ hello there', '● Hi!', '❯ '], 'hello there', false],
    ['a hint', ['❯ Try "edit a.ts"'], 'hello there', false],
    ['something longer', ['❯ yes and more'], 'yes', false],
    ['an option that is called like it', ['❯ Yes', '  No'], 'Yes', false],
    ['no prompt', ['hello there'], 'hello there', false],
  ]
  for (const [name, lines, message, expected] of cases) {
    const hints = { rules: CLAUDE, prompt: lines[1]?.includes('>') ? '> ' : '❯ ' }
    const rows = lines.map((text) => ({ ...plainRow(text), cursor: text.length }))
    assert.equal(unsentOn(rows, hints, message, true) !== undefined, expected, name)
    assert.equal(unsentOn(lines.map(plainRow), hints, message, true), undefined, `${name}, without a cursor`)
  }
})

test('an Enter that was taken for the end of a line leaves the message there, with the cursor below its beginning', () => {
  const hints = { rules: screenOf('gemini'), prompt: '> ' }
  const rows = [' > how are you?', '', '', ' workspace (/directory)'].map(plainRow)
  const at = (row: number, cursor: number) => rows.map((one, index) => (index === row ? { ...one, cursor } : one))
  assert.equal(unsentOn(at(1, 3), hints, 'how are you?', true)?.newline, true)
  assert.equal(unsentOn(at(0, 15), hints, 'how are you?', true)?.newline, false)
  assert.equal(unsentOn(at(1, 0), hints, 'how are you?', true), undefined, 'a line of its own')
})

test('what somebody types above a status line is no menu, wherever its lines begin', () => {
  const hints: ScreenHints = { rules: screenOf('codex'), prompt: '› ' }
  const typed = (lines: readonly string[], at: number, column = lines[at]?.length ?? 0) =>
    lines.map((text, row) => (row === at ? { ...plainRow(text), cursor: column } : plainRow(text)))
  const status = ['', '  gpt-5 default · ~/project', '  ← for agents · ? for shortcuts']
  assert.equal(dialogOn(typed(['› fix the build', ...status], 0), hints), undefined)
  assert.equal(dialogOn(typed(['› fix the build', '  and the tests', ...status], 1), hints), undefined)
  const menu = ['› Yes', '', '  No', '', '  Later']
  assert.equal(dialogOn(typed(menu, 0, 0), hints)?.pending.options.length, 3, 'at its pointer')
  assert.equal(dialogOn(typed(menu, 4), hints)?.pending.options.length, 3, 'behind all that was drawn')
  assert.equal(dialogOn(menu.map(plainRow), hints)?.pending.options.length, 3, 'nowhere')
})

test('what was answered to a message is no menu', () => {
  const painted = { ...plainRow('❯ say hello'), runs: [{ ...PLAIN, from: 0, to: 11, background: 237 }] }
  for (const [asked, ...answer] of [
    [plainRow('❯ say hello'), plainRow('● hello there'), plainRow('  and more')],
    [plainRow('❯ say hello'), plainRow(''), plainRow('● hello there'), plainRow('  ? for shortcuts')],
    [painted, plainRow('● hello there')],
    [painted, plainRow('● hello there'), plainRow('  and more')],
    [plainRow('❯ say hello'), plainRow('  ⎿  hello there')],
  ] as const)
    assert.equal(dialogOn([asked, ...answer], HINTS), undefined, JSON.stringify(answer))
  assert.ok(dialogOn(screen('❯ say hello\n\nShall I?\n● Yes\n  No'), HINTS), 'what asks is a menu')
  assert.ok(dialogOn(screen('❯\n\n● Yes\n  No'), HINTS), 'nothing was said above it')
})

test('a question is whole and the prompt, also where an explanation stands between it and its options', () => {
  const asked = (text: string) => dialogOn(screen(text), { rules: GENERIC, prompt: undefined })?.pending
  const gemini = asked(`
╭────────────────────────────────────────────────────────────────────────────────────────────────╮
│ Do you trust the files in this folder?                                                         │
│                                                                                                │
│ Trusting a folder allows Gemini CLI to load its local configurations, including custom         │
│ commands, hooks, MCP servers, agent skills, and settings. These configurations could execute   │
│ code on your behalf or change the behavior of the CLI.                                         │
│                                                                                                │
│ ● 1. Trust folder (work)                                                                       │
│   2. Trust parent folder (projects)                                                            │
│   3. Don't trust                                                                               │
╰────────────────────────────────────────────────────────────────────────────────────────────────╯`)
  assert.equal(gemini?.prompt, 'Do you trust the files in this folder?')
  assert.equal(
    gemini.metadata['input'],
    'Trusting a folder allows Gemini CLI to load its local configurations, including custom commands, hooks, MCP servers, agent skills, and settings. These configurations could execute code on your behalf or change the behavior of the CLI.',
  )
  const codex = asked(`
> You are running Codex in /home/somebody/work

  Codex reads and runs what is in this directory, so go on only if you wrote or
  trust these files. Your trust decision will be saved.

› 1. Yes, continue
  2. No, quit

  Press enter to continue`)
  assert.equal(
    codex?.prompt,
    'Codex reads and runs what is in this directory, so go on only if you wrote or trust these files. Your trust decision will be saved.',
  )
  const command = asked(`
  rm -rf build
  Go on?
  ❯ 1. Yes
    2. No`)
  assert.deepEqual([command?.prompt, command?.metadata['input']], ['Go on?', 'rm -rf build'])
})

test('startup dialogs: a request for approval is none, whatever words it asks about', () => {
  const words = BASH.map(({ text }) =>
    plainRow(text.replace('rm -rf build', 'echo Do you trust the files in this folder? Yes, proceed')),
  )
  assert.equal(startupDialogOn(words, HINTS), undefined)
  assert.equal(dialogOn(words, HINTS)?.pending.kind, 'approval')
})

test('a menu above an input line with the cursor in it is text of the conversation', () => {
  const generic: ScreenHints = { rules: GENERIC, prompt: undefined }
  const asked = ['It asks like this:', 'Do you want to proceed?', '❯ 1. Yes', '  2. No']
  const withCursor = (lines: readonly string[], cursorShown: boolean) =>
    lines.map((text, index) =>
      index === lines.length - 1
        ? { ...plainRow(text), cursor: text.length, ...(cursorShown && ({ cursorShown: true } as const)) }
        : plainRow(text),
    )
  for (const input of ['| ', '│ half a line', 'you> ', '| and'])
    assert.equal(dialogOn(withCursor([...asked, '', input], true), generic), undefined, input)
  assert.ok(dialogOn(withCursor([...asked, '', '| '], false), generic), 'a hidden cursor says nothing')
  for (const below of ['', 'Enter to select · Esc to cancel', 'Your choice> '])
    assert.ok(dialogOn(withCursor([...asked, '', below], true), generic), `it asks: ${below}`)
  const half = withCursor([...asked, '──────', '❯ half a line'], true)
  assert.equal(dialogOn(half, HINTS), undefined, 'behind the prompt that is known')
  assert.equal(asksForKey(withCursor(['Press any key to continue', '| '], true), generic), false)
  assert.equal(asksForKey(withCursor(['Press any key to continue'], true), generic), true)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '../process/runtime.ts'
import { activityOf, approvalOn, keysFor, showsBusy, showsPrompt, showsUnsent, startupDialogOn } from './decisions.ts'
import { type ApprovalDialog, GENERIC, harnessOf } from './harnesses.ts'

const CLAUDE = harnessOf('/usr/local/bin/claude')
const DIALOG: ApprovalDialog = CLAUDE.approval ?? assert.fail('no dialog')
const screen = (text: string) => text.split('\n')

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
  const cases: [string, readonly string[], string, boolean][] = [
    ['bare', PROMPT, '❯ ', true],
    ['boxed', BOXED_PROMPT, '> ', true],
    ['not there yet', screen('Loading…'), '❯ ', false],
    ['in the middle of a line', screen('a ❯ b'), '❯ ', false],
    ['another word that begins so', screen('❯❯ x'), '❯ ', false],
    ['no prefix at all', PROMPT, '', false],
    ['nothing', [], '❯ ', false],
  ]
  for (const [name, lines, prefix, expected] of cases) assert.equal(showsPrompt(lines, prefix), expected, name)
})

test('a turn under way is seen, one that scrolled away is not', () => {
  assert.equal(showsBusy(BUSY, CLAUDE), true)
  assert.equal(showsBusy(PROMPT, CLAUDE), false)
  assert.equal(showsBusy([...BUSY, ...Array(30).fill('done'), ...PROMPT], GENERIC), false)
  assert.equal(showsBusy(screen('Working (esc to\ninterrupt)'), GENERIC), true)
})

test('an agent is idle only when it shows its prompt, says nothing of work and has been quiet', () => {
  const idle = { busy: false, prompt: true, dialog: false, quietMs: 1_000 }
  assert.equal(activityOf(idle), 'idle')
  assert.equal(activityOf({ ...idle, quietMs: 999 }), 'unknown')
  assert.equal(activityOf({ ...idle, prompt: false }), 'unknown')
  assert.equal(activityOf({ ...idle, busy: true }), 'in-turn')
  assert.equal(activityOf({ ...idle, dialog: true }), 'in-turn')
})

test('startup dialogs are known by their texts, also wrapped', () => {
  assert.equal(startupDialogOn(TRUST, CLAUDE)?.id, 'trust')
  assert.equal(startupDialogOn(BYPASS, CLAUDE)?.id, 'bypass-permissions')
  assert.equal(startupDialogOn(BASH, CLAUDE), undefined)
  assert.equal(startupDialogOn(TRUST, GENERIC), undefined)
})

test('an approval dialog tells its tool, what it is asked for and what can be answered', () => {
  const cases: [string, readonly string[], string, string, readonly (string | undefined)[]][] = [
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
    const found = approvalOn(lines, DIALOG)
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
  const labels = approvalOn(BOXED_BASH, DIALOG)?.options.map(({ label }) => label)
  assert.deepEqual(labels, [
    'Yes',
    "Yes, and don't ask again for rm commands in /home/me/project",
    'No, and tell Claude what to do differently (esc)',
  ])
})

test('the same dialog has the same id wherever it is drawn, another input has another', () => {
  const id = approvalOn(BASH, DIALOG)?.requestId
  assert.match(id ?? '', /^[0-9a-f]{16}$/)
  assert.equal(approvalOn(['more', 'above', ...BASH], DIALOG)?.requestId, id)
  assert.equal(approvalOn(BOXED_BASH, DIALOG)?.requestId, id)
  assert.notEqual(
    approvalOn(
      BASH.map((line) => line.replace('rm -rf build', 'rm -rf .')),
      DIALOG,
    )?.requestId,
    id,
  )
})

test('lists, answered dialogs and startup dialogs are no approvals', () => {
  for (const lines of [ANSWERED, QUESTION, TRUST, BYPASS, PROMPT, BUSY, []])
    assert.equal(approvalOn(lines, DIALOG), undefined)
})

test('an answer presses the option that means it, and no other', () => {
  const cases: [readonly string[], Answer, string | undefined][] = [
    [BASH, { action: 'approve' }, '1'],
    [BASH, { action: 'approve_always' }, '2'],
    [BASH, { action: 'deny' }, '3'],
    [BASH, { action: 'option', optionId: '2' }, '2'],
    [BASH, { action: 'option', optionId: '4' }, undefined],
    [BASH, { action: 'cancel' }, '\u001b'],
    [TOOL, { action: 'deny' }, '2'],
    [TOOL, { action: 'approve_always' }, undefined],
  ]
  for (const [lines, answer, expected] of cases) {
    const found = approvalOn(lines, DIALOG) ?? assert.fail()
    assert.equal(keysFor(found, answer, DIALOG), expected, JSON.stringify(answer))
  }
})

test('a message that stands in the input line was not sent; one in the history, a hint or a part of it was', () => {
  const long = 'please look at the tests that fail and mend them one by one'
  const cases: readonly [string, readonly string[], string, boolean][] = [
    ['it stands there', ['❯ hello there', '  ? for shortcuts'], 'hello there', true],
    ['in a frame', ['╭────╮', '│ > hello there   │', '╰────╯'], 'hello there', true],
    ['wrapped', [`❯ ${long.slice(0, 40)}`, `  ${long.slice(40)}`], long, true],
    ['a paste by another name', ['❯ [Pasted text #1 +12 lines]'], 'a\nb', true],
    ['it is history, the input is empty', ['❯ hello there', '● Hi!', '❯ '], 'hello there', false],
    ['a hint', ['❯ Try "edit a.ts"'], 'hello there', false],
    ['something longer', ['❯ yes and more'], 'yes', false],
    ['no prompt', ['hello there'], 'hello there', false],
  ]
  for (const [name, lines, message, expected] of cases)
    assert.equal(showsUnsent(lines, lines[1]?.includes('>') ? '> ' : '❯ ', message), expected, name)
})

// What real harnesses drew, replayed: busy, idle, or a dialog with its options.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesOf, RECORDED } from '../../../test/support/recorded-screens.ts'
import { findPreset, screenOf } from '../../harnesses/all.ts'
import { BoundedTerminal } from './bounded.ts'
import { busyOn } from './busy.ts'
import { activityOf, asksForKey, dialogOn } from './decisions.ts'
import { emptyPrompt, type ScreenHints } from './input-line.ts'
import { rowsOf } from './rows.ts'

const ACTIVITIES = {
  idle: ['idle'],
  busy: ['in-turn', 'unknown'],
  dialog: ['in-turn'],
  'half-typed': ['unknown'],
} as const

for (const recorded of RECORDED)
  test(`a real screen is what it is: ${recorded.file}`, async () => {
    const { harness, columns, rows: height, expect } = recorded
    const preset = findPreset(harness)
    const hints: ScreenHints = { rules: screenOf(preset?.command ?? ''), prompt: preset?.ready_prompt_prefix }
    const terminal = new BoundedTerminal({ cols: columns, rows: height, scrollback: 100 })
    await terminal.write(bytesOf(recorded))
    const rows = rowsOf(terminal.buffer, height, terminal.cursorVisible)
    terminal.dispose()
    const dialog = dialogOn(rows, hints)
    const asks = dialog !== undefined || asksForKey(rows, hints)
    const prompt = hints.prompt === undefined ? undefined : emptyPrompt(rows, hints) !== undefined
    const activity = activityOf({ busy: busyOn(rows, hints) !== undefined, prompt, asks, quietMs: 3_600_000 })
    const shown = rows.map(({ text }) => text).join('\n')
    assert.ok(
      ACTIVITIES[expect.activity].some((one) => one === activity),
      `${activity}:\n${shown}`,
    )
    assert.equal(dialog !== undefined, expect.activity === 'dialog', shown)
    if (expect.dialog?.kind === 'approval') assert.equal(dialog?.pending.kind, 'approval', shown)
    for (const [index, label] of (expect.dialog?.options ?? []).entries()) {
      const found = dialog?.pending.options[index]?.label.replaceAll(/\s+/g, ' ')
      assert.ok(found?.startsWith(label), `${found}, not ${label}, in\n${shown}`)
    }
  })

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { removeTree } from '../../../../test/support/temporary.ts'
import { takeMissed } from './missed.ts'

const line = (key: string) => `${JSON.stringify({ at: '2026-05-01T10:00:00Z', resume_key: key })}\n`

test('missed reports are heard again until they are written, and none is lost behind them', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-missed-'))
  try {
    const file = join(directory, 'missed-reports')
    assert.equal(await takeMissed(directory), undefined)
    writeFileSync(file, `${line('first')}nonsense\n`)
    const keys = async () => (await takeMissed(directory))?.reports.map(({ resume_key: key }) => key)
    // A supervisor that is killed here has written nothing.
    assert.deepEqual(await keys(), ['first'])
    writeFileSync(file, line('second'))
    assert.deepEqual(await keys(), ['first'])
    await (await takeMissed(directory))?.forget()
    assert.deepEqual(await keys(), ['second'])
    await (await takeMissed(directory))?.forget()
    assert.equal(await takeMissed(directory), undefined)
    assert.deepEqual(readdirSync(directory), [])
  } finally {
    removeTree(directory)
  }
})

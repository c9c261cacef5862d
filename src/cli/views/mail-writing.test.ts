import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { draftText, parsedDraft, subjectOf } from './mail-writing.ts'

suite('a message in the editor', () => {
  test('a new one begins with its subject', () => {
    assert.equal(draftText({ to: 'mayor' }), 'Subject: \n\n')
    assert.deepEqual(parsedDraft('Subject:  Lunch \n\nAt noon?\n', { to: 'mayor' }), {
      subject: 'Lunch',
      body: 'At noon?',
    })
    assert.deepEqual(parsedDraft('Subject:\n\nAt noon?\n', { to: 'mayor' }), { subject: undefined, body: 'At noon?' })
    assert.deepEqual(parsedDraft('At noon?\n', { to: 'mayor' }), { subject: undefined, body: 'At noon?' })
  })

  test('one whose subject is known is its text', () => {
    const about = { to: 'mayor', subject: 'Lunch' }
    assert.equal(draftText(about), '\n')
    assert.deepEqual(parsedDraft('Subject: x\n', about), { subject: 'Lunch', body: 'Subject: x' })
  })

  test('an answer shows what it answers, and does not send it', () => {
    const about = { to: 'mayor', answers: { from: 'mayor', body: 'Blue?\n\nOr green?' } }
    const text = draftText(about)
    assert.match(text, /^\n# ---- nothing.*\n# mayor wrote:\n# Blue\?\n#\n# Or green\?\n$/)
    assert.deepEqual(parsedDraft(text, about), { subject: undefined, body: '' })
    assert.deepEqual(parsedDraft(`Green.\n# a heading${text}`, about), {
      subject: undefined,
      body: 'Green.\n# a heading',
    })
  })

  test('what it is about is its first line, cut to 80 letters', () => {
    assert.equal(subjectOf('\n  Hello  \nworld'), 'Hello')
    assert.equal(subjectOf(`${'ä'.repeat(81)}`), `${'ä'.repeat(77)}...`)
    assert.throws(() => subjectOf(' \n'), /nothing to send/)
  })
})

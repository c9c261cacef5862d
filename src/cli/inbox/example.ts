/** A mailbox for tests of the inbox. */
import type { Message } from '../../contract/messaging/mail.ts'
import type { Mail, View } from './state.ts'

export const NOW = Date.parse('2026-05-01T10:00:00.000Z')
const ago = (seconds: number) => new Date(NOW - seconds * 1000).toISOString()

export const letter = (id: string, more: Partial<Message> = {}): Message => ({
  ...{ id, from: 'mayor', to: 'human', subject: 'Hello', body: '', created_at: ago(120) },
  ...{ read: false, status: 'unread', thread_id: 'thread-000000000001', cc: [] },
  ...{ priority: 0, mailbox: 'human' },
  ...more,
})

export const MAYOR = letter('m1', {
  subject: 'Deploy finished',
  body: 'All tests pass.\nThe release is tagged and on its way to everybody who asked.',
  priority: 5,
  cc: ['ops'],
})
const READ = { read: true, status: 'read' } as const

export const mail = (): Mail => ({
  ...{ city: 'alpha', owner: 'human', more: false, thread: [], lost: undefined, counts: { total: 3, unread: 1 } },
  messages: [
    MAYOR,
    letter('m2', {
      ...{ ...READ, from: 'rig/名前', subject: 'Question about the colour', body: 'Blue or green?' },
      ...{ created_at: ago(7200), thread_id: 'thread-000000000002' },
    }),
    letter('m3', {
      ...{ ...READ, from: 's-0123456789abcdef', subject: '(reply)', body: '' },
      ...{ created_at: ago(3 * 86_400), thread_id: 'thread-000000000003' },
    }),
  ],
})

export const view = (more: Partial<View> = {}): View => ({
  ...{ mail: mail(), now: NOW, color: false, box: 'inbox', selected: { key: '', at: 0 }, filter: '' },
  ...{ open: undefined, entry: undefined, help: false, note: undefined },
  ...more,
})

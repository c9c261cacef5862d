/** Mail for people that nobody has read. */
import type { NeedSource } from '../../kernel/needs.ts'
import { HUMAN } from '../../messaging/address.ts'
import { countMails } from './store.ts'

export const mailNeeds: NeedSource = {
  name: 'mail',
  types: ['mail.*', 'retention.swept'],
  subjectsOf: () => [HUMAN],
  subjects: () => [HUMAN],
  needsOf: (reader) => {
    const { unread } = countMails(reader, HUMAN, undefined)
    if (unread === 0) return []
    return [
      {
        key: 'unread',
        kind: 'mail',
        subject: { kind: 'mailbox', id: HUMAN, name: HUMAN },
        title: `${unread} unread ${unread === 1 ? 'message' : 'messages'} for people`,
        operations: [{ operation: 'list-mail', params: {}, label: 'Read', command: 'svcctl mail inbox' }],
      },
    ]
  },
}

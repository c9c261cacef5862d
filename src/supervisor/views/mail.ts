/** Where mail meets who is there, the configuration, and the city that shows how much of it there is. */
import { parseDurationMs } from '../../contract/base/durations.ts'
import { randomHex } from '../../kernel/ids.ts'
import { HUMAN, isRead, type Mailbox } from '../../messaging/address.ts'
import { config as configuration } from '../../modules/config/family.ts'
import type { ConvoyNotices } from '../../modules/convoys/notices.ts'
import { type MailContext, mail } from '../../modules/mail/family.ts'
import { sessions } from '../../modules/sessions/family.ts'
import { addressesOf } from './addresses.ts'
import { digestsOf } from './digests.ts'
import type { Running } from './running.ts'

const SESSION = 'session:'

export function mailContext(city: Running): MailContext {
  const { store, host } = city
  const current = () => configuration.of(city).config.current()
  return {
    store,
    clock: host.clock,
    random: randomHex,
    addresses: addressesOf(city),
    digests: digestsOf(city),
    hasRig: (rig) => current().rigs.some((one) => one.name === rig),
    keepMs: () => keptFor(current().mail.retention_ttl),
    isGone: (mailbox) => isGone(city, mailbox),
  }
}

/** True for the mailbox of a session that was deleted. */
function isGone(city: Running, mailbox: Mailbox): boolean {
  const store = sessions.find(city)?.sessions.store
  return mailbox.startsWith(SESSION) && store !== undefined && store.byId(mailbox.slice(SESSION.length)) === undefined
}

/** Undefined: for ever. */
const keptFor = (ttl: string | undefined): number | undefined =>
  ttl === undefined || ttl === 'off' ? undefined : parseDurationMs(ttl)

/** What is in the mailboxes of a city, without what is archived. */
export function mailCounts(city: Running): { total: number; unread: number } {
  const counts = mail.find(city)?.mail.counts()
  return counts === undefined ? { total: 0, unread: 0 } : { total: counts.unread + counts.read, unread: counts.unread }
}

/** Convoys tell by mail. Where nobody is of the name that one has, or several are, people are told, and of that too. */
export const convoyNotices = (city: Running): ConvoyNotices => ({
  tell(tx, { to, subject, body }) {
    const addresses = addressesOf(city)
    const found = addresses.find(to)
    const known = found !== undefined && isRead(found) ? found : undefined
    mail.of(city).mail.send(tx, {
      from: { display: 'convoys', rig: '' },
      to: known ?? addresses.of(HUMAN),
      subject,
      body:
        known === undefined
          ? `${body}\nIt was to tell ${to}: nobody is called so, several are, or the session is closed.`
          : body,
    })
  },
})

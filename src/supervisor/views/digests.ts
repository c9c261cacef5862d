/** Where mail and chat meet sessions: who is told, and by whose words. */
import type { Digests } from '../../messaging/digest.ts'
import { mail } from '../../modules/mail/family.ts'
import { messaging } from '../../modules/messaging/family.ts'
import { sessions } from '../../modules/sessions/family.ts'
import type { DigestPort } from '../../modules/sessions/record/ports.ts'
import { mailboxOf } from './addresses.ts'
import type { Running } from './running.ts'

/** For those who have something to tell: looked up when it is told, since sessions are opened late. */
export const digestsOf = (city: Running): Digests => ({
  wish: (tx, to, wish) => sessions.of(city).sessions.digests.wish(tx, to, wish),
})

/** For sessions: who knows what is to be told. */
export const digestPort = (city: Running): DigestPort => ({
  source: (name) => (name === 'mail' ? mail.find(city)?.digests : messaging.find(city)?.notices),
  mailboxOf,
})

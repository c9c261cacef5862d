/** Mail, as the supervisor joins it. */
import { mailOperations } from '../../contract/messaging/mail.ts'
import type { Clock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { departures } from './departures.ts'
import { forgetting, MailDigests } from './digests.ts'
import { createMailHandlers, type MailCity } from './handlers.ts'
import { Mail, type MailDeps } from './mail.ts'
import { mailNeeds } from './needs.ts'
import { type MailRetentionDeps, sweepsOfMail } from './retention.ts'
import { MAIL_SCHEMA } from './schema.ts'

export type MailContext = MailDeps & Omit<MailRetentionDeps, 'mail'> & Pick<MailCity, 'hasRig' | 'store'>

export const mail = defineFamily({
  operations: mailOperations,
  schema: migrationsOf('mail', ...MAIL_SCHEMA),
  handlers: (host: { readonly clock: Clock }) => createMailHandlers(host),
  open: (context: MailContext) => {
    const all = new Mail(context)
    const { store, addresses, hasRig } = context
    const city: MailCity = { store, addresses, hasRig, mail: all }
    return { ...city, digests: new MailDigests(), sweeps: sweepsOfMail({ ...context, mail: all }) }
  },
  needs: () => [mailNeeds],
  retention: ({ sweeps }) => sweeps,
  reactions: (city) => [forgetting, departures(city)],
})

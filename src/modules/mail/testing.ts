/** The mail of a city without a supervisor: a real store, and people and sessions of the test's own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { randomHex } from '../../kernel/ids.ts'
import { problem } from '../../kernel/problem.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../kernel/store.ts'
import { type Address, type Addresses, HUMAN, parseMailbox } from '../../messaging/address.ts'
import type { DigestWish } from '../../messaging/digest.ts'
import { Mail } from './mail.ts'
import { MAIL_SCHEMA } from './schema.ts'

export interface Wished extends DigestWish {
  readonly to: string
}

export interface Post extends Store {
  readonly path: string
  readonly mail: Mail
  readonly addresses: Addresses
  readonly wishes: Wished[]
  /** Events so far, as `type subject`. */
  events(): readonly string[]
}

/** Agents that have mailboxes, each with its rig. */
const PEOPLE: Readonly<Record<string, string>> = { human: '', mayor: '', 'shop/clerk': 'shop', ann: '' }

export const addressOf = (name: string): Address => {
  const mailbox = name === HUMAN ? HUMAN : parseMailbox(`agent:${name}`)
  return { mailbox, display: name, rig: PEOPLE[name] ?? '' }
}

const ADDRESSES: Addresses = {
  resolve(word) {
    if (!Object.hasOwn(PEOPLE, word)) throw problem('recipient-not-found', `there is no recipient ${word}`)
    return addressOf(word)
  },
  find: (word) => {
    const name = word.replace(/^agent:/, '')
    return Object.hasOwn(PEOPLE, name) ? addressOf(name) : undefined
  },
  isClosed: () => false,
  of: (mailbox) => addressOf(mailbox.replace(/^agent:/, '')),
  ofSession: (id) => ({ mailbox: `session:${id}`, display: id, rig: '', session_id: id }),
  live: () =>
    Object.keys(PEOPLE)
      .filter((name) => name !== HUMAN)
      .map(addressOf),
}

/** Ends with the test. */
export function openPost(t: Pick<TestContext, 'after'>, clock: Clock = systemClock): Post {
  const directory = mkdtempSync(join(tmpdir(), 'svc-mail-'))
  const path = join(directory, 'city.db')
  const migrations = [...migrationsOf('store', STORE_SCHEMA), ...migrationsOf('mail', ...MAIL_SCHEMA)]
  const store = openStore({ path, migrations, owner: 'the test', clock })
  t.after(() => {
    store.db.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const wishes: Wished[] = []
  const digests = {
    wish: (_: unknown, to: { mailbox: string }, wish: DigestWish) => void wishes.push({ ...wish, to: to.mailbox }),
  }
  return {
    ...store,
    path,
    addresses: ADDRESSES,
    wishes,
    mail: new Mail({ store, clock, random: randomHex, addresses: ADDRESSES, digests }),
    events: () =>
      store.db
        .all('SELECT t.name, e.subject FROM events AS e JOIN event_types AS t ON t.id = e.type ORDER BY e.seq')
        .map(({ name, subject }) => `${String(name)} ${String(subject)}`),
  }
}

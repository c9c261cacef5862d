/** A store with the tables of messages, for tests. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../kernel/store.ts'
import type { Mailbox } from '../../messaging/address.ts'
import { Members } from './entries/members.ts'
import type { EntryDraft } from './entries/rows.ts'
import { Transcripts } from './entries/store.ts'
import { TranscriptStreams } from './entries/stream.ts'
import { messaging } from './family.ts'

export interface Opened extends Store {
  readonly transcripts: Transcripts
  readonly members: Members
  readonly streams: TranscriptStreams
}

/** Ends with the test. */
export function opened(t: Pick<TestContext, 'after'>, clock: Clock = systemClock): Opened {
  const directory = mkdtempSync(join(tmpdir(), 'svc-messaging-'))
  const migrations = [...migrationsOf('store', STORE_SCHEMA), ...(messaging.parts.schema ?? [])]
  const store = openStore({ path: join(directory, 'city.db'), migrations, owner: 'the test', clock })
  t.after(() => {
    store.db.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const { db, log } = store
  const addressOf = (mailbox: Mailbox) => ({ mailbox, display: mailbox, rig: '' })
  const transcripts = new Transcripts({ db, clock })
  const streams = new TranscriptStreams({ transcripts, encode: (frames) => Buffer.from(frames.join('')) })
  const left = streams.left.bind(streams)
  return { ...store, transcripts, streams, members: new Members({ db, log, clock, addressOf, left }) }
}

/** Something that somebody says. */
export const SAID: EntryDraft = {
  kind: 'inbound',
  actor: { id: 'u-1', display_name: 'Ada', is_bot: false },
  text: 'hello',
}

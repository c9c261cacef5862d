import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock, settled } from '../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { REACTIONS_SCHEMA, Reactions } from '../../kernel/reactions.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../kernel/store.ts'
import { noticeReaction } from './notices.ts'

const fail = (...what: readonly unknown[]) => assert.fail(JSON.stringify(what))

/** A store with a table in place of mail; opened again, it is what a crash leaves. */
class World implements Disposable {
  readonly #directory: string
  readonly #clock = new ManualClock()
  readonly store: Store
  #reactions: Reactions | undefined

  constructor(directory: string) {
    this.#directory = directory
    this.store = openStore({
      path: join(this.#directory, 'city.db'),
      migrations: migrationsOf('test', STORE_SCHEMA, REACTIONS_SCHEMA, 'CREATE TABLE told (name, subject, body);'),
      owner: 'a test',
      clock: this.#clock,
    })
  }

  /** `dies`: in the write, after the mail is in it. */
  async react(dies = false): Promise<void> {
    this.#reactions = new Reactions({
      db: this.store.db,
      log: this.store.log,
      clock: this.#clock,
      logger: { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false },
      reactions: [
        noticeReaction({
          tell(tx, { to, subject, body }) {
            tx.run('INSERT INTO told (name, subject, body) VALUES (?, ?, ?)', to, subject, body)
            if (dies) throw new Error('killed')
          },
        }),
      ],
      skipped: fail,
    })
    await this.#reactions.start()
    await this.settle()
  }

  settle = async (): Promise<void> => {
    for (let round = 0; round < 10; round++) await settled()
  }
  stop = async (): Promise<void> => this.#reactions?.stop()

  async closed(id: string, notify?: string): Promise<void> {
    const about = { convoy_id: id, title: `About ${id}`, total: 2, closed: 2 }
    const payload = notify === undefined ? about : { ...about, notify }
    await this.store.db.write((tx) => {
      this.store.log.append(tx, { type: 'convoy.closed', actor: 'test', subject: id, payload })
    })
    await this.settle()
  }

  told(): readonly string[] {
    return this.store.db.all('SELECT name, subject FROM told').map(({ name, subject }) => `${name}: ${subject}`)
  }

  [Symbol.dispose](): void {
    this.store.db.close()
  }
}

test('whom a convoy names is told once for each time it closes', async () => {
  using place = temporaryDirectory()
  using world = new World(place.path)
  await world.closed('al-old', 'mayor')
  await world.react()
  assert.deepEqual(world.told(), [], 'those of before are no news')
  await world.closed('al-a', 'mayor')
  await world.closed('al-b')
  await world.closed('al-a', 'rig/worker')
  assert.deepEqual(world.told(), ['mayor: Convoy closed: About al-a', 'rig/worker: Convoy closed: About al-a'])
  const [first] = world.store.db.all('SELECT body FROM told')
  assert.match(String(first?.['body']), /^The convoy al-a \(About al-a\) is closed: 2 of 2 members are done\./)
  await world.stop()
})

test('a write that does not happen has told nobody, and is done again', async () => {
  using place = temporaryDirectory()
  {
    using world = new World(place.path)
    await world.react(true)
    await world.closed('al-a', 'mayor')
    assert.deepEqual(world.told(), [])
    await world.stop()
  }
  using world = new World(place.path)
  await world.react()
  assert.deepEqual(world.told(), ['mayor: Convoy closed: About al-a'])
  await world.stop()
  await world.react()
  assert.equal(world.told().length, 1, 'and not twice')
  await world.stop()
})

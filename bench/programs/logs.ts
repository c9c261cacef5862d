/** Makes the directories of cities with long logs, through the kernel's own write path. */
import { copyFileSync, existsSync } from 'node:fs'
import { systemClock } from '../../src/kernel/clock.ts'
import { Database } from '../../src/kernel/database.ts'
import { ulid } from '../../src/kernel/ids.ts'
import { CITY_MIGRATIONS, cityDatabasePath, openCityStore } from '../../src/modules/cities/city-store.ts'
import { planScaffold, writeScaffold } from '../../src/modules/cities/scaffold.ts'
import { number, type Options, serveCommands, text } from '../child.ts'

const PER_WRITE = 10_000

const scaffold = (dir: string, name: string) => {
  const input = { name, provider: 'shell', startCommand: undefined, bootstrapProfile: undefined }
  writeScaffold(planScaffold(dir, input, name), [])
}

/** A city's directory with `events` events of 20 types, 50 actors and 5,000 subjects. */
async function make(options: Options) {
  const dir = text(options, 'dir')
  const name = text(options, 'name')
  const events = number(options, 'events')
  scaffold(dir, name)
  const { db, log } = await openCityStore(dir, name, systemClock, CITY_MIGRATIONS)
  while (log.head < events) {
    const from = log.head
    await db.write((tx) => {
      for (let i = from; i < Math.min(events, from + PER_WRITE); i++) {
        log.appendCustom(tx, {
          type: `bench.type-${i % 20}`,
          actor: `agent-${i % 50}`,
          subject: `item-${i % 5_000}`,
          payload: { number: i, title: 'an event of ordinary length', state: i % 3 === 0 ? 'open' : 'done' },
        })
      }
    })
  }
  db.close()
  return { events }
}

/** The same log as another city's. */
async function copy(options: Options) {
  const dir = text(options, 'dir')
  scaffold(dir, text(options, 'name'))
  const from = cityDatabasePath(text(options, 'from'))
  const path = cityDatabasePath(dir)
  copyFileSync(from, path)
  if (existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${path}-wal`)
  const db = Database.open({ path, migrations: CITY_MIGRATIONS, owner: 'the benchmark' })
  await db.write((tx) => tx.run("UPDATE meta SET value = ? WHERE key = 'uid'", ulid(Date.now())))
  db.close()
  return {}
}

serveCommands({ make, copy })

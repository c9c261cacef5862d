// Reminders that real agents get: one on a terminal, one that speaks a protocol. What they were told they write down.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { ACP_AGENT } from '../../../../test/support/acp-run.ts'
import { eventually } from '../../../../test/support/http.ts'
import { SessionCity } from '../../../../test/support/session-city.ts'
import type { RuntimeName } from '../../../contract/sessions/session-model.ts'
import type { Tx } from '../../../kernel/database.ts'
import { mailboxOfSession } from '../../../messaging/address.ts'
import type { DigestReader, DigestSource } from '../../../messaging/digest.ts'
import { wakeUp } from '../http/handlers.ts'

const PROVIDERS = {
  reader: {
    command: '/bin/bash',
    args: ['-c', 'while read -r verb file text; do [ "$verb" = note ] && echo "$text" >> "$file"; done'],
    prompt_mode: 'none',
    delivery: 'line',
  },
  talker: {
    command: process.execPath,
    args: [ACP_AGENT],
    acp_command: process.execPath,
    acp_args: [ACP_AGENT],
    supports_acp: true,
    prompt_mode: 'none',
  },
} as const
const RUNTIMES: readonly RuntimeName[] = ['subprocess', 'acp']

/** Numbers that are to be told, in the store of the city: what was announced outlives a supervisor. */
class Letters implements DigestSource {
  file = ''
  onBegin: () => void = () => {}

  unread(): readonly string[] {
    return []
  }

  begin(tx: Tx, { delivery }: DigestReader, reference: string): string | undefined {
    const numbers = tx.all('SELECT n FROM letters WHERE told = 0 ORDER BY n').map(({ n }) => Number(n))
    if (numbers.length === 0) return undefined
    // A try is over before the next one begins.
    tx.run('INSERT INTO tries (delivery) VALUES (?)', delivery)
    tx.run('UPDATE letters SET delivery = ? WHERE told = 0', delivery)
    tx.afterCommit(() => this.onBegin())
    return `note ${this.file} ${reference} ${delivery} ${numbers.join(' ')}`
  }

  ended(tx: Tx, delivery: string, delivered: boolean): void {
    assert.equal(tx.run('DELETE FROM tries WHERE delivery = ?', delivery), 1, 'it ends once')
    if (delivered) tx.run('UPDATE letters SET told = 1 WHERE delivery = ?', delivery)
  }
}

async function city() {
  const mail = new Letters()
  const stage = new SessionCity({ providers: PROVIDERS, digests: { mail } })
  mail.file = join(stage.path, 'told')
  await stage.store.db.write((tx) => {
    tx.run('CREATE TABLE letters (n INTEGER PRIMARY KEY, told INTEGER NOT NULL DEFAULT 0, delivery TEXT)')
    tx.run('CREATE TABLE tries (delivery TEXT PRIMARY KEY)')
  })
  await stage.start()
  const write = (id: string, n: number, wakes = false) =>
    stage.store.db.write((tx) => {
      tx.run('INSERT INTO letters (n) VALUES (?)', n)
      const wish = { source: 'mail', reference: 'box', wakes } as const
      stage.sessions.digests.wish(tx, { mailbox: mailboxOfSession(id) }, wish)
    })
  const notes = () =>
    existsSync(mail.file)
      ? readFileSync(mail.file, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => {
            const [, delivery = '', ...numbers] = line.split(' ')
            return { delivery, numbers: numbers.map(Number) }
          })
      : []
  const heard = (n: number) =>
    eventually(`${n} is told`, () => (notes().some(({ numbers }) => numbers.includes(n)) ? true : undefined))
  const start = async (runtime: RuntimeName) => {
    const { id } = await stage.create({ template: runtime === 'acp' ? 'talker' : 'reader', runtime })
    await stage.is(id, 'active')
    return id
  }
  return { stage, mail, write, notes, heard, start, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

for (const runtime of RUNTIMES) {
  test(`${runtime}: who runs is told when it is idle, and who sleeps is woken only where that is asked for`, async () => {
    await using place = await city()
    const { stage, write, notes, heard, start } = place
    const id = await start(runtime)
    await write(id, 1)
    await heard(1)
    const rest = (desired: 'asleep' | 'suspended') =>
      stage.store.db.write((tx) => stage.sessions.store.change(tx, id, { desired }, { actor: 'api' }))
    await rest('asleep')
    await stage.is(id, 'asleep')
    await write(id, 2)
    await stage.sessions.actor(id)?.settled()
    assert.equal(stage.record(id).state, 'asleep')
    await write(id, 3, true)
    await heard(3)
    assert.deepEqual(notes().at(-1)?.numbers, [2, 3])
    await rest('suspended')
    await stage.is(id, 'suspended')
    await write(id, 4, true)
    await stage.sessions.actor(id)?.settled()
    assert.equal(stage.record(id).state, 'suspended')
    await stage.store.db.write((tx) =>
      wakeUp(tx, stage.sessions, stage.sessions.store.need(tx, id), 'explicit', { actor: 'api' }),
    )
    await heard(4)
    assert.equal(notes().length, 3)
    const [last] = stage.sessions.deliveries.page(id, undefined, undefined, 1)
    assert.equal(last?.source, 'mail')
    assert.match(last?.text ?? '', /^note .* 4$/)
  })

  test(`${runtime}: a supervisor that ends at any moment of a reminder repeats none, and loses none`, {
    timeout: 60_000,
  }, async () => {
    await using place = await city()
    const { stage, mail, write, notes, heard, start } = place
    const id = await start(runtime)
    for (const [round, delay] of [0, 1, 5, 20, 60].entries()) {
      const begun = new Promise<void>((resolve) => {
        mail.onBegin = resolve
      })
      await write(id, round)
      await begun
      await pause(delay)
      await stage.release()
      await stage.again()
      await stage.is(id, 'active')
      await heard(round)
      await stage.when(id, 'nothing waits', ({ queued }) => queued === 0)
    }
    const told = notes()
    assert.equal(stage.store.db.get('SELECT count(*) AS n FROM tries')?.n, 0)
    assert.equal(new Set(told.map(({ delivery }) => delivery)).size, told.length, 'no delivery is typed twice')
  })
}

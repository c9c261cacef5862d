/** The commands of a city in a real file, with real processes, without a supervisor around them. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { type Database, migrationsOf } from '../../src/kernel/database.ts'
import { randomHex } from '../../src/kernel/ids.ts'
import type { Logger } from '../../src/kernel/log.ts'
import { openStore, STORE_SCHEMA } from '../../src/kernel/store.ts'
import { EXEC_OWNERS, type Exec, type ExecOutcome, type NewExec } from '../../src/modules/execs/ports.ts'
import { Execs, type ExecsDeps } from '../../src/modules/execs/service.ts'
import { EXECS_BY_OWNER, EXECS_SCHEMA, EXECS_WITHOUT_TOKEN } from '../../src/modules/execs/store.ts'
import { createExecRuntime } from '../../src/runtimes/exec/runtime.ts'
import { eventually } from './http.ts'

const silent: Logger = { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false }

export interface ExecCity extends AsyncDisposable {
  readonly db: Database
  readonly path: string
  readonly execs: Execs
  /** What owners were told, in that order. */
  readonly ends: readonly { readonly exec: Exec; readonly outcome: ExecOutcome }[]
  begin(command: string, more?: Partial<NewExec>): Promise<string>
  /** Waits for its end. */
  ended(id: string): Promise<ExecOutcome>
  run(command: string, more?: Partial<NewExec>): Promise<ExecOutcome>
  file(name: string): string
  /** As the end of the supervisor does: what runs goes on. */
  leave(): Promise<void>
}

export const anExec = (command: string, more: Partial<NewExec> = {}): NewExec => ({
  id: `ex-${randomHex(8)}`,
  owner: 'check',
  ref: 'r1',
  command,
  cwd: '',
  timeout_ms: 20_000,
  about: { file_dir: '/' },
  vars: {},
  env: {},
  inherit_env: [],
  stdin: null,
  idempotent: false,
  ...more,
})

/** `path`: its directory, which is there. */
export async function openExecCity(path: string, more: Partial<ExecsDeps> = {}): Promise<ExecCity> {
  const clock = more.clock ?? systemClock
  mkdirSync(join(path, '.svc'), { recursive: true })
  const { db } = openStore({
    path: join(path, '.svc', 'city.db'),
    migrations: [
      ...migrationsOf('store', STORE_SCHEMA),
      ...migrationsOf('execs', EXECS_SCHEMA, EXECS_WITHOUT_TOKEN, EXECS_BY_OWNER),
    ],
    owner: 'a test',
    clock,
  })
  const env = more.env ?? process.env
  const deps: ExecsDeps = {
    db,
    clock,
    log: silent,
    env,
    home: join(path, 'home'),
    homeHasToken: false,
    city: { name: 'alpha', path },
    bin: '/opt/svc',
    runtime: await createExecRuntime({ clock, env, directory: join(path, '.svc', 'runtime', 'exec') }),
    ended: () => {},
    untrustedPack: () => undefined,
    ...more,
  }
  const execs = new Execs(deps)
  const ends: { exec: Exec; outcome: ExecOutcome }[] = []
  for (const owner of EXEC_OWNERS)
    execs.own(owner, { ended: (tx, exec, outcome) => tx.afterCommit(() => ends.push({ exec, outcome })) })
  const begin = async (command: string, over: Partial<NewExec> = {}) => {
    const exec = anExec(command, over)
    await db.write((tx) => execs.begin(tx, exec))
    return exec.id
  }
  const ended = (id: string) =>
    eventually(`the end of ${id}`, async () => ends.find(({ exec }) => exec.id === id)?.outcome)
  return {
    db,
    path,
    execs,
    ends,
    begin,
    ended,
    run: async (command, over) => ended(await begin(command, over)),
    file: (name) => {
      const file = join(path, name)
      return existsSync(file) ? readFileSync(file, 'utf8') : ''
    },
    leave: async () => {
      await execs.stop({ preserve: true, force: false })
      db.close()
    },
    [Symbol.asyncDispose]: async () => {
      if (db.closed) return
      await execs.stop({ preserve: false, force: true })
      db.close()
    },
  }
}

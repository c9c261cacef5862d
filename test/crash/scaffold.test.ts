import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import BetterSqlite3 from 'better-sqlite3'
import { noteOf, planScaffold } from '../../src/modules/cities/scaffold.ts'
import { Api, assertProblem } from '../support/http.ts'
import { startSupervisor } from '../support/supervisor.ts'

const FILES = { 'city.toml': '[workspace]\nprovider = "codex"\n', '.gitignore': '.svc/\n' }

test('a city made by hand stays, where a creation had been interrupted before its first file', async () => {
  let supervisor = await startSupervisor()
  try {
    const { home, work } = supervisor
    const dir = join(work, 'alpha')
    await supervisor.kill('SIGTERM')
    const input = { name: 'alpha', provider: 'shell', startCommand: undefined, bootstrapProfile: undefined }
    journal(home, dir, JSON.stringify(noteOf(planScaffold(dir, input, 'interrupted'))))
    mkdirSync(dir)
    for (const [path, text] of Object.entries(FILES)) writeFileSync(join(dir, path), text)
    const remains = () => {
      for (const [path, text] of Object.entries(FILES)) assert.equal(readFileSync(join(dir, path), 'utf8'), text)
    }
    supervisor = await startSupervisor({ home })
    remains()
    await supervisor.kill('SIGTERM')
    journal(home, dir, JSON.stringify([dir, join(dir, 'city.toml'), join(dir, '.gitignore')]))
    supervisor = await startSupervisor({ home })
    remains()
    assertProblem(await new Api(supervisor.url).post('/v0/city', { dir }), 'city-already-initialized')
    remains()
  } finally {
    await supervisor[Symbol.asyncDispose]()
  }
})

/** What a crash right after the journal was written has left. */
function journal(home: string, dir: string, made: string): void {
  const database = new BetterSqlite3(join(home, 'supervisor.db'))
  database.prepare('INSERT OR REPLACE INTO scaffolds (path, made) VALUES (?, ?)').run(dir, made)
  database.close()
}

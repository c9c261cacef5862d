/** A running city whose sessions work in git worktrees: of a rig `app`, a real repository. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Worktree } from '../../src/contract/worktrees.ts'
import { getWorktree, listWorktrees } from '../../src/contract/worktrees.ts'
import { git, makeRepository } from './git-repository.ts'
import { eventually } from './http.ts'
import type { Running } from './running.ts'
import { newSessionCity, type SessionApi } from './session-api.ts'

export class WorktreeCity {
  readonly city: SessionApi
  /** The repository of the rig. */
  readonly rig: string

  private constructor(city: SessionApi, rig: string) {
    this.city = city
    this.rig = rig
  }

  /** `more`: lines of `city.toml`. */
  static async start(running: Running, more = '', name = 'alpha'): Promise<WorktreeCity> {
    const city = await newSessionCity(running, name)
    const rig = join(city.dir, 'app')
    makeRepository(rig)
    const rigs = '[[rigs]]\nname = "app"\npath = "app"\n'
    const agents = ['coder', 'helper'].map((agent) => AGENT.replace('NAME', agent)).join('')
    await city.configure(`${more}${rigs}${agents}`)
    return new WorktreeCity(city, rig)
  }

  readonly git = (...args: readonly string[]): string => git(this.rig, ...args).trimEnd()
  inside = (worktree: Worktree, ...args: readonly string[]): string => git(worktree.path, ...args).trimEnd()

  /** A session of `coder`, which is isolated. */
  create = (alias?: string, more = {}): Promise<string> =>
    this.city.start({ kind: 'agent', name: 'app/coder', ...(alias === undefined ? {} : { alias }), ...more })

  all = async (): Promise<readonly Worktree[]> =>
    (await this.city.api.ask(listWorktrees, `${this.city.base}/worktrees`)).items

  get = (name: string): Promise<Worktree> =>
    this.city.api.ask(getWorktree, `${this.city.base}/worktrees/${name}?fresh=true`)

  async of(session: string): Promise<Worktree> {
    const found = (await this.all()).find(({ session_id: id }) => id === session)
    assert.ok(found, `session ${session} has a worktree`)
    return this.get(found.name)
  }

  close = (session: string): Promise<unknown> => this.city.done('POST', `/sessions/${session}/close`)

  kept = (name: string): Promise<Worktree> =>
    eventually(`${name} is kept`, async () => {
      const found = await this.get(name)
      return found.state === 'kept' ? found : undefined
    })

  gone = (worktree: Worktree): Promise<true> =>
    eventually(`${worktree.name} is gone`, async () => {
      const rows = await this.all()
      if (rows.some(({ name }) => name === worktree.name)) return undefined
      assert.ok(!existsSync(worktree.path), `${worktree.path} is still there`)
      return true
    })

  branches = (): readonly string[] => this.git('for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')
}

const AGENT = `[[agent]]
name = "NAME"
dir = "app"
provider = "bash"
isolation = "worktree"
`

/** A city whose files scenarios of one family change, one scenario at a time; it is as it was before each of them. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { at } from '../../support/document.ts'
import type { Answer, Api, CallOptions } from '../../support/http.ts'
import { newCity, outcome } from '../../support/running.ts'
import { assertAnswer, type Scenario, scenario, type World } from './scenario.ts'

export const STALE = { 'if-match': '"0123"' } as const
const BASE = `[workspace]
provider = "shell"
[providers.shell]
base = "builtin:shell"
`

export class EditedCity {
  readonly base: string
  readonly api: Api
  readonly world: World
  readonly #dir: string

  constructor(world: World, name: string, dir: string) {
    this.world = world
    this.api = world.main.api
    this.base = `/v0/city/${name}`
    this.#dir = dir
  }

  send(method: string, path: string, body?: unknown, headers: CallOptions['headers'] = {}): Promise<Answer> {
    return this.api.call(method, `${this.base}${path}`, { headers, ...(body === undefined ? {} : { body }) })
  }

  /** Makes `city.toml` hold the usual provider and `more`, and other files what is given; loads them. */
  async say(more: string, files: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const [path, text] of Object.entries({ 'city.toml': BASE + more, ...files })) {
      mkdirSync(dirname(join(this.#dir, path)), { recursive: true })
      writeFileSync(join(this.#dir, path), text)
    }
    const reload = await this.send('POST', '/config/reload')
    await outcome(this.api, String(at(reload.body, 'request_id')))
  }

  /** As somebody who saves half a file. */
  spoil = (): void =>
    writeFileSync(join(this.#dir, 'city.toml'), `${readFileSync(join(this.#dir, 'city.toml'), 'utf8')}\nnonsense`)
  write = (path: string, bytes: Buffer): void => writeFileSync(join(this.#dir, path), bytes)
  read = (path: string): string => readFileSync(join(this.#dir, path), 'utf8')
  remove = (path: string): void => rmSync(join(this.#dir, path), { recursive: true, force: true })
}

/** Makes scenarios that share one city, which says `start` before each. */
export function onEditedCity(family: string, start: string) {
  let city: Promise<EditedCity> | undefined
  let turn: Promise<unknown> = Promise.resolve()
  const open = async (world: World): Promise<EditedCity> => {
    const name = world.unique(family)
    return new EditedCity(world, name, await newCity(world.main.api, world.main.work, name))
  }
  return (
    operation: Scenario['operation'],
    answer: Scenario['answer'],
    run: (city: EditedCity) => Promise<Answer>,
    look: (answer: Answer) => void = () => {},
  ): Scenario =>
    scenario(operation, answer, (world) => {
      const mine = turn.then(async () => {
        city ??= open(world)
        const opened = await city
        await opened.say(start)
        const got = await run(opened)
        assertAnswer(got, answer)
        look(got)
        return got
      })
      turn = mine.catch(() => {})
      return mine
    })
}

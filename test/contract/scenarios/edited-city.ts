/** A city whose files scenarios of one family change, one scenario at a time; it is as it was before each of them. */
import { City } from '../../support/city.ts'
import type { Answer } from '../../support/http.ts'
import { newCity, outcome } from '../../support/running.ts'
import { assertAnswer, type Scenario, scenario, type World } from './scenario.ts'

export const STALE = { 'if-match': '"0123"' } as const
const BASE = `[workspace]
provider = "shell"
[providers.shell]
base = "builtin:shell"
`

export class EditedCity extends City {
  readonly world: World

  constructor(world: World, name: string, dir: string) {
    super(world.main.api, name, dir)
    this.world = world
  }

  /** Makes `city.toml` hold the usual provider and `more`, and other files what is given; loads them. */
  async say(more: string, files: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const [path, text] of Object.entries({ 'city.toml': BASE + more, ...files })) this.write(path, text)
    await outcome(this.api, String((await this.done('POST', '/config/reload')).request_id))
  }

  /** As somebody who saves half a file. */
  spoil = (): void => this.write('city.toml', `${this.read('city.toml')}\nnonsense`)
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

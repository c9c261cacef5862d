/** One question to many cities, of which some may not answer. */
import type { CityInfo } from '../../contract/cities.ts'
import type { Context } from '../base/context.ts'
import { isCityGone } from '../base/discovery.ts'
import { EXIT, printable, toFailure } from '../base/failure.ts'

/** A server is not asked about more cities at a time. */
const AT_A_TIME = 16

export interface CityAnswers<T> {
  readonly answers: readonly T[]
  /** That of the first city that could not be asked. */
  readonly exitCode: number
}

/** Asks about every city, in the order given; one that cannot be asked is warned of, and is missing in the answer. */
export async function askEach<T>(
  context: Context,
  cities: readonly CityInfo[],
  ask: (city: CityInfo) => Promise<T>,
): Promise<CityAnswers<T>> {
  const answers: T[] = []
  let exitCode: number = EXIT.ok
  for (let at = 0; at < cities.length; at += AT_A_TIME) {
    const some = cities.slice(at, at + AT_A_TIME)
    const settled = await Promise.allSettled(some.map(ask))
    for (const [index, result] of settled.entries()) {
      if (result.status === 'fulfilled') answers.push(result.value)
      // It may have stopped since it was listed.
      else if (!isCityGone(result.reason)) {
        const failure = toFailure(result.reason)
        exitCode = exitCode === EXIT.ok ? failure.exitCode : exitCode
        await context.io.stderr.write(printable(`warning: ${some[index]?.name ?? ''}: ${failure.message}\n`))
      }
    }
  }
  return { answers, exitCode }
}

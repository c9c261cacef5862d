/** One way to get one answer out of one operation, from outside where that is possible. */

import assert from 'node:assert/strict'
import type { Operation } from '../../../src/contract/base/operation.ts'
import type { ProblemCode } from '../../../src/contract/base/problems.ts'
import type { OperationId } from '../../../src/contract/index.ts'
import { type Answer, assertProblem } from '../../support/http.ts'
import type { Running, runHere } from '../../support/running.ts'

type InProcess = Awaited<ReturnType<typeof runHere>>

/** The servers that scenarios share. */
export interface World {
  /** Default settings; the city `alpha` is running. */
  readonly main: Running
  /** `--auth`. */
  readonly closed: Running
  /** `allow_mutations = false`. */
  readonly readOnly: Running
  /** No city at all, and a shell that does not exist. */
  readonly empty: Running
  /** A retention that keeps almost nothing; the city `alpha` is running. */
  readonly forgetful: Running
  /** In this process: no initializer. */
  readonly unwired: InProcess
  /** In this process: a host without git. */
  readonly gitless: InProcess
  /** In this process: a clock that breaks every handler that looks at it. */
  readonly broken: InProcess
  /** In this process: every connection is of another user. */
  readonly foreign: InProcess
  /** A name that no other scenario has. */
  unique(prefix?: string): string
}

export interface Scenario {
  readonly operation: OperationId
  /** A success status, or the code of a problem. */
  readonly answer: number | ProblemCode
  readonly run: (world: World) => Promise<Answer>
}

export const scenario = (operation: OperationId, answer: number | ProblemCode, run: Scenario['run']): Scenario => ({
  operation,
  answer,
  run,
})

export function assertAnswer(got: Answer, answer: Scenario['answer']): void {
  if (typeof answer === 'number') assert.equal(got.status, answer, got.text)
  else assertProblem(got, answer)
}

/** Scenarios on a stage that is set for each of them; their answer is the one that they are about. */
export const scenariosOn =
  <Stage>(stageOf: (world: World) => Stage | Promise<Stage>) =>
  (
    operation: Scenario['operation'],
    answer: Scenario['answer'],
    run: (stage: Stage) => Promise<Answer>,
    look: (answer: Answer) => void = () => {},
  ): Scenario =>
    scenario(operation, answer, async (world) => {
      const got = await run(await stageOf(world))
      assertAnswer(got, answer)
      look(got)
      return got
    })

const PARAMETERS: Readonly<Record<string, string>> = {
  cityName: 'alpha',
  request_id: 'req-0123456789abcdef01234567',
  asset: 'start.js',
}

/** A path of the operation, in the city `alpha`. */
export const pathOf = ({ path, params }: Operation): string =>
  path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => PARAMETERS[name] ?? encodeURIComponent(exampleOf(params?.properties[name]) ?? name),
  )

function exampleOf(schema: object | undefined): string | undefined {
  const values: unknown =
    schema === undefined ? undefined : (Reflect.get(schema, 'enum') ?? Reflect.get(schema, 'examples'))
  return Array.isArray(values) ? String(values[0]) : undefined
}

/**
 * A family: a group of operations with everything that it brings to the service, in one record. `modules/<family>/family.ts`
 * defines it, `supervisor/families.ts` joins it to its surroundings; what it needs of them it states as types.
 *
 * F1  A family is opened in every city that starts, before anything that it or another family runs there.
 * F2  In a city that stops, what families run ends first (`stop`), then their reactions and jobs, then what they hold
 *     (`close`); each in the opposite order of the list.
 */

import type { Operation } from '../contract/base/operation.ts'
import type { ErrorDetail } from '../contract/base/problems.ts'
import { CITY_PHASES, type CityPhase } from '../contract/cities.ts'
import type { Handlers, Traits } from './call.ts'
import type { Migrations } from './database.ts'
import type { Job } from './jobs.ts'
import type { NeedSource } from './needs.ts'
import { cityNotRunning } from './problem.ts'
import type { Reaction } from './reactions.ts'
import type { Sweep } from './retention.ts'

/** Why a city does not start, in the words of its request. */
export class StartFailure extends Error {
  readonly code: string
  readonly issues: readonly ErrorDetail[] | undefined

  constructor(code: string, message: string, issues?: readonly ErrorDetail[]) {
    super(message)
    this.name = 'StartFailure'
    this.code = code
    this.issues = issues
  }
}

/** How a city ends that runs, or was to. */
export interface Stopping {
  /** Without grace. */
  readonly force: boolean
  /** Agents run on: the supervisor ends, or the city is to be tried again. */
  readonly preserve: boolean
  /** Told how many agents were ended. */
  readonly ended: (agents: number) => void
}

export interface FamilyParts<Operations extends readonly Operation[], Host, Context, City> {
  readonly operations: Operations
  /** Its tables in the store of each city. */
  readonly schema?: Migrations
  /** Its tables in the store of the supervisor. */
  readonly supervisorSchema?: Migrations
  /** Made once, with what the supervisor gives. */
  readonly handlers: (host: Host) => Handlers<Operations, City>
  /** How some of its operations are served. */
  readonly traits?: { readonly [Id in Operations[number]['id']]?: Traits }
  /** What the family is in one running city, with its timers: what `call.city` is for its handlers. */
  readonly open?: (context: Context, signal: AbortSignal) => City | Promise<City>
  /** When it is opened; `starting_bead_store` where absent. */
  readonly opensIn?: CityPhase
  /** What it does in a later phase of the start. */
  readonly phases?: { readonly [P in CityPhase]?: (city: City, signal: AbortSignal) => void | Promise<void> }
  /** The work behind its 202s. */
  readonly jobs?: (city: City) => readonly Job[]
  /** What it does about events in the log of the city. */
  readonly reactions?: (city: City) => readonly Reaction[]
  /** What of it may need a person. */
  readonly needs?: (city: City) => readonly NeedSource[]
  /** What of it is kept for a while only. */
  readonly retention?: (city: City) => readonly Sweep[]
  /** Ends what it runs; everything that it relies on is still there. */
  readonly stop?: (city: City, how: Stopping) => void | Promise<void>
  /** Gives up what it holds. */
  readonly close?: (city: City) => void | Promise<void>
}

interface Named {
  readonly name: string
}

export class Family<Operations extends readonly Operation[], Host, Context, City> {
  readonly parts: FamilyParts<Operations, Host, Context, City>
  readonly #open = new WeakMap<object, City>()

  constructor(parts: FamilyParts<Operations, Host, Context, City>) {
    this.parts = parts
  }

  /** What it is in this run of a city. */
  of(run: Named): City {
    const found = this.#open.get(run)
    if (found === undefined) throw cityNotRunning(run.name)
    return found
  }

  /** The same; undefined before it is opened there, and afterwards. */
  find(run: Named): City | undefined {
    return this.#open.get(run)
  }

  async open(run: Named, context: Context, signal: AbortSignal): Promise<void> {
    const opened = await this.parts.open?.(context, signal)
    if (opened !== undefined) this.#open.set(run, opened)
  }

  async close(run: Named): Promise<void> {
    const opened = this.#open.get(run)
    if (opened === undefined) return
    this.#open.delete(run)
    await this.parts.close?.(opened)
  }
}

export const defineFamily = <const Operations extends readonly Operation[], Host, Context, City>(
  parts: FamilyParts<Operations, Host, Context, City>,
): Family<Operations, Host, Context, City> => new Family(parts)

/** A family in its surroundings: a supervisor that is a `Host`, and cities each run of which is a `Run`. */
export interface Joined<Host, Run extends Named> {
  readonly operations: readonly Operation[]
  readonly schema: Migrations
  readonly supervisorSchema: Migrations
  handlers(host: Host): Readonly<Record<string, unknown>>
  readonly traits: Readonly<Record<string, Traits | undefined>>
  /** What `call.city` is in this run of a city. */
  seen(run: Run): unknown
  readonly opensIn: CityPhase | undefined
  open(run: Run, signal: AbortSignal): Promise<void>
  readonly phases: readonly CityPhase[]
  enter(run: Run, phase: CityPhase, signal: AbortSignal): void | Promise<void>
  jobs(run: Run): readonly Job[]
  reactions(run: Run): readonly Reaction[]
  needs(run: Run): readonly NeedSource[]
  retention(run: Run): readonly Sweep[]
  stop(run: Run, how: Stopping): void | Promise<void>
  close(run: Run): Promise<void>
}

/** Gives a family what it needs: `ofHost` of the supervisor, `ofRun` of each city. */
export function join<Host, Run extends Named, Operations extends readonly Operation[], Needs, Context, City>(
  family: Family<Operations, Needs, Context, City>,
  ofHost: (host: Host) => Needs,
  ofRun: (run: Run) => Context | Promise<Context>,
): Joined<Host, Run> {
  const { parts } = family
  /** A city that never came so far has nothing of this family. */
  const where = <T>(run: Run, work: (city: City) => T): T | undefined => {
    const city = family.find(run)
    return city === undefined ? undefined : work(city)
  }
  return {
    operations: parts.operations,
    schema: parts.schema ?? [],
    supervisorSchema: parts.supervisorSchema ?? [],
    handlers: (host) => parts.handlers(ofHost(host)),
    traits: parts.traits ?? {},
    seen: (run) => family.of(run),
    opensIn: parts.open === undefined ? undefined : (parts.opensIn ?? 'starting_bead_store'),
    open: async (run, signal) => family.open(run, await ofRun(run), signal),
    phases: CITY_PHASES.filter((phase) => parts.phases?.[phase] !== undefined),
    enter: (run, phase, signal) => where(run, (city) => parts.phases?.[phase]?.(city, signal)),
    jobs: (run) => where(run, (city) => parts.jobs?.(city)) ?? [],
    needs: (run) => where(run, (city) => parts.needs?.(city)) ?? [],
    reactions: (run) => where(run, (city) => parts.reactions?.(city)) ?? [],
    retention: (run) => where(run, (city) => parts.retention?.(city)) ?? [],
    stop: (run, how) => where(run, (city) => parts.stop?.(city, how)),
    close: (run) => family.close(run),
  }
}

/** A city that does not run, opened as far as it takes to mend its files and packs: no agents, orders or services. */
import type { Joined } from '../kernel/family.ts'
import { Jobs } from '../kernel/jobs.ts'
import type { NeedSource } from '../kernel/needs.ts'
import { cityNotRunning } from '../kernel/problem.ts'
import type { LogStream } from '../kernel/streams/log-stream.ts'
import type { City } from '../modules/cities/city.ts'
import type { CityStore } from '../modules/cities/city-store.ts'
import type { Mendable } from '../modules/cities/mending.ts'
import { config } from '../modules/config/family.ts'
import type { Host, Running } from './views/running.ts'

type MendingFamily = Omit<Joined<never, Running>, 'handlers'>

export class MendedCity implements Running, Mendable {
  readonly name: string
  readonly path: string
  readonly record: City
  readonly host: Host
  readonly isMended = true
  readonly #families: readonly MendingFamily[]
  #jobs: Jobs | undefined
  /** The configuration that was valid when the city was opened; undefined where none was. */
  #validBefore: string | undefined

  private constructor(record: City, host: Host, families: readonly MendingFamily[]) {
    this.name = record.name
    this.path = record.path
    this.record = record
    this.host = host
    // Those whose operations work on a city that does not run, as the contract says.
    this.#families = families.filter(({ operations }) => operations.some(({ city }) => city === 'mendable'))
  }

  static async open(record: City, host: Host, families: readonly MendingFamily[]): Promise<MendedCity> {
    const opened = new MendedCity(record, host, families)
    try {
      await opened.#begin()
      return opened
    } catch (error) {
      await opened.#closeFamilies()
      throw error
    }
  }

  get store(): CityStore {
    const { store } = this.record
    if (store === undefined) throw cityNotRunning(this.name)
    return store
  }

  get stream(): LogStream {
    const { stream } = this.record
    if (stream === undefined) throw cityNotRunning(this.name)
    return stream
  }

  readonly launch: Jobs['launch'] = (input) => this.#accepting.launch(input)
  readonly launchAnswering: Jobs['launchAnswering'] = (input) => this.#accepting.launchAnswering(input)

  needs(): readonly NeedSource[] {
    return []
  }

  /** The list shows why the city does not run, and not what is read of it meanwhile. */
  observe(): void {}

  async idle(): Promise<void> {
    await this.#jobs?.idle()
  }

  async cut(comesBack: boolean): Promise<void> {
    if (comesBack) await this.#jobs?.close()
    else await this.#jobs?.stop('city_stopped', 'the city stopped before the request was done')
  }

  async close(): Promise<boolean> {
    const { config: service } = config.of(this)
    const valid = service.validRevision()
    await this.#closeFamilies()
    return valid !== undefined && valid !== this.#validBefore
  }

  get #accepting(): Jobs {
    if (this.#jobs === undefined) throw cityNotRunning(this.name)
    return this.#jobs
  }

  async #begin(): Promise<void> {
    const { clock, log, ids } = this.host
    const { signal } = new AbortController()
    for (const family of this.#families) await family.open(this, signal)
    const { config: service } = config.of(this)
    this.#validBefore = service.lastError === undefined ? service.revision : undefined
    const jobs = this.#families.flatMap((family) => family.jobs(this))
    this.#jobs = new Jobs({ city: this.name, ids, store: this.store, clock, log, jobs, leavesOthers: true })
    await this.#jobs.resume()
  }

  async #closeFamilies(): Promise<void> {
    for (const family of [...this.#families].reverse()) await family.close(this)
  }
}

/** A city with services, for tests: what it declares, how they are, and what runs of them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ServiceStatus } from '../../src/contract/services.ts'
import { getService } from '../../src/contract/services.ts'
import { variableOf } from '../../src/runtimes/process/process-tree.ts'
import { City } from './city.ts'
import { eventually } from './http.ts'
import { newCity, outcome, type Running } from './running.ts'

const PROGRAM = resolve(import.meta.dirname, 'counted-service.ts')

const BASE = `[workspace]
provider = "shell"
[providers.shell]
base = "builtin:shell"
`

export interface Declared {
  readonly name?: string
  readonly listen?: 'socket' | 'port'
  readonly direct?: boolean
  readonly health?: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly command?: readonly string[]
  /** Lines of the service's own table. */
  readonly more?: string
}

/** A `[[service]]`: the counted one where no command is given. */
export function declaration(declared: Declared = {}): string {
  const { name = 'page', listen = 'socket', direct = false, health = true, env = {}, more = '' } = declared
  const command = declared.command ?? [process.execPath, '--disable-warning=ExperimentalWarning', PROGRAM]
  return [
    '[[service]]',
    `name = "${name}"`,
    ...(direct ? ['publish_mode = "direct"'] : []),
    more,
    '[service.process]',
    `command = ${JSON.stringify(command)}`,
    `listen = "${listen}"`,
    ...(health ? ['health_path = "/health"'] : []),
    `env = { ${Object.entries(env)
      .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
      .join(', ')} }`,
    '',
  ].join('\n')
}

export class ServiceCity extends City {
  /** Declares these, and no others. */
  async declare(...services: readonly string[]): Promise<void> {
    this.save(...services)
    await outcome(this.api, String((await this.done('POST', '/config/reload')).request_id))
  }

  /** The same in the file alone. */
  save(...services: readonly string[]): void {
    this.write('city.toml', [BASE, ...services].join('\n'))
  }

  get(name = 'page'): Promise<ServiceStatus> {
    return this.api.ask(getService, `${this.base}/services/${name}`)
  }

  /** Its status, once it is so. */
  is(state: ServiceStatus['state'], name = 'page'): Promise<ServiceStatus> {
    return eventually(`${name} is ${state}`, async () => {
      const status = await this.get(name)
      return status.state === state ? status : undefined
    })
  }

  stateFile = (file: string, name = 'page'): string => join(this.dir, '.svc', 'services', name, 'data', file)

  /** Pids of its lives so far. */
  lives(name = 'page'): readonly number[] {
    const file = this.stateFile('lives', name)
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : []
  }

  /** What was seen of two lives at once. */
  doubled(name = 'page'): string {
    const file = this.stateFile('doubled', name)
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  }

  /** All processes of a service: its own, and those that it has begun. */
  processes(name = 'page'): readonly number[] {
    return pids().filter(
      (pid) => variableOf(pid, 'SVC_SERVICE_NAME') === name && variableOf(pid, 'SVC_CITY_PATH') === this.dir,
    )
  }

  /** Hosts of its starts. */
  hosts(name = 'page'): readonly number[] {
    const runs = join(this.dir, '.svc', 'runtime', 'services', name, '/')
    return pids().filter((pid) => commandLine(pid).some((argument) => argument.startsWith(runs)))
  }

  /** Nothing of it runs. */
  none(name = 'page'): Promise<true> {
    return eventually(`nothing of ${name} runs`, () =>
      this.processes(name).length + this.hosts(name).length === 0 ? (true as const) : undefined,
    )
  }
}

export async function newServiceCity({ api, work }: Running, name: string, ...services: readonly string[]) {
  const city = new ServiceCity(api, name, await newCity(api, work, name))
  await city.declare(...services)
  return city
}

const pids = (): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

function commandLine(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

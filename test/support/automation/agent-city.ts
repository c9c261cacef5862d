/** A running city with formulas, whose agents are shells that do what the description of a bead says (`shell-agent.sh`). */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  getMolecule,
  getMoleculeStep,
  listMoleculeSteps,
  type Molecule,
  type MoleculeStartRequest,
  type MoleculeStep,
  type MoleculeStepView,
  startMolecule,
} from '../../../src/contract/automation/molecules.ts'
import type { Bead } from '../../../src/contract/beads.ts'
import { getBead } from '../../../src/contract/beads.ts'
import { type CliResult, cli } from '../cli.ts'
import { eventually } from '../http.ts'
import type { Running } from '../running.ts'
import { newSessionCity, type SessionApi } from '../session-api.ts'

const AGENT = resolve(import.meta.dirname, 'shell-agent.sh')
/** Every claim and close of an agent is a process, and a test may wait for dozens on a busy machine. */
const PATIENCE_MS = 90_000

const PROVIDER = `[providers.robot]
command = "/bin/sh"
args = [${JSON.stringify(AGENT)}]
prompt_mode = "omit"
[providers.robot.env]
HABITS = "habits.sh"
`
const agentToml = (name: string, count: number): string => `
[[agent]]
name = "${name}"
provider = "robot"
min_active_sessions = ${count}
max_active_sessions = ${count}
`

export interface AgentCityOptions {
  /** How many sessions each agent has. */
  readonly agents?: Readonly<Record<string, number>>
  /** Lines of `city.toml`. */
  readonly more?: string
  /** Texts of formulas, by name. */
  readonly formulas?: Readonly<Record<string, string>>
  /** Other files, by path. */
  readonly files?: Readonly<Record<string, string>>
}

export class AgentCity {
  readonly api: SessionApi
  readonly running: Running

  private constructor(api: SessionApi, running: Running) {
    this.api = api
    this.running = running
  }

  static async start(
    running: Running,
    name: string,
    { agents = { robot: 1 }, more = '', formulas = {}, files = {} }: AgentCityOptions = {},
  ): Promise<AgentCity> {
    const city = new AgentCity(await newSessionCity(running, name), running)
    const all = Object.entries(agents).map(([agent, count]) => agentToml(agent, count))
    const texts = Object.entries(formulas).map(([formula, text]) => [
      `formulas/${formula}.toml`,
      `formula = "${formula}"\n${text}`,
    ])
    await city.api.configure(`${PROVIDER}${more}${all.join('')}`, { ...files, ...Object.fromEntries(texts) })
    return city
  }

  path = (name: string): string => join(this.api.dir, name)
  has = (name: string): boolean => existsSync(this.path(name))
  lines = (name: string): readonly string[] => readFileSync(this.path(name), 'utf8').trimEnd().split('\n')

  /** The command line, as a person in the directory of the city has it. */
  svcctl = (...args: readonly string[]): Promise<CliResult> =>
    cli(args, { cwd: this.api.dir, env: { SVC_HOME: this.running.server.home } })

  /** The same, where it must succeed; what it printed. */
  async does(...args: readonly string[]): Promise<string> {
    const { out, err, code } = await this.svcctl(...args)
    assert.equal(code, 0, `svcctl ${args.join(' ')}: ${err}`)
    return out
  }

  // --- Beads ---------------------------------------------------------------------------------------------------------

  bead = (id: string): Promise<Bead> => this.api.api.ask(getBead, `${this.api.base}/beads/${id}`)

  async create(title: string, more: object = {}): Promise<string> {
    return String((await this.api.done('POST', '/beads', { title, ...more })).id)
  }

  /** Work for an agent; answers with its id. */
  async route(title: string, description: string, target = 'robot'): Promise<string> {
    const id = await this.create(title, { description })
    await this.api.done('POST', `/beads/${id}/route`, { target })
    return id
  }

  closed = (id: string): Promise<Bead> =>
    this.#when(
      `${id} is closed`,
      () => this.bead(id),
      (bead) => bead.status === 'closed',
    )

  // --- Molecules -----------------------------------------------------------------------------------------------------

  launch(formula: string, more: Omit<MoleculeStartRequest, 'formula'> = {}): Promise<Molecule> {
    const body = { formula, target: 'robot', ...more }
    return this.api.api.ask(startMolecule, `${this.api.base}/molecules`, { body }).then((started) => {
      assert.ok('id' in started, 'it was started')
      return started
    })
  }

  molecule = (id: string): Promise<Molecule> => this.api.api.ask(getMolecule, `${this.api.base}/molecules/${id}`)

  async steps(id: string, query = ''): Promise<readonly MoleculeStep[]> {
    const path = `${this.api.base}/molecules/${id}/steps?limit=1000${query}`
    return (await this.api.api.ask(listMoleculeSteps, path)).items
  }

  step = (id: string, path: string): Promise<MoleculeStepView> =>
    this.api.api.ask(getMoleculeStep, `${this.api.base}/molecules/${id}/steps/${path}`)

  /** How each step stands, by its path. */
  async statuses(id: string): Promise<Readonly<Record<string, string>>> {
    return Object.fromEntries((await this.steps(id)).map((step) => [step.id, step.status]))
  }

  /** Waits until it has ended so. */
  async ends(id: string, status: Molecule['status'] = 'completed'): Promise<Molecule> {
    const molecule = await this.#when(
      `${id} has ended`,
      () => this.molecule(id),
      ({ closed_at: at }) => at !== undefined,
    )
    const said = JSON.stringify({ molecule, steps: await this.steps(id) }, undefined, 1)
    assert.equal(molecule.status, status, said)
    return molecule
  }

  /** Starts it and waits until it has ended well, or otherwise. */
  async run(formula: string, more: Omit<MoleculeStartRequest, 'formula'> = {}, status?: Molecule['status']) {
    return this.ends((await this.launch(formula, more)).id, status)
  }

  stepIs = (id: string, path: string, status: MoleculeStep['status']): Promise<MoleculeStepView> =>
    this.#when(
      `${path} is ${status}`,
      () => this.step(id, path),
      (step) => step.status === status,
    )

  /** Waits until a person is asked about that attempt; the bead that waits for the answer. */
  async asked(id: string, path: string, attempt = 1): Promise<string> {
    const asks = (step: MoleculeStep | undefined) =>
      step?.status === 'waiting' && step.attempt === attempt && questionOf(step) !== undefined
    // Items are there once what repeats has begun.
    const look = async () => (await this.steps(id)).find((step) => step.id === path)
    const step = await this.#when(`${path} asks`, look, asks)
    return (step === undefined ? undefined : questionOf(step)) ?? assert.fail('it asks')
  }

  async #when<T>(what: string, look: () => Promise<T>, holds: (found: T) => boolean): Promise<T> {
    let last: T | undefined
    try {
      return await eventually(
        what,
        async () => {
          last = await look()
          return holds(last) ? last : undefined
        },
        PATIENCE_MS,
      )
    } catch (error) {
      return assert.fail(`${String(error)}: ${JSON.stringify(last, undefined, 1)}`)
    }
  }
}

/** The bead of a gate, or of the question behind the work. */
const questionOf = ({ kind, check, bead_id: bead }: MoleculeStep): string | undefined =>
  kind === 'gate' ? bead : check?.bead_id

/** Molecules of a running city for tests, moved by hand: who works on a step closes its bead over HTTP. */
import assert from 'node:assert/strict'
import {
  getMolecule,
  getMoleculeStep,
  listMoleculeSteps,
  type Molecule,
  type MoleculeStepView,
  startMolecule,
} from '../../src/contract/automation/molecules.ts'
import type { MoleculeStatus } from '../../src/contract/automation/words.ts'
import { type Bead, getBead } from '../../src/contract/beads.ts'
import { type ConfigCity, createCity } from './config-city.ts'
import { at } from './document.ts'
import { putFormula } from './document-city.ts'
import { type Answer, eventually } from './http.ts'
import type { RunningSupervisor } from './supervisor.ts'

export class MoleculeCity {
  readonly city: ConfigCity

  constructor(city: ConfigCity) {
    this.city = city
  }

  /** A city with these formulas; their names are those of the files. */
  static async start(
    supervisor: RunningSupervisor,
    name: string,
    formulas: Readonly<Record<string, string>> = {},
  ): Promise<MoleculeCity> {
    const city = new MoleculeCity(await createCity(supervisor, name))
    for (const [formula, text] of Object.entries(formulas)) await city.formula(formula, text)
    return city
  }

  async formula(name: string, text: string): Promise<void> {
    const written = await putFormula(this.city, name, `formula = "${name}"\n${text}`)
    assert.ok(written.status === 201 || written.status === 200, written.text)
  }

  async launch(formula: string, more: object = {}): Promise<Molecule> {
    const body = { formula, ...more }
    const started = await this.city.api.ask(startMolecule, `${this.city.base}/molecules`, { body })
    assert.ok('id' in started)
    return started
  }

  async bead(title: string, more: object = {}): Promise<string> {
    return String(at((await this.city.post('/beads', { title, ...more })).body, 'id'))
  }

  readBead = (id: string): Promise<Bead> => this.city.api.ask(getBead, `${this.city.base}/beads/${id}`)
  molecule = (id: string): Promise<Molecule> => this.city.api.ask(getMolecule, `${this.city.base}/molecules/${id}`)
  step = (id: string, path: string): Promise<MoleculeStepView> =>
    this.city.api.ask(getMoleculeStep, `${this.city.base}/molecules/${id}/steps/${path}`)

  /** How each step stands, by its path. */
  async statuses(id: string, query = ''): Promise<Readonly<Record<string, string>>> {
    const path = `${this.city.base}/molecules/${id}/steps?limit=1000${query}`
    const { items } = await this.city.api.ask(listMoleculeSteps, path)
    return Object.fromEntries(items.map((step) => [step.id, step.status]))
  }

  is = (id: string, status: MoleculeStatus): Promise<Molecule> =>
    eventually(`${id} is ${status}`, async () => {
      const molecule = await this.molecule(id)
      return molecule.status === status ? molecule : undefined
    })

  stepIs = (id: string, path: string, status: string): Promise<MoleculeStepView> =>
    eventually(`${path} is ${status}`, async () => {
      const answer = await this.city.get(`/molecules/${id}/steps/${path}`)
      return at(answer.body, 'status') === status ? this.step(id, path) : undefined
    })

  /** The bead of a step that can be worked on. */
  async beadOf(id: string, path: string, status = 'ready'): Promise<string> {
    return (await this.stepIs(id, path, status)).bead_id ?? assert.fail('it has no bead')
  }

  close = (bead: string, body: object = {}): Promise<Answer> => this.city.post(`/beads/${bead}/close`, body)

  /** Closes the bead of a step as soon as there is one. */
  async finish(id: string, path: string, body: object = {}): Promise<void> {
    const closed = await this.close(await this.beadOf(id, path), body)
    assert.equal(closed.status, 200, closed.text)
  }
}

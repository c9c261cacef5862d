/** Files of formulas and orders over HTTP, for tests: what was sent is what a person would send. */
import { TOML_TYPE } from '../../src/contract/automation/documents.ts'
import { type FormulaDetail, getFormula } from '../../src/contract/automation/formulas.ts'
import type { ConfigCity } from './config-city.ts'
import type { Answer } from './http.ts'

export interface Writing {
  readonly query?: string
  readonly ifMatch?: string
}

function putDocument(
  city: ConfigCity,
  path: string,
  text: string,
  { query = '', ifMatch }: Writing = {},
): Promise<Answer> {
  const headers = { 'content-type': TOML_TYPE, ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }) }
  return city.api.call('PUT', `${city.base}${path}${query}`, { bytes: text, headers })
}

export const putFormula = (city: ConfigCity, name: string, text: string, writing?: Writing): Promise<Answer> =>
  putDocument(city, `/formulas/${encodeURIComponent(name)}`, text, writing)

export const putOrder = (city: ConfigCity, name: string, text: string, writing?: Writing): Promise<Answer> =>
  putDocument(city, `/orders/${encodeURIComponent(name)}`, text, writing)

export const formulaOf = (city: ConfigCity, name: string, query = ''): Promise<FormulaDetail> =>
  city.api.ask(getFormula, `${city.base}/formulas/${encodeURIComponent(name)}${query}`)

/** A formula with one step of this title. */
export const simpleFormula = (name: string, title = 'Do it'): string =>
  `formula = "${name}"\n[[steps]]\nid = "work"\ntitle = "${title}"\n`

export const simpleOrder = (exec = 'true'): string => `[order]\nexec = "${exec}"\ntrigger = "manual"\n`

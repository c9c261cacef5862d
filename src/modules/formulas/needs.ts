/** Formulas whose files are not valid. */
import type { CatalogFormula } from '../../automation/catalog.ts'
import { issueText, type NeedSource } from '../../kernel/needs.ts'

interface FormulaFiles {
  formulas(rig?: string): readonly CatalogFormula[]
  formula(name: string, rig?: string): CatalogFormula | undefined
}

/** As a subject: `name`, or `name:rig:RIG` where it is the rig's alone. */
const subjectOf = (name: string, rig: string | undefined): string => (rig === undefined ? name : `${name}:rig:${rig}`)

export function formulaNeeds(files: FormulaFiles, rigs: () => readonly string[]): NeedSource {
  const all = () => [
    ...files.formulas(),
    ...rigs().flatMap((rig) => files.formulas(rig).filter((one) => one.rig === rig)),
  ]
  return {
    name: 'formulas',
    types: ['formula.changed', 'config.reloaded'],
    subjectsOf: ({ type, subject, envelope }) => {
      if (type === 'config.reloaded' || subject === undefined) return all().map(({ name, rig }) => subjectOf(name, rig))
      const { payload }: { readonly payload: { readonly name: string; readonly rig?: string } } = JSON.parse(envelope)
      return [subjectOf(payload.name, payload.rig)]
    },
    subjects: () => all().map(({ name, rig }) => subjectOf(name, rig)),
    needsOf: (_, subject) => {
      const [name = '', rig] = subject.split(':rig:')
      const formula = files.formula(name, rig)
      const [first] = formula?.issues ?? []
      if (formula === undefined || first === undefined) return []
      return [
        {
          key: 'invalid',
          kind: 'formula_invalid',
          subject: { kind: 'formula', id: name, name: subject },
          title: `The formula ${name} is not valid`,
          detail: formula.issues.map(issueText).join('\n'),
          operations: [
            {
              operation: 'get-formula',
              params: { name },
              label: 'Look',
              command: `svcctl formula validate ${formula.file}`,
            },
          ],
        },
      ]
    },
  }
}

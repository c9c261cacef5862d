/** Files of formulas, compiled as a city does it that has nothing but one directory of them. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type CompiledFormula, compileFormula, type SourceFile } from '../../../src/automation/formula.ts'

export const sourceOf = (file: string): SourceFile => ({
  text: readFileSync(file, 'utf8'),
  file: basename(file),
  dir: dirname(file),
})

export function compiled(name: string, directory: string): CompiledFormula {
  const path = (formula: string) => join(directory, `${formula}.toml`)
  return compileFormula(name, {
    formula: (formula) => (existsSync(path(formula)) ? sourceOf(path(formula)) : undefined),
    fragment: () => undefined,
    formulaNames: () => globSync('*.toml', { cwd: directory }).map((file) => basename(file, '.toml')),
    fragmentNames: () => [],
  })
}

/** Formulas of a directory, as a city has them. */

import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { CompiledFormula, FormulaSources, SourceFile } from '../../src/automation/formula.ts'

/** Where formulas and fragments are looked up that are given as texts. */
export function sourcesOf(
  formulas: Readonly<Record<string, string>>,
  fragments: Readonly<Record<string, string>> = {},
): FormulaSources {
  const files = new Map(
    Object.entries(formulas).map(([name, text]): [string, SourceFile] => [
      name,
      { text, file: `formulas/${name}.toml`, dir: '/city/formulas' },
    ]),
  )
  const texts = new Map(Object.entries(fragments))
  return {
    formula: (name) => files.get(name),
    fragment: (name) => texts.get(name),
    formulaNames: () => files.keys(),
    fragmentNames: () => texts.keys(),
  }
}

/** Those of a directory. */
export function sourcesIn(directory: string): FormulaSources {
  const texts = (pattern: string, ending: string) =>
    Object.fromEntries(
      globSync(pattern, { cwd: directory }).map((file) => [
        basename(file, ending),
        readFileSync(join(directory, file), 'utf8'),
      ]),
    )
  return sourcesOf(texts('*.toml', '.toml'), texts('*.template.md', '.template.md'))
}

/** One line for each issue, as a person reads them. */
export const issueLines = ({ issues }: Pick<CompiledFormula, 'issues'>): readonly string[] =>
  issues.map(
    ({ file, line, column, key, message, hint }) =>
      `${file}:${line}:${column} ${key}: ${message}${hint === undefined ? '' : ` (${hint})`}`,
  )

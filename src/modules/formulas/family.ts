/** Formulas, and the files of orders, as the supervisor joins them. */
import { orderDocumentOperations } from '../../contract/automation/documents.ts'
import { formulaOperations } from '../../contract/automation/formulas.ts'
import { type ConfigFiles, diskFiles } from '../../files/files.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { Catalog, type CatalogDeps } from './catalog/catalog.ts'
import type { DocumentEdits } from './edit.ts'
import { createFormulaHandlers, type FormulaCity } from './handlers.ts'
import { formulaNeeds } from './needs.ts'
import { FORMULAS_SCHEMA } from './schema.ts'

type Given<View> = Omit<DocumentEdits<View>, 'catalog'>
export interface FormulaContext<View>
  extends Given<View>,
    Pick<CatalogDeps, 'name' | 'clock' | 'log' | 'store'>,
    Pick<FormulaCity<View>, 'rigVars' | 'city' | 'rig' | 'bead' | 'resolveTarget'> {
  /** The files that go with the configuration in force; those on disk where that is refused. */
  readonly files: () => ConfigFiles
  readonly rigNames: () => readonly string[]
  readonly onChange: (listener: () => void) => () => void
  /** What is on disk was looked at, and what is in force stayed as it was. */
  readonly onLooked: (listener: () => void) => () => void
}

interface Opened<View> extends FormulaCity<View> {
  readonly rigNames: () => readonly string[]
  readonly stop: () => void
}

export const formulaFamily = <View>() =>
  defineFamily({
    operations: [...formulaOperations, ...orderDocumentOperations],
    schema: migrationsOf('formulas', FORMULAS_SCHEMA),
    handlers: createFormulaHandlers<View>,
    opensIn: 'resolving_formulas',
    open: async (context: FormulaContext<View>, signal): Promise<Opened<View>> => {
      const { files, onChange, onLooked, config, layout, dir, settings, ...rest } = context
      const catalog = new Catalog({ ...rest, files, layout: () => layout(config.current()) })
      const stops = [onChange(() => catalog.look()), onLooked(() => catalog.look(diskFiles()))]
      const stop = () => {
        for (const one of stops) one()
      }
      try {
        await catalog.open(signal)
      } catch (error) {
        stop()
        throw error
      }
      return { ...rest, catalog, edits: { dir, config, catalog, layout, settings }, stop }
    },
    needs: ({ catalog, rigNames }) => [formulaNeeds(catalog, rigNames)],
    close: ({ catalog, stop }) => {
      stop()
      return catalog.close()
    },
  })

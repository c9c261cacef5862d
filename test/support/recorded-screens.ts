/** Screens of real harnesses, recorded as the bytes of their terminals; `index.json` says what each of them is. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const PLACE = join(import.meta.dirname, '../fixtures/screens')

export interface RecordedScreen {
  readonly file: string
  readonly harness: string
  readonly columns: number
  readonly rows: number
  readonly expect: {
    readonly activity: 'idle' | 'busy' | 'dialog' | 'half-typed'
    readonly dialog?: { readonly kind: 'approval' | 'question' | 'startup'; readonly options?: readonly string[] }
  }
}

export const RECORDED: readonly RecordedScreen[] = JSON.parse(readFileSync(join(PLACE, 'index.json'), 'utf8'))

export const bytesOf = ({ file }: RecordedScreen): Buffer => readFileSync(join(PLACE, file))
